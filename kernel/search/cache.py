"""The data that search keeps in memory between calls: vectors, document frequencies, and words near misspelt words."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kernel.search.ann import VectorIndex
from kernel.search.query import Near, Term
from kernel.security.permissions import Reach
from kernel.store.transaction import Tx

if TYPE_CHECKING:
    from kernel.search.subjects import Subjects
    from kernel.search.vectors import QueryEmbeddings

_MAX_NEAR_WORDS = 1000  # misspelt words that are kept; not measured
_MAX_GROWTH = 1.125  # document frequencies are counted again once the index has grown by an eighth; not measured


class LastIds(NamedTuple):
    """The last ids ever assigned to documents, vectors and deletions; 0 before the first. The number of documents. And
    whether full text holds words of deleted documents, which no search may use.
    """

    doc: int
    vector: int
    deletion: int
    docs: int
    has_dropped: int = 0


class Reached(NamedTuple):
    """The documents that a key held to places sees: flags by document id, 0 after the last, and how many are set; and
    the last document and the last vector that they are of.
    """

    flags: bytes
    docs: int
    doc: int
    vector: int


class Frequencies(NamedTuple):
    """Document frequencies of stems and partition terms, and the largest document id as the number of documents."""

    docs: dict[str, int]
    total: int


class SearchCache:
    """The cache of one store, shared by all its connections.

    While `warming` is set, another thread loads the vectors: a search that would wait for it calls `load_later`, if the
    vectors are not `loading` already.
    """

    def __init__(self, vectors: VectorIndex) -> None:
        self.vectors = vectors
        self.warming = False
        self.loading = False
        self.load_later: Callable[[], None] = _nothing
        self.models: dict[str, int] = {}  # ids of the stored models by identity
        self._frequencies: dict[str, int] = {}
        self._total = 0
        self._near_words: dict[str, Sequence[Near]] = {}
        self._near_words_of = 0
        self.last_query: tuple[str, list[Term]] = ("", [])  # and its terms, which each signal asks for
        self.last_embeddings: tuple[str, QueryEmbeddings | None] = ("", None)  # those of the last query
        self.last_frequencies: tuple[Tx | None, Sequence[Term], Frequencies] = (None, [], Frequencies({}, 0))
        self.last_near: tuple[Tx | None, list[Term], Mapping[str, Sequence[Near]]] = (None, [], {})
        self._last_ids: tuple[Tx | None, LastIds] = (None, LastIds(0, 0, 0, 0))
        self.reached: dict[Reach, Reached] = {}
        self.subjects: dict[str, Subjects] = {}  # by space
        self.uncommitted: Tx | None = None  # the last transaction that changed index rows, which a rollback would undo

    def can_cache(self, tx: Tx) -> bool:
        """Return whether all index rows that `tx` sees are committed, so that other transactions may use the rows it
        reads.
        """
        return tx.readonly or tx is not self.uncommitted

    def last_ids(self, tx: Tx) -> LastIds:
        """Return the last ids that `tx` sees, read once in a transaction that only reads."""
        reader, ids = self._last_ids
        if reader is not tx or not tx.readonly:
            ids = tx.one("kernel.index.sequences", LastIds) or LastIds(0, 0, 0, 0)
            self._last_ids = (tx, ids)
        return ids

    def document_frequencies(
        self, total: int, stems: Sequence[str], count: Callable[[list[str]], dict[str, int]]
    ) -> dict[str, int]:
        """Return the number of documents that hold each stem; `count` is called for those not cached.

        `total` is the largest document id: the cache is dropped when it shrinks or grows by an eighth.
        """
        if not self._total <= total <= self._total * _MAX_GROWTH:
            self._frequencies = {}
            self._total = total
        frequencies = self._frequencies
        # A stem with frequency 0 is counted each time: it may have been added since.
        if missing := [stem for stem in stems if not frequencies.get(stem)]:
            frequencies.update(count(missing))
        return {stem: frequencies.get(stem, 0) for stem in stems}

    def near_words(
        self, total: int, words: Sequence[str], find: Callable[[str], Sequence[Near]]
    ) -> dict[str, Sequence[Near]]:
        """Return the words of the index near each of these, as `find` has them; any new document empties the cache."""
        if total != self._near_words_of or len(self._near_words) > _MAX_NEAR_WORDS:
            self._near_words = {}
            self._near_words_of = total
        cached_words = self._near_words
        for word in words:
            if word not in cached_words:
                cached_words[word] = find(word)
        return {word: cached_words[word] for word in words}


def _nothing() -> None:
    """A thread loads the vectors already."""
