"""The stores of all tenants: the main store is always open, the others while they are used, as far as memory allows."""

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

from kernel.calls.dispatch import Dispatch, catch_faults
from kernel.core.data_dir import MAIN
from kernel.core.errors import Fault

_log = logging.getLogger("quipu")
_CLOSED_FOR_ONE = 2  # that one is opened for while memory is short: so it falls


class OpenTenant(NamedTuple):
    """An open tenant: its tools over its own store; `close` finishes queued calls first."""

    dispatch: Dispatch
    close: Callable[[], None]


class Bounds(NamedTuple):
    """How many tenants may be open, and from how many bytes of their vectors on unused ones are closed."""

    most: int
    most_bytes: float = math.inf


class _Seat:
    """An open tenant, the number of calls that use it, and when it was last used.

    While it is `leaving` for another tenant, new calls queue behind that one.
    """

    def __init__(self, opened: OpenTenant) -> None:
        self.opened = opened
        self.users = 0
        self.used = time.monotonic()
        self.leaving = False


class Tenants:
    """Opens tenants by name, side by side; `open_tenant` runs in threads. All methods but `close` belong to the event
    loop.
    """

    def __init__(
        self,
        main: Dispatch,
        open_tenant: Callable[[str], OpenTenant],
        bounds: Bounds,
        idle_seconds: float = 300.0,
        wait_seconds: float = 2.0,
    ) -> None:
        self.main = main
        self._open_tenant = open_tenant
        self._bounds = bounds
        self._idle = idle_seconds
        self._wait = wait_seconds
        self._seats: dict[str, _Seat] = {}
        self._opening: dict[str, asyncio.Task[_Seat | Fault]] = {}
        self._closing: dict[str, asyncio.Task[Fault | None]] = {}
        self._begun = 0  # openings that have a place
        self._wanted: Counter[str] = Counter()  # calls that wait for a tenant
        self._turn = asyncio.Lock()  # of an opening that needs a place
        self._freed = asyncio.Event()
        self._sweeper: asyncio.Task[None] | None = None

    def open_dispatch(self, name: str) -> Dispatch | None:
        """Return the tools of a tenant that is open, or None; valid until the caller awaits."""
        if name == MAIN:
            return self.main
        seat = self._seats.get(name)
        if seat is None or seat.leaving:
            return None
        seat.used = time.monotonic()
        return seat.opened.dispatch

    @asynccontextmanager
    async def use(self, name: str) -> AsyncGenerator[Dispatch]:
        """The tools of a tenant, open until the end of the block; raises Fault if it cannot be opened."""
        if name == MAIN:
            yield self.main
            return
        seat = await self._acquire(name)
        try:
            yield seat.opened.dispatch
        finally:
            self._leave(seat)

    async def shut(self, name: str) -> None:
        """Close a tenant that is open, as far as no call uses it."""
        seat = self._seats.get(name)
        if seat is not None and not seat.users:
            self._begin_to_close(name)
        if (closing := self._closing.get(name)) is not None:
            await asyncio.wait([closing])

    def open_dispatches(self) -> Mapping[str, Dispatch]:
        return {MAIN: self.main, **{name: seat.opened.dispatch for name, seat in self._seats.items()}}

    def close(self) -> None:
        """Closes all tenants but the main one, after the loop has ended."""
        for seat in self._seats.values():
            seat.opened.close()
        self._seats.clear()

    async def _acquire(self, name: str) -> _Seat:
        seat = self._seats.get(name)
        if seat is not None and not seat.leaving:
            seat.users += 1
            return seat
        self._wanted[name] += 1
        if name not in self._opening:
            self._opening[name] = asyncio.create_task(self._admit(name))
        opening = self._opening[name]
        try:
            seat_or_fault = await asyncio.shield(opening)
        except asyncio.CancelledError:
            if not opening.done():
                self._wanted[name] -= 1
            elif not opening.cancelled() and isinstance(seat := opening.result(), _Seat):
                self._leave(seat)
            raise
        if isinstance(seat_or_fault, Fault):
            raise Fault(seat_or_fault.code, seat_or_fault.message)
        return seat_or_fault

    def _leave(self, seat: _Seat) -> None:
        seat.users -= 1
        seat.used = time.monotonic()
        self._freed.set()

    async def _admit(self, name: str) -> _Seat | Fault:
        """Return the seat of a tenant, of which those who wait are users before another may want it."""
        outcome: _Seat | Fault | None = None
        try:
            outcome = await self._open(name)
            return outcome
        finally:
            del self._opening[name]
            waiting = self._wanted.pop(name, 0)
            if isinstance(outcome, _Seat):
                outcome.users += waiting

    async def _open(self, name: str) -> _Seat | Fault:
        """Return the seat of a tenant, which it may have kept, or the reason that it has none."""
        async with self._turn:
            if (seat := self._seats.get(name)) is not None:
                return seat
            if not await self._has_place():
                return Fault("busy", "Too many tenants are in use, try again.")
            self._begun += 1
        try:
            if (closing := self._closing.get(name)) is not None:
                await closing
            tenant: OpenTenant | Fault = await asyncio.to_thread(catch_faults, self._open_tenant, name)
        finally:
            self._begun -= 1
            self._freed.set()
        if isinstance(tenant, Fault):
            _log.error("tenant %s: %s", name, tenant.message)  # the words may name folders
            return Fault(tenant.code, "The data of this tenant cannot be opened.")
        seat = self._seats[name] = _Seat(tenant)
        if self._sweeper is None:
            self._sweeper = asyncio.create_task(self._sweep())
        return seat

    async def _has_place(self) -> bool:
        """Return whether one more tenant may be open, after the time that it may wait for others.

        The one open longest takes no new calls meanwhile.
        """
        vectors = sum(dispatch.store.context.search_cache.vectors.size for dispatch in self.open_dispatches().values())
        if vectors > self._bounds.most_bytes:
            for name in sorted(self._unused(), key=lambda name: self._seats[name].used)[:_CLOSED_FOR_ONE]:
                self._begin_to_close(name)
        deadline = time.monotonic() + self._wait
        longest: _Seat | None = None
        try:
            while len(self._seats) + self._begun + len(self._closing) >= self._bounds.most:
                if not self._closing and (candidates := self._unused()):
                    self._begin_to_close(min(candidates, key=lambda name: self._seats[name].used))
                elif not self._closing and self._seats and longest is None:
                    longest = next(iter(self._seats.values()))
                    longest.leaving = True
                self._freed.clear()
                async with asyncio.timeout(deadline - time.monotonic()):
                    await self._freed.wait()
        except TimeoutError:
            return False
        finally:
            if longest is not None:
                longest.leaving = False
        return True

    def _unused(self) -> list[str]:
        return [name for name, seat in self._seats.items() if not seat.users]

    def _begin_to_close(self, name: str) -> None:
        """Closes a tenant in a thread; new calls no longer have it, and queued calls are answered first."""

        def closed(_task: object) -> None:
            del self._closing[name]
            self._freed.set()

        seat = self._seats.pop(name)
        closing = self._closing[name] = asyncio.create_task(asyncio.to_thread(catch_faults, seat.opened.close))
        closing.add_done_callback(closed)

    async def _sweep(self) -> None:
        while self._seats:
            await asyncio.sleep(self._idle / 2)
            before = time.monotonic() - self._idle
            for name in self._unused():
                if self._seats[name].used < before:
                    self._begin_to_close(name)
        self._sweeper = None
