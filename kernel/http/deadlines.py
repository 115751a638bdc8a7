"""One coarse timer for the deadlines of all connections."""

import asyncio
from typing import Protocol

# Seconds between two checks: deadlines are whole seconds, and a timer per connection costs more than it is worth.
TICK = 0.25
# After a pause of the event loop this long, bytes that arrived meanwhile are read before deadlines are checked.
_LOOP_STALL_SECONDS = 1.0


class Deadlined(Protocol):
    """A connection with deadlines; `on_deadline(now)` acts if any has passed, and returns when to check again."""

    slot: int
    loop: asyncio.AbstractEventLoop

    def on_deadline(self, now: float) -> float | None: ...


class DeadlineWheel:
    """A timer wheel: checks each connection in the tick after its time; times are the loop's, in seconds.

    A connection has one place. Extending its deadline leaves it there, and the early check moves it on: a connection in
    use is then never moved.
    """

    def __init__(self) -> None:
        self._slots: dict[int, set[Deadlined]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._turned_at = 0.0

    def schedule(self, connection: Deadlined, when: float) -> None:
        """Checks `connection` soon after `when`, or at an earlier time that is already scheduled."""
        slot = int(when / TICK) + 1
        if connection.slot:
            if connection.slot <= slot:
                return
            self.cancel(connection)
        connection.slot = slot
        self._slots.setdefault(slot, set()).add(connection)
        if self._timer is None:
            self._start_timer(connection.loop)

    def cancel(self, connection: Deadlined) -> None:
        if connection.slot:
            self._slots[connection.slot].discard(connection)
            connection.slot = 0

    def _start_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        self._turned_at = loop.time()
        self._timer = loop.call_later(TICK, self._turn, loop)

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        stalled = now - self._turned_at > _LOOP_STALL_SECONDS
        reached = int(now / TICK)
        for slot in [slot for slot in self._slots if slot <= reached]:
            for connection in self._slots.pop(slot):
                connection.slot = 0
                again = now + TICK if stalled else connection.on_deadline(now)
                if again is not None:
                    self.schedule(connection, again)
        self._timer = None
        if self._slots:
            self._start_timer(loop)
