"""Shared fixtures: a call that must succeed, one that must be refused and change nothing, a barrier."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from kernel.calls.tools import Reply
from kernel.server.app import Kernel
from tests.conftest import Call

CallOk = Callable[..., Any]


def read(reply: Reply) -> Any:
    """The body of a reply: decoded JSON, or a sentence."""
    if reply.media == "application/json":
        answer = msgspec.json.decode(reply.body)
        assert reply.body == msgspec.json.encode(answer)
        return answer
    assert reply.media == "text/plain; charset=utf-8"
    return reply.body.decode()


@pytest.fixture
def call_ok(call: Call) -> CallOk:
    """A call that must succeed; returns its answer."""

    def ask(name: str, /, **arguments: Any) -> Any:
        reply = call(name, **arguments)
        assert reply.fault is None, reply.body
        assert reply.structured is None
        return read(reply)

    return ask


@pytest.fixture
def settled(kernel: Kernel) -> Callable[[], None]:
    """Waits until the queued writes of earlier reads are done."""
    return lambda: kernel.store.write_sync(lambda _tx: None)


@pytest.fixture
def refused(unchanged: Callable[..., Reply], settled: Callable[[], None]) -> Callable[..., tuple[str | None, str]]:
    """A call that must be refused and change nothing; returns the code and the text."""

    def ask(name: str, /, **arguments: Any) -> tuple[str | None, str]:
        settled()
        reply = unchanged(name, **arguments)
        assert (reply.fault is not None, reply.structured) == (True, None)
        return reply.fault, read(reply)

    return ask
