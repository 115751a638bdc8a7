"""The stores of all tenants: the main one is always open, the others while somebody uses them, and never too many."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple

from kernel.data_dir import MAIN
from kernel.dispatch import Dispatch, catch_faults
from kernel.errors import Fault


class OpenTenant(NamedTuple):
    """An open tenant: its tools over its own store, and how it ends, which waits for what is queued."""

    dispatch: Dispatch
    close: Callable[[], None]


class _Slot:
    """An open tenant, who is in it, and when somebody last was."""

    def __init__(self, opened: OpenTenant) -> None:
        self.opened = opened
        self.users = 0
        self.used = time.monotonic()


class Tenants:
    """Opens tenants by name; `opens` runs in a thread. All methods but `close` belong to the event loop."""

    def __init__(
        self, main: Dispatch, opens: Callable[[str], OpenTenant], most: int, idle_seconds: float = 300.0
    ) -> None:
        self._main = main
        self._opens = opens
        self._most = most
        self._idle = idle_seconds
        self._seats: dict[str, _Slot] = {}
        self._coming: dict[str, asyncio.Task[None]] = {}
        self._changing = asyncio.Lock()
        self._sweeping: asyncio.Task[None] | None = None

    def open_dispatch(self, name: str) -> Dispatch | None:
        """The tools of a tenant that is open, for what is begun before anything else can happen on this loop."""
        if name == MAIN:
            return self._main
        seat = self._seats.get(name)
        if seat is None:
            return None
        seat.used = time.monotonic()
        return seat.opened.dispatch

    @asynccontextmanager
    async def use(self, name: str) -> AsyncGenerator[Dispatch]:
        """The tools of a tenant, open until the end of the block; raises Fault where it cannot be opened."""
        if name == MAIN:
            yield self._main
            return
        seat = await self._take(name)
        try:
            yield seat.opened.dispatch
        finally:
            seat.users -= 1
            seat.used = time.monotonic()

    def open_dispatches(self) -> Mapping[str, Dispatch]:
        """The tools of all that are open, by name."""
        return {MAIN: self._main, **{name: seat.opened.dispatch for name, seat in self._seats.items()}}

    def close(self) -> None:
        """Closes all but the main one, for when the loop has ended."""
        for seat in self._seats.values():
            seat.opened.close()
        self._seats.clear()

    async def _take(self, name: str) -> _Slot:
        while (seat := self._seats.get(name)) is None:
            coming = self._coming.get(name)
            if coming is None:
                coming = self._coming[name] = asyncio.create_task(self._open(name))
                coming.add_done_callback(partial(self._came, name))
            await asyncio.shield(coming)  # a caller may leave, and what it made open is still known
        seat.users += 1
        return seat

    def _came(self, name: str, task: asyncio.Task[None]) -> None:
        del self._coming[name]
        if not task.cancelled():
            task.exception()  # whoever still waits raises it

    async def _open(self, name: str) -> None:
        async with self._changing:
            if len(self._seats) >= self._most:
                free = {one: seat.used for one, seat in self._seats.items() if not seat.users}
                if not free:
                    raise Fault("busy", "Too many tenants are in use, try again.")
                await self._end(min(free, key=free.__getitem__))
            opened: OpenTenant | Fault = await asyncio.to_thread(catch_faults, self._opens, name)
            if isinstance(opened, Fault):
                raise opened
            self._seats[name] = _Slot(opened)
        if self._sweeping is None:
            self._sweeping = asyncio.create_task(self._sweep())

    async def _end(self, name: str) -> None:
        """Nobody finds it any more from here on, and what is queued is answered before it closes."""
        seat = self._seats.pop(name)
        await asyncio.to_thread(catch_faults, seat.opened.close)

    async def _sweep(self) -> None:
        while self._seats:
            await asyncio.sleep(self._idle / 2)
            async with self._changing:
                before = time.monotonic() - self._idle
                for name in [name for name, seat in self._seats.items() if not seat.users and seat.used < before]:
                    await self._end(name)
        self._sweeping = None
