"""Tools that delete all: others write meanwhile, and their writes stay."""

import asyncio
from typing import Any

import msgspec
import pytest

from kernel.calls.dispatch import Reply
from kernel.security.permissions import ANONYMOUS_CALLER
from kernel.server.app import Kernel
from kernel.store.transaction import Tx
from tests.conftest import Call, entry_named

_MANY = 1000
_Arguments = dict[str, Any]


def _numbered(tool: str, number: int) -> _Arguments:
    if tool == "add_memory":
        return {"path": f"p{number}", "content": f"text {number}"}
    return {"content": f"text {number}", "session_id": "s"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("add", "clear", "arguments"),
    [
        ("add_memory", "clear_memory", {}),
        ("remember", "maintenance", {"action": "purge_session", "session_id": "s", "confirm": True}),
        ("remember", "maintenance", {"action": "purge_all", "confirm": True}),
    ],
)
def test_a_write_beside_a_tool_that_clears_is_answered_first_and_stays(
    kernel: Kernel, call: Call, runner: asyncio.Runner, add: str, clear: str, arguments: _Arguments
) -> None:
    dispatch = kernel.dispatch
    order: list[str] = []

    async def ask(name: str, asked: _Arguments) -> Any:
        reply = await dispatch.call(entry_named(dispatch, name), msgspec.json.encode(asked), ANONYMOUS_CALLER)
        order.append(name)
        assert isinstance(reply, Reply)
        return msgspec.json.decode(reply.structured or b"")

    async def both() -> Any:
        clearing = asyncio.create_task(ask(clear, arguments))
        await asyncio.sleep(0)  # it is queued first
        await ask(add, _numbered(add, _MANY))
        return await clearing

    _fill(kernel, add)
    answer = runner.run(both())
    assert order == [add, clear]
    assert answer.get("cleared_count", answer.get("deleted")) == _MANY
    assert _count(kernel) == 1


def _fill(kernel: Kernel, add: str) -> None:
    tool = entry_named(kernel.dispatch, add).tool

    def write(tx: Tx) -> None:
        for number in range(_MANY):
            tool.handler(tx, msgspec.convert(_numbered(add, number), tool.request))

    kernel.store.write_sync(write)


def _count(kernel: Kernel) -> int:
    return kernel.store.read_sync(
        lambda tx: (tx.one("paths.memories.count", int, low="", high="z") or 0) + _sessions(tx)
    )


def _sessions(tx: Tx) -> int:
    counts = tx.one("sessions.admin.counts", lambda *row: row)
    return counts[0] if counts else 0
