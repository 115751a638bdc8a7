"""What was put is found by its words and its meaning, what is gone is not, and every number is true."""

import itertools
import math
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.config import MODEL
from kernel.embed.model import Embedder
from kernel.search import index
from kernel.search.index import Document, Hit, Weights, fuse
from kernel.store.context import CallContext
from kernel.store.sqlite.connection import Connection
from kernel.store.transaction import Tx
from tests.conftest import Clock
from tests.unit.index_fixtures import SOMEBODY, Shelf, shelf_in

ALIKE = "The quarterly budget review takes place in the blue meeting room"
MODEL_OF_TESTS = Embedder(MODEL)


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    with shelf_in(tmp_path) as opened:
        yield opened


@pytest.fixture
def wordy(tmp_path: Path) -> Iterator[Shelf]:
    """A shelf without an embedding model."""
    with shelf_in(tmp_path, None) as opened:
        yield opened


def cosine(one: str, other: str) -> float:
    """By the model's own numbers, none of ours."""
    first, second = (np.frombuffer(found.vector, np.int8).astype(float) for found in MODEL_OF_TESTS.embed([one, other]))
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


def put(key: str, text: str, space: str = "shelf", scope: str = "") -> Callable[[Tx], None]:
    return lambda tx: index.put(tx, space, key, text, scope=scope)


def drop(key: str, space: str = "shelf") -> Callable[[Tx], None]:
    return lambda tx: index.drop(tx, space, key)


def steps(*works: Callable[[Tx], Any]) -> Callable[[Tx], Any]:
    """The answer of the last step, all of them in one transaction."""
    return lambda tx: [work(tx) for work in works][-1]


def found(text: str, **options: Any) -> Callable[[Tx], set[str]]:
    return lambda tx: {hit.id for hit in index.search(tx, text, **options)}


def held(shelf: Shelf) -> dict[str, list[tuple[Any, ...]]]:
    """Everything the index stores, table by table."""
    tables = ["doc", "doc_vector", "doc_place", "doc_fts_data", "doc_fts_docsize", "sqlite_sequence"]
    return {table: shelf.reader.values(f"SELECT * FROM {table} ORDER BY 1") for table in tables}


def test_a_text_without_any_token_is_kept_alone_and_among_others(shelf: Shelf) -> None:
    shelf.put(["\ufffe\U0001f600\u202e"])
    shelf.put(["", "a cat", "\u2066"], first=1)

    assert shelf.reader.values("SELECT doc, length(tokens) > 0 FROM doc_vector") == [(1, 0), (2, 0), (3, 1), (4, 0)]
    assert shelf.write(found("cat")) == {"2"}


def test_a_text_put_again_keeps_its_number_and_one_dropped_before_gets_a_new_one(shelf: Shelf) -> None:
    shelf.put(["A cat", "A dog", "A bird"])
    shelf.put(["A fox"], first=1)
    shelf.drop(["0"])
    shelf.put(["A wolf"], first=0)

    documents = shelf.write(lambda tx: index.documents(tx, [1, 2, 3, 4]))

    assert [(number, document.text) for number, document in sorted(documents.items())] == [
        (2, "A fox"),
        (3, "A bird"),
        (4, "A wolf"),
    ]
    assert shelf.write(found("dog", semantic=False)) == set()
    assert shelf.write(found("fox", semantic=False)) == {"1"}


def test_a_hit_carries_the_rank_of_its_words_and_the_cosine_and_distance_of_its_meaning(shelf: Shelf) -> None:
    texts = ["The cat sat on the mat", "A kitten rests on a rug", "Interest rates rose again"]
    shelf.put(texts)

    hits = {hit.id: hit for hit in shelf.search("cat on a mat")}

    for key, text in enumerate(texts):
        hit, similarity = hits[str(key)], cosine("cat on a mat", text)
        near: Any = pytest.approx(similarity, abs=1e-3)
        far: Any = pytest.approx(math.sqrt(2 - 2 * similarity), abs=1e-3)
        assert hit._replace(text_rank=None) == Hit(
            key + 1,
            "shelf",
            str(key),
            None,
            far,
            near,
            None,
        )
    assert [hits[key].text_rank is None for key in "012"] == [False, True, True]
    assert (hits["0"].text_rank or 0) > 0


@pytest.mark.parametrize("text", ["", " \t\n", "\u3000"])
def test_nothing_is_found_for_nothing(shelf: Shelf, text: str) -> None:
    shelf.put(["something"])

    assert shelf.search(text) == []


