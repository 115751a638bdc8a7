"""One coarse timer for all connections, so that a deadline costs nothing while it is kept."""

import asyncio
from typing import Protocol

TICK = 0.25
_ASLEEP = 1.0


class Deadlined(Protocol):
    """What may come to be late: `late(now)` acts if it is, and says when to look again, or None for never."""

    slot: int
    loop: asyncio.AbstractEventLoop

    def on_deadline(self, now: float) -> float | None: ...


class DeadlineWheel:
    """Looks at each connection when it may be late, four times a second at most; times are the loop's.

    A connection stands in one place only, and who wants to be looked at later than that is looked at twice: so what
    only stays in use never has to be moved.
    """

    def __init__(self) -> None:
        self._slots: dict[int, set[Deadlined]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._turned = 0.0

    def schedule(self, watched: Deadlined, when: float) -> None:
        """Has `watched` looked at soon after `when`, or earlier if that was wanted before."""
        slot = int(when / TICK) + 1
        if watched.slot:
            if watched.slot <= slot:
                return
            self.cancel(watched)
        watched.slot = slot
        self._slots.setdefault(slot, set()).add(watched)
        if self._timer is None:
            self._wait(watched.loop)

    def cancel(self, watched: Deadlined) -> None:
        """Forgets `watched`."""
        if watched.slot:
            self._slots[watched.slot].discard(watched)
            watched.slot = 0

    def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        self._turned = loop.time()
        self._timer = loop.call_later(TICK, self._turn, loop)

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        asleep = now - self._turned > _ASLEEP  # then nothing was read either, and what came meanwhile comes first
        reached = int(now / TICK)
        for slot in [slot for slot in self._slots if slot <= reached]:
            for watched in self._slots.pop(slot):
                watched.slot = 0
                again = now + TICK if asleep else watched.on_deadline(now)
                if again is not None:
                    self.schedule(watched, again)
        self._timer = None
        if self._slots:
            self._wait(loop)
