"""Words that stand further on than a vector sees, or beside the text, count as those of a short text do."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernel.memories.as_of import find_in
from kernel.search import index, rerank
from kernel.search.rerank import Body
from kernel.store.transaction import Tx
from tests.unit.index_fixtures import CALLER, IndexedStore, open_indexed_store

FILLER = "It is a plain day in the garden, and the neighbour cooks soup for supper. "


@pytest.fixture
def store(tmp_path: Path) -> Iterator[IndexedStore]:
    """Short texts about soup, and a long one in whose middle is another sentence."""
    with open_indexed_store(tmp_path) as found:
        found.put([f"The soup of day {number} was cooked by a neighbour." for number in range(40)])
        found.put([FILLER * 150 + "The heliotrope ostrich eats quinces. " + FILLER * 150], first=100)
        yield found


def strengths(tx: Tx, query: str) -> dict[str, float]:
    found = index.find(tx, query)
    scored = index.rerank(tx, query, found, index.Weights()).fused.scored(len(found.docs))
    keys = index.documents(tx, [one.hit.doc for one in scored])
    return {keys[one.hit.doc].key: one.strength for one in scored}


@pytest.mark.parametrize(
    ("query", "least"),
    [
        ("ostrich quinces", 0.5),
        ("what does the heliotrope ostrich eat", 0.5),
        ("heliotrope", 0.02),
        ("ostriches", 0.02),
    ],
)
def test_a_long_text_is_as_strong_as_the_passage_around_the_words(
    store: IndexedStore, query: str, least: float
) -> None:
    found = store.reader.read(CALLER, lambda tx: strengths(tx, query))
    assert found["100"] > least
    assert max(found.values()) == found["100"]


def test_words_beside_a_text_count_with_its_opening(store: IndexedStore) -> None:
    store.write(lambda tx: index.put(tx, "docs", "200", "We chose blue.", words="palette perihelion"))
    assert store.reader.read(CALLER, lambda tx: strengths(tx, "perihelion"))["200"] > index.least("weak")


def test_a_text_as_of_a_time_is_judged_by_its_passage_too(store: IndexedStore) -> None:
    texts = [FILLER * 150 + "The heliotrope ostrich eats quinces.", FILLER]
    found = store.reader.read(CALLER, lambda tx: find_in(tx, "heliotrope ostrich", texts, [-2, -1], index.Weights()))
    assert found.docs.tolist()[0] == -2
    assert found.meaning[0] > 0.3
    assert found.exact[0] > 0.99


@pytest.mark.parametrize("query", ["koln", "Köln", "apfel"])
def test_diacritics_and_other_letters_are_found_as_the_index_finds_them(store: IndexedStore, query: str) -> None:
    store.put([FILLER * 30 + "Ein Strauß frißt Äpfel in Köln."], first=300)
    assert store.reader.read(CALLER, lambda tx: strengths(tx, query))["300"] > index.least("weak")


def test_a_short_word_within_others_is_none(store: IndexedStore) -> None:
    body = Body("Opening.\n" + FILLER * 30 + "algorithm goal cargo. Let us go. " + FILLER, "")
    (found,) = store.reader.read(CALLER, lambda tx: rerank.passages_of(tx, "go", [body]))
    assert "let us go" in found
    assert found.startswith("Opening.\n")


def test_what_holds_every_word_may_answer_whatever_else_it_says(store: IndexedStore) -> None:
    store.write(lambda tx: index.put(tx, "docs", "400", f"Sakodigux. {FILLER * 400}"))
    assert store.reader.read(CALLER, lambda tx: strengths(tx, "sakodigux"))["400"] >= index.least("weak")


@pytest.mark.parametrize(
    "make",
    [
        lambda size: "go " * (size // 3),
        lambda size: "ostrich " * (size // 8),
        lambda size: "a" * size,
        lambda size: "\u0301" * size,
        lambda size: "e\u0301g" * (size // 3),
    ],
)
def test_time_grows_at_most_as_the_text_does(store: IndexedStore, make: Callable[[int], str]) -> None:
    query = "go ostrich " + " ".join(f"word{number}" for number in range(300))

    def seconds(size: int) -> float:
        bodies = [Body(make(size), "")]
        begun = time.thread_time()
        store.reader.read(CALLER, lambda tx: rerank.passages_of(tx, query, bodies))
        return time.thread_time() - begun

    seconds(1000)
    assert seconds(1 << 20) < 1.0