def test_nothing_is_found_in_an_empty_index(shelf: Shelf) -> None:
    assert shelf.search("anything") == []
    assert shelf.search("anything", within=[("shelf", None)]) == []


def test_each_signal_can_be_left_out(shelf: Shelf) -> None:
    shelf.put(["The cat sat on the mat", "A kitten rests on a rug"])

    assert [(hit.id, hit.similarity, hit.distance) for hit in shelf.search("cat", semantic=False)] == [
        ("0", None, None)
    ]
    assert {(hit.id, hit.text_rank) for hit in shelf.search("cat", lexical=False)} == {("0", None), ("1", None)}
    assert shelf.search("cat", lexical=False, semantic=False) == []


def test_a_hit_by_words_beyond_the_limit_by_meaning_has_its_similarity_all_the_same(shelf: Shelf) -> None:
    far = "zebra " + "invoice payment overdue accounting ledger " * 20
    shelf.put([far, *[f"the striped animal number {number} of the savanna" for number in range(50)]])

    hits = {hit.id: hit for hit in shelf.search("zebra", limit=5)}

    assert len(hits) == 6
    assert hits["0"].similarity == pytest.approx(cosine("zebra", far), abs=1e-3)


def test_at_most_the_limit_is_found_by_each_signal(shelf: Shelf) -> None:
    shelf.put([f"zebra number {number}" for number in range(40)])

    assert len(shelf.search("zebra", limit=7, semantic=False)) == 7
    assert len(shelf.search("zebra", limit=7, lexical=False)) == 7
    assert 7 <= len(shelf.search("zebra", limit=7)) <= 14


def test_without_a_model_words_alone_are_searched_and_nothing_is_embedded(wordy: Shelf) -> None:
    wordy.put(["The cat sat on the mat", "A kitten rests on a rug"])

    (hit,) = wordy.search("cat")

    assert hit._replace(text_rank=None) == Hit(1, "shelf", "0", None, None, None, None)
    assert wordy.search("cat", lexical=False) == []
    assert wordy.reader.values("SELECT count(*) FROM doc_vector") == [(0,)]


def test_a_text_the_model_has_no_token_for_is_found_by_its_words(shelf: Shelf) -> None:
    shelf.put(["\U00013000\U00013001", "a hieroglyph"])

    assert [(hit.id, hit.similarity) for hit in shelf.search("\U00013000\U00013001")] == [("0", None)]
    assert "0" not in shelf.keys("a hieroglyph", lexical=False)


def test_putting_again_replaces_what_was_findable_by_words_and_by_meaning(shelf: Shelf) -> None:
    shelf.put(["The cat sat on the mat"])
    shelf.search("warm the sketches")
    shelf.put(["Interest rates rose again"])

    assert shelf.by_words("cat mat") == set()
    assert shelf.by_words("interest rates") == {"0"}
    (hit,) = shelf.search("The cat sat on the mat")
    assert hit.similarity == pytest.approx(cosine("The cat sat on the mat", "Interest rates rose again"), abs=1e-3)
    assert shelf.reader.values("SELECT count(*) FROM doc_vector") == [(1,)]


def test_a_dropped_document_is_gone_and_dropping_it_again_is_nothing(shelf: Shelf) -> None:
    shelf.put(["The cat sat on the mat", "A kitten rests on a rug"])
    shelf.search("warm the sketches")

    shelf.drop(["0", "0", "nobody"])
    shelf.drop(["0"])

    assert shelf.keys("The cat sat on the mat") == {"1"}


def test_dropping_a_scope_leaves_the_others(shelf: Shelf) -> None:
    shelf.put(["cat one"], scope="a")
    shelf.put(["cat two"], scope="b", first=1)
    shelf.put(["cat three"], "other", scope="a")

    shelf.write(steps(put("9", "cat nine", scope="a"), lambda tx: index.drop_scope(tx, "shelf", "a")))

    assert {(hit.space, hit.id) for hit in shelf.search("cat")} == {("shelf", "1"), ("other", "0")}


