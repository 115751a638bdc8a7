"""The vectors of a store: in memory, compared with a query exactly; of a large store their sketches, for a shortlist
that the caller scores. Filters apply before the choice. On disk, stored blocks of thousands of vectors and sketches, so
that a start reads few rows, and the log of deletions.
"""

import math
import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from kernel.core.lazy_numpy import Array, Bools, Floats, Ids, Matrix, np
from kernel.store.transaction import Tx

ROTATIONS = 2  # sign bits per dimension: 512 bits at 256 dimensions, 76 bytes a row with id and partition
_MIN_SIZE = 64 // ROTATIONS  # dimensions, so that a sketch fills one 64-bit word
_QUERY_BITS = 4  # bits per value of the query in `SketchQuery.dot`; not measured
_QUERY_LEVELS = (1 << _QUERY_BITS) - 1
_FIXED_POINT = 8  # int8 vectors are scaled by it before centring, so that sums of whole numbers stay exact
_CENTRE_SHARE = 0.5  # of the common direction that is subtracted: at 1M a sixth of the candidates gives the same recall


_SKETCHED_TOGETHER = 32  # vectors: with more, glibc asks the system for the memory each time, which takes as long again


class SketchQuery(NamedTuple):
    """A query, rotated like the vectors: its signs, and its values as bit planes of _QUERY_BITS bits."""

    signs: Array
    planes: Array

    def dot(self, sketches: Array) -> Array:
        """Return the product of the query's values and the signs of each sketch, up to scale and offset; larger is
        nearer.

        Finer than the Hamming distance, since the query is not reduced to signs, and several times as expensive.
        """
        table = sketches.view(np.uint64)
        total = np.bitwise_count(table).sum(1, dtype=np.int32) * -_QUERY_LEVELS
        for plane, mask in enumerate(self.planes):
            total += np.bitwise_count(table & mask).sum(1, dtype=np.int32) << plane + 1
        return total


