"""The documents of words, in memory between reads: of each word that a query had.

A deletion, of any process, begins a new era, which drops everything; documents added since the last read are read
before the next.
"""

import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kernel.engines.postgres.connection import Connection
    from kernel.engines.postgres.session import Sent

    Numbers = NDArray[np.int64]

MOST_DOCS = 30_000  # documents of a word; of more, the database finds the newest
_MOST_ADDED = 1000  # documents since the last read; for more, it is cheaper to begin again
_MOST_WORDS = 32  # that are read for one statement
_MOST_BYTES = 64 << 20  # of all tenants of a process
_BYTES_OF_WORD = 400  # besides its documents
_SETTLED = 6  # reads of an era by the database, so that a store in which much is deleted stays with it
_RECORD = [("doc", ">i8"), ("size", ">i4"), ("count", ">i2")]


class _Memory:
    """The memory of the words of all tenants of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.bytes = 0

    def take(self, size: int) -> None:
        with self._lock:
            self.bytes += size


_memory = _Memory()


class Seen(NamedTuple):
    """The view of a transaction that reads: the last ids of documents, vectors and deletions, the numbers of documents
    and of their words, and the era.
    """

    last: int
    vector: int
    deletion: int
    docs: int
    size: int
    era: int

    @property
    def ids(self) -> tuple[int, int, int]:
        return self[:3]


class Occurrences(NamedTuple):
    """The documents that hold a word, in rising order, their sizes in words, and how often they hold it."""

    docs: "Numbers"
    sizes: "Numbers"
    counts: "Numbers"

    def until(self, last: int) -> "Occurrences":
        if not len(self.docs) or self.docs[-1] <= last:
            return self
        end = int(self.docs.searchsorted(last, "right"))
        return Occurrences(self.docs[:end], self.sizes[:end], self.counts[:end])

    def followed_by(self, rows: Sequence[tuple[int, int, int]]) -> "Occurrences":
        import numpy as np

        more = np.array(rows, np.int64).T
        return Occurrences(*(np.concatenate(pair) for pair in zip(self, more, strict=True)))

    @property
    def bytes(self) -> int:
        return 24 * len(self.docs) + _BYTES_OF_WORD


Held = dict[str, Occurrences]


class WordIndex:
    """The words of one tenant, shared by the connections of a process that read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: Held = {}
        self._large: set[str] = set()
        self._era: int = -1
        self._last: int = 0
        self._reads: int = 0

    def occurrences(self, db: "Connection", view: Seen, words: Iterable[str]) -> Held | None:
        """Return the documents of the words, as the transaction sees them; None if only the database has them."""
        distinct = set(words)
        with self._lock:
            added = self._follow(db, view)
            missing = [word for word in distinct if word not in self._held]
            older = view.last < self._last  # words read now would lack rows that are held of other words
            useless = self._reads <= _SETTLED or (missing and older) or not self._large.isdisjoint(distinct)
            records = None if useless or not missing else self._ask(db, missing)
            if added is not None and not self._append(added.fetchall()):
                return None
            if useless or len(missing) > _MOST_WORDS or (records is not None and not self._read(records, missing)):
                return None
            hits = {word: self._held.pop(word) for word in distinct}
            self._held |= hits  # words used last are forgotten last
            self._forget()
        return {word: documents.until(view.last) for word, documents in hits.items()}

    def _follow(self, db: "Connection", view: Seen) -> "Sent | None":
        """Begin to bring held words to the state that the transaction sees, or beyond it: return the rows to add."""
        added = None
        if view.era != self._era:
            self._clear()
            self._era, self._last, self._reads = view.era, view.last, 0
        elif view.last > self._last:
            added = db.send("engine.full_text.added", after=self._last, limit=_MOST_ADDED + 1)
            self._last = view.last
        self._reads += 1
        return added

    def _ask(self, db: "Connection", words: list[str]) -> "Sent | None":
        if len(words) > _MOST_WORDS:
            return None
        return db.send("engine.full_text.occurrences", stems=words, most=MOST_DOCS + 1)

    def _append(self, rows: Sequence[tuple[Any, ...]]) -> bool:
        if len(rows) > _MOST_ADDED:
            self._clear()
            return False
        rows_of_stem: dict[str, list[tuple[int, int, int]]] = {}
        for doc, size, stems, counts in rows:
            for stem, count in zip(stems, counts, strict=True):
                if stem in self._held:
                    rows_of_stem.setdefault(stem, []).append((doc, size, count))
        for stem, more in rows_of_stem.items():
            self._put(stem, self._held[stem].followed_by(more))
        return True

    def _read(self, rows: "Sent", words: list[str]) -> bool:
        """Read the documents of words; return whether none of them has more than `MOST_DOCS`."""
        import numpy as np

        for word, records in rows.fetchall():
            table = np.frombuffer(records or b"", _RECORD)
            if len(table) > MOST_DOCS:
                self._large.add(word)
                continue
            table = table[np.argsort(table["doc"], kind="stable")]
            self._put(word, Occurrences(*(table[name].astype(np.int64) for name, _ in _RECORD)))
        return self._large.isdisjoint(words)

    def _put(self, word: str, documents: Occurrences) -> None:
        before = self._held.get(word)
        self._held[word] = documents
        _memory.take(documents.bytes - (before.bytes if before else 0))

    def _forget(self) -> None:
        while self._held and _memory.bytes > _MOST_BYTES:
            oldest = next(iter(self._held))
            _memory.take(-self._held.pop(oldest).bytes)

    def _clear(self) -> None:
        _memory.take(-sum(word.bytes for word in self._held.values()))
        self._held = {}
        self._large = set()