def test_clearing_a_dialect_leaves_the_others(shelf: Shelf) -> None:
    for number, space in enumerate(["brain", "brain:core", "brain:dnd", "brainy", "notes:brain"]):
        shelf.put([f"cat {space}"], space, scope="a", first=number)

    shelf.write(steps(put("9", "cat nine", "brain:core"), lambda tx: index.clear(tx, "brain")))

    assert {hit.space for hit in shelf.search("cat")} == {"brainy", "notes:brain"}


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ([put("k", "cat"), drop("k"), put("k", "dog")], {"dog"}),
        ([put("k", "cat"), put("k", "dog")], {"dog"}),
        ([put("k", "cat"), drop("k")], set()),
        ([drop("k"), put("k", "cat")], {"cat"}),
        ([drop("k"), drop("k")], set()),
        ([put("k", "cat"), found("cat"), drop("k"), found("cat"), put("k", "dog")], {"dog"}),
        ([put("k", "cat"), found("cat"), put("k", "dog"), drop("k")], set()),
    ],
)
@pytest.mark.parametrize("before", [None, "bird"])
def test_the_last_word_of_a_transaction_counts(
    shelf: Shelf, before: str | None, order: list[Callable[[Tx], Any]], expected: set[str]
) -> None:
    if before:
        shelf.write(put("k", before))

    shelf.write(steps(*order))

    assert {word for word in ("cat", "dog", "bird") if shelf.by_words(word)} == expected
    assert len(shelf.search("an animal", lexical=False)) == len(expected)
    assert shelf.reader.values("SELECT count(*) FROM doc") == [(len(expected),)]


@pytest.mark.parametrize("together", [True, False])
def test_a_document_put_after_a_drop_is_born_then(shelf: Shelf, clock: Clock, together: bool) -> None:
    shelf.write(put("k", "cat"))
    clock.move(hours=1)
    for work in [steps(drop("k"), put("k", "dog"))] if together else [drop("k"), put("k", "dog")]:
        shelf.write(work)

    (doc,) = (hit.doc for hit in shelf.search("dog"))
    (found,) = shelf.reader.read(SOMEBODY, lambda tx: index.documents(tx, [doc])).values()
    assert (found.created_at, found.updated_at) == (clock.now, clock.now)


def test_a_document_keeps_its_birth_and_takes_on_the_time_and_caller_of_its_last_put(
    shelf: Shelf, clock: Clock
) -> None:
    shelf.write(put("k", "cat"), CallContext("paths", "add_memory", "ann"))
    born = clock.now
    clock.move(hours=1)
    shelf.write(put("k", "dog", scope="there"), CallContext("paths", "replace_memory", "bob"))

    (doc,) = (hit.doc for hit in shelf.search("dog"))

    expected = Document(
        doc, "shelf", "k", "there", "dog", "paths", "replace_memory", "bob", "2026-01-02T03:04:05.678Z", clock.now
    )
    assert born == "2026-01-02T03:04:05.678Z"
    assert shelf.reader.read(SOMEBODY, lambda tx: index.documents(tx, [doc, 999])) == {doc: expected}
    keys = [("shelf", "nobody"), ("shelf", "k"), ("other", "k")]
    assert shelf.reader.read(SOMEBODY, lambda tx: index.doc_ids(tx, keys)) == [doc]


def test_spaces_and_scopes_bound_a_search(shelf: Shelf) -> None:
    for number, (space, scope) in enumerate(itertools.product("xy", "ab")):
        shelf.put(["cat"], space, scope=scope, first=number)

    def within(*places: tuple[str, str | None]) -> set[str]:
        assert shelf.by_words("cat", within=places) == shelf.keys("cat", lexical=False, within=places)
        return shelf.keys("cat", within=places)

    assert within(("x", "a")) == {"0"}
    assert within(("x", None)) == {"0", "1"}
    assert within(("x", "b"), ("y", "a")) == {"1", "2"}
    assert within(("x", None), ("x", "a")) == {"0", "1"}
    assert within(("x", "c")) == within(("z", None)) == within() == set()


def test_the_places_of_spaces_and_scopes_are_listed(shelf: Shelf) -> None:
    for space, scope in itertools.product("xy", "ab"):
        shelf.put(["cat"], space, scope=scope)

    def listed(
        spaces: list[str] | None, scope: str | None, dialects: list[str] | None = None
    ) -> set[tuple[str, str | None]]:
        return set(shelf.reader.read(SOMEBODY, lambda tx: index.partitions_of(tx, spaces, dialects, scope)))

    assert listed(None, None) == {("x", "a"), ("x", "b"), ("y", "a"), ("y", "b")}
    assert listed(["x", "z"], None) == {("x", "a"), ("x", "b")}
    assert listed(None, "b") == {("x", "b"), ("y", "b")}
    assert listed(["x"], "b") == {("x", "b")}
    assert listed([], None) == listed(None, "c") == set()
    shelf.put(["cat"], "x:core")
    assert listed(None, None, ["x"]) == {("x", "a"), ("x", "b"), ("x:core", "")}
    assert listed(None, None, ["x:core"]) == listed(["y"], None, ["x"]) == set()


