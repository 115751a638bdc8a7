"""Cosines do not depend on where the vectors are: all in memory, sketches there, or none yet."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel.core.config import MODEL
from kernel.core.errors import Fault
from kernel.search import ann, index
from kernel.search.fusion import Candidates
from kernel.search.vectors import load_all_vectors
from kernel.store.transaction import Tx
from tests.unit.index_fixtures import CALLER, IndexedStore, open_indexed_store

TEXTS = ["The cat sleeps in the sun", "A ship leaves the harbour", "Two kittens nap", "The budget was approved"]
QUERY = "a kitten naps beside the harbour"


@pytest.fixture(params=["vectors", "sketches", "nothing yet"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[IndexedStore]:
    if request.param == "sketches":
        monkeypatch.setattr(ann, "EXACT_ROWS", 0)
    with open_indexed_store(tmp_path, MODEL) as opened:
        opened.put(TEXTS)
        opened.put(TEXTS[:2], "other")
        if request.param == "nothing yet":
            monkeypatch.setattr(ann, "BLOCK_ROWS", -1)
            opened.context.search_cache.warming = True
        yield opened


def cosines(found: Candidates) -> dict[int, float]:
    return {
        doc: round(cosine, 5)
        for doc, cosine in zip(found.docs.tolist(), found.meaning.tolist(), strict=True)
        if cosine == cosine
    }


def expected(store: IndexedStore, docs: dict[int, str]) -> dict[int, float]:
    """The cosines of the documents by the embeddings themselves."""
    embedder = store.context.embedder
    assert embedder is not None
    query, *found = embedder.embed([QUERY, *docs.values()])
    dots = (sum(a * b for a, b in zip(signed(query.vector), signed(one.vector), strict=True)) for one in found)
    return {doc: round(dot * query.scale * one.scale, 5) for doc, one, dot in zip(docs, found, dots, strict=True)}


def signed(vector: bytes) -> list[int]:
    return memoryview(vector).cast("b").tolist()


def test_every_document_of_a_small_partition_has_its_cosine(store: IndexedStore) -> None:
    found = store.reader.read(CALLER, lambda tx: index.find(tx, QUERY, within=[("docs", None)]))
    assert cosines(found) == expected(store, dict(enumerate(TEXTS, start=1)))


@pytest.mark.parametrize(
    ("question", "subject"),
    [("Wo schläft denn die Katze?", "schläft denn Katze?"), ("고양이는 어디에서 자나요?", "고양이는 자나요?")],
)
def test_function_words_count_in_english_questions_only(store: IndexedStore, question: str, subject: str) -> None:
    def found(query: str) -> dict[int, float]:
        return cosines(store.reader.read(CALLER, lambda tx: index.find(tx, query, within=[("docs", None)])))

    assert found(question) == found(subject) != {}
    assert found("Where does the cat sleep?") != found("cat sleep?")


def test_chosen_documents_have_their_cosine_and_no_others(store: IndexedStore) -> None:
    found = store.reader.read(CALLER, lambda tx: index.find(tx, QUERY, docs=[2, 3, 6]))
    assert cosines(found) == expected(store, {2: TEXTS[1], 3: TEXTS[2], 6: TEXTS[1]})


def test_what_words_find_has_its_cosine_although_others_are_nearer(store: IndexedStore) -> None:
    found = store.reader.read(CALLER, lambda tx: index.find(tx, "harbour kitten", within=[("docs", None)], limit=1))
    assert set(cosines(found)) >= {
        doc for doc, rank in zip(found.docs.tolist(), found.words.tolist(), strict=True) if rank == rank
    }


def test_search_in_a_transaction_sees_its_own_rows_and_deletions_and_other_searches_do_not(
    store: IndexedStore,
) -> None:
    near = "A kitten naps beside the quay of the harbour"

    def change(tx: Tx) -> tuple[dict[int, float], ...]:
        index.put(tx, "docs", "new", near)
        index.put(tx, "docs", "1", near)
        index.drop(tx, "docs", "2")
        tx.flush_deferred()
        limited = index.find(tx, QUERY, within=[("docs", None)], limit=2, lexical=False)
        return cosines(index.find(tx, QUERY, within=[("docs", None)])), cosines(index.find(tx, QUERY)), cosines(limited)

    inside, everywhere, limited = store.roll_back(change)
    outside = store.reader.read(CALLER, lambda tx: cosines(index.find(tx, QUERY, within=[("docs", None)])))

    own = expected(store, {1: TEXTS[0], 2: near, 4: TEXTS[3], 7: near})
    assert inside == pytest.approx(own, abs=2e-5)
    assert set(own) <= set(everywhere) <= {*own, 5, 6}
    assert set(limited) == {2, 7}
    assert outside == expected(store, dict(enumerate(TEXTS, start=1)))


def test_searches_that_meet_no_vectors_ask_for_one_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ann, "BLOCK_ROWS", -1)
    asked: list[str] = []

    def search(store: IndexedStore) -> None:
        for _ in range(3):
            store.reader.read(CALLER, lambda tx: index.find(tx, QUERY, within=[("docs", None)]))

    def refuse() -> None:
        asked.append("refused")
        raise Fault("busy", "The server is busy.")

    with open_indexed_store(tmp_path, MODEL) as store:
        store.put(TEXTS)
        cache = store.context.search_cache
        cache.warming, cache.load_later = True, refuse
        search(store)
        assert set(asked) == {"refused"}
        assert len(asked) >= 3  # each search tries again
        asked.clear()
        cache.load_later = lambda: asked.append("queued")
        search(store)
        assert asked == ["queued"]
        store.reader.read(CALLER, load_all_vectors)
        search(store)
        assert asked == ["queued"]
        assert not cache.loading
