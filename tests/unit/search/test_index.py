"""Documents are found by terms and by vector, dropped ones are not, and hits carry the true scores."""

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
from msgspec.structs import replace

from kernel.core.config import MODEL
from kernel.embed.model import Embedder
from kernel.engines.sqlite.connection import Connection
from kernel.search import index
from kernel.search.index import Document, Hit, Weights, fuse
from kernel.store.context import CallContext
from kernel.store.transaction import Tx
from tests.conftest import Clock
from tests.unit.index_fixtures import CALLER, IndexedStore, open_indexed_store

ALIKE = "The quarterly budget review takes place in the blue meeting room"
EMBEDDER = Embedder(MODEL)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[IndexedStore]:
    with open_indexed_store(tmp_path) as opened:
        yield opened


@pytest.fixture
def lexical_store(tmp_path: Path) -> Iterator[IndexedStore]:
    """A store without an embedding model."""
    with open_indexed_store(tmp_path, None) as opened:
        yield opened


def cosine(one: str, other: str) -> float:
    """The cosine by the embedding model alone, independent of the index."""
    first, second = (np.frombuffer(found.vector, np.int8).astype(float) for found in EMBEDDER.embed([one, other]))
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


def put(key: str, text: str, space: str = "docs", scope: str = "") -> Callable[[Tx], None]:
    return lambda tx: index.put(tx, space, key, text, scope=scope)


def drop(key: str, space: str = "docs") -> Callable[[Tx], None]:
    return lambda tx: index.drop(tx, space, key)


def steps(*works: Callable[[Tx], Any]) -> Callable[[Tx], Any]:
    """The result of the last step, all in one transaction."""
    return lambda tx: [work(tx) for work in works][-1]


def found(text: str, **options: Any) -> Callable[[Tx], set[str]]:
    return lambda tx: {hit.id for hit in index.search(tx, text, **options)}


def stored_rows(store: IndexedStore) -> dict[str, list[tuple[Any, ...]]]:
    """Everything the index stores, table by table."""
    tables = ["doc", "doc_vector", "doc_place", "doc_fts_data", "doc_fts_docsize", "sqlite_sequence"]
    return {table: store.reader.values(f"SELECT * FROM {table} ORDER BY 1") for table in tables}


def test_text_without_tokens_is_stored_alone_and_in_a_batch(store: IndexedStore) -> None:
    store.put(["\ufffe\U0001f600\u202e"])
    store.put(["", "a cat", "\u2066"], first=1)

    assert store.reader.values("SELECT doc, length(tokens) > 0 FROM doc_vector") == [(1, 0), (2, 0), (3, 1), (4, 0)]
    assert store.write(found("cat")) == {"2"}


def test_replaced_document_keeps_its_id_and_a_dropped_one_gets_a_new_id(store: IndexedStore) -> None:
    store.put(["A cat", "A dog", "A bird"])
    store.put(["A fox"], first=1)
    store.drop(["0"])
    store.put(["A wolf"], first=0)

    documents = store.write(lambda tx: index.documents(tx, [1, 2, 3, 4]))

    assert [(number, document.text) for number, document in sorted(documents.items())] == [
        (2, "A fox"),
        (3, "A bird"),
        (4, "A wolf"),
    ]
    assert store.write(found("dog", semantic=False)) == set()
    assert store.write(found("fox", semantic=False)) == {"1"}


def test_hit_has_bm25_rank_cosine_and_l2_distance(store: IndexedStore) -> None:
    texts = ["The cat sat on the mat", "A kitten rests on a rug", "Interest rates rose again"]
    store.put(texts)

    hits = {hit.id: hit for hit in store.search("cat on a mat")}

    for key, text in enumerate(texts):
        hit, similarity = hits[str(key)], cosine("cat on a mat", text)
        near: Any = pytest.approx(similarity, abs=1e-3)
        far: Any = pytest.approx(math.sqrt(2 - 2 * similarity), abs=1e-3)
        assert replace(hit, text_rank=None) == Hit(
            key + 1,
            "docs",
            str(key),
            None,
            far,
            near,
            None,
        )
    assert [hits[key].text_rank is None for key in "012"] == [False, True, True]
    assert (hits["0"].text_rank or 0) > 0