def test_a_moved_document_is_found_where_it_went_and_not_where_it_was(shelf: Shelf) -> None:
    shelf.put(["cat"], scope="a")
    shelf.search("warm the sketches")
    shelf.put(["cat"], scope="b")

    assert shelf.keys("cat", within=[("shelf", "a")]) == set()
    assert shelf.keys("cat", within=[("shelf", "b")]) == {"0"}


@pytest.mark.parametrize("writing", [False, True], ids=["reading", "writing"])
def test_one_document_is_found_in_its_place_beside_thousands_that_match_better(shelf: Shelf, writing: bool) -> None:
    shelf.put([f"{ALIKE} {number}" for number in range(3000)], "big")
    shelf.put(["The yearly budget is discussed somewhere else"], "small")
    within = [("small", None)]

    def search(text: str, **options: Any) -> list[Hit]:
        work = steps(put("new", ALIKE, "big"), lambda tx: index.search(tx, text, within=within, **options))
        return shelf.undo(work) if writing else shelf.search(text, within=within, **options)

    assert [(hit.space, hit.id) for hit in search(ALIKE, lexical=False)] == [("small", "0")]
    assert [(hit.space, hit.id) for hit in search("quarterly budget", semantic=False)] == [("small", "0")]
    (hit,) = search(ALIKE)
    assert hit.text_rank is not None
    assert hit.similarity is not None


def test_a_rare_word_of_another_place_does_not_hide_the_common_words_of_this_one(wordy: Shelf) -> None:
    wordy.put(["zebra"], "elsewhere")
    wordy.put([f"common {number}" for number in range(2000)], "elsewhere", first=1)
    wordy.put(["common ground"], "here")
    wordy.put([f"here also {number} common" for number in range(2500)], "crowd")

    assert wordy.keys("zebra common", within=[("here", None)]) == {"0"}
    assert wordy.keys("zebra common", within=[("crowd", None)])


def test_the_best_of_each_place_are_those_that_a_search_of_that_place_alone_finds(wordy: Shelf) -> None:
    wordy.put([f"common {number % 9} {'birch' if number % 40 else 'cedar'}" for number in range(3000)], "large")
    wordy.put([f"common {number % 9}" for number in range(2500)] + ["common cedar"], "other")
    wordy.put(["common ground", "birch", "cedar birch", "alder"], "small")
    places: list[tuple[str, str | None]] = [("large", None), ("other", None), ("small", None), ("nowhere", None)]

    for text in ("cedar common", "birch common", "common", "alder common", "alder cedar 3", "alder", "gone"):
        together = wordy.search(text, within=places, limit=7, semantic=False, per_partition=True)
        alone = {place[0]: wordy.by_words(text, within=[place], limit=3000) for place in places}
        for space, keys in alone.items():
            found = [hit.id for hit in together if hit.space == space]
            assert len(found) == len(set(found)) == min(7, len(keys)), (text, space)
            assert set(found) <= keys
            also = {hit.id for hit in wordy.search(text, within=places, limit=7, per_partition=True)}
            assert also >= {hit.id for hit in together}, text
    assert wordy.search("cedar", within=[("nowhere", None)], semantic=False, per_partition=True) == []


def test_a_rare_word_that_is_gone_does_not_hide_the_common_ones(wordy: Shelf) -> None:
    wordy.put([f"common {number % 7}" if number % 5 else "other" for number in range(3000)])
    wordy.put(["unicorn"], first=3000)
    assert wordy.keys("unicorn common") == {"3000"}

    wordy.drop(["3000"])

    assert len(wordy.keys("unicorn common", limit=50)) == 50


def test_a_word_that_looks_like_the_mark_of_a_place_is_a_word(wordy: Shelf) -> None:
    wordy.put(["a P1 incident in the payment service", "an incident without a level", "q1 planning"], "notes")

    best, *_ = sorted(wordy.search("p1 incident"), key=lambda hit: -(hit.text_rank or 0))

    assert best.id == "0"
    assert wordy.keys("p1") == {"0"}
    assert wordy.keys("quipuplace1") == wordy.keys("notes") == set()


@pytest.mark.parametrize("burst", [500, 5000])
def test_a_burst_of_deletions_starves_no_search(shelf: Shelf, burst: int) -> None:
    shelf.put([f"{ALIKE} {number}" for number in range(burst)])
    shelf.put([f"My cat has the number {number}" for number in range(20)], first=burst)
    assert len(shelf.keys(ALIKE, lexical=False)) == 100

    shelf.drop([str(number) for number in range(burst)])

    rest = {str(number) for number in range(burst, burst + 20)}
    assert shelf.undo(steps(put("new", "unseen"), found(ALIKE, lexical=False))) == rest | {"new"}
    assert shelf.keys(ALIKE, lexical=False) == rest
    assert shelf.keys(ALIKE, lexical=False, within=[("shelf", "")]) == rest


