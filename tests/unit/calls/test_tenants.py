"""Tenants are opened on demand, once, side by side, and closed when unused or to make room."""

import asyncio
import math
import threading
from collections.abc import Callable
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any

import pytest

from kernel.calls.tenants import Bounds, OpenTenant, Tenants
from kernel.core.errors import Fault


def tools(name: str) -> Any:
    """Tools that are only a name, over a store that holds a hundred bytes of vectors."""
    cache = SimpleNamespace(vectors=SimpleNamespace(size=100))
    return SimpleNamespace(name=name, store=SimpleNamespace(context=SimpleNamespace(search_cache=cache)))


MAIN = tools("main")


class House:
    """Tenants without stores, and the events of opening and closing them."""

    def __init__(self, most: int = 2, idle: float = 300.0, wait: float = 0.1, most_bytes: float = math.inf) -> None:
        self.events: list[str] = []
        self.open: set[str] = set()
        self.most_open = 0
        self.fault: Fault | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.opening: threading.Barrier | None = None
        self.tenants = Tenants(MAIN, self._open, Bounds(most, most_bytes), idle, wait)

    def _open(self, name: str) -> OpenTenant:
        self.gate.wait()
        if self.opening is not None:
            self.opening.wait()
        if self.fault is not None:
            raise self.fault
        assert name not in self.open
        self.open.add(name)
        self.most_open = max(self.most_open, len(self.open))
        self.events.append(f"+{name}")

        def close() -> None:
            self.open.remove(name)
            self.events.append(f"-{name}")

        return OpenTenant(tools(name), close)

    async def visit(self, *names: str) -> None:
        for name in names:
            async with self.tenants.use(name) as found:
                assert vars(found)["name"] == name


async def left(house: House, open_: set[str]) -> None:
    for _ in range(2000):
        if house.open == open_:
            return
        await asyncio.sleep(0.005)
    raise AssertionError(house.open)


async def closed_to(house: House, most: int) -> None:
    for _ in range(2000):
        if len(house.open) <= most:
            return
        await asyncio.sleep(0.005)
    raise AssertionError(house.open)


def run(work: Callable[[], Any]) -> Any:
    return asyncio.run(work())


def test_main_tenant_is_always_open() -> None:
    house = House()

    async def look() -> None:
        assert house.tenants.open_dispatch("main") is MAIN
        async with house.tenants.use("main") as found:
            assert found is MAIN

    run(look)
    assert house.events == []


def test_tenant_is_opened_once() -> None:
    house = House()

    async def look() -> None:
        assert house.tenants.open_dispatch("a") is None
        await asyncio.gather(*(house.visit("a", "a") for _ in range(5)))
        assert "a" in house.tenants.open_dispatches()

    run(look)
    house.tenants.close()
    assert house.events == ["+a", "-a"]


def test_least_recently_used_tenant_is_closed() -> None:
    house = House()

    async def look() -> None:
        await house.visit("a", "b")
        house.tenants.open_dispatch("a")
        await house.visit("c", "a")

    run(look)
    assert (house.events, house.most_open) == (["+a", "+b", "-b", "+c"], 2)


def test_tenant_in_use_is_never_closed() -> None:
    house = House()

    async def look() -> None:
        async with house.tenants.use("a"), house.tenants.use("b"):
            with pytest.raises(Fault) as raised:
                await house.visit("c")
            assert (raised.value.code, house.open) == ("busy", {"a", "b"})
        await house.visit("c")

    run(look)
    assert (house.events, house.most_open) == (["+a", "+b", "-b", "+c"], 2)


def test_open_tenants_are_limited_under_load() -> None:
    house = House(most=3)

    async def look() -> list[Any]:
        visits = (house.visit(*(f"t{(number * step) % 7}" for step in (1, 3, 5))) for number in range(60))
        return await asyncio.gather(*visits, return_exceptions=True)

    codes = [found and found.code for found in run(look)]
    assert None in codes
    assert set(codes) <= {None, "busy"}
    assert house.most_open <= 3
    house.tenants.close()
    assert house.open == set()