@pytest.mark.parametrize("text", ["", " \t\n", "\u3000"])
def test_blank_query_finds_nothing(store: IndexedStore, text: str) -> None:
    store.put(["something"])

    assert store.search(text) == []


def test_empty_index_finds_nothing(store: IndexedStore) -> None:
    assert store.search("anything") == []
    assert store.search("anything", within=[("docs", None)]) == []


def test_each_signal_can_be_disabled(store: IndexedStore) -> None:
    store.put(["The cat sat on the mat", "A kitten rests on a rug"])

    assert [(hit.id, hit.similarity, hit.distance) for hit in store.search("cat", semantic=False)] == [
        ("0", None, None)
    ]
    assert {(hit.id, hit.text_rank) for hit in store.search("cat", lexical=False)} == {("0", None), ("1", None)}
    assert store.search("cat", lexical=False, semantic=False) == []


def test_lexical_hit_beyond_the_vector_limit_still_has_its_similarity(store: IndexedStore) -> None:
    far = "zebra " + "invoice payment overdue accounting ledger " * 20
    store.put([far, *[f"the striped animal number {number} of the savanna" for number in range(50)]])

    hits = {hit.id: hit for hit in store.search("zebra", limit=5)}

    assert len(hits) == 6
    assert hits["0"].similarity == pytest.approx(cosine("zebra", far), abs=1e-3)


def test_limit_applies_to_each_signal(store: IndexedStore) -> None:
    store.put([f"zebra number {number}" for number in range(40)])

    assert len(store.search("zebra", limit=7, semantic=False)) == 7
    assert len(store.search("zebra", limit=7, lexical=False)) == 7
    assert 7 <= len(store.search("zebra", limit=7)) <= 14


def test_without_a_model_search_is_lexical_and_nothing_is_embedded(lexical_store: IndexedStore) -> None:
    lexical_store.put(["The cat sat on the mat", "A kitten rests on a rug"])

    (hit,) = lexical_store.search("cat")

    assert replace(hit, text_rank=None) == Hit(1, "docs", "0", None, None, None, None)
    assert lexical_store.search("cat", lexical=False) == []
    assert lexical_store.reader.values("SELECT count(*) FROM doc_vector") == [(0,)]


def test_text_without_model_tokens_is_found_lexically(store: IndexedStore) -> None:
    store.put(["\U00013000\U00013001", "a hieroglyph"])

    assert [(hit.id, hit.similarity) for hit in store.search("\U00013000\U00013001")] == [("0", None)]
    assert "0" not in store.keys("a hieroglyph", lexical=False)


def test_put_replaces_terms_and_vector(store: IndexedStore) -> None:
    store.put(["The cat sat on the mat"])
    store.search("warm the vectors")
    store.put(["Interest rates rose again"])

    assert store.lexical_keys("cat mat") == set()
    assert store.lexical_keys("interest rates") == {"0"}
    (hit,) = store.search("The cat sat on the mat")
    assert hit.similarity == pytest.approx(cosine("The cat sat on the mat", "Interest rates rose again"), abs=1e-3)
    assert store.reader.values("SELECT count(*) FROM doc_vector") == [(1,)]


def test_drop_removes_a_document_and_is_idempotent(store: IndexedStore) -> None:
    store.put(["The cat sat on the mat", "A kitten rests on a rug"])
    store.search("warm the vectors")

    store.drop(["0", "0", "missing"])
    store.drop(["0"])

    assert store.keys("The cat sat on the mat") == {"1"}


