"""Scores follow the contract, exact matches come first, and no better result is dropped."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.sessions.scoring import Candidate, ScoredCandidate, ScoreWeights, rank, recency_filter, score

DEFAULT = ScoreWeights()


def one(**fields: object) -> Candidate:
    return Candidate(**{"id": 1, "distance": 1.0, "fts_hit": False, "priority": 1, "at": 0.0, **fields})  # type: ignore[arg-type]


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


def scores(found: list[ScoredCandidate]) -> list[tuple[int, float]]:
    return [(item.candidate.id, item.score) for item in found]


def test_age_is_relative_to_the_span_of_all_candidates() -> None:
    candidates = [one(id=1, at=10_000.0), one(id=2, at=5_000.0), one(id=3, at=0.0)]
    assert scores(rank(candidates, DEFAULT, 1.0, 10)) == [(1, 1.0), (2, 1.1), (3, 1.2)]


def test_memories_of_one_burst_are_ranked_by_meaning() -> None:
    nearest = one(id=1, distance=1.0, at=0.0)
    others = [one(id=number, distance=1.1, at=0.01 * number) for number in range(2, 21)]
    assert scores(rank([*others[::-1], nearest], DEFAULT, 0.6, 3)) == [(1, 1.000011), (20, 1.1), (19, 1.100001)]


@pytest.mark.parametrize(("seconds", "wanted"), [(1.0, 1.000056), (1800.0, 1.1), (3600.0, 1.2), (7200.0, 1.2)])
def test_the_oldest_candidate_has_the_whole_penalty_only_after_an_hour(seconds: float, wanted: float) -> None:
    assert scores(rank([one(id=1, at=seconds), one(id=2)], DEFAULT, 1.0, 10)) == [(1, 1.0), (2, wanted)]


def test_candidates_of_the_same_time_keep_their_order() -> None:
    candidates = [one(id=number, at=5.0) for number in (4, 2, 9)]
    assert scores(rank(candidates, DEFAULT, 1.0, 10)) == [(4, 1.0), (2, 1.0), (9, 1.0)]


def test_an_exact_match_ranks_first() -> None:
    candidates = [one(id=1, distance=0.2, fts_hit=True, at=100.0), one(id=2, distance=0.0, priority=5, exact=True)]
    assert scores(rank(candidates, DEFAULT, 1.0, 10)) == [(2, 0.1), (1, 0.1)]


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
    candidates = [one(id=number, at=float(number)) for number in range(count)]
    found = rank(candidates, DEFAULT, top_p, 100)
    assert [item.candidate.id for item in found] == list(range(count))[::-1][:kept]


def test_the_recency_filter_keeps_older_memories_that_rank_above_kept_ones() -> None:
    candidates = [one(id=1, distance=0.1, at=0.0), one(id=2, distance=1.9, at=0.0), one(id=3, distance=1.0, at=9.0)]
    assert [item.candidate.id for item in rank(candidates, DEFAULT, 0.3, 10)] == [1, 3]


def test_a_strict_recency_filter_keeps_only_the_newest_share() -> None:
    old = [one(id=1, distance=0.1, at=0.0), one(id=2, distance=0.0, at=1.0, exact=True)]
    new = [one(id=number, distance=1.9, at=9.0 + number) for number in range(3, 11)]
    assert [item.candidate.id for item in rank([*old, *new], DEFAULT, 0.1, 10, strict=True)] == [10]
    assert [item.candidate.id for item in rank([*old, *new], DEFAULT, 0.1, 10)] == [2, 1, 10]


def test_the_recency_filter_keeps_exact_matches() -> None:
    candidates = [one(id=1, distance=0.0, at=0.0, exact=True), one(id=2, distance=0.0, at=9.0)]
    assert [item.candidate.id for item in rank(candidates, ScoreWeights(recency=0.0), 0.5, 10)] == [1, 2]


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
    everything = {item.candidate.id: item.score for item in rank(candidates, DEFAULT, 1.0, 1000)}
    found = rank(candidates, DEFAULT, top_p, limit)
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
