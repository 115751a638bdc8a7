"""How like each other texts are by their vectors: near-duplicates, and whether neighbours in time belong together."""

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]
    Indices = NDArray[np.intp]

SAME, SAME_LONG = 0.85, 0.9
LONG = 48  # tokens: where many words meet, texts that say different things are more alike
_TINY = 1e-12


class Likeness:
    """Documents with the directions of their vectors, in groups.

    Whatever is nearly the same as any of a group is in it; the first of a group leads it.
    """

    def __init__(self) -> None:
        self._docs: list[int] = []
        self._first: Indices | None = None  # of each document the number of its leader
        self._matrix: Array | None = None
        self._limits: Array | None = None
        self._ranks: dict[int, int] = {}
        self._units: dict[int, Array] = {}

    @property
    def leaders(self) -> dict[int, int]:
        """The leader of each document's group."""
        first: list[int] = [] if self._first is None else self._first.tolist()
        return {doc: self._docs[at] for doc, at in zip(self._docs, first, strict=True)}

    def rank(self, doc: int) -> int:
        """How many of its group came before a document; 0 for one that leads, or is unknown."""
        return self._ranks.get(doc, 0)

    def add(self, vectors: Mapping[int, bytes], long: Container[int] = ()) -> None:
        """Adds documents with their int8 vectors, in order; `long` are those of more than LONG tokens."""
        import numpy as np

        if not vectors:
            return
        units = units_of([*vectors.values()])
        matrix = units if self._matrix is None else np.concatenate([self._matrix, units])
        own_limits = np.array([SAME_LONG if doc in long else SAME for doc in vectors], np.float32)
        limits = own_limits if self._limits is None else np.concatenate([self._limits, own_limits])
        begin, self._matrix, self._limits = len(self._docs), matrix, limits
        self._docs += vectors
        self._units.update(zip(vectors, units, strict=True))
        own = np.arange(begin, len(matrix))
        first = own if self._first is None else np.concatenate([self._first, own])
        alike = units @ matrix.T >= np.maximum(own_limits[:, None], limits)
        for at in (begin + np.flatnonzero(alike.sum(axis=1) > 1)).tolist():
            groups = np.unique(first[:at][alike[at - begin, :at]])
            if len(groups):
                self._ranks[self._docs[at]] = int(np.isin(first[:at], groups).sum())
                first[at] = groups[0]
                for other in groups[1:].tolist():
                    first[first == other] = groups[0]
        self._first = first

    def join(self, vectors: Mapping[int, bytes]) -> None:
        """Adds documents that are to be in no group."""
        self._units.update(zip(vectors, units_of([*vectors.values()]), strict=True) if vectors else ())

    def similarities(self, query: bytes, docs: Sequence[int]) -> list[float]:
        """The cosine of documents that were added to a query's vector."""
        import numpy as np

        return (np.stack([self._units[doc] for doc in docs]) @ units_of([query])[0]).tolist() if docs else []

    def coherence(self, windows: Sequence[tuple[int, Sequence[int | None]]]) -> float:
        """How much more like each other neighbours in time are than strangers, from 0 to 1; 0 where nobody can say.

        A window is a document with those around it. Strangers are the neighbours of other documents of the same query,
        which are alike as far as the query goes.
        """
        import numpy as np

        near: list[float] = []
        far: list[float] = []
        sides = list(zip(*(around for _, around in windows), strict=True)) if windows else []
        for side in sides:
            pairs = [
                (doc, other)
                for (doc, _), other in zip(windows, side, strict=True)
                if doc in self._units and other in self._units
            ]
            if len(pairs) > 1:
                one, other = (np.stack([self._units[pair[at]] for pair in pairs]) for at in (0, 1))
                products = one @ other.T
                same, every = float(np.trace(products)), float(products.sum())
                near.append(same / len(pairs))
                far.append((every - same) / (len(pairs) ** 2 - len(pairs)))
        if not near:
            return 0.0
        kin, strangers = sum(near) / len(near), sum(far) / len(far)
        return max(0.0, (kin - strangers) / max(1 - strangers, _TINY))


def units_of(vectors: Sequence[bytes]) -> "Array":
    """The directions of int8 vectors, a row for each."""
    import numpy as np

    matrix = np.frombuffer(b"".join(vectors), np.int8).reshape(len(vectors), -1).astype(np.float32)
    return matrix / np.maximum(np.sqrt(np.einsum("ij,ij->i", matrix, matrix)), _TINY)[:, None]