def test_drop_scope_keeps_other_scopes_and_spaces(store: IndexedStore) -> None:
    store.put(["cat one"], scope="a")
    store.put(["cat two"], scope="b", first=1)
    store.put(["cat three"], "other", scope="a")

    store.write(steps(put("9", "cat nine", scope="a"), lambda tx: index.drop_scope(tx, "docs", "a")))

    assert {(hit.space, hit.id) for hit in store.search("cat")} == {("docs", "1"), ("other", "0")}


def test_clear_removes_the_spaces_of_one_dialect(store: IndexedStore) -> None:
    for number, space in enumerate(["brain", "brain:core", "brain:dnd", "brainy", "notes:brain"]):
        store.put([f"cat {space}"], space, scope="a", first=number)

    store.write(steps(put("9", "cat nine", "brain:core"), lambda tx: index.clear(tx, "brain")))

    assert {hit.space for hit in store.search("cat")} == {"brainy", "notes:brain"}


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
def test_last_put_or_drop_in_a_transaction_wins(
    store: IndexedStore, before: str | None, order: list[Callable[[Tx], Any]], expected: set[str]
) -> None:
    if before:
        store.write(put("k", before))

    store.write(steps(*order))

    assert {word for word in ("cat", "dog", "bird") if store.lexical_keys(word)} == expected
    assert len(store.search("an animal", lexical=False)) == len(expected)
    assert store.reader.values("SELECT count(*) FROM doc") == [(len(expected),)]


@pytest.mark.parametrize("together", [True, False])
def test_put_after_drop_resets_created_at(store: IndexedStore, clock: Clock, together: bool) -> None:
    store.write(put("k", "cat"))
    clock.move(hours=1)
    for work in [steps(drop("k"), put("k", "dog"))] if together else [drop("k"), put("k", "dog")]:
        store.write(work)

    (doc,) = (hit.doc for hit in store.search("dog"))
    (found,) = store.reader.read(CALLER, lambda tx: index.documents(tx, [doc])).values()
    assert (found.created_at, found.updated_at) == (clock.now, clock.now)


def test_put_keeps_created_at_and_updates_time_and_caller(store: IndexedStore, clock: Clock) -> None:
    store.write(put("k", "cat"), CallContext("paths", "add_memory", "ann"))
    born = clock.now
    clock.move(hours=1)
    store.write(put("k", "dog", scope="there"), CallContext("paths", "replace_memory", "bob"))

    (doc,) = (hit.doc for hit in store.search("dog"))

    expected = Document(
        doc, "docs", "k", "there", "dog", "paths", "replace_memory", "bob", "2026-01-02T03:04:05.678Z", clock.now
    )
    assert born == "2026-01-02T03:04:05.678Z"
    assert store.reader.read(CALLER, lambda tx: index.documents(tx, [doc, 999])) == {doc: expected}
    keys = [("docs", "missing"), ("docs", "k"), ("other", "k")]
    assert store.reader.read(CALLER, lambda tx: index.doc_ids(tx, keys)) == [doc]


def test_search_is_limited_to_spaces_and_scopes(store: IndexedStore) -> None:
    for number, (space, scope) in enumerate(itertools.product("xy", "ab")):
        store.put(["cat"], space, scope=scope, first=number)

    def within(*pairs: tuple[str, str | None]) -> set[str]:
        assert store.lexical_keys("cat", within=pairs) == store.keys("cat", lexical=False, within=pairs)
        return store.keys("cat", within=pairs)

    assert within(("x", "a")) == {"0"}
    assert within(("x", None)) == {"0", "1"}
    assert within(("x", "b"), ("y", "a")) == {"1", "2"}
    assert within(("x", None), ("x", "a")) == {"0", "1"}
    assert within(("x", "c")) == within(("z", None)) == within() == set()


