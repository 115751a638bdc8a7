"""What an engine in this process found, with its scores."""

from collections.abc import Mapping
from typing import NamedTuple


class Ranking(NamedTuple):
    """Scores by id, the larger the better, and the seconds it took."""

    scores: Mapping[str, float]
    seconds: float

    @property
    def ids(self) -> list[str]:
        """The ids, best first."""
        return sorted(self.scores, key=lambda key: -self.scores[key])


def fused(one: Ranking, other: Ranking, share: float) -> Ranking:
    """The sum of both, each over its best, `share` of it the first."""
    best, most = (max(ranking.scores.values(), default=0.0) or 1.0 for ranking in (one, other))
    keys = {**one.scores, **other.scores}
    scores = {
        key: share * max(0.0, one.scores.get(key, 0.0)) / best
        + (1 - share) * max(0.0, other.scores.get(key, 0.0)) / most
        for key in keys
    }
    return Ranking(scores, one.seconds + other.seconds)
