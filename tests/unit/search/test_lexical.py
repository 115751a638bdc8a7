"""Lexical search over one file: words, words of one edit, parts of words, and how much of a query a text holds."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernel.search import lexical
from tests.unit.index_fixtures import CALLER, FACTS, IndexedStore, open_indexed_store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexedStore]:
    with open_indexed_store(tmp_path_factory.mktemp("lexical"), None) as opened:
        opened.put(FACTS)
        yield opened


def read(store: IndexedStore, work: Any) -> Any:
    return store.reader.read(CALLER, work)


def test_the_document_with_the_words_ranks_first(store: IndexedStore) -> None:
    ranks = read(store, lambda tx: lexical.bm25_search(tx, "orders in PostgreSQL", None, 5))
    assert FACTS[max(ranks, key=ranks.get) - 1] == "The orders are stored in PostgreSQL."


def test_only_the_documents_asked_for_are_ranked(store: IndexedStore) -> None:
    ranks = read(store, lambda tx: lexical.bm25_search_of(tx, "the nightly backup starts", [1, 2], 5))
    assert [*ranks] == [2]


def test_a_misspelt_word_stands_for_a_word_of_the_index(store: IndexedStore) -> None:
    assert read(store, lambda tx: lexical.respelled_query(tx, "the wasching machine")) == "the washing machine"


@pytest.mark.parametrize("word", "ashing vashing awshing wahsing wasching washinng washin".split())
def test_each_letter_of_a_misspelt_word_may_be_wrong(store: IndexedStore, word: str) -> None:
    assert read(store, lambda tx: lexical.respelled_query(tx, f"the {word} machine")) == "the washing machine"


@pytest.mark.parametrize("documents", [9_999, 10_000, 1_000_000])
def test_a_misspelt_word_stands_for_a_word_of_the_index_in_a_store_of_any_size(tmp_path: Path, documents: int) -> None:
    """The larger the store, the fewer of the words near it are read in one pass."""
    with open_indexed_store(tmp_path, None) as opened:
        opened.put(FACTS)
        opened.writer.values("UPDATE sqlite_sequence SET seq = :last WHERE name = 'doc'", {"last": documents})
        for word in ("vashing", "washinng"):
            query = read(opened, lambda tx, word=word: lexical.respelled_query(tx, f"the {word} machine"))
            assert query == "the washing machine"


def test_a_rare_word_is_more_information_than_a_common_one(store: IndexedStore) -> None:
    rare, common = (read(store, lambda tx, word=word: lexical.information(tx, word)) for word in ("cello", "starts on"))
    assert rare > 0
    assert common > 0
    assert read(store, lambda tx: lexical.information(tx, "")) == 0


def test_the_share_of_a_query_that_a_text_holds(store: IndexedStore) -> None:
    texts = ["Peter plays the cello.", "Peter sings.", "Nothing of it."]
    whole, part, none = read(store, lambda tx: lexical.coverage(tx, "Peter cello", texts))
    assert whole == pytest.approx(1)
    assert whole > part > none == 0
