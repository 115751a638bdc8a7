"""Scores follow the contract, exact matches come first, and no better result is dropped."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.sessions.scoring import Candidate, ScoredCandidate, ScoreWeights, rank, recency_filter, score

DEFAULT = ScoreWeights()
DAY = 86_400.0
NOW = 100 * 365 * DAY


def one(**fields: object) -> Candidate:
    return Candidate(**{"id": 1, "distance": 1.0, "fts_hit": False, "priority": 1, "at": NOW, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("distance", "fts_hit", "priority", "age", "exact", "wanted"),
    [
        # found by words alone; these and the next two were seen on the original
        (None, True, 1, 0.0, False, 0.9),
        (None, True, 5, 0.0, False, 1.5),
        # the newest memories where nothing was found
        (None, False, 3, 0.0, False, 1.3),
        (None, False, 1, 0.0, False, 1.0),
        (None, False, 1, 1.0, False, 1.2),
        (1.116, False, 1, 0.0, False, 1.116),
        (1.116, True, 1, 0.0, False, 1.016),
        (0.5, True, 2, 0.5, False, 0.65),
        (2.0, False, 5, 1.0, False, 2.8),
        # a distance of 0 is 0
        (0.0, False, 1, 0.0, False, 0.0),
        (0.0, True, 1, 0.0, False, -0.1),
        (None, True, 1, 0.0, True, -0.1),
        (0.7, False, 5, 1.0, True, 0.8),
    ],
)
def test_scores_follow_the_contract(
    distance: float | None, fts_hit: bool, priority: int, age: float, exact: bool, wanted: float
) -> None:
    candidate = one(distance=distance, fts_hit=fts_hit, priority=priority, exact=exact)
    assert score(candidate, age, DEFAULT) == wanted


@pytest.mark.parametrize(
    ("weights", "wanted"),
    [
        (ScoreWeights(fts_bonus=0.3), 1.1),
        (ScoreWeights(priority=0.0), 1.0),
        (ScoreWeights(recency=1.0), 1.7),
        (ScoreWeights(0.0, 0.0, 0.0), 1.0),
    ],
)
def test_weights_are_configurable(weights: ScoreWeights, wanted: float) -> None:
    assert score(one(fts_hit=True, priority=3), 0.5, weights) == wanted


def ranked(
    candidates: list[Candidate], top_p: float, limit: int, weights: ScoreWeights = DEFAULT, *, strict: bool = False
) -> list[ScoredCandidate]:
    return rank(candidates, weights, top_p, limit, now=NOW, strict=strict)


def scores(found: list[ScoredCandidate]) -> list[tuple[int, float]]:
    return [(item.candidate.id, item.score) for item in found]


@pytest.mark.parametrize(
    ("days", "wanted"), [(-1, 1.0), (0, 1.0), (1 / 24, 1.000192), (30, 1.1), (60, 1.15), (9999, 1.2)]
)
def test_age_is_absolute_and_counts_half_after_thirty_days(days: float, wanted: float) -> None:
    assert scores(ranked([one(at=NOW - days * DAY)], 1.0, 10)) == [(1, wanted)]


def test_memories_of_one_burst_are_ranked_by_their_evidence() -> None:
    nearest = one(id=1, distance=1.0, at=NOW - 1)
    others = [one(id=number, distance=1.1, at=NOW - 1 + 0.01 * number) for number in range(2, 21)]
    assert [number for number, _ in scores(ranked([*others[::-1], nearest], 0.6, 3))] == [1, 20, 19]


def test_candidates_of_the_same_time_keep_their_order() -> None:
    candidates = [one(id=number, at=NOW) for number in (4, 2, 9)]
    assert scores(ranked(candidates, 1.0, 10)) == [(4, 1.0), (2, 1.0), (9, 1.0)]


def test_an_exact_match_ranks_first() -> None:
    candidates = [
        one(id=1, distance=0.2, fts_hit=True, at=NOW + 100),
        one(id=2, distance=0.0, priority=5, exact=True),
    ]
    assert scores(ranked(candidates, 1.0, 10)) == [(2, 0.1), (1, 0.1)]


@pytest.mark.parametrize(
    ("count", "top_p", "kept"),
    [
        (4, 0.5, 2),
        (5, 0.6, 3),
        (5, 0.61, 4),
        (5, 0.01, 1),
        (5, 1.0, 5),
        (5, 0.0, 5),
        (5, -1.0, 5),
        (5, 5.0, 5),
        (1, 0.1, 1),
        (10, 0.7, 7),
        (10, 0.3, 3),
        (0, 0.5, 0),
    ],
)
def test_the_recency_filter_keeps_the_newest_share(count: int, top_p: float, kept: int) -> None:
    candidates = [one(id=number, at=NOW - DAY * (count - number)) for number in range(count)]
    found = ranked(candidates, top_p, 100)
    assert [item.candidate.id for item in found] == list(range(count))[::-1][:kept]


def test_the_recency_filter_keeps_older_memories_that_rank_above_kept_ones() -> None:
    candidates = [
        one(id=1, distance=0.1, at=NOW),
        one(id=2, distance=1.9, at=NOW),
        one(id=3, distance=1.0, at=NOW + 9),
    ]
    assert [item.candidate.id for item in ranked(candidates, 0.3, 10)] == [1, 3]


def test_a_strict_recency_filter_keeps_only_the_newest_share() -> None:
    old = [one(id=1, distance=0.1, at=NOW), one(id=2, distance=0.0, at=NOW + 1, exact=True)]
    new = [one(id=number, distance=1.9, at=NOW + 9 + number) for number in range(3, 11)]
    assert [item.candidate.id for item in ranked([*old, *new], 0.1, 10, strict=True)] == [10]
    assert [item.candidate.id for item in ranked([*old, *new], 0.1, 10)] == [2, 1, 10]


def test_the_recency_filter_keeps_exact_matches() -> None:
    candidates = [one(id=1, distance=0.0, at=NOW, exact=True), one(id=2, distance=0.0, at=NOW + 9)]
    assert [item.candidate.id for item in ranked(candidates, 0.5, 10, ScoreWeights(recency=0.0))] == [1, 2]


CANDIDATES = st.lists(
    st.builds(
        Candidate,
        id=st.integers(1, 10**6),
        distance=st.none() | st.floats(0, 2),
        fts_hit=st.booleans(),
        priority=st.integers(1, 5),
        at=st.floats(0, 2e9),
        exact=st.booleans(),
    ),
    max_size=20,
    unique_by=lambda candidate: candidate.id,
)


@pytest.mark.slow
@given(CANDIDATES, st.floats(-1, 2), st.integers(1, 25))
def test_results_are_sorted_and_miss_no_better_candidate(candidates: list[Candidate], top_p: float, limit: int) -> None:
    everything = {item.candidate.id: item.score for item in ranked(candidates, 1.0, 1000)}
    found = ranked(candidates, top_p, limit)
    listed = [item.score for item in found]
    assert listed == sorted(listed)
    assert len(everything) == len(candidates)
    hidden = everything.keys() - {item.candidate.id for item in found}
    assert all(everything[number] >= listed[-1] for number in hidden)
    assert any(item.candidate.exact for item in found[:1]) == any(item.exact for item in candidates)
    share = top_p if 0 < top_p <= 1 else 1
    assert len(found) >= min(limit, math.ceil(len(candidates) * share - 1e-6))


def test_the_recency_filter_accepts_an_empty_list() -> None:
    assert recency_filter([], 0.5) == []
