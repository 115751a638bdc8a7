"""Near-duplicates among candidates, by cosine."""

from collections.abc import Sequence

from kernel.core.lazy_numpy import Bools, Ids, Matrix, np

DUPLICATE_COSINE = 0.85  # .9 before the model was fitted; a flood of 1,000 copies stays one group
LONG_DUPLICATE_COSINE = 0.9  # long texts about one thing are alike: .85 costs .013 nDCG@10 on Cranfield, .008 on CoSQA
LONG_TEXT_TOKENS = 48
# So many documents are compared with all before them, as many as a first page of candidates has. Later documents are
# compared with the first of each group alone, twice as many at most, so that a flood costs a recall little more than
# other hits do.
MOST_COMPARED = 256
_STANDING = 4  # for a group
_AT_ONCE = 128


class NearDuplicates:
    """Documents with their unit vectors, in groups of near-duplicates.

    Groups are transitive: a document joins every group that holds a near-duplicate of it, and so merges them. The
    first document of a group is its leader.
    """

    def __init__(self, dimensions: int) -> None:
        self.docs: list[int] = []
        self.units: Matrix = np.empty((0, dimensions), np.float32)
        self.ranks: dict[int, int] = {}  # how many documents of its group came before a document, 0 left out
        self._leaders: Ids = np.empty(0, np.int64)  # the position of the leader of each document's group
        self._thresholds: Matrix = np.empty(0, np.float32)
        self._compared: Ids = np.empty(0, np.int64)  # positions

    @property
    def leaders(self) -> dict[int, int]:
        """Return the leader of each document's group."""
        return {doc: self.docs[leader] for doc, leader in zip(self.docs, self._leaders.tolist(), strict=True)}

    def add(self, docs: Sequence[int], units: Matrix, long: Sequence[bool] | Bools) -> None:
        """Adds documents with their unit vectors, in order; `long` are texts of more than LONG_TEXT_TOKENS tokens."""
        own = np.where(long, np.float32(LONG_DUPLICATE_COSINE), np.float32(DUPLICATE_COSINE))
        begin, end = len(self.docs), len(self.docs) + len(docs)
        self.docs += docs
        self.units, self._thresholds = np.concatenate([self.units, units]), np.concatenate([self._thresholds, own])
        self._leaders = np.concatenate([self._leaders, np.arange(begin, end)])
        whole = min(end, max(begin, MOST_COMPARED))
        self._compare(np.arange(begin, whole))
        for at in range(whole, end, _AT_ONCE):
            positions: list[int] = self._compared.tolist()
            standing = [self.ranks.get(self.docs[position], 0) < _STANDING for position in positions]
            self._compared = self._compared[np.array(standing, np.bool_)]
            left = self._join(np.arange(at, min(end, at + _AT_ONCE)))
            self._compare(left[: max(0, 2 * MOST_COMPARED - len(self._compared))])

    def _similar(self, rows: Ids) -> Bools:
        """Return which of the compared documents each of these is a near-duplicate of."""
        thresholds = np.maximum(self._thresholds[rows][:, None], self._thresholds[self._compared])
        return self.units[rows] @ self.units[self._compared].T >= thresholds

    def _compare(self, rows: Ids) -> None:
        """Groups these documents with each other and with those that are compared, which they become too."""
        positions = self._compared = np.concatenate([self._compared, rows])
        begin, similar = len(positions) - len(rows), self._similar(rows)
        for at in np.flatnonzero(similar.sum(axis=1) > 1).tolist():
            position = int(positions[begin + at])
            before = self._leaders[:position]
            is_leader = np.zeros(position, np.bool_)
            is_leader[before[positions[: begin + at][similar[at, : begin + at]]]] = True
            members = np.flatnonzero(is_leader[before])
            if len(members):
                self.ranks[self.docs[position]] = len(members)
                self._leaders[members] = self._leaders[position] = members[0]

    def _join(self, rows: Ids) -> Ids:
        """Adds these documents to the groups of those that are compared; returns the others."""
        similar = self._similar(rows)
        like = similar.any(axis=1)
        leaders = self._leaders[self._compared[similar[like].argmax(axis=1)]]
        sizes = np.bincount(self._leaders[: rows[0]])[leaders]
        self._leaders[rows[like]] = leaders
        joining: list[int] = rows[like].tolist()
        self.ranks.update(zip([self.docs[at] for at in joining], sizes.tolist(), strict=True))
        return rows[~like]
