"""Long work in slices, each with a transaction of its own, so that other writes get their turn in between."""

import time
from collections.abc import Generator
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