def test_near_duplicates_are_all_candidates_and_the_true_best_comes_out(shelf: Shelf) -> None:
    shelf.put(["one and the same text"] * 3000)
    shelf.put(["one and the same text, but for this"], first=3000)

    best = max(shelf.search("one and the same text, but for this"), key=lambda hit: hit.similarity or -1)

    assert best.id == "3000"
    assert best.similarity == pytest.approx(1, abs=1e-6)


def test_a_transaction_finds_what_it_put_and_not_what_it_dropped(shelf: Shelf) -> None:
    shelf.put(["The cat sat on the mat", "A kitten rests on a rug"])
    cats = found("The cat sat on the mat")

    shelf.search("warm the sketches")
    assert shelf.write(steps(cats)) == {"0", "1"}
    assert shelf.write(steps(put("2", "My cat sat on my mat"), cats)) == {"0", "1", "2"}
    assert shelf.write(steps(drop("0"), put("1", "Interest rates"), cats)) == {"1", "2"}
    assert shelf.keys("The cat sat on the mat") == {"1", "2"}


def test_the_first_search_of_a_process_finds_everything_even_while_writing(tmp_path: Path) -> None:
    with shelf_in(tmp_path) as first:
        first.put(["My cat has a name"])
        first.put([f"{ALIKE} {number}" for number in range(3000)], first=1)
    with shelf_in(tmp_path) as fresh:
        assert "0" in fresh.undo(steps(put("new", "unseen"), found("a cat", lexical=False, limit=5)))
    with shelf_in(tmp_path) as fresh:
        assert "0" in fresh.write(found("a cat", lexical=False, limit=5))


def test_a_rolled_back_transaction_leaves_no_trace(shelf: Shelf) -> None:
    shelf.put(["The cat sat on the mat", "Interest rates rose again"])
    asked: list[dict[str, Any]] = [{}, {"lexical": False}, {"semantic": False}, {"within": [("shelf", None)]}]
    before, seen = held(shelf), [shelf.search("cat rates unicorn", **options) for options in asked]

    shelf.undo(
        steps(
            put("2", "A unicorn in the garden"),
            drop("0"),
            put("1", "a cat"),
            found("unicorn cat rates"),
            drop("2"),
            found("unicorn"),
            lambda tx: index.drop_scope(tx, "shelf", ""),
            found("unicorn cat rates"),
        )
    )

    assert held(shelf) == before
    assert [shelf.search("cat rates unicorn", **options) for options in asked] == seen
    assert [len(hits) for hits in seen] == [2, 2, 2, 2]


def test_ids_used_again_after_a_rollback_are_those_of_the_new_documents(shelf: Shelf) -> None:
    shelf.put(["Interest rates rose again"])
    shelf.search("warm the sketches")
    haunted: dict[str, Any] = {"within": [("haunted", None)]}

    def ghosts(tx: Tx) -> list[Hit]:
        for number in range(50):
            index.put(tx, "haunted", f"ghost {number}", f"The cat sat on the mat {number}")
        return index.search(tx, "The cat sat on the mat", **haunted)

    undone = shelf.undo(ghosts)
    shelf.put([f"Quantum physics lecture {number}" for number in range(100)], first=1)
    shelf.put([f"The cat sat on the mat {number}" for number in range(2000)], first=101)

    assert len(undone) == 50
    assert {hit.doc for hit in undone} == set(range(2, 52))
    assert shelf.search("The cat", **haunted) == []
    with shelf_in(shelf.file.parent) as fresh:  # knows nothing of what was undone
        for text in ("Quantum physics lecture 3", "The cat sat on the mat 7", "Interest rates"):
            for within in (None, [("shelf", "")], [("shelf", None)]):
                options: dict[str, Any] = {"within": within, "lexical": False, "limit": 20}
                assert sorted(shelf.search(text, **options)) == sorted(fresh.search(text, **options))
    assert {hit.id for hit in shelf.search("Quantum physics lecture", lexical=False)} == set(map(str, range(1, 101)))


def test_a_transaction_that_changed_nothing_yet_keeps_what_it_read_for_others(shelf: Shelf) -> None:
    shelf.put([f"a cat named {number}" for number in range(30)])
    sketches = shelf.world.search_cache.sketches

    shelf.write(steps(put("30", "one more cat"), found("a cat")))
    assert sketches.last == 0

    shelf.write(steps(found("a cat"), put("31", "and one more"), found("a cat")))
    assert sketches.last == 31


