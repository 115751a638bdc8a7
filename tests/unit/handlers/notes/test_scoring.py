"""Scores lie in [0, 1] and mean the same whatever else was found."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.notes.scoring import MIN_SIMILARITY, meaning_score, score, word_score

UNIT = st.floats(0, 1)


@pytest.mark.parametrize(
    ("bm25", "coverage", "found"),
    [
        (None, 1.0, 0.0),
        (0.0, 1.0, 0.5),
        (1.0, 1.0, 0.75),
        (9.0, 1.0, 0.95),
        (1.0, 0.5, 0.375),
        (-1.0, 1.0, 0.5),
        (0.0, 0.0, 0.05),
        (3.0, 0.0, 0.0875),
    ],
)
def test_word_score_combines_coverage_and_bm25(bm25: float | None, coverage: float, found: float) -> None:
    assert word_score(bm25, coverage) == pytest.approx(found)


@pytest.mark.parametrize(
    ("similarity", "found"),
    [(None, 0.0), (-1.0, 0.0), (MIN_SIMILARITY - 0.01, 0.0), (MIN_SIMILARITY, MIN_SIMILARITY), (0.5, 0.5), (1.01, 1.0)],
)
def test_meaning_is_the_cosine_from_the_floor_on(similarity: float | None, found: float) -> None:
    assert meaning_score(similarity) == found


@pytest.mark.parametrize(("kind", "found"), [("search", 0.5), ("vsearch", 0.4), ("query", 0.7)])
def test_each_search_type_has_its_score(kind: str, found: float) -> None:
    assert score(kind, 0.5, 0.4) == pytest.approx(found)  # pyright: ignore[reportArgumentType]


@given(st.none() | st.floats(-10, 1e9), UNIT, st.none() | st.floats(-1, 1.001))
def test_every_score_lies_between_0_and_1_and_both_signals_count_at_least_as_much_as_one(
    bm25: float | None, coverage: float, similarity: float | None
) -> None:
    words, meaning = word_score(bm25, coverage), meaning_score(similarity)
    scores = {kind: score(kind, words, meaning) for kind in ("search", "vsearch", "query")}

    assert all(0 <= value <= 1 for value in scores.values())
    assert scores["query"] >= max(scores["search"], scores["vsearch"]) - 1e-9
