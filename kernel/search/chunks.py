"""Rows of vectors in memory, in chunks that grow in place, and the selection of some by partition and document."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ids = NDArray[np.int64]
    Array = NDArray[Any]

CHUNK_ROWS = 1 << 14  # rows of one set of arrays, 4 MB: growing copies nothing
COLUMNS = {"ids": "int64", "docs": "int64", "partitions": "uint32", "scales": "float64"}
_COMPACT_WHEN_DELETED_SHARE = 1 / 8  # of a chunk's rows; then the others are copied to a new chunk; not measured
_DELETED = 0  # partition ids begin at 1


class Chunk:
    """At most `capacity` rows with rising ids. Rows are appended at `count` and never moved."""

    def __init__(self, capacity: int, like: "Array") -> None:
        import numpy as np

        self.count = self._deleted = 0
        self._capacity = capacity
        self.columns: dict[str, Array] = {name: np.empty(capacity, kind) for name, kind in COLUMNS.items()}
        self.columns["codes"] = np.empty((capacity, like.shape[1]), like.dtype)

    @property
    def room(self) -> int:
        """How many rows can be appended."""
        return self._capacity - self.count

    def append(self, columns: "Sequence[Any]", codes: "Array") -> None:
        """Adds rows with larger ids, of which there must be room."""
        span = slice(self.count, self.count + len(codes))
        for name, values in zip(COLUMNS, columns, strict=True):
            self.columns[name][span] = values
        self.columns["codes"][span] = codes
        self.count += len(codes)  # last: concurrent searches read the rows below `count` only

    def sealed(self) -> "Chunk":
        """The same rows, to which nothing can be appended."""
        other = object.__new__(Chunk)
        other.__dict__.update(self.__dict__, _capacity=self.count)
        return other

    def without(self, vectors: "Ids") -> "Chunk":
        """The chunk without the rows of these ids; concurrent searches keep the rows of this one."""
        import numpy as np

        ids = self.columns["ids"][: self.count]
        inside = vectors[(vectors >= ids[0]) & (vectors <= ids[-1])]
        at = ids.searchsorted(inside)
        at = at[ids[at] == inside]
        if not len(at):
            return self
        partitions = self.columns["partitions"].copy()
        partitions[at] = _DELETED
        left = np.flatnonzero(partitions[: self.count])
        if self.count - len(left) > self.count * _COMPACT_WHEN_DELETED_SHARE:
            other = Chunk(CHUNK_ROWS, self.columns["codes"])
            other.append([self.columns[name][left] for name in COLUMNS], self.columns["codes"][left])
            return other
        other = object.__new__(Chunk)
        columns = {**self.columns, "partitions": partitions}
        other.__dict__.update(self.__dict__, columns=columns, _deleted=self.count - len(left))
        return other

    def select(self, partitions: "Members | None", docs: "Members | None", upto: int) -> "Part":
        """The rows up to the id `upto` in these partitions and of these documents."""
        import numpy as np

        count = self.count
        count = int(self.columns["ids"][:count].searchsorted(upto, "right")) if upto < self._last(count) else count
        if partitions is None and docs is None and not self._deleted:
            return Part(self, count, None)
        held = self.columns["partitions"][:count]
        chosen = held != _DELETED if partitions is None else partitions.of(held)
        if docs is not None:
            chosen &= docs.of(self.columns["docs"][:count])
        return Part(self, count, np.flatnonzero(chosen))

    def _last(self, count: int) -> int:
        return int(self.columns["ids"][count - 1]) if count else 0


class Part(NamedTuple):
    """The first `rows` rows of a chunk, or those of them that are `chosen`."""

    chunk: Chunk
    rows: int
    chosen: "Ids | None"

    @property
    def size(self) -> int:
        """The number of rows."""
        return self.rows if self.chosen is None else len(self.chosen)

    def column(self, name: str) -> "Array":
        """One column of the rows."""
        column = self.chunk.columns[name]
        return column[: self.rows] if self.chosen is None else column[self.chosen]

    def take(self, name: str, at: "Ids") -> "Array":
        """A column of the rows at these positions."""
        return self.chunk.columns[name][at if self.chosen is None else self.chosen[at]]


class Members:
    """A set of small positive numbers, as a look-up table."""

    def __init__(self, numbers: Sequence[int]) -> None:
        import numpy as np

        self._table = np.zeros(max(numbers, default=0) + 2, np.bool_)
        self._table[[*numbers]] = True

    def of(self, values: "Array") -> "NDArray[np.bool_]":
        """Whether each of the values is a member."""
        return self._table.take(values, mode="clip")


def spans(parts: Sequence[Part]) -> list[tuple[Part, slice]]:
    """Each part with the positions of its rows among those of all parts."""
    found: list[tuple[Part, slice]] = []
    end = 0
    for part in parts:
        found.append((part, slice(end, end + part.size)))
        end += part.size
    return found


def gather(parts: Sequence[Part], at: "Ids", name: str) -> "Array":
    """A column of the rows at these rising positions among those of all parts."""
    import numpy as np

    if len(parts) == 1:
        return parts[0].take(name, at)
    placed = spans(parts)
    pieces = np.split(at, at.searchsorted([span.stop for _, span in placed[:-1]]))
    rows = (piece - span.start for piece, (_, span) in zip(pieces, placed, strict=True))
    return np.concatenate([part.take(name, some) for some, part in zip(rows, parts, strict=True)])
