"""Rankings of engines that run in this process."""

from collections.abc import Mapping
from typing import NamedTuple


class Ranking(NamedTuple):
    """Scores by id, larger is better, and the seconds of the query."""

    scores: Mapping[str, float]
    seconds: float

    @property
    def ids(self) -> list[str]:
        """The ids, best first."""
        return sorted(self.scores, key=lambda key: -self.scores[key])


def fused(one: Ranking, other: Ranking, share: float) -> Ranking:
    """The weighted sum of two rankings, each normalized by its best score; `share` is the weight of the first."""
    best, most = (max(ranking.scores.values(), default=0.0) or 1.0 for ranking in (one, other))
    keys = {**one.scores, **other.scores}
    scores = {
        key: share * max(0.0, one.scores.get(key, 0.0)) / best
        + (1 - share) * max(0.0, other.scores.get(key, 0.0)) / most
        for key in keys
    }
    return Ranking(scores, one.seconds + other.seconds)
