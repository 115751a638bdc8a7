"""Lets others write beside a long command: short slices with pauses, as long as other processes write."""

import time
from types import TracebackType
from typing import Any

from kernel.store.engine import CommandConnection
from kernel.store.slices import Slices
from kernel.store.sqlite.connection import Connection

# A writer that finds the lock taken tries again after 1, 3, 8, 18 and 33 ms (SQLite's busy handler): what holds it for
# so long, and leaves it for twice as long, is met once or twice. Beside 100,000 imported memories 2 ms and 8 records a
# step give others a p99 of 2.4 times theirs alone, 4 ms and 16 records 3.5 times.
_HELD_SECONDS = 0.002
_PAUSE_SHARE = 2.0
_SHORTEST_SECONDS, _LONGEST_SECONDS = 0.0002, 0.05
_LONE_PAUSE_SECONDS = 0.004  # so that another process that begins to write is noticed
_REMEMBERED_SECONDS = 5.0  # for how long others are expected to go on


class Politeness:
    """Around each slice: measures how long it held the lock, and sets how long the next may take."""

    def __init__(self, db: CommandConnection, slices: Slices[Any], *, alone: bool) -> None:
        self._db = db
        self._slices = slices
        self._seconds = _HELD_SECONDS / 4
        self._version = self._seen()
        self._began = time.monotonic()
        self._until = self._began if alone else self._began + _REMEMBERED_SECONDS
        if not alone:
            slices.seconds = self._seconds

    def __enter__(self) -> None:
        """Begins a slice."""
        self._began = time.monotonic()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends a slice, and pauses after it."""
        now = time.monotonic()
        held = now - self._began
        version = self._seen()
        if version != self._version:
            self._version, self._until = version, now + _REMEMBERED_SECONDS
        if now > self._until:
            self._slices.seconds = None
            time.sleep(_LONE_PAUSE_SECONDS)
            return
        factor = min(2.0, max(0.5, _HELD_SECONDS / held)) if held else 1.0
        self._seconds = min(_LONGEST_SECONDS, max(_SHORTEST_SECONDS, self._seconds * factor))
        self._slices.seconds = self._seconds
        time.sleep(max(_HELD_SECONDS, held) * _PAUSE_SHARE)

    def _seen(self) -> float:
        """What changes when others write; PostgreSQL does not tell, so that they are always expected there."""
        return self._db.pragma("data_version") if isinstance(self._db, Connection) else time.monotonic()
