"""What the tests of brain share: a call that must succeed, one that must be refused and change nothing, a barrier."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from kernel.app import Kernel
from kernel.tools import Reply
from tests.conftest import Call

Told = Callable[..., Any]


def read(reply: Reply) -> Any:
    """What a reply says: JSON, or a sentence."""
    if reply.media == "application/json":
        said = msgspec.json.decode(reply.body)
        assert reply.body == msgspec.json.format(msgspec.json.encode(said))
        return said
    assert reply.media == "text/plain; charset=utf-8"
    return reply.body.decode()


@pytest.fixture
def told(call: Call) -> Told:
    """A call that succeeds; what it says."""

    def ask(name: str, /, **arguments: Any) -> Any:
        reply = call(name, **arguments)
        assert reply.fault is None, reply.body
        assert reply.structured is None
        return read(reply)

    return ask


@pytest.fixture
def settled(kernel: Kernel) -> Callable[[], None]:
    """Waits for what the reads left behind."""
    return lambda: kernel.store.write_sync(lambda _tx: None)


@pytest.fixture
def refused(unchanged: Callable[..., Reply], settled: Callable[[], None]) -> Callable[..., tuple[str | None, str]]:
    """A call that is refused and changes nothing; the code and the text."""

    def ask(name: str, /, **arguments: Any) -> tuple[str | None, str]:
        settled()
        reply = unchanged(name, **arguments)
        assert (reply.fault is not None, reply.structured) == (True, None)
        return reply.fault, read(reply)

    return ask
