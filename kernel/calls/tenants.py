"""The stores of all tenants: the main one is always open, the others while they are used, up to a maximum."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

from kernel.calls.dispatch import Dispatch, catch_faults
from kernel.core.data_dir import MAIN
from kernel.core.errors import Fault

_log = logging.getLogger("quipu")


class OpenTenant(NamedTuple):
    """An open tenant: its tools over its own store; `close` finishes queued calls first."""

    dispatch: Dispatch
    close: Callable[[], None]


class _Seat:
    """An open tenant, the number of calls that use it, and when it was last used.

    While it is `wanted` by another tenant, new calls queue behind that one.
    """

    def __init__(self, opened: OpenTenant) -> None:
        self.opened = opened
        self.users = 0
        self.used = time.monotonic()
        self.wanted = False


_Ticket = asyncio.Future[_Seat]


class Tenants:
    """Opens tenants by name; `open_tenant` runs in a thread. All methods but `close` belong to the event loop."""

    def __init__(
        self,
        main: Dispatch,
        open_tenant: Callable[[str], OpenTenant],
        max_open: int,
        idle_seconds: float = 300.0,
        wait_seconds: float = 2.0,
    ) -> None:
        self.main = main
        self._open_tenant = open_tenant
        self._max_open = max_open
        self._idle = idle_seconds
        self._wait = wait_seconds
        self._seats: dict[str, _Seat] = {}
        self._waiting: dict[str, list[_Ticket]] = {}
        self._opening: dict[str, asyncio.Task[None]] = {}
        self._lock = asyncio.Lock()
        self._freed = asyncio.Event()
        self._sweeper: asyncio.Task[None] | None = None

    def open_dispatch(self, name: str) -> Dispatch | None:
        """Return the tools of a tenant that is open, or None; valid until the caller awaits."""
        if name == MAIN:
            return self.main
        seat = self._seats.get(name)
        if seat is None or seat.wanted:
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

    def open_dispatches(self) -> Mapping[str, Dispatch]:
        return {MAIN: self.main, **{name: seat.opened.dispatch for name, seat in self._seats.items()}}

    def close(self) -> None:
        """Closes all tenants but the main one, after the loop has ended."""
        for seat in self._seats.values():
            seat.opened.close()
        self._seats.clear()

    async def _acquire(self, name: str) -> _Seat:
        seat = self._seats.get(name)
        if seat is not None and not seat.wanted:
            seat.users += 1
            return seat
        ticket: _Ticket = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(name, []).append(ticket)
        if name not in self._opening:
            self._opening[name] = asyncio.create_task(self._admit(name))
        try:
            return await ticket
        except asyncio.CancelledError:
            if ticket.done() and not ticket.cancelled() and ticket.exception() is None:
                self._leave(ticket.result())
            raise

    def _leave(self, seat: _Seat) -> None:
        seat.users -= 1
        seat.used = time.monotonic()
        if not seat.users:
            self._freed.set()

    async def _admit(self, name: str) -> None:
        """Gives those who wait for a tenant its seat, or the Fault; they are its users before another may want it."""
        found: _Seat | Fault
        try:
            async with self._lock:
                found = self._seats.get(name) or await self._open(name)
        except Fault as fault:
            found = fault
        finally:
            del self._opening[name]
            tickets = self._waiting.pop(name, [])
        for ticket in tickets:
            if ticket.done():
                continue
            if isinstance(found, Fault):
                ticket.set_exception(found)
            else:
                found.users += 1
                ticket.set_result(found)

    async def _open(self, name: str) -> _Seat:
        if len(self._seats) >= self._max_open:
            await self._close(await self._free_seat())
        opened: OpenTenant | Fault = await asyncio.to_thread(catch_faults, self._open_tenant, name)
        if isinstance(opened, Fault):
            _log.error("tenant %s: %s", name, opened.message)  # the words may name folders
            raise Fault(opened.code, "The data of this tenant cannot be opened.")
        self._seats[name] = seat = _Seat(opened)
        if self._sweeper is None:
            self._sweeper = asyncio.create_task(self._sweep())
        return seat

    async def _free_seat(self) -> str:
        """Return the tenant without users that was used least recently; the one open longest takes no new ones
        meanwhile.
        """
        longest = next(iter(self._seats.values()))
        longest.wanted = True
        try:
            async with asyncio.timeout(self._wait):
                while not (free := {name: seat.used for name, seat in self._seats.items() if not seat.users}):
                    self._freed.clear()
                    await self._freed.wait()
        except TimeoutError:
            raise Fault("busy", "Too many tenants are in use, try again.") from None
        finally:
            longest.wanted = False
        return min(free, key=free.__getitem__)

    async def _close(self, name: str) -> None:
        """Closes a tenant in a thread; new calls no longer find it, and queued ones are answered first."""
        seat = self._seats.pop(name)
        await asyncio.to_thread(catch_faults, seat.opened.close)

    async def _sweep(self) -> None:
        while self._seats:
            await asyncio.sleep(self._idle / 2)
            async with self._lock:
                before = time.monotonic() - self._idle
                for name in [name for name, seat in self._seats.items() if not seat.users and seat.used < before]:
                    await self._close(name)
        self._sweeper = None