def test_partitions_of_spaces_dialects_and_scopes_are_listed(store: IndexedStore) -> None:
    for space, scope in itertools.product("xy", "ab"):
        store.put(["cat"], space, scope=scope)

    def listed(
        spaces: list[str] | None, scope: str | None, dialects: list[str] | None = None
    ) -> set[tuple[str, str | None]]:
        return set(store.reader.read(CALLER, lambda tx: index.partitions_of(tx, spaces, dialects, scope and [scope])))

    assert listed(None, None) == {("x", "a"), ("x", "b"), ("y", "a"), ("y", "b")}
    assert listed(["x", "z"], None) == {("x", "a"), ("x", "b")}
    assert listed(None, "b") == {("x", "b"), ("y", "b")}
    assert listed(["x"], "b") == {("x", "b")}
    assert listed([], None) == listed(None, "c") == set()
    store.put(["cat"], "x:core")
    assert listed(None, None, ["x"]) == {("x", "a"), ("x", "b"), ("x:core", "")}
    assert listed(None, None, ["x:core"]) == listed(["y"], None, ["x"]) == set()


def test_document_moves_to_its_new_scope(store: IndexedStore) -> None:
    store.put(["cat"], scope="a")
    store.search("warm the vectors")
    store.put(["cat"], scope="b")

    assert store.keys("cat", within=[("docs", "a")]) == set()
    assert store.keys("cat", within=[("docs", "b")]) == {"0"}


@pytest.mark.slow
@pytest.mark.parametrize("writing", [False, True], ids=["reading", "writing"])
def test_partition_filter_applies_before_thousands_of_better_matches(store: IndexedStore, writing: bool) -> None:
    store.put([f"{ALIKE} {number}" for number in range(3000)], "big")
    store.put(["The yearly budget is discussed somewhere else"], "small")
    within = [("small", None)]

    def search(text: str, **options: Any) -> list[Hit]:
        work = steps(put("new", ALIKE, "big"), lambda tx: index.search(tx, text, within=within, **options))
        return store.roll_back(work) if writing else store.search(text, within=within, **options)

    assert [(hit.space, hit.id) for hit in search(ALIKE, lexical=False)] == [("small", "0")]
    assert [(hit.space, hit.id) for hit in search("quarterly budget", semantic=False)] == [("small", "0")]
    (hit,) = search(ALIKE)
    assert hit.text_rank is not None
    assert hit.similarity is not None


@pytest.mark.slow
def test_rare_term_of_another_partition_does_not_hide_common_terms(lexical_store: IndexedStore) -> None:
    lexical_store.put(["zebra"], "elsewhere")
    lexical_store.put([f"common {number}" for number in range(2000)], "elsewhere", first=1)
    lexical_store.put(["common ground"], "here")
    lexical_store.put([f"here also {number} common" for number in range(2500)], "crowd")

    assert lexical_store.keys("zebra common", within=[("here", None)]) == {"0"}
    assert lexical_store.keys("zebra common", within=[("crowd", None)])


@pytest.mark.slow
def test_search_per_partition_equals_searches_of_single_partitions(lexical_store: IndexedStore) -> None:
    lexical_store.put([f"common {number % 9} {'birch' if number % 40 else 'cedar'}" for number in range(3000)], "large")
    lexical_store.put([f"common {number % 9}" for number in range(2500)] + ["common cedar"], "other")
    lexical_store.put(["common ground", "birch", "cedar birch", "alder"], "small")
    partitions: list[tuple[str, str | None]] = [("large", None), ("other", None), ("small", None), ("nowhere", None)]

    for text in ("cedar common", "birch common", "common", "alder common", "alder cedar 3", "alder", "gone"):
        together = lexical_store.search(text, within=partitions, limit=7, semantic=False, per_partition=True)
        alone = {pair[0]: lexical_store.lexical_keys(text, within=[pair], limit=3000) for pair in partitions}
        for space, keys in alone.items():
            found = [hit.id for hit in together if hit.space == space]
            assert len(found) == len(set(found)) == min(7, len(keys)), (text, space)
            assert set(found) <= keys
            also = {hit.id for hit in lexical_store.search(text, within=partitions, limit=7, per_partition=True)}
            assert also >= {hit.id for hit in together}, text
    assert lexical_store.search("cedar", within=[("nowhere", None)], semantic=False, per_partition=True) == []


