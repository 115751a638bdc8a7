"""Approximate nearest neighbours: the sketches of all vectors in memory, filtered by partition before they rank."""

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kernel.search.binary_codes import Sketcher, SketchQuery

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ids = NDArray[np.int64]
    Words = NDArray[np.uint64]
    Partitions = NDArray[np.uint32]
    Distances = NDArray[np.uint16]

CHUNK_ROWS = 1 << 16  # rows of one set of arrays, 5 MB at 512 bits: growing the index copies nothing; not measured
_HAMMING_FACTOR = 16  # rows ranked by the finer dot product for each one wanted: recall@10 1.00 at 1M (.98 asked)
_FIRST_PASS_SHARE = 0.05  # of the rows are compared by the second half of their bits too; see the README
_FIRST_PASS_FACTOR = 2  # and at least so many times as many as are wanted; not measured
_SAMPLE_STEP = 16  # every 16th distance is enough for a first guess of the radius; not measured
_MAX_TIES_FACTOR = 4  # rows kept at most for each one wanted, where many are equally near; not measured
_COMPACT_WHEN_DELETED_SHARE = 1 / 8  # of a chunk's rows; then the others are copied to a new chunk; not measured
_MAX_DISTANCE = 65535
_DELETED = 0  # partition ids begin at 1


class Row(NamedTuple):
    """A vector's id, the partition of its document, and its sketch; partition None where the sketch is of no use."""

    id: int
    partition: int | None
    sketch: bytes


class Block(NamedTuple):
    """Many rows with rising ids up to `last`, column by column: ids (int64), partitions (uint32), and the sketches
    (uint64) transposed, all first words before all second words.
    """

    last: int
    ids: bytes
    partitions: bytes
    words: bytes


class Deletion(NamedTuple):
    """An entry of the deletion log: its number and the deleted vector's id.

    Number 0 marks a trimmed log: its `vector` is the number of the last entry that is no longer there.
    """

    id: int
    vector: int


class VectorFeed(NamedTuple):
    """Readers over one snapshot of the store; each returns what follows the id given, in rising order.

    `rows` returns at most `page_size` rows at once; fewer mean that there are no more.
    """

    blocks: Callable[[int], Sequence[Block]]
    rows: Callable[[int], Sequence[Row]]
    deletions: Callable[[int], Sequence[Deletion]]
    page_size: int


class _Chunk:
    """At most CHUNK_ROWS rows with rising ids. Rows are appended at `count` and never moved."""

    def __init__(self, words: int) -> None:
        import numpy as np

        self.count = 0
        self.deleted = 0
        self.ids = np.empty(CHUNK_ROWS, np.int64)
        self.partitions = np.empty(CHUNK_ROWS, np.uint32)
        self.words = [np.empty(CHUNK_ROWS, np.uint64) for _ in range(words)]

    def append(self, ids: "Ids", partitions: "Partitions", words: "Words") -> None:
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

    def compacted(self) -> "_Chunk":
        """A new chunk of the rows that are not deleted."""
        import numpy as np

        left = np.flatnonzero(self.partitions[: self.count])
        chunk = _Chunk(len(self.words))
        chunk.append(self.ids[left], self.partitions[left], np.stack([column[left] for column in self.words]))
        return chunk


