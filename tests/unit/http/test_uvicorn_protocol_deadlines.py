"""Each connection is checked soon after its time, never before, and not after it is cancelled."""

import asyncio

import pytest

from kernel.http import uvicorn_protocol as wheel
from kernel.http.uvicorn_protocol import TICK, DeadlineWheel

PATIENCE = 30


class Seen:
    """Counts the looks; wants another at each of `again`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *again: float) -> None:
        self.slot = 0
        self.loop = loop
        self.again = list(again)
        self.looks: list[float] = []

    def on_deadline(self, now: float) -> float | None:
        self.looks.append(now)
        return now + self.again.pop(0) if self.again else None


async def waited(*again: float, puts: tuple[float, ...], drop: bool = False) -> list[float]:
    """When a connection was looked at, in seconds after it was put for these times."""
    loop, wheel = asyncio.get_running_loop(), DeadlineWheel()
    seen = Seen(loop, *again)
    begun = loop.time()
    for after in puts:
        wheel.schedule(seen, begun + after)
    if drop:
        wheel.cancel(seen)
        wheel.cancel(seen)
    await asyncio.sleep(max(puts) + sum(again) + (2 + len(again)) * TICK)
    while wheel._slots:
        assert loop.time() < begun + PATIENCE
        await asyncio.sleep(TICK)
    return [look - begun for look in seen.looks]


@pytest.mark.slow
def test_connection_is_checked_after_the_earliest_scheduled_time() -> None:
    (look,) = asyncio.run(waited(puts=(0.6, 0.3, 0.9)))
    assert 0.3 <= look < 0.6 + TICK


@pytest.mark.slow
def test_connection_is_checked_again_at_the_returned_time() -> None:
    first, second = asyncio.run(waited(0.3, puts=(0.1,)))
    assert first >= 0.1
    assert second >= first + 0.3


@pytest.mark.slow
def test_cancelled_connection_is_not_checked() -> None:
    assert asyncio.run(waited(puts=(0.1,), drop=True)) == []


@pytest.mark.slow
def test_after_a_stall_of_the_loop_deadlines_wait_for_one_more_tick() -> None:
    async def slept() -> tuple[int, int]:
        loop = asyncio.get_running_loop()
        wheel_, seen = DeadlineWheel(), Seen(loop)
        wheel_.schedule(seen, loop.time())
        wheel_._turned_at -= wheel._LOOP_STALL_SECONDS + TICK
        await asyncio.sleep(1.5 * TICK)
        early = len(seen.looks)
        await asyncio.sleep(3 * TICK)
        return early, len(seen.looks)

    assert asyncio.run(slept()) == (0, 1)