@pytest.mark.slow
def test_deleted_rare_term_does_not_hide_common_terms(lexical_store: IndexedStore) -> None:
    lexical_store.put([f"common {number % 7}" if number % 5 else "other" for number in range(3000)])
    lexical_store.put(["unicorn"], first=3000)
    assert lexical_store.keys("unicorn common") == {"3000"}

    lexical_store.drop(["3000"])

    assert len(lexical_store.keys("unicorn common", limit=50)) == 50


def test_partition_terms_are_not_searchable_as_text(lexical_store: IndexedStore) -> None:
    lexical_store.put(["a P1 incident in the payment service", "an incident without a level", "q1 planning"], "notes")

    best, *_ = sorted(lexical_store.search("p1 incident"), key=lambda hit: -(hit.text_rank or 0))

    assert best.id == "0"
    assert lexical_store.keys("p1") == {"0"}
    assert lexical_store.keys("quipuplace1") == lexical_store.keys("notes") == set()


@pytest.mark.parametrize("burst", [500, 5000])
def test_burst_of_deletions_does_not_starve_a_search(store: IndexedStore, burst: int) -> None:
    store.put([f"{ALIKE} {number}" for number in range(burst)])
    store.put([f"My cat has the number {number}" for number in range(20)], first=burst)
    assert len(store.keys(ALIKE, lexical=False)) == 100

    store.drop([str(number) for number in range(burst)])

    rest = {str(number) for number in range(burst, burst + 20)}
    assert store.roll_back(steps(put("new", "unseen"), found(ALIKE, lexical=False))) == rest | {"new"}
    assert store.keys(ALIKE, lexical=False) == rest
    assert store.keys(ALIKE, lexical=False, within=[("docs", "")]) == rest


@pytest.mark.slow
def test_best_match_is_found_among_thousands_of_duplicates(store: IndexedStore) -> None:
    store.put(["one and the same text"] * 3000)
    store.put(["one and the same text, but for this"], first=3000)

    best = max(store.search("one and the same text, but for this"), key=lambda hit: hit.similarity or -1)

    assert best.id == "3000"
    assert best.similarity == pytest.approx(1, abs=1e-6)


def test_transaction_sees_its_own_puts_and_drops(store: IndexedStore) -> None:
    store.put(["The cat sat on the mat", "A kitten rests on a rug"])
    cats = found("The cat sat on the mat")

    store.search("warm the vectors")
    assert store.write(steps(cats)) == {"0", "1"}
    assert store.write(steps(put("2", "My cat sat on my mat"), cats)) == {"0", "1", "2"}
    assert store.write(steps(drop("0"), put("1", "Interest rates"), cats)) == {"1", "2"}
    assert store.keys("The cat sat on the mat") == {"1", "2"}


@pytest.mark.slow
def test_first_search_of_a_process_finds_everything_also_in_a_write(tmp_path: Path) -> None:
    with open_indexed_store(tmp_path) as first:
        first.put(["My cat has a name"])
        first.put([f"{ALIKE} {number}" for number in range(3000)], first=1)
    with open_indexed_store(tmp_path) as fresh:
        assert "0" in fresh.roll_back(steps(put("new", "unseen"), found("a cat", lexical=False, limit=5)))
    with open_indexed_store(tmp_path) as fresh:
        assert "0" in fresh.write(found("a cat", lexical=False, limit=5))


def test_rollback_restores_rows_and_results(store: IndexedStore) -> None:
    store.put(["The cat sat on the mat", "Interest rates rose again"])
    option_sets: list[dict[str, Any]] = [{}, {"lexical": False}, {"semantic": False}, {"within": [("docs", None)]}]
    before, results = stored_rows(store), [store.search("cat rates unicorn", **options) for options in option_sets]

    store.roll_back(
        steps(
            put("2", "A unicorn in the garden"),
            drop("0"),
            put("1", "a cat"),
            found("unicorn cat rates"),
            drop("2"),
            found("unicorn"),
            lambda tx: index.drop_scope(tx, "docs", ""),
            found("unicorn cat rates"),
        )
    )

    assert stored_rows(store) == before
    assert [store.search("cat rates unicorn", **options) for options in option_sets] == results
    assert [len(hits) for hits in results] == [2, 2, 2, 2]