def test_words_counted_in_a_rolled_back_transaction_are_not_remembered(wordy: Shelf) -> None:
    wordy.put([f"common {number % 7}" if number % 5 else "other" for number in range(3000)])
    wordy.search("warm common")

    wordy.undo(steps(put("new", "quagga"), found("quagga common", limit=5)))

    assert wordy.world.search_cache.document_frequencies(
        3000, ["quagga"], lambda missing: dict.fromkeys(missing, 0)
    ) == {"quagga": 0}
    assert len(wordy.keys("quagga common", limit=50)) == 50


def test_an_older_reader_does_not_make_newer_ones_forget(shelf: Shelf) -> None:
    shelf.put(["one cat"])
    newer = Connection(shelf.file, shelf.world, readonly=True)
    newer.load_vectors()

    def older(tx: Tx) -> set[str]:
        assert found("a cat", lexical=False)(tx) == {"0"}
        shelf.put(["another cat"], first=1)
        assert newer.read(SOMEBODY, found("a cat", lexical=False)) == {"0", "1"}
        return found("a cat", lexical=False)(tx)

    assert shelf.reader.read(SOMEBODY, older) == {"0"}
    assert newer.read(SOMEBODY, found("a cat", lexical=False)) == {"0", "1"}
    newer.close()


def test_readers_beside_a_writer_find_all_that_was_there_when_they_began(shelf: Shelf) -> None:
    shelf.put(["a cat named Zero"])
    counts = list(range(1, 31))
    wrong: list[Any] = []
    done = threading.Event()
    committed = [1]

    def read() -> None:
        reader = Connection(shelf.file, shelf.world, readonly=True)
        reader.load_vectors()
        while not done.is_set():
            least = committed[0]
            keys = reader.read(SOMEBODY, found("a cat", lexical=False, limit=1000, within=[("shelf", None)]))
            if len(keys) < least:
                wrong.append((least, keys))
        reader.close()

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in counts:
        shelf.undo(steps(put("ghost", "a ghost of a cat", "haunted"), drop("0"), found("a cat", lexical=False)))
        shelf.write(steps(put(str(number), f"a cat named {number}"), found("a cat", lexical=False)))
        committed[0] += 1
    done.set()
    for thread in threads:
        thread.join()

    assert wrong == []
    assert shelf.keys("a cat", lexical=False, limit=1000, within=[("shelf", "")]) == {"0", *map(str, counts)}


def test_what_follows_a_nul_character_is_found_like_the_rest(shelf: Shelf) -> None:
    shelf.put(["alpha\0omega"])

    assert shelf.by_words("omega") == shelf.by_words("alpha\0omega") == shelf.by_words("nothing\0alpha") == {"0"}
    assert [doc.text for doc in shelf.reader.read(SOMEBODY, lambda tx: index.documents(tx, [1])).values()] == [
        "alpha\0omega"
    ]


def test_a_megabyte_of_text_is_found_by_its_last_word_and_can_be_searched_for(shelf: Shelf) -> None:
    text = " ".join(f"word{number}" for number in range(110_000)) + " coda"
    shelf.put([text, "word7 alone"])

    assert len(text) > 1_000_000
    assert shelf.by_words("coda") == {"0"}
    assert shelf.by_words(text) == {"0"}


@pytest.mark.parametrize("text", ["\ud800", "a \udfff b"])
def test_a_lone_surrogate_is_no_text(shelf: Shelf, text: str) -> None:
    before = held(shelf)

    with pytest.raises(UnicodeEncodeError):
        shelf.put([text])
    with pytest.raises(UnicodeEncodeError):
        shelf.search(text)
    assert held(shelf) == before


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.none() | st.sampled_from(["cat", "dog", "fish"])), max_size=12))
def test_the_index_holds_what_the_last_puts_and_drops_left(
    tmp_path_factory: pytest.TempPathFactory, moves: list[tuple[str, str | None]]
) -> None:
    truth: dict[str, str] = {}
    with shelf_in(tmp_path_factory.mktemp("moves")) as shelf:
        for number, (key, text) in enumerate(moves):
            work = drop(key) if text is None else put(key, text)
            if number % 4 == 3:
                shelf.undo(steps(work, found("cat")))
            else:
                shelf.write(work if number % 2 else steps(found("dog"), work))
                truth = {**truth, key: text} if text else {name: kept for name, kept in truth.items() if name != key}
            animals = ("cat", "dog", "fish")
            assert {word: shelf.by_words(word) for word in animals} == {
                word: {name for name, kept in truth.items() if kept == word} for word in animals
            }
            assert shelf.keys("an animal", lexical=False) == set(truth)


