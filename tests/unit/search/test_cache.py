"""The cache of a search: a frequency is counted again once the store has grown, near words after each new document."""

from kernel.search.ann import Sketcher, VectorIndex
from kernel.search.cache import SearchCache
from kernel.search.query import Near


def cache() -> SearchCache:
    return SearchCache(VectorIndex(lambda: Sketcher(8)))


class Counter:
    """Counts documents, and notes for which stems."""

    def __init__(self, **docs: int) -> None:
        self.docs = docs
        self.stems: list[str] = []

    def __call__(self, stems: list[str]) -> dict[str, int]:
        self.stems += stems
        return {stem: self.docs[stem] for stem in stems if stem in self.docs}


def test_a_frequency_is_counted_once() -> None:
    count, searches = Counter(mill=3), cache()
    assert searches.document_frequencies(100, ["mill"], count) == {"mill": 3}
    assert searches.document_frequencies(110, ["mill"], count) == {"mill": 3}
    assert count.stems == ["mill"]


def test_a_stem_in_no_document_is_counted_each_time() -> None:
    count, searches = Counter(), cache()
    searches.document_frequencies(100, ["owl"], count)
    count.docs["owl"] = 1
    assert searches.document_frequencies(100, ["owl"], count) == {"owl": 1}


def test_frequencies_are_counted_again_if_the_store_has_grown_by_an_eighth_or_shrunk() -> None:
    count, searches = Counter(mill=3), cache()
    for total in (100, 113, 90):
        searches.document_frequencies(total, ["mill"], count)
    assert count.stems == ["mill"] * 3


def test_near_words_are_looked_for_again_after_a_new_document() -> None:
    searches, words = cache(), list[str]()

    def find(word: str) -> list[Near]:
        words.append(word)
        return [Near("mill", "mill", 1)]

    for total in (1, 1, 2):
        assert searches.near_words(total, ["mlil"], find) == {"mlil": [Near("mill", "mill", 1)]}
    assert words == ["mlil"] * 2
