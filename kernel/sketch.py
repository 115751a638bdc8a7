"""Bit sketches of vectors in memory: a coarse nearest-neighbour stage over every vector, filtered by place."""

import threading
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ROTATIONS = 2
_SMALLEST = 64 // ROTATIONS
_GROW = 1024


class Row(NamedTuple):
    """What is kept of one vector: its row id, the place of its document and its sketch."""

    id: int
    place: int
    sketch: bytes


class Sketcher:
    """Turns vectors into `2 x dimensions` sign bits after two fixed rotations, the same on every machine.

    A rotation is a Hadamard matrix with fixed sign flips: no library's random numbers or factorisation is involved,
    so sketches stored by one process can be compared with those of another.
    """

    def __init__(self, dimensions: int) -> None:
        import numpy as np

        self._size = max(_SMALLEST, 1 << (dimensions - 1).bit_length())
        self._flips = np.array([_signs(self._size, seed) for seed in range(ROTATIONS)], np.float32)[:, :dimensions]
        self._left = _matrix(1 << (self._size.bit_length() - 1) // 2)
        self._right = _matrix(self._size // len(self._left))
        self.words = self._size * ROTATIONS // 64

    def sketch(self, vectors: Sequence[bytes]) -> list[bytes]:
        """The sketch of each int8 vector, `words` 64-bit words long."""
        import numpy as np

        if not vectors:
            return []
        count, dimensions = len(vectors), self._flips.shape[1]
        turned = np.zeros((count, ROTATIONS, self._size), np.float32)
        flat = np.frombuffer(b"".join(vectors), np.int8).reshape(count, 1, dimensions)
        np.multiply(flat, self._flips, out=turned[:, :, :dimensions])
        # The transform of a length a x b is one of length a on the columns and one of length b on the rows.
        squares = turned.reshape(count, ROTATIONS, len(self._left), len(self._right))
        bits = (self._left @ (squares @ self._right) > 0).reshape(count, -1)
        return [row.tobytes() for row in np.packbits(bits, axis=1)]


class Sketches:
    """The sketches of one model's vectors, grown by reading the rows that are new; deletions show when rows are read.

    Row ids are never used twice by what was committed, so a row once loaded stays true and only those after `last`
    need to be read.
    """

    def __init__(self, sketcher: Callable[[], Sketcher]) -> None:
        self._make = sketcher
        self._lock = threading.Lock()
        self._sketcher: Sketcher | None = None
        self._count = 0
        self._last = 0
        self._ids: Any = None
        self._places: Any = None
        self._words: list[Any] = []

    @property
    def last(self) -> int:
        """The largest row id held."""
        return self._last

    @property
    def sketcher(self) -> Sketcher:
        """The rotations, built at first use."""
        if self._sketcher is None:
            self._sketcher = self._make()
        return self._sketcher

    def extend(self, read: Callable[[int], Sequence[Row]]) -> None:
        """Adds the rows that `read(last)` gives: those with a larger id, in order."""
        if rows := read(self._last):
            with self._lock:
                self._append([row for row in rows if row.id > self._last])

    def drop(self, gone: Collection[int]) -> None:
        """Forgets the rows of these ids; a search meanwhile sees them still, or no longer."""
        import numpy as np

        with self._lock:
            if not self._count or not gone:
                return
            kept = np.flatnonzero(~np.isin(self._ids[: self._count], np.fromiter(gone, np.int64, len(gone))))
            self._ids, self._places = self._ids[kept], self._places[kept]
            self._words = [column[kept] for column in self._words]
            self._count = len(kept)

    def nearest(self, vector: bytes, limit: int, places: Sequence[int] | None) -> list[int]:
        """About `limit` row ids whose sketches differ least from that of `vector`, inside `places` if given."""
        import numpy as np

        with self._lock:
            count, ids, held, words = self._count, self._ids, self._places, list(self._words)
        if not count:
            return []
        query = np.frombuffer(self.sketcher.sketch([vector])[0], np.uint64)
        ids = ids[:count]
        chosen = None if places is None else _members(held[:count], places)
        if chosen is not None and 2 * len(chosen) > count:  # picking most of them costs more than to compare them all
            return _smallest(ids[chosen], _hamming(words, query, count, None)[chosen], limit)
        distance = _hamming(words, query, count, chosen)
        return _smallest(ids if chosen is None else ids[chosen], distance, limit)

    def _append(self, rows: Sequence[Row]) -> None:
        import numpy as np

        if not rows:
            return
        new = len(rows)
        self._reserve(self._count + new)
        span = slice(self._count, self._count + new)
        self._ids[span] = [row.id for row in rows]
        self._places[span] = [row.place for row in rows]
        bits = np.frombuffer(b"".join(row.sketch for row in rows), np.uint64).reshape(new, -1)
        for number, column in enumerate(self._words):
            column[span] = bits[:, number]
        self._count += new
        self._last = rows[-1].id

    def _reserve(self, size: int) -> None:
        import numpy as np

        if not self._words:
            self._ids = np.empty(0, np.int64)
            self._places = np.empty(0, np.int64)
            self._words = [np.empty(0, np.uint64) for _ in range(self.sketcher.words)]
        if size > len(self._ids):
            room = size + size // 8 + _GROW
            self._ids = _grown(self._ids, room)
            self._places = _grown(self._places, room)
            self._words = [_grown(column, room) for column in self._words]


def _signs(size: int, seed: int) -> list[float]:
    state = 0x9E3779B97F4A7C15 * (seed + 1) & 0xFFFFFFFFFFFFFFFF
    signs: list[float] = []
    for _ in range(size):
        state = (state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        signs.append(1.0 if state >> 63 else -1.0)
    return signs


def _matrix(size: int) -> "NDArray[np.float32]":
    import numpy as np

    matrix = np.ones((1, 1), np.float32)
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix


def _grown(array: "NDArray[Any]", room: int) -> "NDArray[Any]":
    import numpy as np

    bigger = np.empty(room, array.dtype)
    bigger[: len(array)] = array
    return bigger


def _members(held: "NDArray[np.int64]", places: Sequence[int]) -> "NDArray[np.int64]":
    """Where `held` is one of `places`; place numbers are small, so that a table of them is."""
    import numpy as np

    wanted = np.zeros(int(held.max()) + 1, np.bool_)
    wanted[[place for place in places if place < len(wanted)]] = True
    return np.flatnonzero(wanted[held])


def _hamming(
    words: "list[NDArray[np.uint64]]", query: "NDArray[np.uint64]", count: int, chosen: "NDArray[np.int64] | None"
) -> "NDArray[np.uint16]":
    import numpy as np

    size = count if chosen is None else len(chosen)
    total = np.zeros(size, np.uint16)
    for column, word in zip(words, query, strict=True):
        part = column[:count] if chosen is None else column[chosen]
        total += np.bitwise_count(part ^ word)
    return total


def _smallest(ids: "NDArray[np.int64]", distance: "NDArray[np.uint16]", limit: int) -> list[int]:
    import numpy as np

    if len(ids) > limit:
        reach = np.searchsorted(np.bincount(distance).cumsum(), limit)
        ids = ids[distance <= reach]
    return ids.tolist()