def hit(doc: int, text: float | None = None, meaning: float | None = None) -> Hit:
    return Hit(doc, "s", str(doc), text, None, meaning)


@pytest.mark.parametrize(
    ("hits", "expected"),
    [
        ([], []),
        ([hit(1, 4.0, 0.8), hit(2, 2.0, 0.8), hit(3, None, 0.4)], [(1, 1.0), (2, 0.7), (3, 0.2)]),
        ([hit(1, 4.0), hit(2, 1.0)], [(1, 1.0), (2, 0.25)]),
        ([hit(1, None, 0.5), hit(2, None, 0.25)], [(1, 1.0), (2, 0.5)]),
        ([hit(1, 4.0, None), hit(2, None, 0.5)], [(1, 0.6), (2, 0.4)]),
        ([hit(2, 3.0, 0.5), hit(1, 3.0, 0.5)], [(1, 1.0), (2, 1.0)]),
        ([hit(1, 2.0, -0.5), hit(2, None, 0.5)], [(1, 0.6), (2, 0.4)]),
        ([hit(2, None, -0.5), hit(1, None, -0.1)], [(1, 0.0), (2, 0.0)]),
        ([hit(2, 0.0, 0.0), hit(1)], [(1, 0.0), (2, 0.0)]),
    ],
)
def test_scores_are_weighted_sums_of_each_signal_over_its_best(
    hits: list[Hit], expected: list[tuple[int, float]]
) -> None:
    scored = [(one.hit.doc, one.score) for one in fuse(hits, Weights(0.6, 0.4))]

    assert scored == [(doc, pytest.approx(score)) for doc, score in expected]


BOTH = Weights(0.6, 0.4)
RANKS = st.none() | st.floats(1e-9, 1e6)
COSINES = st.none() | st.floats(-1, 1, allow_subnormal=False).map(
    lambda cosine: cosine if abs(cosine) > 1e-300 else 0.0
)
HITS = st.lists(st.tuples(RANKS, COSINES), max_size=20).map(
    lambda pairs: [hit(doc, *pair) for doc, pair in enumerate(pairs)]
)
WEIGHT = st.floats(0.01, 1)


@given(HITS, WEIGHT, WEIGHT)
def test_scores_lie_between_nought_and_one_best_first_and_nobody_is_lost(
    hits: list[Hit], text: float, meaning: float
) -> None:
    fused = fuse(hits, Weights(text, meaning))
    scores = [one.score for one in fused]

    assert sorted(one.hit for one in fused) == sorted(hits)
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


@given(HITS, st.integers(-8, 8), st.integers(0, 8), st.randoms())
def test_the_order_depends_neither_on_the_scale_of_a_signal_nor_on_the_order_of_the_hits(
    hits: list[Hit], text: int, meaning: int, random: Any
) -> None:
    scaled = [
        found._replace(
            text_rank=None if found.text_rank is None else found.text_rank * 2.0**text,
            similarity=None if found.similarity is None else found.similarity / 2.0**meaning,
        )
        for found in random.sample(hits, len(hits))
    ]

    assert [one.hit.doc for one in fuse(scaled, BOTH)] == [one.hit.doc for one in fuse(hits, BOTH)]