@pytest.mark.slow
def test_ids_reused_after_a_rollback_belong_to_the_new_documents(store: IndexedStore) -> None:
    store.put(["Interest rates rose again"])
    store.search("warm the vectors")
    within_rolled_back: dict[str, Any] = {"within": [("rolled-back", None)]}

    def put_and_search(tx: Tx) -> list[Hit]:
        for number in range(50):
            index.put(tx, "rolled-back", f"undone {number}", f"The cat sat on the mat {number}")
        return index.search(tx, "The cat sat on the mat", **within_rolled_back)

    rolled_back = store.roll_back(put_and_search)
    store.put([f"Quantum physics lecture {number}" for number in range(100)], first=1)
    store.put([f"The cat sat on the mat {number}" for number in range(2000)], first=101)

    assert len(rolled_back) == 50
    assert {hit.doc for hit in rolled_back} == set(range(2, 52))
    assert store.search("The cat", **within_rolled_back) == []
    with open_indexed_store(store.file.parent) as fresh:  # has never seen the rolled-back rows
        for text in ("Quantum physics lecture 3", "The cat sat on the mat 7", "Interest rates"):
            for within in (None, [("docs", "")], [("docs", None)]):
                options: dict[str, Any] = {"within": within, "lexical": False, "limit": 20}
                assert sorted(store.search(text, **options)) == sorted(fresh.search(text, **options))
    assert {hit.id for hit in store.search("Quantum physics lecture", lexical=False)} == set(map(str, range(1, 101)))


def test_transaction_caches_vectors_until_it_changes_the_index(store: IndexedStore) -> None:
    store.put([f"a cat named {number}" for number in range(30)])
    vectors = store.context.search_cache.vectors

    store.write(steps(put("30", "one more cat"), found("a cat")))
    assert vectors.last == 0

    store.write(steps(found("a cat"), put("31", "and one more"), found("a cat")))
    assert vectors.last == 31


@pytest.mark.slow
def test_document_frequencies_of_a_rolled_back_transaction_are_not_cached(lexical_store: IndexedStore) -> None:
    lexical_store.put([f"common {number % 7}" if number % 5 else "other" for number in range(3000)])
    lexical_store.search("warm common")

    lexical_store.roll_back(steps(put("new", "quagga"), found("quagga common", limit=5)))

    assert lexical_store.context.search_cache.document_frequencies(
        3000, ["quagga"], lambda missing: dict.fromkeys(missing, 0)
    ) == {"quagga": 0}
    assert len(lexical_store.keys("quagga common", limit=50)) == 50


def test_reader_with_an_older_snapshot_does_not_evict_newer_vectors(store: IndexedStore) -> None:
    store.put(["one cat"])
    newer = Connection(store.file, store.context, readonly=True)

    def read_twice(tx: Tx) -> set[str]:
        assert found("a cat", lexical=False)(tx) == {"0"}
        store.put(["another cat"], first=1)
        assert newer.read(CALLER, found("a cat", lexical=False)) == {"0", "1"}
        return found("a cat", lexical=False)(tx)

    assert store.reader.read(CALLER, read_twice) == {"0"}
    assert newer.read(CALLER, found("a cat", lexical=False)) == {"0", "1"}
    newer.close()


