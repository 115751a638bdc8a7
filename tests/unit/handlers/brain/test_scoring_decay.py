"""How present a memory is: full when it was just accessed, half after each half-life, never outside its bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.brain.scoring import decayed
from tests.support.handlers_brain_memories import NOW


@pytest.mark.parametrize(
    ("decay", "accessed", "now", "half_life", "present"),
    [
        (1.0, None, NOW, 30.0, 1.0),
        (0.4, None, NOW, 30.0, 0.4),
        (1.0, None, "2026-02-01T03:04:05.678Z", 30.0, 0.5),
        (1.0, None, "2026-03-03T03:04:05.678Z", 30.0, 0.25),
        (0.4, None, "2026-02-01T03:04:05.678Z", 30.0, 0.2),
        (1.0, "2026-02-01T03:04:05.678Z", "2026-02-01T03:04:05.678Z", 30.0, 1.0),
        (1.0, None, "2026-01-02T15:04:05.678Z", 0.5, 0.5),
        (1.0, None, "2025-01-01T00:00:00.000Z", 30.0, 1.0),
        (7.0, None, NOW, 30.0, 1.0),
        (-1.0, None, NOW, 30.0, 0.0),
    ],
)
def test_decay_score_halves_with_every_half_life(
    decay: float, accessed: str | None, now: str, half_life: float, present: float
) -> None:
    assert decayed(decay, accessed or NOW, now, half_life) == pytest.approx(present)


@given(st.floats(-2, 2), st.datetimes(), st.floats(0.001, 100_000))
def test_decay_score_stays_in_0_to_1(decay: float, now: object, half_life: float) -> None:
    at = f"{str(now)[:10]}T00:00:00.000Z"

    assert 0 <= decayed(decay, NOW, at, half_life) <= 1
