"""Near-duplicates among candidates, by cosine."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ids = NDArray[np.int64]
    Matrix = NDArray[np.float32]

DUPLICATE_COSINE = 0.85  # .9 before the model was fitted; a flood of 1,000 copies stays one group
LONG_DUPLICATE_COSINE = 0.9  # long texts about one thing are alike: .85 costs .013 nDCG@10 on Cranfield, .008 on CoSQA
LONG_TEXT_TOKENS = 48


class NearDuplicates:
    """Documents with their unit vectors, in groups of near-duplicates.

    Groups are transitive: a document joins every group that holds a near-duplicate of it, and so merges them. The
    first document of a group is its leader.
    """

    def __init__(self, dimensions: int) -> None:
        import numpy as np

        self.docs: list[int] = []
        self.units: Matrix = np.empty((0, dimensions), np.float32)
        self.ranks: dict[int, int] = {}  # how many documents of its group came before a document, 0 left out
        self._leaders: Ids = np.empty(0, np.int64)  # the position of the leader of each document's group
        self._thresholds: Matrix = np.empty(0, np.float32)

    @property
    def leaders(self) -> dict[int, int]:
        """The leader of each document's group."""
        return {doc: self.docs[leader] for doc, leader in zip(self.docs, self._leaders.tolist(), strict=True)}

    def add(self, docs: Sequence[int], units: "Matrix", long: "Sequence[bool] | NDArray[np.bool_]") -> None:
        """Adds documents with their unit vectors, in order; `long` are texts of more than LONG_TEXT_TOKENS tokens."""
        import numpy as np

        own = np.where(long, np.float32(LONG_DUPLICATE_COSINE), np.float32(DUPLICATE_COSINE))
        begin = len(self.docs)
        self.docs += docs
        self.units, self._thresholds = np.concatenate([self.units, units]), np.concatenate([self._thresholds, own])
        self._leaders = np.concatenate([self._leaders, np.arange(begin, len(self.docs))])
        similar = units @ self.units.T >= np.maximum(own[:, None], self._thresholds)
        for at in np.flatnonzero(similar.sum(axis=1) > 1).tolist():
            before = self._leaders[: begin + at]
            merged = np.zeros(len(before), np.bool_)
            merged[before[similar[at, : len(before)]]] = True
            joined = np.flatnonzero(merged[before])
            if len(joined):
                self.ranks[self.docs[len(before)]] = len(joined)
                self._leaders[joined] = self._leaders[len(before)] = joined[0]