class Sketcher:
    """Encodes int8 vectors as `ROTATIONS x dimensions` sign bits, the same on every machine.

    A rotation is a Hadamard matrix with fixed sign flips. No library's random numbers or factorisation is involved,
    so sketches of different processes can be compared.

    All texts share a direction that would decide most signs. `centre` is the int8 vector of a text without content:
    half of the length along it is subtracted first.
    """

    def __init__(self, dimensions: int, centre: bytes = b"") -> None:
        self.dimensions = dimensions
        common = np.frombuffer(centre, np.int8).astype(np.float64)
        length = math.sqrt(common @ common) or 1.0
        self._centre = common * (_CENTRE_SHARE * _FIXED_POINT / length) if common.any() else None
        self.common: Matrix = (common / length).astype(np.float32)  # of unit length
        self._size = max(_MIN_SIZE, 1 << (dimensions - 1).bit_length())
        self._flips = np.array([_signs(self._size, seed) for seed in range(ROTATIONS)], np.float32)[:, :dimensions]
        self._left = _hadamard(1 << (self._size.bit_length() - 1) // 2)
        self._right = _hadamard(self._size // len(self._left))
        self.words = self._size * ROTATIONS // 64

    def sketch(self, vectors: Sequence[bytes]) -> list[bytes]:
        """Return the sketch of each int8 vector, `words` 64-bit words long."""
        parts = (vectors[at : at + _SKETCHED_TOGETHER] for at in range(0, len(vectors), _SKETCHED_TOGETHER))
        return [row.tobytes() for part in parts for row in np.packbits(self._rotated(part) > 0, axis=1)]

    def query(self, vector: bytes) -> SketchQuery:
        """Return an int8 vector, prepared for comparison with many sketches."""
        (values,) = self._rotated([vector])
        scale = max(float(np.abs(values).max()), 1.0)
        levels = np.rint((values / scale + 1) * (_QUERY_LEVELS / 2)).astype(np.uint8)
        bits = [values > 0, *(levels >> plane & 1 for plane in range(_QUERY_BITS))]
        signs, *planes = (np.packbits(plane) for plane in bits)
        return SketchQuery(signs, np.stack(planes).view(np.uint64))

    def _rotated(self, vectors: Sequence[bytes]) -> Array:
        count, dimensions = len(vectors), self._flips.shape[1]
        rotations = np.zeros((count, ROTATIONS, self._size), np.float32)
        flat = self._centred(np.frombuffer(b"".join(vectors), np.int8).reshape(count, 1, dimensions))
        np.multiply(flat, self._flips, out=rotations[:, :, :dimensions])
        # A Hadamard transform of length a x b is a transform of length a over the columns, then of length b over the
        # rows.
        squares = rotations.reshape(count, ROTATIONS, len(self._left), len(self._right))
        return (self._left @ (squares @ self._right)).reshape(count, -1)

    def _centred(self, flat: Array) -> Array | Matrix:
        """Return the vectors, scaled, less the centre in proportion to their length: whole numbers, with exact sums."""
        if self._centre is None:
            return flat
        wide = flat.astype(np.float32)
        lengths = np.sqrt(np.square(wide).sum(axis=2, keepdims=True), dtype=np.float64)
        return wide * _FIXED_POINT - np.rint(lengths * self._centre).astype(np.float32)


def _signs(size: int, seed: int) -> list[float]:
    """Signs from a 64-bit linear congruential generator with Knuth's MMIX constants; they are part of the format."""
    state = 0x9E3779B97F4A7C15 * (seed + 1) & 0xFFFFFFFFFFFFFFFF
    signs: list[float] = []
    for _ in range(size):
        state = (state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        signs.append(1.0 if state >> 63 else -1.0)
    return signs


def _hadamard(size: int) -> Matrix:
    matrix = np.ones((1, 1), np.float32)
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix


EXACT_ROWS = 200_000  # vectors compared exactly: 51 MB, some ms; of a larger store, sketches of 64 bytes a vector
_NO_ID = 2**63 - 1  # after all ids
_COMPARED_TOGETHER = 65_536  # rows: bounds the memory of one search of a large store to some MB
_HAMMING_FACTOR = 12  # rows ranked by the finer dot product per row wanted; 16 find no more at 1M
_SAMPLE_STEP = 16  # every 16th value is enough to estimate the radius; not measured
_MAX_TIES_FACTOR = 4  # rows kept at most per row wanted, the newest, if many are equally near; not measured


class Row(NamedTuple):
    """A vector's id and document, the partition of that (None if the vector is of no use), the scale that makes it a
    unit long, and the vector or its sketch.
    """

    id: int
    doc: int
    partition: int | None
    scale: float
    code: bytes


class Block(NamedTuple):
    """Many rows with rising ids up to `last`, column by column, with the types of COLUMNS."""

    last: int
    ids: bytes
    docs: bytes
    partitions: bytes
    scales: bytes
    codes: bytes


class Deletion(NamedTuple):
    """An entry of the deletion log: its number and the deleted vector's id.

    Number 0 marks a trimmed log: its `vector` is the number of the last entry that is no longer there.
    """

    id: int
    vector: int


class VectorFeed(NamedTuple):
    """Readers over one snapshot of the store; each returns the rows after the given id, in rising order.

    `size` counts the vectors. Codes are vectors if the second argument is true, else sketches. `rows` returns at most
    `page_size` rows at once; fewer mean that there are no more.
    """

    size: Callable[[], int]
    blocks: Callable[[int, bool], Sequence[Block]]
    rows: Callable[[int, bool], Sequence[Row]]
    deletions: Callable[[int], Sequence[Deletion]]
    page_size: int


class VectorIndex:
    """The vectors of one model, updated by reading new rows and the deletion log.

    Committed row ids are never reused, so a loaded row stays valid until its deletion is read. `extend` takes a lock;
    searches take none and may run beside it.
    """

    def __init__(self, make_sketcher: Callable[[], Sketcher]) -> None:
        self._make_sketcher = make_sketcher
        self._lock = threading.Lock()
        self.clear()
        self.exact = True  # whether the vectors are held, not their sketches

    @cached_property
    def sketcher(self) -> Sketcher:
        """Return the encoder of vectors, built at first use."""
        return self._make_sketcher()

    @property
    def size(self) -> int:
        """Return the bytes that the vectors or sketches take."""
        return self._table.codes.nbytes if self._table else 0

    def clear(self) -> None:
        """Drops everything read, so that the next `extend` loads all of it again."""
        self._table: VectorTable | None = None
        self._last_sealed = 0
        self._room = 0  # rows of the first table
        self.last = 0  # the largest row id read
        self.last_deletion = 0  # the number of the last deletion read

    def extend(self, feed: VectorFeed) -> None:
        with self._lock:
            deletions = feed.deletions(self.last_deletion)
            if deletions and deletions[0].id == 0 and deletions[0].vector > self.last_deletion:
                if self.last:  # deletions were trimmed before they were read here: load everything again
                    self.clear()
                    deletions = feed.deletions(0)
                self.last_deletion = deletions[0].vector
            if not self.last:
                size = feed.size()
                self.exact, self._room = size <= EXACT_ROWS, size + size // 8
            self._read(feed)
            if self.exact and self._table and self._table.count > EXACT_ROWS:
                large = VectorIndex(lambda: self.sketcher)
                large.exact, large._room = False, 2 * self._table.count
                large._read(feed)  # searches go on with the vectors meanwhile
                self._table, self._last_sealed, self.last = large._table, large._last_sealed, large.last
                self.exact = False
            if vectors := [row.vector for row in deletions if row.id > self.last_deletion]:
                self._table = self._table and self._table.without(np.array(vectors, np.int64))
                self.last_deletion = deletions[-1].id

    def nearest(
        self,
        vector: bytes,
        scale: float,
        limit: int,
        partitions: Sequence[int] | None = None,
        docs: Sequence[int] | None = None,
        also: Sequence[int] = (),
        upto: int = _NO_ID,
        flags: bytes | None = None,
    ) -> dict[int, float] | None:
        """Return the cosine of the `limit` documents nearest in these partitions, among these documents and those with
        a flag (None for all), and of the documents `also`; rows after the id `upto` are ignored. None if no vectors are
        held.
        """
        if not (table := self._table) or not table.exact:
            return None
        rows, cosines = _cosines(table, vector, scale, table.select(partitions, docs, upto, flags))
        doc_ids = table.docs[: len(cosines)] if rows is None else table.docs[rows]
        if limit < len(cosines):
            best = _largest(cosines, limit)
            best = np.concatenate([best, members(doc_ids, also).nonzero()[0]]) if also else best
            doc_ids, cosines = doc_ids[best], cosines[best]
        return dict(zip(doc_ids.tolist(), cosines.clip(-1.0, 1.0).tolist(), strict=True))

    def shortlist(
        self, vector: bytes, size: int, partitions: Sequence[int] | None = None, upto: int = _NO_ID
    ) -> list[int]:
        """At most `size` row ids in these partitions (None for all), by sketch, nearest first; none of vectors."""
        if not (table := self._table) or table.exact:
            return []
        query = self.sketcher.query(vector)
        rows, distances = _compare_rows(table, query.signs, table.select(partitions, None, upto), "hamming", "bin8")
        at = _within_radius(distances, size * _HAMMING_FACTOR)
        at = at if rows is None else rows[at]
        return table.ids[at[np.argsort(-query.dot(table.codes[at]), kind="stable")[:size]]].tolist()

    def unit_vectors(self, docs: Sequence[int], upto: int = _NO_ID) -> tuple[Ids, Matrix] | None:
        """Return the documents of these that have a vector, and the vectors scaled to unit length; None for
        sketches.
        """
        if not (table := self._table) or not table.exact:
            return None
        rows = table.select(None, docs, upto)[1]
        return table.docs[rows], table.codes[rows] * table.scales[rows].astype(np.float32)[:, None]

    def _read(self, feed: VectorFeed) -> None:
        # Each block begins at the end of the previous block: once rows were read singly, the next block would repeat
        # them.
        sound = self.last == self._last_sealed
        while sound and (blocks := feed.blocks(self.last, self.exact)):
            for block in blocks:
                sound = sound and self._append_block(block)
        more = True
        while more and (rows := feed.rows(self.last, self.exact)):
            live_rows = [row for row in rows if row.partition is not None and row.id > self.last]
            if live_rows:
                ids, docs, partitions, scales, codes = zip(*live_rows, strict=True)
                self._append([ids, docs, partitions, scales], b"".join(codes))
            self.last = max(self.last, rows[-1].id)
            more = len(rows) == feed.page_size

    def _append_block(self, block: Block) -> bool:
        """Return whether the block is well formed; after a malformed block, rows are read singly."""
        width = self.sketcher.dimensions if self.exact else self.sketcher.words * 8
        columns = [block.ids, block.docs, block.partitions, block.scales]
        sizes = [len(column) / np.dtype(kind).itemsize for column, kind in zip(columns, COLUMNS.values(), strict=True)]
        if {*sizes, len(block.codes) / width} != {sizes[0]} or sizes[0] % 1:
            return False
        arrays = [np.frombuffer(column, kind) for column, kind in zip(columns, COLUMNS.values(), strict=True)]
        old_rows = int(arrays[0].searchsorted(self.last, "right"))
        self._append([column[old_rows:] for column in arrays], block.codes[old_rows * width :])
        self.last = self._last_sealed = block.last
        return True

    def _append(self, columns: "Sequence[Any]", codes: bytes) -> None:
        if codes:
            dtype = "int8" if self.exact else "uint8"
            rows = np.frombuffer(codes, dtype).reshape(len(columns[0]), -1)
            self._table = (self._table or VectorTable(rows.shape[1], dtype, self._room)).appended(columns, rows)


COLUMNS = {"ids": "int64", "docs": "int64", "partitions": "uint32", "scales": "float64"}
_LEAST_ROOM = 128  # rows of a new table, 34 KB; a full table is copied to a table twice as large
_COMPACT_WHEN_DELETED_SHARE = 1 / 8  # of the rows; then the others are copied to a new table; not measured
_DELETED = 0  # partition ids begin at 1


class VectorTable:
    """Rows with rising ids. They are appended at `count` and never moved: concurrent searches read those below it.

    Codes of type int8 are vectors. Beside others, which are sketches, neither documents nor scales are held.
    """

    def __init__(self, width: int, dtype: str, room: int = _LEAST_ROOM) -> None:
        self.count = self._deleted = 0
        self.codes: Array = np.empty((room, width), dtype)
        self.ids, self.partitions = np.empty(room, COLUMNS["ids"]), np.empty(room, COLUMNS["partitions"])
        self.exact = self.codes.dtype == np.int8
        room = room if self.exact else 0
        self.docs, self.scales = np.empty(room, COLUMNS["docs"]), np.empty(room, COLUMNS["scales"])

    def appended(self, columns: "Sequence[Any]", codes: Array) -> "VectorTable":
        """Adds rows with larger ids, to this table or if there is no room to a copy."""
        end = self.count + len(codes)
        if end > len(self.ids):
            return self._copy(max(_LEAST_ROOM, 2 * end)).appended(columns, codes)
        for column, values in zip((self.ids, self.docs, self.partitions, self.scales), columns, strict=True):
            if len(column):
                column[self.count : end] = values
        self.codes[self.count : end] = codes
        self.count = end  # last, see above
        return self

    def without(self, vectors: Ids) -> "VectorTable":
        """Delete the rows of these ids, in this table, or in a copy if many have gone."""
        if not self.count:
            return self
        ids = self.ids[: self.count]
        at = np.minimum(ids.searchsorted(vectors), self.count - 1)
        self.partitions[at[ids[at] == vectors]] = _DELETED
        self._deleted = self.count - int(np.count_nonzero(self.partitions[: self.count]))
        return self._copy(len(ids)) if self._deleted > self.count * _COMPACT_WHEN_DELETED_SHARE else self

    def select(
        self, partitions: Sequence[int] | None, docs: Sequence[int] | None, upto: int, flags: bytes | None = None
    ) -> tuple[int, Ids | None]:
        """Return the number of rows up to the id `upto`, and those of them in these partitions, of these documents and
        with a flag of the document, None for all.
        """
        count = self.count
        if count and self.ids[count - 1] > upto:
            count = int(self.ids[:count].searchsorted(upto, "right"))
        if partitions is None and docs is None and flags is None and not self._deleted:
            return count, None
        row_partitions = self.partitions[:count]
        mask = row_partitions != _DELETED if partitions is None else members(row_partitions, partitions)
        if docs is not None:
            mask &= members(self.docs[:count], docs)
        if flags is not None:
            mask &= np.frombuffer(flags, np.bool_).take(self.docs[:count], mode="clip")
        return count, mask.nonzero()[0]

    def _copy(self, room: int) -> "VectorTable":
        left = np.flatnonzero(self.partitions[: self.count])
        table = VectorTable(self.codes.shape[1], self.codes.dtype.str, room)
        names = (*COLUMNS, "codes")
        for old, new in ((getattr(self, name), getattr(table, name)) for name in names):
            if len(old):
                np.take(old, left, 0, out=new[: len(left)], mode="clip")  # without a copy in between
        table.count = len(left)
        return table


def load_library() -> None:
    """Loads the library that compares: once the server is full, the system may give no file or memory for it."""
    import simsimd  # noqa: F401


def compare(query: Array, codes: Array, metric: Any = "dot", dtype: Any = "int8") -> Floats:
    """Return the value of a metric for each row of the codes, by default the product of int8 vectors."""
    import simsimd

    if not len(codes):
        return np.empty(0)
    # Without `out`, with which simsimd 6.5 returns a None that it does not count: Python 3.11 aborts in the end.
    return np.asarray(simsimd.cdist(query[None], codes, metric, dtype=dtype))[0]


def _compare_rows(
    table: VectorTable, query: Array, selection: tuple[int, Ids | None], metric: str = "dot", dtype: str = "int8"
) -> tuple[Ids | None, Array]:
    """Return the selected rows of a table, None for the first rows, and the value of a metric for each."""
    count, rows = selection
    if rows is not None and 2 * len(rows) > count:  # gathering most rows costs more than comparing all
        return rows, _compare_rows(table, query, (count, None), metric, dtype)[1][rows]
    # A product of vectors is a whole number below 2 ** 24, which 32 bits hold exactly, a distance is below 2 ** 16.
    values = np.empty(count if rows is None else len(rows), np.float32 if dtype == "int8" else np.uint16)
    for at in range(0, len(values), _COMPARED_TOGETHER):
        chunk = slice(at, min(at + _COMPARED_TOGETHER, len(values)))
        values[chunk] = compare(query, table.codes[chunk if rows is None else rows[chunk]], metric, dtype)
    return rows, values


def _cosines(
    table: VectorTable, vector: bytes, scale: float, selection: tuple[int, Ids | None]
) -> tuple[Ids | None, Floats]:
    rows, values = _compare_rows(table, np.frombuffer(vector, np.int8), selection)
    cosines = values * (table.scales[: len(values)] if rows is None else table.scales[rows])
    cosines *= scale
    return rows, cosines


def _largest(values: Floats, size: int) -> Ids:
    sample = values[::_SAMPLE_STEP]
    above = 2 * size // _SAMPLE_STEP + 1
    if above < len(sample):  # few are above a value that most likely twice as many reach as are wanted
        few = (values >= np.partition(sample, -above)[-above]).nonzero()[0]
        if len(few) >= size:
            return few[values[few].argpartition(-size)[-size:]]
    return values.argpartition(-size)[-size:]


def _within_radius(distances: Floats, size: int) -> Ids:
    """Return the positions of about `size` of the nearest rows; if more are equally near than are kept, the newest."""
    if len(distances) <= size:
        return np.arange(len(distances))
    sample = distances[::_SAMPLE_STEP]
    radius = np.partition(sample, min(len(sample) - 1, size // _SAMPLE_STEP))[size // _SAMPLE_STEP]
    return np.flatnonzero(distances <= radius)[-size * _MAX_TIES_FACTOR :]


def members(values: Array, numbers: Sequence[int]) -> Bools:
    """Return whether each of the values is among some small positive numbers, by a look-up table."""
    table = np.zeros(max(numbers, default=0) + 2, np.bool_)
    table[[*numbers]] = True
    return table.take(values, mode="clip")


# Vectors in a block: a start reads 977 rows instead of a million. Others wait while a block is written: some
# milliseconds, 60 with 8,192.
BLOCK_ROWS = 1024
_BLOCKS_PER_READ = 8  # bounds memory: 3 MB with vectors of 256 dimensions; not measured
_NO_LIMIT = 2**63 - 1


def vector_feed(tx: Tx, model: int, deletion: int = _NO_LIMIT) -> VectorFeed:
    """Return readers over the vectors of a model that `tx` sees, of which `deletion` is the last deletion."""

    def blocks(last: int, exact: bool) -> Sequence[Block]:
        return _blocks(tx, model, last, exact, _BLOCKS_PER_READ)

    def rows(last: int, exact: bool) -> Sequence[Row]:
        return _rows(tx, model, last, exact)

    def deletions(last: int) -> Sequence[Deletion]:
        return tx.all("kernel.ann.deletions_after", Deletion, after=last) if last < deletion else []

    return VectorFeed(lambda: _count(tx), blocks, rows, deletions, BLOCK_ROWS)


def asked_feed(tx: Tx, model: int, after: int, exact: bool, deletion: int) -> VectorFeed:
    """Return `vector_feed`, of which the rows after a vector are asked for already."""
    feed = vector_feed(tx, model, deletion)
    first = tx.ask("kernel.ann.vectors_after", Row, after=after, model=model, exact=exact, limit=BLOCK_ROWS)

    def rows(last: int, as_vectors: bool) -> Sequence[Row]:
        return first() if (last, as_vectors) == (after, exact) else feed.rows(last, as_vectors)

    return feed._replace(rows=rows)


def seal_blocks(tx: Tx, model: int, limit: int = 1) -> int:
    """Writes up to `limit` blocks of vectors that are in none, if a block is full; returns how many were written."""
    for count in range(limit):
        after = tx.one("kernel.ann.last_sealed_id", int, size=BLOCK_ROWS)
        if after is None or not _write_block(tx, model, after):
            return count
    return limit


def rewrite_block(tx: Tx, model: int, after: int) -> int:
    """Writes the block after a vector id again without deleted rows; returns its last id, 0 if no row is left."""
    last = _write_block(tx, model, after)
    tx.run("kernel.ann.delete_blocks_between", after=after, before=last or _NO_LIMIT)
    return last


def forget_vectors(tx: Tx, upto: int, limit: int) -> int:
    """Deletes up to `limit` vectors, and then blocks, of ids up to `upto` that are of no document; returns how many."""
    vectors = tx.all("kernel.ann.vectors_upto", int, upto=upto, limit=limit)
    if vectors:
        tx.context.search_cache.uncommitted = tx
        tx.run("kernel.ann.log_vectors_deleted", ids=vectors)
        return tx.run("kernel.ann.delete_vectors", ids=vectors)
    return delete_block(tx, upto)


def delete_block(tx: Tx, upto: int = _NO_LIMIT) -> int:
    """Deletes the first block, if it ends before a vector; the number of blocks deleted."""
    return tx.run("kernel.ann.delete_block_upto", upto=upto)


def deletions_upto(tx: Tx, vector: int) -> int:
    first = tx.one("kernel.ann.first_deletion_after", int, vector=vector)
    return first - 1 if first else last_deletion_id(tx)


def last_deletion_id(tx: Tx) -> int:
    """Return the number of the last deletion; 0 before the first."""
    return tx.one("kernel.ann.last_deletion_id", int) or 0


def count_deletions(tx: Tx) -> int:
    return tx.one("kernel.ann.count_deletions", int) or 0


def trim_deletions(tx: Tx, upto: int, limit: int = _NO_LIMIT) -> int:
    """Deletes up to `limit` log entries numbered `upto` or less, once no block holds their vectors; returns how many.

    A process that has not read them loads all vectors again.
    """
    tx.run("kernel.ann.set_deletion_floor", upto=upto)
    return tx.run("kernel.ann.trim_deletions", upto=upto, limit=limit)


def count_mismatches(tx: Tx, model: int) -> int:
    """Return how many rows of blocks differ from the vectors, are missing there, or are of no vector."""
    deletions = {row.vector for row in tx.all("kernel.ann.deletions_after", Deletion, after=0)}
    wrong: set[int] = set()
    for exact in (False, True):
        after = 0
        while blocks := _blocks(tx, model, after, exact, 1):
            if blocks[0].codes or not exact:  # of a large store there are sketches only
                block_rows = {row.id: row for row in _sealed_rows(blocks[0]) if row.id > after}
                vector_rows = {row.id: row for row in _rows_upto(tx, model, after, blocks[0].last, exact)}
                wrong.update(vector for vector, row in vector_rows.items() if block_rows.get(vector) != row)
                wrong.update(vector for vector in block_rows if vector not in vector_rows and vector not in deletions)
            after = blocks[0].last
    return len(wrong)


def clear(tx: Tx) -> None:
    tx.run("kernel.ann.delete_blocks")
    trim_deletions(tx, last_deletion_id(tx))


def _sealed_rows(block: Block) -> list[Row]:
    arrays = (block.ids, block.docs, block.partitions, block.scales)
    try:
        columns = [np.frombuffer(array, kind).tolist() for array, kind in zip(arrays, COLUMNS.values(), strict=True)]
        size = len(block.codes) // max(1, len(columns[0]))
        codes = [block.codes[at : at + size] for at in range(0, len(block.codes), size or 1)]
        return [Row(*row) for row in zip(*columns, codes, strict=True)]
    except ValueError:
        return []


def _rows_upto(tx: Tx, model: int, after: int, last: int, exact: bool) -> list[Row]:
    matches: list[Row] = []
    while after < last and (rows := _rows(tx, model, after, exact)):
        matches += [row for row in rows if row.partition is not None and row.id <= last]
        after = rows[-1].id
    return matches


def _write_block(tx: Tx, model: int, after: int) -> int:
    exact = _count(tx) <= EXACT_ROWS
    rows = tx.rows("kernel.ann.block_after", after=after, model=model, exact=exact, limit=BLOCK_ROWS)
    if not rows:
        return 0
    live_rows = [row for row in rows if row[2] is not None]
    *columns, sketches, vectors = zip(*live_rows, strict=True) if live_rows else [()] * 6
    ids, docs, partitions, scales = (
        np.array(column, kind).tobytes() for column, kind in zip(columns, COLUMNS.values(), strict=True)
    )
    tx.run(
        "kernel.ann.add_block",
        last=rows[-1][0],
        model=model,
        ids=ids,
        docs=docs,
        places=partitions,
        scales=scales,
        sketches=b"".join(sketches),
        vectors=b"".join(vectors) if exact else b"",
    )
    return rows[-1][0]


def _blocks(tx: Tx, model: int, after: int, exact: bool, limit: int) -> list[Block]:
    return tx.all("kernel.ann.sealed_blocks", Block, after=after, model=model, exact=exact, limit=limit)


def _rows(tx: Tx, model: int, after: int, exact: bool) -> list[Row]:
    return tx.all("kernel.ann.vectors_after", Row, after=after, model=model, exact=exact, limit=BLOCK_ROWS)


def _count(tx: Tx) -> int:
    return tx.one("kernel.ann.count_vectors", int) or 0
