"""How far long work is, told to whoever waits for it."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from kernel.store.transaction import Tx

T = TypeVar("T")
Tell = Callable[[int, int], None]
_INTERVAL = 0.1
_BATCH = 500


class Progress:
    """Counts steps for `tell(done, known of)`, which hears of them ten times a second at most, and of the last one."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._done = self._total = self._ahead = 0
        self._next = 0.0

    def expect(self, steps: int) -> None:
        """So many steps are to come, some of which may be begun later."""
        self._total += steps
        self._ahead += steps

    def begin(self, steps: int) -> None:
        """So many steps come now, which were expected or not."""
        self._total += max(0, steps - self._ahead)
        self._ahead = max(0, self._ahead - steps)

    def step(self) -> None:
        """One more is done."""
        self.reach(self._done + 1, self._total)

    def reach(self, done: int, total: int) -> None:
        """So many of so many are done."""
        self._done, self._total = done, total
        now = time.monotonic()
        if now >= self._next or self._done == self._total:
            self._next = now + _INTERVAL
            self._tell(self._done, self._total)


def expect(tx: Tx, count: int) -> None:
    """Says how many `steps` are to come in several parts, so that the first of them do not pass for all."""
    progress = tx.progress
    if progress is not None:
        progress.expect(count)


def steps(tx: Tx, items: Sequence[T]) -> Iterator[T]:
    """The items, each of which is a step that is done when the next is asked for.

    What they defer is done batch by batch: it takes little memory, and the last step is not the longest.
    """
    progress = tx.progress
    if progress is not None:
        progress.begin(len(items))
    for number, item in enumerate(items, 1):
        yield item
        if number % _BATCH == 0 or number == len(items) > _BATCH:
            tx.flush_deferred()
        if progress is not None:
            progress.step()


def reaching(tx: Tx) -> Tell | None:
    """How to say of one long step how far it is, where anybody hears of it."""
    progress = tx.progress
    return progress and progress.reach


def telling(progress: Progress, work: Callable[..., Any]) -> Callable[..., Any]:
    """The same work on a transaction, whose steps are told."""

    def told(tx: Tx, *args: Any) -> Any:
        tx.progress = progress
        return work(tx, *args)

    return told