@pytest.mark.slow
def test_concurrent_readers_find_all_documents_of_their_snapshot(store: IndexedStore) -> None:
    store.put(["a cat named Zero"])
    counts = list(range(1, 31))
    wrong: list[Any] = []
    done = threading.Event()
    committed = [1]

    def read() -> None:
        reader = Connection(store.file, store.context, readonly=True)
        while not done.is_set():
            least = committed[0]
            keys = reader.read(CALLER, found("a cat", lexical=False, limit=1000, within=[("docs", None)]))
            if len(keys) < least:
                wrong.append((least, keys))
        reader.close()

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in counts:
        store.roll_back(
            steps(put("undone", "a cat that is rolled back", "rolled-back"), drop("0"), found("a cat", lexical=False))
        )
        store.write(steps(put(str(number), f"a cat named {number}"), found("a cat", lexical=False)))
        committed[0] += 1
    done.set()
    for thread in threads:
        thread.join()

    assert wrong == []
    assert store.keys("a cat", lexical=False, limit=1000, within=[("docs", "")]) == {"0", *map(str, counts)}


def test_text_after_a_nul_character_is_searchable(store: IndexedStore) -> None:
    store.put(["alpha\0omega"])

    assert (
        store.lexical_keys("omega")
        == store.lexical_keys("alpha\0omega")
        == store.lexical_keys("nothing\0alpha")
        == {"0"}
    )
    assert [doc.text for doc in store.reader.read(CALLER, lambda tx: index.documents(tx, [1])).values()] == [
        "alpha\0omega"
    ]


@pytest.mark.slow
def test_megabyte_of_text_is_indexed_whole_and_works_as_a_query(store: IndexedStore) -> None:
    text = " ".join(f"word{number}" for number in range(110_000)) + " coda"
    store.put([text, "word7 alone"])

    assert len(text) > 1_000_000
    assert store.lexical_keys("coda") == {"0"}
    assert store.lexical_keys(text) == {"0"}