def test_a_model_that_cannot_be_read_costs_the_vectors_and_nothing_else(shelf: Shelf, monkeypatch: Any) -> None:
    def broken(_self: Any, _texts: Any) -> Any:
        raise OSError("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(Embedder, "embed", broken)
        shelf.put(["a cat on a mat"])
        (hit,) = shelf.reader.read(SOMEBODY, lambda tx: index.search(tx, "cat"))
        assert (hit.id, hit.similarity) == ("0", None)
    (hit,) = shelf.reader.read(SOMEBODY, lambda tx: index.search(tx, "cat"))
    assert (hit.id, hit.similarity) == ("0", None)


def test_a_filter_never_starves_the_result(shelf: Shelf) -> None:
    shelf.put([f"red apples and green pears {number}" for number in range(900)])
    wanted = {"3", "500", "899"}

    def sifted(limit: int, **options: Any) -> set[str]:
        def keep(hits: list[Hit]) -> list[Hit]:
            return [hit for hit in hits if hit.id in wanted]

        return {
            hit.id
            for hit in shelf.reader.read(
                SOMEBODY, lambda tx: index.search_filtered(tx, "red apples", keep, limit=limit, **options)
            )
        }

    assert shelf.keys("red apples") & wanted != wanted
    for options in ({}, {"lexical": False}, {"semantic": False}):
        assert sifted(3, **options) == sifted(10, **options) == wanted
    assert sifted(3, within=[("elsewhere", None)]) == set()


def test_further_words_find_a_document_and_mean_nothing(shelf: Shelf) -> None:
    shelf.put([ALIKE])
    shelf.write(lambda tx: index.put(tx, "shelf", "tagged", ALIKE, words="finance 会議室"))

    assert [shelf.by_words(words) for words in ("finance", "会議", "budget")] == [
        {"tagged"},
        {"tagged"},
        {"0", "tagged"},
    ]
    assert {hit.similarity for hit in shelf.search("budget review")} == {shelf.search("budget review")[0].similarity}

    shelf.write(put("tagged", ALIKE))
    assert shelf.by_words("finance") == set()


@pytest.mark.parametrize(
    ("query", "text", "share"),
    [
        ("red apples", "An apple, red and round", 1.0),
        ("red apples", "pears", 0.0),
        ("red pears", "Red.", 0.5),
        ("what is the database", "DATABASES", 1.0),
        ("会議", "今日の会議", 1.0),
        ("会", "今日の会議", 1.0),
        ("会議 red", "今日の会議", 0.5),
        ("...", "anything", 0.0),
        ("pear\0red", "x\0red", 0.5),
    ],
)
def test_coverage_is_the_part_of_the_words_that_a_text_holds(shelf: Shelf, query: str, text: str, share: float) -> None:
    assert shelf.reader.read(SOMEBODY, lambda tx: index.coverage(tx, query, [text, ""])) == [share, 0.0]


@pytest.mark.parametrize("size", [30, 3000])
def test_places_that_hold_most_of_the_index_are_searched_like_the_others(shelf: Shelf, size: int) -> None:
    """Above a size words are looked up everywhere and the places of what is found compared."""
    texts = [f"cords number {number % 50}" for number in range(size)]
    shelf.put(texts, scope="wide")
    shelf.put([f"{text} elsewhere" for text in texts[:5]], space="other")

    hits = shelf.search("cords number 7", within=[("shelf", "wide")], limit=size)
    words = shelf.search("cords number 7", within=[("shelf", "wide")], limit=size, semantic=False)

    assert {hit.space for hit in hits} == {"shelf"}
    assert {int(hit.id) for hit in words} >= set(range(7, size, 50))
    assert {hit.id for hit in shelf.search("elsewhere", within=[("shelf", "wide")], semantic=False)} == set()


def test_a_small_place_that_is_the_whole_index_is_searched_by_its_common_words_too(wordy: Shelf) -> None:
    wordy.put(["the new words", "the new words", "somebody else", "garden"], scope="all")

    assert {hit.id for hit in wordy.search("words somebody", within=[("shelf", "all")])} == {"0", "1", "2"}


def test_every_document_by_words_is_found_where_all_are_asked_for(shelf: Shelf) -> None:
    shelf.put([f"knotted cords {'again ' * (number % 5)}" for number in range(40)])

    hits = shelf.search("cords", limit=10, all_matches=True)

    assert len(hits) == 40
    assert all(hit.text_rank for hit in hits)
    assert sum(hit.similarity is not None for hit in hits) >= 10
    assert len(shelf.search("cords", limit=10, semantic=False)) == 10


def test_documents_are_counted_by_place(shelf: Shelf) -> None:
    shelf.put(["one", "two"], scope="a")
    shelf.put(["three"], space="other", scope="b")

    def count(*within: tuple[str, str | None]) -> int:
        return shelf.reader.read(SOMEBODY, lambda tx: index.count(tx, within))

    assert count(("shelf", "a")) == count(("shelf", None)) == 2
    assert count(("shelf", "a"), ("other", None)) == 3
    assert count(("shelf", "b")) == count() == 0
    assert shelf.write(steps(drop("0"), lambda tx: index.count(tx, [("shelf", None)]))) == 1


@pytest.mark.parametrize("text", ["\u202e\u200b", "\u0301", "\0", " ", ""])
def test_a_text_without_a_single_token_is_kept(shelf: Shelf, text: str) -> None:
    shelf.put([text])

    assert shelf.keys("anything") <= {"0"}
    documents = shelf.reader.read(SOMEBODY, lambda tx: index.documents(tx, [1]))
    assert documents[1].text == text
