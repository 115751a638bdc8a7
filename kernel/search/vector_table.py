"""Rows of vectors in memory, in arrays with room for more, and the selection of some by partition and document."""

from collections.abc import Sequence
from typing import Any

from kernel.core.lazy_numpy import Array, Bools, Ids, np

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
        self._deleted = self.count - np.count_nonzero(self.partitions[: self.count])
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
        return count, np.flatnonzero(mask)

    def _copy(self, room: int) -> "VectorTable":
        left = np.flatnonzero(self.partitions[: self.count])
        table = VectorTable(self.codes.shape[1], self.codes.dtype.str, room)
        names = (*COLUMNS, "codes")
        for old, new in ((getattr(self, name), getattr(table, name)) for name in names):
            if len(old):
                np.take(old, left, 0, out=new[: len(left)], mode="clip")  # without a copy in between
        table.count = len(left)
        return table


def members(values: Array, numbers: Sequence[int]) -> Bools:
    """Return whether each of the values is among some small positive numbers, by a look-up table."""
    table = np.zeros(max(numbers, default=0) + 2, np.bool_)
    table[[*numbers]] = True
    return table.take(values, mode="clip")
