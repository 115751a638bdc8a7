"""Long work commits in slices: other writes go between, and the audit has one call that can be undone."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.operations.undo import undo
from kernel.security.permissions import FULL_ACCESS, Caller
from kernel.server.app import Kernel, open_kernel
from kernel.store import audit, long_work
from kernel.store.context import CallContext
from kernel.store.long_work import Slices, Steps, run_steps
from kernel.store.transaction import Tx
from tests.conftest import Call, Rows, everything

CONTEXT = CallContext("scopes", "memory_import", "tester")


@pytest.fixture(autouse=True)
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step is a slice."""
    monkeypatch.setattr(long_work, "SLICE_SECONDS", -1.0)


def document(count: int) -> str:
    entries = [{"id": f"g{number}", "name": f"rule {number}", "content": f"text {number}"} for number in range(count)]
    tagged = [{**entry, "tags": ["imported"]} for entry in entries]
    return msgspec.json.encode({"entries": {"guidelines": tagged}}).decode()


def outcomes(kernel: Kernel) -> list[tuple[str, str, int, bool]]:
    found = kernel.store.read_sync(lambda tx: audit.read(tx, 1000))[::-1]
    return [(entry.tool, entry.outcome, entry.touched, entry.undoable) for entry in found]


def writing(kernel: Kernel, steps: Callable[[], Steps[str]], meanwhile: Callable[[], None]) -> Any:
    """The answer of steps that run in slices, with `meanwhile` queued behind the first of them."""

    async def run() -> Any:
        _job, answer = kernel.store.write(Slices(steps()), CONTEXT, exclusive=True, audited=True, undoable=True)
        meanwhile()
        return await answer

    return asyncio.run(run())


def test_other_writes_run_between_the_slices_of_a_call(kernel: Kernel) -> None:
    order: list[str] = []
    first = threading.Event()

    def steps() -> Steps[str]:
        for number in range(3):
            _ = yield
            order.append(f"slice {number}")
            first.wait(10)
        return "done"

    def note(_tx: Tx) -> None:
        order.append("write")

    def meanwhile() -> None:
        kernel.store.write_later(note, CallContext())
        first.set()

    kernel.store.write_sync(lambda _tx: None)  # the work of the start is done
    assert writing(kernel, steps, meanwhile) == "done"
    assert order == ["slice 0", "write", "slice 1", "slice 2"]


def test_steps_in_one_transaction_give_their_result(kernel: Kernel) -> None:
    def steps() -> Steps[int]:
        total = 0
        for number in range(3):
            tx = yield
            total += number + len(tx.now) * 0
        return total

    assert kernel.store.write_sync(lambda tx: run_steps(tx, steps())) == 3


@pytest.mark.slow
def test_an_import_in_slices_is_one_call_of_the_audit_and_can_be_undone(
    kernel: Kernel, call: Call, config: Config
) -> None:
    before = everything(kernel)
    assert call("memory_import", action="import", content=document(120)).fault is None
    assert outcomes(kernel) == [("memory_import", "begun", 50, False), ("memory_import", "done", 120, True)]
    kernel.store.close()

    undo(kernel.config.file, kernel.store.context, kernel.dispatch.dialects, 2)

    again = open_kernel(config)
    assert contents(everything(again)) == contents(before)
    again.store.close()


def contents(rows: Rows) -> dict[str, Any]:
    return {name: held for name, held in rows.items() if name.startswith("scopes_")}


def test_a_call_that_fails_in_a_later_slice_is_recorded_as_begun_and_can_be_undone(
    kernel: Kernel, config: Config
) -> None:
    def steps() -> Steps[str]:
        for number in range(2):
            tx = yield
            tx.run("paths.memories.add", path=f"p{number}", content="x", content_size=1, now=tx.now)
        tx = yield
        raise Fault("storage", "no room")

    answer = writing(kernel, steps, lambda: None)
    part = "A part of the call is done. Call again, or take that part back by `quipu undo`."
    assert (answer.code, answer.message) == ("storage", f"no room {part}")
    assert outcomes(kernel) == [("memory_import", "begun", 0, True)]
    kernel.store.close()

    undo(kernel.config.file, kernel.store.context, kernel.dispatch.dialects, 1)

    again = open_kernel(config)
    assert everything(again)["paths_memory"] == []
    again.store.close()


def test_a_call_in_slices_goes_on_after_its_caller_has_left(kernel: Kernel) -> None:
    started, go_on = threading.Event(), threading.Event()

    def steps() -> Steps[str]:
        for number in range(3):
            tx = yield
            tx.run("paths.memories.add", path=f"p{number}", content="x", content_size=1, now=tx.now)
            started.set()
            go_on.wait(10)
        return "done"

    async def leave() -> None:
        job, _answer = kernel.store.write(Slices(steps()), CONTEXT, exclusive=True, audited=True)
        assert await asyncio.to_thread(started.wait, 10)
        job.cancel()
        go_on.set()

    asyncio.run(leave())
    kernel.store.write_sync(lambda _tx: None)
    deadline = time.monotonic() + 10
    while outcomes(kernel)[-1][1] != "done" and time.monotonic() < deadline:
        kernel.store.write_sync(lambda _tx: None)
    assert [row[1] for row in outcomes(kernel)] == ["begun", "done"]


def test_a_call_in_slices_ends_before_the_store_closes(kernel: Kernel, config: Config) -> None:
    started = threading.Event()

    def steps() -> Steps[str]:
        for number in range(50):
            tx = yield
            tx.run("paths.memories.add", path=f"p{number}", content="x", content_size=1, now=tx.now)
            started.set()
        return "done"

    async def close() -> None:
        kernel.store.write(Slices(steps()), CONTEXT, exclusive=True, audited=True)
        assert await asyncio.to_thread(started.wait, 10)
        kernel.store.close()

    asyncio.run(close())
    again = open_kernel(config)
    assert len(everything(again)["paths_memory"]) == 50
    again.store.close()


@pytest.mark.slow
def test_two_imports_of_one_document_at_once_create_each_entry_once(kernel: Kernel) -> None:
    dispatch, caller = kernel.dispatch, Caller("tester", FULL_ACCESS)
    arguments = msgspec.json.encode({"action": "import", "content": document(120)})

    async def both() -> list[Any]:
        entry = dispatch.tools["memory_import"]
        return await asyncio.gather(*(dispatch.call(entry, arguments, caller) for _ in range(2)))

    replies = [msgspec.json.decode(reply.body) for reply in asyncio.run(both())]
    assert sum(reply["created"] for reply in replies) == 120
    assert [reply["success"] for reply in replies] == [True, True]
    assert len(everything(kernel)["scopes_entry"]) == 120
