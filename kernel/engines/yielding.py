"""Lets others write beside a long command: short slices with pauses, as long as other processes write."""

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from kernel.engines.sqlite.connection import Connection
from kernel.store.context import CallContext
from kernel.store.engine import CommandConnection
from kernel.store.long_work import Slices, Steps, Unfinished
from kernel.store.transaction import Tx

if TYPE_CHECKING:
    from kernel.embed.model import Embedding

R = TypeVar("R")
# A writer that finds the lock taken tries again after 1, 3, 8, 18 and 33 ms (SQLite's busy handler): what holds it for
# so long, and leaves it for twice as long, is met once or twice. Beside 100,000 imported memories 2 ms and 8 records a
# step give others a p99 of 2.4 times theirs alone, 4 ms and 16 records 3.5 times.
_HELD_SECONDS = 0.002
_PAUSE_SHARE = 2.0
_SHORTEST_SECONDS, _LONGEST_SECONDS = 0.0002, 0.05
_LONE_PAUSE_SECONDS = 0.004  # so that another process that begins to write is noticed
_REMEMBERED_SECONDS = 5.0  # for how long others are expected to go on


class Politeness:
    """Around each transaction: measures how long it held the lock, and pauses.

    `seconds` is the time of the next slice, None if nobody else writes.
    """

    def __init__(self, db: CommandConnection, *, alone: bool) -> None:
        self._db = db
        self._measured = _HELD_SECONDS / 4
        self._version = self._seen()
        self._began = time.monotonic()
        self._until = self._began if alone else self._began + _REMEMBERED_SECONDS
        self.seconds = None if alone else self._measured

    def __enter__(self) -> None:
        self._began = time.monotonic()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        now = time.monotonic()
        seconds = now - self._began
        version = self._seen()
        if version != self._version:
            self._version, self._until = version, now + _REMEMBERED_SECONDS
        if now > self._until:
            self.seconds = None
            time.sleep(_LONE_PAUSE_SECONDS)
            return
        factor = min(2.0, max(0.5, _HELD_SECONDS / seconds)) if seconds else 1.0
        self._measured = min(_LONGEST_SECONDS, max(_SHORTEST_SECONDS, self._measured * factor))
        self.seconds = self._measured
        time.sleep(max(_HELD_SECONDS, seconds) * _PAUSE_SHARE)

    def _seen(self) -> float:
        """Return a value that changes when others write; PostgreSQL does not tell, so they always count there."""
        return self._db.pragma("data_version") if isinstance(self._db, Connection) else time.monotonic()


class Turns:
    """Writes of a long command, each in a transaction of its own, after which others have their turn."""

    def __init__(self, db: CommandConnection, call_context: CallContext = CallContext(), *, alone: bool) -> None:
        self._db = db
        self._call_context = call_context
        self._politeness = Politeness(db, alone=alone)

    def write(self, work: Callable[[Tx], R], vectors: "Mapping[str, Embedding] | None" = None) -> R:
        """Return the result of `work(tx)`, once it is committed; `vectors` are the embeddings that it needs."""
        with self._politeness, self._db.writing(self._call_context) as tx:
            tx.preload(vectors or {})
            return work(tx)

    def run(self, steps: Steps[R], ahead: "Callable[[], Mapping[str, Embedding]] | None" = None) -> R:
        """Return the result of steps, in slices; `ahead()` embeds the first texts of the next, before it has the
        lock.
        """
        slices = Slices(steps)
        while True:
            vectors = ahead() if ahead is not None else None
            slices.seconds = self._politeness.seconds
            answer = self.write(slices, vectors)
            if not isinstance(answer, Unfinished):
                return answer
