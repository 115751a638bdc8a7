"""Buckets in shared memory: the same limit for all who share it, for any number of callers."""

import mmap
from contextlib import nullcontext

import pytest

from kernel.security.rate_limit import BYTES, RateLimiter, SharedBuckets

BURST = 3


@pytest.fixture
def limiters() -> list[RateLimiter]:
    memory = mmap.mmap(-1, BYTES)
    return [RateLimiter(10, BURST, SharedBuckets(memory, nullcontext, b"key")) for _ in range(2)]


def test_two_limiters_count_one_caller_together(limiters: list[RateLimiter]) -> None:
    one, other = limiters
    assert [limiter.wait((), "a", 100.0) for limiter in (one, other, one, other, one)] == [0, 0, 0, 0.1, 0.1]
    assert other.wait((), "b", 100.0) == 0
    assert (other.wait((), "a", 100.125), one.wait((), "a", 100.125)) == (0, pytest.approx(0.075))


@pytest.mark.slow
def test_many_callers_take_the_places_of_the_oldest(limiters: list[RateLimiter]) -> None:
    one, other = limiters
    for number in range(20_000):
        assert one.wait((), f"caller {number}", 100.0 + number / 1000) == 0
    last = "caller 19999"
    assert [other.wait((), last, 119.999) for _ in range(BURST)] == [0, 0, pytest.approx(0.1)]