class Sketches:
    """The sketches of one model's vectors, updated by reading new rows and the deletion log.

    Committed row ids are never reused, so a loaded row stays valid until its deletion is read. `extend` takes a lock;
    `nearest` takes none and may run beside it.
    """

    def __init__(self, make_sketcher: Callable[[], Sketcher]) -> None:
        self._make_sketcher = make_sketcher
        self._lock = threading.Lock()
        self._sketcher: Sketcher | None = None
        self._chunks: list[_Chunk] = []
        self._last = 0
        self._last_sealed = 0
        self._last_deletion = 0

    @property
    def last(self) -> int:
        """The largest row id read."""
        return self._last

    @property
    def sketcher(self) -> Sketcher:
        """The encoder of vectors, built at first use."""
        if self._sketcher is None:
            self._sketcher = self._make_sketcher()
        return self._sketcher

    def extend(self, feed: VectorFeed) -> None:
        """Reads the rows and deletions since the last call. Concurrent callers block on the lock."""
        import numpy as np

        with self._lock:
            deletions = feed.deletions(self._last_deletion)
            if deletions and deletions[0].id == 0 and deletions[0].vector > self._last_deletion:
                if self._last:  # deletions were trimmed before they were read here: load everything again
                    self.clear()
                    deletions = feed.deletions(0)
                self._last_deletion = deletions[0].vector
            self._read(feed)
            if vectors := [row.vector for row in deletions if row.id > self._last_deletion]:
                self._delete(np.array(vectors, np.int64))
                self._last_deletion = deletions[-1].id

    def nearest(self, vector: bytes, limit: int, partitions: Sequence[int] | None) -> list[int]:
        """At most `limit` row ids in these partitions (None for all), by sketch, nearest to `vector` first."""
        import numpy as np

        chunks = [(chunk, chunk.count) for chunk in self._chunks]
        if not chunks or (partitions is not None and not partitions):
            return []
        query = self.sketcher.query(vector)
        shortlist = _Shortlist(query, limit * _HAMMING_FACTOR)
        wanted = None if partitions is None else np.array(partitions, np.uint32)
        for chunk, count in chunks:
            shortlist.compare(chunk, count, wanted)
        ids, words = shortlist.best()
        scores = query.dot(words) if len(ids) else np.empty(0, np.int32)
        if len(ids) > limit:
            best = np.argpartition(-scores, limit)[:limit]
            ids, scores = ids[best], scores[best]
        return ids[np.argsort(-scores, kind="stable")].tolist()

    def clear(self) -> None:
        """Drops everything read, so that the next `extend` loads all of it again."""
        self._chunks = []
        self._last = self._last_sealed = self._last_deletion = 0

    def _read(self, feed: VectorFeed) -> None:
        # Blocks begin where the previous one ended: once rows were read singly, the next block would repeat them.
        sound = self._last == self._last_sealed
        while sound and (blocks := feed.blocks(self._last)):
            for block in blocks:
                sound = sound and self._append_block(block)
        more = True
        while more and (rows := feed.rows(self._last)):
            self._append_rows([row for row in rows if row.partition is not None and row.id > self._last])
            self._last = max(self._last, rows[-1].id)
            more = len(rows) == feed.page_size

    def _append_block(self, block: Block) -> bool:
        """Whether the block is well formed; after one that is not, rows are read singly."""
        import numpy as np

        count, width = len(block.ids) // 8, self.sketcher.words
        if (len(block.ids), len(block.partitions), len(block.words)) != (8 * count, 4 * count, 8 * count * width):
            return False
        ids = np.frombuffer(block.ids, np.int64)
        words = np.frombuffer(block.words, np.uint64).reshape(width, count)
        known = int(ids.searchsorted(self._last, "right"))
        self._append(ids[known:], np.frombuffer(block.partitions, np.uint32)[known:], words[:, known:])
        self._last = self._last_sealed = block.last
        return True

    def _append_rows(self, rows: Sequence[Row]) -> None:
        import numpy as np

        if rows:
            words = np.frombuffer(b"".join(row.sketch for row in rows), np.uint64).reshape(len(rows), -1)
            partitions = np.array([row.partition for row in rows], np.uint32)
            self._append(np.array([row.id for row in rows], np.int64), partitions, words.T)

    def _append(self, ids: "Ids", partitions: "Partitions", words: "Words") -> None:
        at = 0
        while at < len(ids):
            if not self._chunks or self._chunks[-1].count == CHUNK_ROWS:
                self._chunks = [*self._chunks, _Chunk(self.sketcher.words)]
            end = at + CHUNK_ROWS - self._chunks[-1].count
            self._chunks[-1].append(ids[at:end], partitions[at:end], words[:, at:end])
            at = end

    def _delete(self, vectors: "Ids") -> None:
        chunks: list[_Chunk] = []
        for chunk in self._chunks:
            chunk.delete(vectors)
            if chunk.deleted > chunk.count * _COMPACT_WHEN_DELETED_SHARE:
                chunk = chunk.compacted()
            if chunk.count:
                chunks.append(chunk)
        self._chunks = chunks


class _Shortlist:
    """The rows nearest to a query by Hamming distance: by half of the bits first, then the nearest by all of them."""

    def __init__(self, query: SketchQuery, size: int) -> None:
        self._query = query
        self._size = size
        self._half = (len(query.signs) + 1) // 2
        self._parts: list[_Part] = []

    def compare(self, chunk: _Chunk, count: int, partitions: "Partitions | None") -> None:
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

    chunk: _Chunk
    chosen: "Ids | None"
    distances: "Distances"

    @property
    def rows(self) -> "Ids | slice":
        return slice(0, len(self.distances)) if self.chosen is None else self.chosen

    def with_words_from(self, query: SketchQuery, first: int) -> "_Part":
        """The same rows, their distances with those of the words from `first` on added."""
        words = [column[self.rows] for column in self.chunk.words[first:]]
        return self._replace(distances=self.distances + query.hamming(words, first)) if words else self

    def take(self, at: "Ids") -> "_Part":
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
