"""Approximate nearest neighbours: the sketches of all vectors in memory, filtered by partition before they rank."""

import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from kernel.search.binary_codes import Sketcher
from kernel.search.shortlist import CHUNK_ROWS, Chunk, Shortlist

if TYPE_CHECKING:
    from kernel.search.shortlist import Ids, Partitions, Words

_HAMMING_FACTOR = 16  # rows ranked by the finer dot product for each one wanted: recall@10 1.00 at 1M (.98 asked)
_COMPACT_WHEN_DELETED_SHARE = 1 / 8  # of a chunk's rows; then the others are copied to a new chunk; not measured


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


class Sketches:
    """The sketches of one model's vectors, updated by reading new rows and the deletion log.

    Committed row ids are never reused, so a loaded row stays valid until its deletion is read. `extend` takes a lock;
    `nearest` takes none and may run beside it.
    """

    def __init__(self, make_sketcher: Callable[[], Sketcher]) -> None:
        self._make_sketcher = make_sketcher
        self._lock = threading.Lock()
        self._chunks: list[Chunk] = []
        self._last = 0
        self._last_sealed = 0
        self._last_deletion = 0

    @property
    def last(self) -> int:
        """The largest row id read."""
        return self._last

    @cached_property
    def sketcher(self) -> Sketcher:
        """The encoder of vectors, built at first use."""
        return self._make_sketcher()

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
        shortlist = Shortlist(query, limit * _HAMMING_FACTOR)
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
                self._chunks = [*self._chunks, Chunk(self.sketcher.words)]
            end = at + CHUNK_ROWS - self._chunks[-1].count
            self._chunks[-1].append(ids[at:end], partitions[at:end], words[:, at:end])
            at = end

    def _delete(self, vectors: "Ids") -> None:
        chunks: list[Chunk] = []
        for chunk in self._chunks:
            chunk.delete(vectors)
            if chunk.deleted > chunk.count * _COMPACT_WHEN_DELETED_SHARE:
                chunk = chunk.compacted()
            if chunk.count:
                chunks.append(chunk)
        self._chunks = chunks
