"""The score of a memory in `search_memory` (seed 002): lower is better."""

import math
from collections.abc import Sequence
from typing import NamedTuple

LEXICAL_BASE_SCORE = 1.0  # instead of a distance, for hits by words alone
NEAREST, FARTHEST = 0.2, 2.0  # the distances of the best evidence and of none; 0 is the content itself
HALF_LIFE_SECONDS = 30 * 86_400.0  # after which age counts half, as in recall
_SCORE_DIGITS = 6


class ScoreWeights(NamedTuple):
    """The bonus for a hit by words, the penalty per step of priority, and the most that age adds."""

    fts_bonus: float = 0.1
    priority: float = 0.15
    recency: float = 0.2


class Candidate(NamedTuple):
    """One memory to score: `distance` goes from NEAREST, the best evidence, to FARTHEST, None for a hit by words alone.

    `at` is the time it was stored, in seconds since the epoch; `exact` if its content equals the query.
    """

    id: int
    distance: float | None
    fts_hit: bool
    priority: int
    at: float
    exact: bool = False


class ScoredCandidate(NamedTuple):
    score: float
    candidate: Candidate


def score(candidate: Candidate, age: float, weights: ScoreWeights) -> float:
    """Return the score of one candidate; `age` is 0 for a new memory and less than 1.

    A hit by words alone starts from 1.0, content equal to the query from 0.0.
    """
    base = 0.0 if candidate.exact else LEXICAL_BASE_SCORE if candidate.distance is None else candidate.distance
    bonus = weights.fts_bonus if candidate.fts_hit else 0.0
    return round(base - bonus + weights.priority * (candidate.priority - 1) + weights.recency * age, _SCORE_DIGITS)


def rank(
    candidates: Sequence[Candidate],
    weights: ScoreWeights,
    top_p: float,
    limit: int,
    *,
    now: float,
    strict: bool = False,
) -> list[ScoredCandidate]:
    """Return the best `limit` candidates, best first, after the recency filter; equal scores keep the order given.

    A candidate equal to the query comes first, regardless of its priority and age. Times are seconds since the epoch.
    """
    if not candidates:
        return []
    ranking = [
        ScoredCandidate(score(candidate, age(candidate.at, now), weights), candidate) for candidate in candidates
    ]
    best = min(entry.score for entry in ranking)
    # Priority and age may rank an exact match below others; it gets the best score instead.
    ranking = [entry._replace(score=min(entry.score, best)) if entry.candidate.exact else entry for entry in ranking]
    recent = recency_filter(ranking, top_p, strict=strict)
    return sorted(recent, key=lambda entry: (entry.score, not entry.candidate.exact))[:limit]


def age(at: float, now: float) -> float:
    """Return 0 for a new memory; after each HALF_LIFE_SECONDS half of the distance to 1 is added."""
    return 1 - 0.5 ** (max(0.0, now - at) / HALF_LIFE_SECONDS)


def recency_filter(ranking: Sequence[ScoredCandidate], top_p: float, *, strict: bool = False) -> list[ScoredCandidate]:
    """Return the newest share `top_p` of the candidates, at least one; unless `strict`, also older candidates that
    score better than any of these. A dropped candidate is both older and worse than all that remain.
    """
    share = top_p if 0.0 < top_p <= 1.0 else 1.0
    count = max(1, math.ceil(round(len(ranking) * share, _SCORE_DIGITS)))
    by_age = sorted(ranking, key=lambda entry: -entry.candidate.at)
    if not by_age:
        return []
    worst = max(entry.score for entry in by_age[:count])
    newest = {entry.candidate.id for entry in by_age[:count]}
    if strict:
        return [entry for entry in ranking if entry.candidate.id in newest]
    return [entry for entry in ranking if entry.candidate.id in newest or entry.score < worst or entry.candidate.exact]
