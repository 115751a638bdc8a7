"""A ranking does not depend on where the vectors are read: memory, the store, or a transaction that has written."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel.core.config import MODEL
from kernel.search import ann, index
from kernel.search.index import Scored, Weights
from kernel.store.transaction import Tx
from tests.unit.index_fixtures import CALLER, IndexedStore, open_indexed_store

TEXTS = [
    *(f"Ruth {verb} the {plant} in the {place}" for verb in ("waters", "plants") for plant in ("roses", "figs", "leeks")
      for place in ("garden", "yard")),
    "The trains to Lyon are late again",
    "The quarterly budget was approved on Monday",
    "\ufffe\U0001f600",
]  # fmt: skip
UNKNOWN = "\ua500\ua501\ua502"  # letters of a script that the model does not know
QUERY = "who looks after the roses in the garden"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[IndexedStore]:
    with open_indexed_store(tmp_path) as opened:
        yield opened


def ranked(tx: Tx) -> tuple[list[Scored], dict[int, int]]:
    ranking = index.rerank(tx, QUERY, index.find(tx, QUERY), Weights())
    return ranking.fused.scored(len(TEXTS)), {**ranking.leaders}


def put_all(tx: Tx) -> None:
    for number, text in enumerate(TEXTS):
        index.put(tx, "docs", str(number), text)


def same(one: tuple[list[Scored], dict[int, int]], other: tuple[list[Scored], dict[int, int]]) -> bool:
    scores = [pytest.approx(found.score, abs=1e-6) for found in other[0]]
    docs = [found.hit.doc for found in other[0]]
    return ([found.hit.doc for found in one[0]], [found.score for found in one[0]], one[1]) == (docs, scores, other[1])


def test_ranking_is_the_same_before_the_commit_and_after(store: IndexedStore) -> None:
    def put_and_rank(tx: Tx) -> tuple[list[Scored], dict[int, int]]:
        put_all(tx)
        return ranked(tx)

    before = store.write(put_and_rank)
    after = store.reader.read(CALLER, ranked)

    assert after[0][0].hit.doc in {1, 7}
    assert same(before, after)


def test_ranking_is_the_same_where_memory_holds_sketches(
    store: IndexedStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write(put_all)
    exact = store.reader.read(CALLER, ranked)

    monkeypatch.setattr(ann, "EXACT_ROWS", 0)
    (tmp_path / "large").mkdir()
    with open_indexed_store(tmp_path / "large", MODEL) as large:
        large.write(put_all)
        sketched = large.reader.read(CALLER, ranked)
        assert not large.context.search_cache.vectors.exact

    assert same(sketched, exact)


def test_text_without_a_vector_is_ranked_by_its_words(store: IndexedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ann, "EXACT_ROWS", 0)
    store.put([UNKNOWN])

    def found(tx: Tx) -> list[Scored]:
        query = f"roses {UNKNOWN}"
        return index.rerank(tx, query, index.find(tx, query), Weights()).fused.scored(10)

    assert [(one.hit.doc, one.score, one.hit.similarity) for one in store.reader.read(CALLER, found)] == [
        (1, 1.0, None)
    ]


def test_a_text_that_is_stored_thirty_times_does_not_hide_another_that_answers(store: IndexedStore) -> None:
    copies = [f"Restore the nightly backup of the ledger in region {number}" for number in range(30)]
    store.put([*copies, "After a restore, replay the log of the ledger by hand"])

    def found(tx: Tx) -> list[Scored]:
        return index.ranked(tx, "restore the ledger", within=[("docs", None)], limit=10)

    assert "30" in {hit.hit.id for hit in store.reader.read(CALLER, found)}
