"""How likely a document answers a query, by what is known of both."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel.core.config import MODEL
from kernel.search import index
from kernel.store.transaction import Tx
from tests.unit.index_fixtures import CALLER, IndexedStore, open_indexed_store

TEXTS = [
    "The car needs new winter tyres before November",
    "Ada prefers green tea in the morning",
    "ხვალ deploy სერვერზე",
    "The API gateway times out after 30 seconds",
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[IndexedStore]:
    with open_indexed_store(tmp_path, MODEL) as opened:
        opened.put(TEXTS)
        yield opened


def verdicts(store: IndexedStore, query: str) -> dict[str, index.Verdict]:
    """What is said of each text that may answer or does."""

    def read(tx: Tx) -> dict[str, index.Verdict]:
        fused = index.rerank(tx, query, index.find(tx, query), index.Weights()).fused
        said: list[index.Verdict] = [index.verdict(strength) for strength in fused.strengths.tolist()]
        found = zip(fused.found.docs.tolist(), said, strict=True)
        return {TEXTS[doc - 1]: one for doc, one in found if one != "none"}

    return store.reader.read(CALLER, read)


@pytest.mark.parametrize("query", ["quantum chromodynamics", "xyzzy plugh", "capital of France"])
def test_what_nothing_answers_has_no_hit_of_any_strength(store: IndexedStore, query: str) -> None:
    assert verdicts(store, query) == {}


def test_what_holds_the_words_of_a_query_is_strong_and_a_paraphrase_weak(store: IndexedStore) -> None:
    assert verdicts(store, "what does Ada prefer in the morning") == {TEXTS[1]: "strong"}
    assert verdicts(store, "vehicle maintenance") == {TEXTS[0]: "weak"}


def test_a_text_that_the_model_cannot_read_is_judged_by_its_words(store: IndexedStore) -> None:
    assert verdicts(store, "deploy")[TEXTS[2]] == "strong"
    assert TEXTS[2] not in verdicts(store, "green tea")


def test_a_query_that_the_model_cannot_read_is_judged_by_its_words(store: IndexedStore) -> None:
    assert verdicts(store, "სერვერზე") == {TEXTS[2]: "strong"}
