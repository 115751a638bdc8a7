"""Scores are strengths, fall, and leave out hits below the floor."""

from hypothesis import given
from hypothesis import strategies as st

from handlers.notes.memories import reaching
from kernel.search.index import Hit, Parts, Scored

STRENGTHS = st.lists(st.floats(0, 1), max_size=12)


def hits(strengths: list[float]) -> list[Scored]:
    return [
        Scored(1.0, Hit(doc, "", "", None, None, None), Parts(), strength) for doc, strength in enumerate(strengths)
    ]


def scores(*strengths: float, floor: float = 0.0) -> list[float]:
    return [score for score, _ in reaching(hits([*strengths]), floor)]


def test_score_is_the_strength_of_a_hit_or_of_a_stronger_one_after_it() -> None:
    assert scores(0.9, 0.5, 0.2) == [0.9, 0.5, 0.2]
    assert scores(0.5, 0.9, 0.2) == [0.9, 0.9, 0.2]
    assert scores(0.9, 0.1, 0.5, floor=0.2) == [0.9, 0.5]
    assert scores(0.1, floor=0.2) == []


@given(STRENGTHS, st.floats(0, 1))
def test_scores_fall_and_keep_the_order_of_what_reaches_the_floor(strengths: list[float], floor: float) -> None:
    found = reaching(hits(strengths), floor)

    assert [one for _, one in found] == [one for one in hits(strengths) if one.strength >= floor]
    assert [score for score, _ in found] == sorted((score for score, _ in found), reverse=True)
    assert all(one.strength <= score <= max(strengths) for score, one in found)
