"""Rows of sketches in memory, and the rows nearest to a query by Hamming distance."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from kernel.search.binary_codes import SketchQuery

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ids = NDArray[np.int64]
    Words = NDArray[np.uint64]
    Partitions = NDArray[np.uint32]
    Distances = NDArray[np.uint16]

CHUNK_ROWS = 1 << 16  # rows of one set of arrays, 5 MB at 512 bits: growing the index copies nothing; not measured
_FIRST_PASS_SHARE = 0.05  # of the rows are compared by the second half of their bits too; see the README
_FIRST_PASS_FACTOR = 2  # and at least so many times as many as are wanted; not measured
_SAMPLE_STEP = 16  # every 16th distance is enough for a first guess of the radius; not measured
_MAX_TIES_FACTOR = 4  # rows kept at most for each one wanted, where many are equally near; not measured
_MAX_DISTANCE = 65535
_DELETED = 0  # partition ids begin at 1


class Chunk:
    """At most CHUNK_ROWS rows with rising ids. Rows are appended at `count` and never moved."""

    def __init__(self, words: int) -> None:
        import numpy as np

        self.count = 0
        self.deleted = 0
        self.ids = np.empty(CHUNK_ROWS, np.int64)
        self.partitions = np.empty(CHUNK_ROWS, np.uint32)
        self.words = [np.empty(CHUNK_ROWS, np.uint64) for _ in range(words)]

    def append(self, ids: "Ids", partitions: "Partitions", words: "Words") -> None:
        """Adds rows with larger ids, of which there must be room; `words` has a row for each word of a sketch."""
        span = slice(self.count, self.count + len(ids))
        self.ids[span], self.partitions[span] = ids, partitions
        for column, new in zip(self.words, words, strict=True):
            column[span] = new
        self.count += len(ids)  # last: concurrent searches read the rows below `count` only

    def delete(self, vectors: "Ids") -> None:
        """Marks the rows of these ids as deleted; ids of other chunks are ignored."""
        import numpy as np

        ids = self.ids[: self.count]
        inside = vectors[(vectors >= ids[0]) & (vectors <= ids[-1])]
        at = ids.searchsorted(inside)
        at = np.unique(at[ids[at] == inside])
        self.deleted += int(np.count_nonzero(self.partitions[at]))
        self.partitions[at] = _DELETED

    def compacted(self) -> "Chunk":
        """A new chunk of the rows that are not deleted."""
        import numpy as np

        left = np.flatnonzero(self.partitions[: self.count])
        chunk = Chunk(len(self.words))
        chunk.append(self.ids[left], self.partitions[left], np.stack([column[left] for column in self.words]))
        return chunk


class Shortlist:
    """The rows nearest to a query by Hamming distance: by half of the bits first, then the nearest by all of them."""

    def __init__(self, query: SketchQuery, size: int) -> None:
        self._query = query
        self._size = size
        self._half = (len(query.signs) + 1) // 2
        self._parts: list[_Part] = []

    def compare(self, chunk: Chunk, count: int, partitions: "Partitions | None") -> None:
        """Adds the first `count` rows of a chunk, or those of them in `partitions`, with their distances."""
        import numpy as np

        words = [column[:count] for column in chunk.words[: self._half]]
        if partitions is None and not chunk.deleted:
            self._parts.append(_Part(chunk, None, self._query.hamming(words)))
            return
        # A concurrent deletion may change these rows, so everything below derives from one evaluation of them.
        held = chunk.partitions[:count]
        chosen = np.flatnonzero(held != _DELETED if partitions is None else _isin(held, partitions))
        if 2 * len(chosen) > count:  # gathering most rows costs more than comparing all of them
            self._parts.append(_Part(chunk, chosen, self._query.hamming(words)[chosen]))
        elif len(chosen):
            self._parts.append(_Part(chunk, chosen, self._query.hamming([column[chosen] for column in words])))

    def best(self) -> "tuple[Ids, list[Words]]":
        """Ids and sketches, word by word, of about as many rows as wanted."""
        import numpy as np

        total = sum(len(part.distances) for part in self._parts)
        if total > self._size:
            first_pass = max(_FIRST_PASS_FACTOR * self._size, int(total * _FIRST_PASS_SHARE))
            self._parts = _nearest(self._parts, first_pass)
            self._parts = _nearest([part.with_words_from(self._query, self._half) for part in self._parts], self._size)
        if not self._parts:
            return np.empty(0, np.int64), []
        return np.concatenate([part.chunk.ids[part.rows] for part in self._parts]), [
            np.concatenate([part.chunk.words[column][part.rows] for part in self._parts])
            for column in range(len(self._query.signs))
        ]


class _Part(NamedTuple):
    """Rows of a chunk with their distances to the query; the first rows where `chosen` is None."""

    chunk: Chunk
    chosen: "Ids | None"
    distances: "Distances"

    @property
    def rows(self) -> "Ids | slice":
        """The positions of the rows in the chunk."""
        return slice(0, len(self.distances)) if self.chosen is None else self.chosen

    def with_words_from(self, query: SketchQuery, first: int) -> "_Part":
        """The same rows, their distances with those of the words from `first` on added."""
        words = [column[self.rows] for column in self.chunk.words[first:]]
        return self._replace(distances=self.distances + query.hamming(words, first)) if words else self

    def take(self, at: "Ids") -> "_Part":
        """The rows at some positions of this part."""
        return _Part(self.chunk, at if self.chosen is None else self.chosen[at], self.distances[at])


def _nearest(parts: Sequence[_Part], size: int) -> list[_Part]:
    """About `size` of the nearest rows; where more are equally near than are kept, the newest."""
    import numpy as np

    radius, left = _radius([part.distances for part in parts], size), size * _MAX_TIES_FACTOR
    found: list[_Part] = []
    for part in reversed(parts):
        at = np.flatnonzero(part.distances <= radius)[-left:] if left else np.empty(0, np.int64)
        left -= len(at)
        if len(at):
            found.append(part.take(at))
    return found[::-1]


def _radius(distances: "Sequence[Distances]", size: int) -> int:
    """The distance within which at least `size` rows lie: guessed from a sample, then widened."""
    import numpy as np

    total = sum(map(len, distances))
    if total <= size:
        return _MAX_DISTANCE
    sample: Distances = np.concatenate([some[::_SAMPLE_STEP] for some in distances])
    within: Ids = np.bincount(sample).cumsum()
    radius = int(np.count_nonzero(within < size / total * within[-1]))
    while sum(int(np.count_nonzero(some <= radius)) for some in distances) < size:
        radius += 1
    return radius


def _isin(held: "Partitions", partitions: "Partitions") -> "NDArray[np.bool_]":
    # Partition ids are small, so a look-up table over them is.
    import numpy as np

    if len(partitions) == 1:
        return held == partitions[0]
    table = np.zeros(int(partitions.max()) + 2, np.bool_)
    table[partitions] = True
    return table[np.minimum(held, len(table) - 1)]