@pytest.mark.parametrize("text", ["\ud800", "a \udfff b"])
def test_lone_surrogate_is_rejected(store: IndexedStore, text: str) -> None:
    before = stored_rows(store)

    with pytest.raises(UnicodeEncodeError):
        store.put([text])
    with pytest.raises(UnicodeEncodeError):
        store.search(text)
    assert stored_rows(store) == before


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcd"), st.none() | st.sampled_from(["cat", "dog", "fish"])), max_size=12))
def test_index_equals_a_model_after_random_puts_drops_and_rollbacks(
    tmp_path_factory: pytest.TempPathFactory, moves: list[tuple[str, str | None]]
) -> None:
    truth: dict[str, str] = {}
    with open_indexed_store(tmp_path_factory.mktemp("moves")) as store:
        for number, (key, text) in enumerate(moves):
            work = drop(key) if text is None else put(key, text)
            if number % 4 == 3:
                store.roll_back(steps(work, found("cat")))
            else:
                store.write(work if number % 2 else steps(found("dog"), work))
                truth = {**truth, key: text} if text else {name: kept for name, kept in truth.items() if name != key}
            animals = ("cat", "dog", "fish")
            assert {word: store.lexical_keys(word) for word in animals} == {
                word: {name for name, kept in truth.items() if kept == word} for word in animals
            }
            assert store.keys("an animal", lexical=False) == set(truth)


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
def test_scores_are_weighted_sums_of_signals_over_their_maximum(
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
def test_fused_scores_are_in_0_to_1_sorted_and_complete(hits: list[Hit], text: float, meaning: float) -> None:
    fused = fuse(hits, Weights(text, meaning))
    scores = [one.score for one in fused]

    assert sorted(one.hit for one in fused) == sorted(hits)
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


@pytest.mark.slow
@given(HITS, st.integers(-8, 8), st.integers(0, 8), st.randoms())
def test_order_is_independent_of_signal_scale_and_hit_order(
    hits: list[Hit], text: int, meaning: int, random: Any
) -> None:
    scaled = [
        replace(
            found,
            text_rank=None if found.text_rank is None else found.text_rank * 2.0**text,
            similarity=None if found.similarity is None else found.similarity / 2.0**meaning,
        )
        for found in random.sample(hits, len(hits))
    ]

    assert [one.hit.doc for one in fuse(scaled, BOTH)] == [one.hit.doc for one in fuse(hits, BOTH)]


def test_unreadable_model_leaves_lexical_search_working(store: IndexedStore, monkeypatch: Any) -> None:
    def broken(_self: Any, _texts: Any) -> Any:
        raise OSError("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(Embedder, "embed", broken)
        store.put(["a cat on a mat"])
        (hit,) = store.reader.read(CALLER, lambda tx: index.search(tx, "cat"))
        assert (hit.id, hit.similarity) == ("0", None)
    (hit,) = store.reader.read(CALLER, lambda tx: index.search(tx, "cat"))
    assert (hit.id, hit.similarity) == ("0", None)


def test_extra_words_are_lexical_only(store: IndexedStore) -> None:
    store.put([ALIKE])
    store.write(lambda tx: index.put(tx, "docs", "tagged", ALIKE, words="finance 会議室"))

    assert [store.lexical_keys(words) for words in ("finance", "会議", "budget")] == [
        {"tagged"},
        {"tagged"},
        {"0", "tagged"},
    ]
    assert {hit.similarity for hit in store.search("budget review")} == {store.search("budget review")[0].similarity}

    store.write(put("tagged", ALIKE))
    assert store.lexical_keys("finance") == set()


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
def test_coverage_is_the_share_of_query_terms_in_a_text(
    store: IndexedStore, query: str, text: str, share: float
) -> None:
    assert store.reader.read(CALLER, lambda tx: index.coverage(tx, query, [text, ""])) == [share, 0.0]


@pytest.mark.parametrize("size", [30, 3000])
def test_partitions_with_most_documents_are_searched_like_others(store: IndexedStore, size: int) -> None:
    """Such partitions are filtered by a join instead of by partition terms."""
    texts = [f"cords number {number % 50}" for number in range(size)]
    store.put(texts, scope="wide")
    store.put([f"{text} elsewhere" for text in texts[:5]], space="other")

    hits = store.search("cords number 7", within=[("docs", "wide")], limit=size)
    words = store.search("cords number 7", within=[("docs", "wide")], limit=size, semantic=False)

    assert {hit.space for hit in hits} == {"docs"}
    assert {int(hit.id) for hit in words} >= set(range(7, size, 50))
    assert {hit.id for hit in store.search("elsewhere", within=[("docs", "wide")], semantic=False)} == set()


def test_small_partition_is_searched_by_common_terms_even_if_it_is_the_whole_index(lexical_store: IndexedStore) -> None:
    lexical_store.put(["the new words", "the new words", "another text", "garden"], scope="all")

    assert {hit.id for hit in lexical_store.search("words another", within=[("docs", "all")])} == {"0", "1", "2"}


def test_all_matches_returns_every_lexical_match(store: IndexedStore) -> None:
    store.put([f"knotted cords {'again ' * (number % 5)}" for number in range(40)])

    hits = store.search("cords", limit=10, all_matches=True)

    assert len(hits) == 40
    assert all(hit.text_rank for hit in hits)
    assert sum(hit.similarity is not None for hit in hits) >= 10
    assert len(store.search("cords", limit=10, semantic=False)) == 10


def test_documents_are_counted_by_space_and_scope(store: IndexedStore) -> None:
    store.put(["one", "two"], scope="a")
    store.put(["three"], space="other", scope="b")

    def count(*within: tuple[str, str | None]) -> int:
        return store.reader.read(CALLER, lambda tx: index.count(tx, within))

    assert count(("docs", "a")) == count(("docs", None)) == 2
    assert count(("docs", "a"), ("other", None)) == 3
    assert count(("docs", "b")) == count() == 0
    assert store.write(steps(drop("0"), lambda tx: index.count(tx, [("docs", None)]))) == 1


@pytest.mark.parametrize("text", ["\u202e\u200b", "\u0301", "\0", " ", ""])
def test_text_without_tokens_is_stored_and_read_back(store: IndexedStore, text: str) -> None:
    store.put([text])

    assert store.keys("anything") <= {"0"}
    documents = store.reader.read(CALLER, lambda tx: index.documents(tx, [1]))
    assert documents[1].text == text
