"""A server is idle when no request is under way and none came for a while."""

import asyncio

from uvicorn.server import ServerState

from kernel.server.process import IdleTimer


class Clock:
    """A clock that moves by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Connection:
    """A connection with a response that is complete, or not."""

    def __init__(self, *, complete: bool) -> None:
        self.cycle = self
        self.response_complete = complete


def test_idle_time_counts_from_the_last_answer() -> None:
    clock, state = Clock(), ServerState()
    idle = IdleTimer(10, state, clock)
    clock.now = 9
    assert not idle.expired()
    state.total_requests += 1
    assert not idle.expired()
    clock.now = 18.9
    assert not idle.expired()
    clock.now = 19
    assert idle.expired()


def test_running_request_keeps_the_server_but_an_open_connection_does_not() -> None:
    clock, state = Clock(), ServerState()
    idle = IdleTimer(10, state, clock)
    assert not idle.expired()
    slow, open_only = Connection(complete=False), Connection(complete=True)
    state.connections.update({slow, open_only})  # type: ignore[arg-type]
    clock.now = 100
    assert not idle.expired()
    slow.response_complete = True
    clock.now = 109
    assert not idle.expired()
    clock.now = 110
    assert idle.expired()


def test_running_stream_keeps_the_server() -> None:
    async def streaming() -> bool:
        clock, state = Clock(), ServerState()
        idle = IdleTimer(10, state, clock)
        idle.expired()
        state.tasks.add(asyncio.ensure_future(asyncio.sleep(0)))
        clock.now = 100
        return idle.expired()

    assert asyncio.run(streaming()) is False
