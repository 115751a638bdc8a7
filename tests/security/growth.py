"""How the time of some work grows with the size of its input, by the processor time of this thread."""

import gc
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

KIB = 1024
SIZES = (1 * KIB, 4 * KIB, 64 * KIB)  # further apart than noise is large
MOST = 2.5  # times the time of half the size
FLOOR = 0.000_1  # seconds; a shorter time counts as so many
TOO_LONG = 1.0  # seconds, after which the work is stopped


class Growth(NamedTuple):
    """The seconds at each size; the last may be TOO_LONG."""

    sizes: Sequence[int]
    seconds: Sequence[float]

    @property
    def worst(self) -> float:
        """The largest factor of a doubling."""
        steps = zip(self.sizes, self.sizes[1:], self.seconds, self.seconds[1:], strict=False)
        return max(
            ((after / max(FLOOR, before)) ** (1 / _doublings(small, large)) for small, large, before, after in steps),
            default=1.0,
        )

    @property
    def linear(self) -> bool:
        """Whether no doubling takes more than MOST times as long, and none is stopped."""
        return self.worst <= MOST and self.seconds[-1] < TOO_LONG

    def __str__(self) -> str:
        times = ", ".join(f"{size}: {1000 * took:.2f} ms" for size, took in zip(self.sizes, self.seconds, strict=False))
        return f"x{self.worst:.1f} a doubling ({times})"


def growth(work: Callable[[Any], object], texts: Callable[[int], Any], sizes: Sequence[int] = SIZES) -> Growth:
    """The growth of `work(texts(size))`: at each size the least of several times; ends at the first that is too long.

    Measured once more if it is not linear: a busy machine slows one time down, not two.
    """
    first = _growth(work, texts, sizes, 2)
    if first.linear or first.seconds[-1] >= TOO_LONG:
        return first
    return min(first, _growth(work, texts, sizes, 4), key=lambda one: one.worst)


def _growth(work: Callable[[Any], object], texts: Callable[[int], Any], sizes: Sequence[int], times: int) -> Growth:
    seconds: list[float] = []
    for size in sizes:
        run = partial(work, texts(size))
        least = TOO_LONG
        for _ in range(times):
            least = min(least, spent(run))
            if least >= TOO_LONG:
                break
        seconds.append(least)
        if least >= TOO_LONG:
            break
    return Growth(sizes, seconds)


def spent(work: Callable[[], object], most: float = TOO_LONG) -> float:
    """Seconds of processor time that the work takes, `most` where it is stopped."""
    collecting = gc.isenabled()
    gc.disable()  # a collection goes through all objects of the tests, not only those of the work
    begun = time.thread_time()
    try:
        with _stopped_after(most):
            work()
    except _StoppedError:
        return most
    finally:
        took = time.thread_time() - begun
        if collecting:
            gc.enable()
    return took


class _StoppedError(BaseException):
    """The work takes too long."""


@contextmanager
def _stopped_after(seconds: float) -> Iterator[None]:
    """Raises _StoppedError in the block after so much processor time; `re` looks for signals as it goes."""
    if sys.platform == "win32":
        yield
        return
    before = signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _stop(_number: int, _frame: object) -> None:
    raise _StoppedError


def _doublings(small: int, large: int) -> float:
    return (large // small).bit_length() - 1
