"""Near-duplicates among candidates, and how much neighbours in a conversation resemble each other, by cosine."""

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]
    Indices = NDArray[np.intp]

DUPLICATE_COSINE = 0.85  # .9 before the model was fitted; a flood of 1,000 copies stays one group
LONG_DUPLICATE_COSINE = 0.9  # long texts about one thing are alike: .85 costs .013 nDCG@10 on Cranfield, .008 on CoSQA
LONG_TEXT_TOKENS = 48
_EPSILON = 1e-12  # avoids division by zero


class NearDuplicates:
    """Documents with their unit vectors, in groups of near-duplicates.

    Groups are transitive: a document joins every group that holds a near-duplicate of it, and so merges them. The
    first document of a group is its leader.
    """

    def __init__(self) -> None:
        self._docs: list[int] = []
        self._leaders: Indices | None = None  # for each document the position of its leader
        self._matrix: Matrix | None = None
        self._thresholds: Matrix | None = None
        self.ranks: dict[int, int] = {}  # how many documents of its group came before a document, 0 left out
        self._units: dict[int, Matrix] = {}

    @property
    def leaders(self) -> dict[int, int]:
        """The leader of each document's group."""
        positions: list[int] = [] if self._leaders is None else self._leaders.tolist()
        return {doc: self._docs[at] for doc, at in zip(self._docs, positions, strict=True)}

    def add(self, vectors: Mapping[int, bytes], long: Container[int] = ()) -> None:
        """Adds documents with their int8 vectors, in order; `long` are those of more than LONG_TEXT_TOKENS tokens."""
        import numpy as np

        if not vectors:
            return
        units = unit_vectors([*vectors.values()])
        matrix = units if self._matrix is None else np.concatenate([self._matrix, units])
        own = np.array([LONG_DUPLICATE_COSINE if doc in long else DUPLICATE_COSINE for doc in vectors], np.float32)
        thresholds = own if self._thresholds is None else np.concatenate([self._thresholds, own])
        begin, self._matrix, self._thresholds = len(self._docs), matrix, thresholds
        self._docs += vectors
        self._units.update(zip(vectors, units, strict=True))
        positions = np.arange(begin, len(matrix))
        leaders = positions if self._leaders is None else np.concatenate([self._leaders, positions])
        similar = units @ matrix.T >= np.maximum(own[:, None], thresholds)
        for at in (begin + np.flatnonzero(similar.sum(axis=1) > 1)).tolist():
            groups = np.unique(leaders[:at][similar[at - begin, :at]])
            if len(groups):
                self.ranks[self._docs[at]] = int(np.isin(leaders[:at], groups).sum())
                leaders[at] = groups[0]
                for other in groups[1:].tolist():
                    leaders[leaders == other] = groups[0]
        self._leaders = leaders

    def add_ungrouped(self, vectors: Mapping[int, bytes]) -> None:
        """Adds documents for `similarities` and `coherence` only."""
        self._units.update(zip(vectors, unit_vectors([*vectors.values()]), strict=True) if vectors else ())

    def similarities(self, query: bytes, docs: Sequence[int]) -> list[float]:
        """The cosine of added documents to a query's vector."""
        import numpy as np

        return (np.stack([self._units[doc] for doc in docs]) @ unit_vectors([query])[0]).tolist() if docs else []

    def coherence(self, windows: Sequence[tuple[int, Sequence[int | None]]]) -> float:
        """How much more similar documents are to their own neighbours than to those of others, from 0 to 1.

        A window is a document with its neighbours. The neighbours of other candidates are the baseline: they are alike
        as far as the query goes. 0 where there are too few neighbours.
        """
        import numpy as np

        own: list[float] = []
        other: list[float] = []
        for side in zip(*(around for _, around in windows), strict=True) if windows else ():
            pairs = [
                (doc, neighbour)
                for (doc, _), neighbour in zip(windows, side, strict=True)
                if doc in self._units and neighbour in self._units
            ]
            if len(pairs) > 1:
                docs, neighbours = (np.stack([self._units[pair[at]] for pair in pairs]) for at in (0, 1))
                products = docs @ neighbours.T
                trace, total = float(np.trace(products)), float(products.sum())
                own.append(trace / len(pairs))
                other.append((total - trace) / (len(pairs) ** 2 - len(pairs)))
        if not own:
            return 0.0
        within, between = sum(own) / len(own), sum(other) / len(other)
        return max(0.0, (within - between) / max(1 - between, _EPSILON))


def unit_vectors(vectors: Sequence[bytes]) -> "Matrix":
    """Int8 vectors scaled to unit length, one per row."""
    import numpy as np

    matrix = np.frombuffer(b"".join(vectors), np.int8).reshape(len(vectors), -1).astype(np.float32)
    return matrix / np.maximum(np.sqrt(np.einsum("ij,ij->i", matrix, matrix)), _EPSILON)[:, None]
