"""Long work in slices, each with a transaction of its own, so that other writes get their turn in between, and
its progress, which is reported to a caller that asked for it."""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from enum import Enum
from typing import Any, Final, Generic, TypeGuard, TypeVar

from kernel.store.transaction import Tx

R = TypeVar("R")
Steps = Generator[None, Tx, R]
"""Work that yields wherever it may go on in another transaction, and is sent the one to go on with."""
# The writes of a slice are indexed when it commits, which takes as long again.
SLICE_SECONDS = 0.05
CALL_SLICE_SECONDS = 0.001  # of a call; indexing when it commits takes several times as long
STEP_ROWS = 32  # of one step of a call: a slice is cut between steps

Item = TypeVar("Item")
OnProgress = Callable[[int, int], None]  # steps done, and the total known so far
_REPORT_SECONDS = 0.1  # a client cannot show more than ten reports a second
_FLUSH_STEPS = 500  # steps after which deferred work is flushed


class Progress:
    """Counts steps and reports them to `report(done, total)`: at most ten times a second, and the last one always."""

    def __init__(self, report: OnProgress) -> None:
        self._report = report
        self._done = self._total = self._expected = 0
        self._next_report = 0.0

    def expect(self, steps: int) -> None:
        """Adds steps to the total that a later `begin` will start."""
        self._total += steps
        self._expected += steps

    def begin(self, steps: int) -> None:
        """Starts so many steps; those that were not expected are added to the total."""
        self._total += max(0, steps - self._expected)
        self._expected = max(0, self._expected - steps)

    def step(self) -> None:
        self.update(self._done + 1, self._total)

    def update(self, done: int, total: int) -> None:
        self._done, self._total = done, total
        now = time.monotonic()
        if now >= self._next_report or self._done == self._total:
            self._next_report = now + _REPORT_SECONDS
            self._report(self._done, self._total)


def is_steps(result: object) -> TypeGuard[Steps[Any]]:
    """Return whether a result is work that is still to be done."""
    return isinstance(result, Generator)


class Unfinished(Enum):
    """The answer of a slice that is not the last."""

    MORE = "more"


MORE: Final = Unfinished.MORE


class Slices(Generic[R]):
    """Steps as work for the writer: each call goes on with them for a while, and returns MORE until they are done."""

    def __init__(self, steps: Steps[R], seconds: float | None = None) -> None:
        self._steps = steps
        self.seconds = seconds  # of one call; None is the usual time
        next(steps)

    def __call__(self, tx: Tx) -> R | Unfinished:
        end = time.monotonic() + (SLICE_SECONDS if self.seconds is None else self.seconds)
        try:
            while True:
                self._steps.send(tx)
                if time.monotonic() > end:
                    return MORE
        except StopIteration as done:
            return done.value


def run_steps(tx: Tx, steps: Steps[R]) -> R:
    try:
        next(steps)
        while True:
            steps.send(tx)
    except StopIteration as done:
        return done.value


def expect(tx: Tx, count: int) -> None:
    """Announces the steps of several later calls of `steps`, so that the total is right from the start."""
    progress = tx.progress
    if progress is not None:
        progress.expect(count)


def begin_steps(tx: Tx, count: int) -> None:
    """Announces steps that `count_step` counts singly, in this transaction or later ones of the call."""
    if tx.progress is not None:
        tx.progress.begin(count)


def count_step(tx: Tx) -> None:
    if tx.progress is not None:
        tx.progress.step()


def steps(tx: Tx, items: Sequence[Item]) -> Iterator[Item]:
    """Yield the items; each is one step, done when the next item is requested.

    Deferred work is flushed in batches: it takes less memory, and the last step is not the longest.
    """
    progress = tx.progress
    if progress is not None:
        progress.begin(len(items))
    for number, item in enumerate(items, 1):
        yield item
        if number % _FLUSH_STEPS == 0 or number == len(items) > _FLUSH_STEPS:
            tx.flush_deferred()
        if progress is not None:
            progress.step()


def on_progress(tx: Tx) -> OnProgress | None:
    """Return a callback that reports the progress of one long step; None if the caller wants no progress."""
    progress = tx.progress
    return progress.update if progress else None


def with_progress(progress: Progress, work: Callable[..., R]) -> Callable[..., R]:
    """Return `work(tx, ...)`, with its steps reported to `progress`."""

    def run(tx: Tx, *args: object) -> R:
        tx.progress = progress
        return work(tx, *args)

    return run