def test_open_failure_is_raised_in_all_waiting_callers_and_retried() -> None:
    house = House()
    house.fault = Fault("storage", "No room.")

    async def look() -> None:
        both = await asyncio.gather(house.visit("a"), house.visit("a"), return_exceptions=True)
        told = Fault("storage", "The data of this tenant cannot be opened.")
        assert [str(found) for found in both] == [str(told)] * 2
        assert [isinstance(found, Fault) and found.code for found in both] == ["storage"] * 2
        house.fault = None
        await house.visit("a")

    run(look)
    assert house.events == ["+a"]


def test_cancelled_caller_does_not_cancel_opening() -> None:
    house = House()
    house.gate.clear()

    async def look() -> None:
        gone = asyncio.create_task(house.visit("a"))
        await asyncio.sleep(0.01)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        house.gate.set()
        await house.visit("a")

    run(look)
    assert house.events == ["+a"]


def test_unused_tenant_is_closed() -> None:
    house = House(idle=0.02)

    async def look() -> None:
        async with house.tenants.use("a"):
            await house.visit("b")
            await left(house, {"a"})
            await asyncio.sleep(0.06)
            assert house.open == {"a"}
        await left(house, set())
        await house.visit("b")
        await left(house, set())

    run(look)
    assert house.events == ["+a", "+b", "-b", "-a", "+b", "-b"]


@pytest.mark.parametrize("held", [0, 1])
def test_tenants_that_share_a_seat_are_all_served(held: int) -> None:
    house = House(most=1 + held, wait=20)

    async def calls(name: str) -> None:
        for _ in range(15):
            async with house.tenants.use(name):
                await asyncio.sleep(0.001)

    async def look() -> None:
        async with asyncio.timeout(60), AsyncExitStack() as stack:
            for number in range(held):
                await stack.enter_async_context(house.tenants.use(f"long {number}"))
            await asyncio.gather(*(calls(name) for name in "abc" for _ in range(4)))

    run(look)
    assert house.most_open == 1 + held


def test_tenant_that_holds_its_seat_goes_on_when_another_has_waited_in_vain() -> None:
    house = House(most=1, wait=0.05)

    async def look() -> None:
        async with house.tenants.use("a"):
            other = asyncio.create_task(house.visit("b"))
            await asyncio.sleep(0.01)
            assert house.tenants.open_dispatch("a") is None
            await house.visit("a")
            assert house.tenants.open_dispatch("a") is not None
            with pytest.raises(Fault):
                await other

    run(look)
    assert house.events == ["+a"]


def test_caller_cancelled_as_it_gets_its_seat_leaves_it() -> None:
    house = House(most=1)

    async def look() -> None:
        gone = asyncio.create_task(house.visit("a"))
        await left(house, {"a"})
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        await house.visit("b")

    run(look)
    assert house.events == ["+a", "-a", "+b"]


def test_tenants_are_opened_side_by_side() -> None:
    house = House(most=4)
    house.opening = threading.Barrier(4, timeout=20)

    async def look() -> None:
        await asyncio.gather(*(house.visit(name) for name in "abcd"))

    run(look)
    assert house.open == set("abcd")


def test_unused_tenants_are_closed_while_memory_is_short() -> None:
    house = House(most=100, most_bytes=450)

    async def look() -> None:
        async with house.tenants.use("a"):
            for number in range(20):
                await house.visit(f"t{number}")
            await closed_to(house, 4)
            assert "a" in house.open

    run(look)
    assert house.most_open <= 5
    assert house.events.count("-a") == 0


def test_tenant_that_is_being_closed_is_opened_again() -> None:
    house = House(most=1, wait=20)

    async def look() -> None:
        for _ in range(20):
            await asyncio.gather(house.visit("a"), house.visit("b"), house.visit("a"))

    run(look)
    house.tenants.close()
    assert house.most_open == 1
    assert house.open == set()
