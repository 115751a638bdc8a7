"""The stores of all tenants: the main one is always open, the others while they are used, up to a maximum."""

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
    """An open tenant: its tools over its own store; `close` finishes what is queued first."""

    dispatch: Dispatch
    close: Callable[[], None]


class _Slot:
    """An open tenant, the number of calls that use it, and when it was last used."""

    def __init__(self, opened: OpenTenant) -> None:
        self.opened = opened
        self.users = 0
        self.used = time.monotonic()


class Tenants:
    """Opens tenants by name; `open_tenant` runs in a thread. All methods but `close` belong to the event loop."""

    def __init__(
        self, main: Dispatch, open_tenant: Callable[[str], OpenTenant], max_open: int, idle_seconds: float = 300.0
    ) -> None:
        self.main = main
        self._open_tenant = open_tenant
        self._max_open = max_open
        self._idle = idle_seconds
        self._slots: dict[str, _Slot] = {}
        self._opening: dict[str, asyncio.Task[None]] = {}
        self._lock = asyncio.Lock()
        self._sweeper: asyncio.Task[None] | None = None

    def open_dispatch(self, name: str) -> Dispatch | None:
        """The tools of a tenant that is open, or None; valid until the caller awaits."""
        if name == MAIN:
            return self.main
        slot = self._slots.get(name)
        if slot is None:
            return None
        slot.used = time.monotonic()
        return slot.opened.dispatch

    @asynccontextmanager
    async def use(self, name: str) -> AsyncGenerator[Dispatch]:
        """The tools of a tenant, open until the end of the block; raises Fault where it cannot be opened."""
        if name == MAIN:
            yield self.main
            return
        slot = await self._acquire(name)
        try:
            yield slot.opened.dispatch
        finally:
            slot.users -= 1
            slot.used = time.monotonic()

    def open_dispatches(self) -> Mapping[str, Dispatch]:
        """The tools of all open tenants, by name."""
        return {MAIN: self.main, **{name: slot.opened.dispatch for name, slot in self._slots.items()}}

    def close(self) -> None:
        """Closes all tenants but the main one, after the loop has ended."""
        for slot in self._slots.values():
            slot.opened.close()
        self._slots.clear()

    async def _acquire(self, name: str) -> _Slot:
        while (slot := self._slots.get(name)) is None:
            opening = self._opening.get(name)
            if opening is None:
                opening = self._opening[name] = asyncio.create_task(self._open(name))
                opening.add_done_callback(partial(self._opened, name))
            await asyncio.shield(opening)  # a cancelled caller must not cancel it for the others
        slot.users += 1
        return slot

    def _opened(self, name: str, task: asyncio.Task[None]) -> None:
        del self._opening[name]
        if not task.cancelled():
            task.exception()  # retrieved here, and raised in the callers that still wait

    async def _open(self, name: str) -> None:
        async with self._lock:
            if len(self._slots) >= self._max_open:
                free = {one: slot.used for one, slot in self._slots.items() if not slot.users}
                if not free:
                    raise Fault("busy", "Too many tenants are in use, try again.")
                await self._close(min(free, key=free.__getitem__))
            opened: OpenTenant | Fault = await asyncio.to_thread(catch_faults, self._open_tenant, name)
            if isinstance(opened, Fault):
                raise opened
            self._slots[name] = _Slot(opened)
        if self._sweeper is None:
            self._sweeper = asyncio.create_task(self._sweep())

    async def _close(self, name: str) -> None:
        """Closes a tenant in a thread; new calls no longer find it, and queued ones are answered first."""
        slot = self._slots.pop(name)
        await asyncio.to_thread(catch_faults, slot.opened.close)

    async def _sweep(self) -> None:
        while self._slots:
            await asyncio.sleep(self._idle / 2)
            async with self._lock:
                before = time.monotonic() - self._idle
                for name in [name for name, slot in self._slots.items() if not slot.users and slot.used < before]:
                    await self._close(name)
        self._sweeper = None
