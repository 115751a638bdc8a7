"""Scores equal those of the original except for the text, and grow with each piece of evidence."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.scopes import candidates as scoring

STALE = 30.0


@pytest.mark.parametrize(
    ("wanted", "depth", "levels", "age", "more"),
    [
        # Seen on the original: a fresh guideline of priority 90 in the first of three scopes, with a tag, related.
        (3.85, 0, 3, 0.0, {"priority": 90}),
        (6.85, 0, 3, 0.0, {"priority": 90, "tags": 1}),
        (8.85, 0, 3, 0.0, {"priority": 90, "related": True}),
        # Each part by itself.
        (2.0, 0, 1, STALE, {}),
        (2.0, 0, 4, STALE, {}),
        (1.5, 1, 4, STALE, {}),
        (0.5, 3, 4, STALE, {}),
        (0.6667, 2, 3, STALE, {}),
        (5.0, 0, 1, STALE, {"tags": 1}),
        (11.0, 0, 1, STALE, {"tags": 3}),
        (11.0, 0, 1, STALE, {"tags": 9}),
        (7.0, 0, 1, STALE, {"related": True}),
        (3.5, 0, 1, STALE, {"priority": 100}),
        (2.0, 0, 1, STALE, {"priority": 0}),
        (2.0, 0, 1, STALE, {"priority": None}),
        (2.5, 0, 1, 0.0, {}),
        (2.25, 0, 1, 15.0, {}),
        (2.0, 0, 1, 400.0, {}),
        (2.5, 0, 1, -3.0, {}),
        # Everything at once is the most there is.
        (18.0, 0, 1, 0.0, {"tags": 3, "related": True, "priority": 100}),
        # .7 x 10 x relevance + .3 x 10 x the rest with 1 for the text / 18.5 + recency.
        (7.4865, 0, 1, STALE, {"relevance": 1.0}),
        (0.4865, 0, 1, STALE, {"relevance": 0.0}),
        (3.9865, 0, 1, STALE, {"relevance": 0.5}),
        (7.9865, 0, 1, 0.0, {"relevance": 1.0}),
        (10.5, 0, 1, 0.0, {"relevance": 1.0, "tags": 3, "related": True, "priority": 100}),
    ],
)
def test_a_score_is_the_sum_of_its_points(
    wanted: float, depth: int, levels: int, age: float, more: dict[str, object]
) -> None:
    assert scoring.score(scoring.scope_points(depth, levels), age, **more) == wanted  # type: ignore[arg-type]


@given(
    st.floats(0, 2),
    st.floats(0, 60),
    st.integers(0, 100),
    st.integers(0, 5),
    st.booleans(),
    st.none() | st.floats(0, 1),
)
def test_no_evidence_lowers_a_score(
    place: float, age: float, priority: int, tags: int, related: bool, relevance: float | None
) -> None:
    plain = scoring.score(place, age, priority, tags, related=related, relevance=relevance)

    assert scoring.score(place + 0.1, age, priority, tags, related=related, relevance=relevance) >= plain
    assert scoring.score(place, age - 1, priority, tags, related=related, relevance=relevance) >= plain
    assert scoring.score(place, age, priority + 1, tags, related=related, relevance=relevance) >= plain
    assert scoring.score(place, age, priority, tags + 1, related=related, relevance=relevance) >= plain
    assert scoring.score(place, age, priority, tags, related=True, relevance=relevance) >= plain
    if relevance is not None:
        assert scoring.score(place, age, priority, tags, related=related, relevance=relevance + 0.1) > plain


@given(st.floats(0, 1000))
def test_age_is_in_days(days: float) -> None:
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    born = (now - timedelta(days=days)).isoformat()

    assert scoring.age_days(born, now) == pytest.approx(days, abs=1e-9)


@pytest.mark.parametrize(("similarity", "cosine"), [(0.0, -1.0), (0.5, 0.12), (0.7, 0.1996), (1.0, 1.0)])
def test_similarity_maps_the_cosine_to_0_to_1(similarity: float, cosine: float) -> None:
    assert scoring.cosine(similarity) == pytest.approx(cosine, abs=1e-4)
