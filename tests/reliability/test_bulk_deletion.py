"""Calls that delete very many memories: after the answer nothing is found, whenever the words leave full text."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest

from kernel.calls import dispatch as calls
from kernel.core.config import Config
from kernel.operations import consistency
from kernel.operations.compact import tidy
from kernel.search import dropped
from kernel.server import app
from kernel.server.app import Kernel
from kernel.store import audit
from kernel.store.context import CallContext
from kernel.store.long_work import Slices
from kernel.store.transaction import Tx
from tests.conftest import Call, Rows, everything
from tests.support.operations_undo import undo_call

MANY = dropped.LEAST + 20
NAMES = [f"{number:03}" for number in range(MANY)]
_OURS = ("doc", "history", "audit", "undo", "sqlite_", "setting", "migration", "brain_query")

# Per dialect: calls that fill it, the call that deletes all of that, and one that stays.
Calls = list[tuple[str, dict[str, Any]]]
CALLS: dict[str, tuple[Calls, tuple[str, dict[str, Any]]]] = {
    "paths": (
        [("add_memory", {"path": name, "content": f"the heron {name} stands in the pond"}) for name in NAMES],
        ("clear_memory", {}),
    ),
    "sessions": (
        [("remember", {"session_id": "s", "content": f"the heron {name} stands in the pond"}) for name in NAMES],
        ("maintenance", {"action": "purge_session", "session_id": "s", "confirm": True}),
    ),
    "files": (
        [
            (
                "memory",
                {"command": "create", "path": f"/memories/birds/{name}", "file_text": f"the heron {name} stands"},
            )
            for name in NAMES
        ],
        ("memory", {"command": "delete", "path": "/memories/birds"}),
    ),
    "scopes": (
        [
            (
                "memory_knowledge",
                {"action": "add", "scopeType": "global", "title": f"heron {name}", "content": "It stands in the pond"},
            )
            for name in NAMES
        ],
        ("memory_init", {"action": "reset", "confirm": True}),
    ),
    "graph": (
        [
            (
                "create_entities",
                {
                    "entities": [
                        {"name": name, "entityType": "heron", "observations": ["stands in the pond"]} for name in NAMES
                    ]
                },
            )
        ],
        ("delete_entities", {"entityNames": NAMES}),
    ),
}
each = pytest.mark.parametrize("dialect", CALLS)


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words leave full text in slices of eight documents; the deletion itself is one slice."""
    monkeypatch.setattr(dropped, "STEP_ROWS", 8)
    monkeypatch.setattr(dropped, "_SLICE_SECONDS", -1.0)
    monkeypatch.setattr(calls, "CALL_SLICE_SECONDS", 60.0)


@pytest.fixture
def cut_off(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """No words leave full text, as after a kill, until it is called. The deletion itself is one slice."""

    def nothing(_tx: Tx) -> None:
        return None

    monkeypatch.setattr(dropped, "removal", nothing)
    monkeypatch.setattr(calls, "CALL_SLICE_SECONDS", 60.0)
    return monkeypatch.undo


def pending(kernel: Kernel) -> int:
    db = apsw.Connection(str(kernel.config.file), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        ((count,),) = db.execute("SELECT count(*) FROM doc_dropped").fetchall()
        return int(str(count))
    finally:
        db.close()


def rows(kernel: Kernel) -> Rows:
    return {name: sorted(found, key=repr) for name, found in everything(kernel).items() if not name.startswith(_OURS)}


def check(kernel: Kernel) -> list[consistency.Finding]:
    return consistency.check(kernel.config.file, kernel.store.context, app.DIALECTS)


def fill(call: Call, dialect: str) -> None:
    for tool, arguments in CALLS[dialect][0]:
        reply = call(tool, **arguments)
        assert reply.fault is None, reply


def delete(call: Call, dialect: str) -> None:
    tool, arguments = CALLS[dialect][1]
    reply = call(tool, **arguments)
    assert reply.fault is None, reply


def found(call: Call) -> bool:
    reply = call("recall", query="the heron stands in the pond")
    assert reply.fault is None, reply
    assert reply.structured is not None
    return b"heron" in reply.structured.replace(b"the heron stands in the pond", b"")


def next_words(tx: Tx) -> list[tuple[Any, ...]]:
    return tx.all("kernel.dropped.next", lambda *values: values, limit=10_000, bytes=1 << 30)


def finish(kernel: Kernel) -> None:
    """Waits until the writer has done its deferred work."""
    tidy(kernel.store, lambda: False)
    while pending(kernel):
        kernel.store.write_sync(lambda _tx: None)


@each
def test_nothing_is_found_after_the_answer_while_words_are_left(
    kernel: Kernel, call: Call, dialect: str, cut_off: Callable[[], None]
) -> None:
    fill(call, dialect)
    assert found(call)
    delete(call, dialect)
    assert pending(kernel) == MANY
    assert not found(call)
    cut_off()
    finish(kernel)
    assert not found(call)
    assert check(kernel) == []


@each
@pytest.mark.parametrize("finished", [False, True])
def test_undo_brings_all_back_while_words_are_left(
    kernel: Kernel, call: Call, dialect: str, finished: bool, cut_off: Callable[[], None]
) -> None:
    fill(call, dialect)
    before = rows(kernel)
    delete(call, dialect)
    if finished:
        cut_off()
        finish(kernel)
    entry = kernel.store.read_sync(lambda tx: audit.read(tx, 1))[0]
    kernel.store.write_sync(partial(undo_call, number=entry.id), CallContext("kernel", "undo"))
    assert bool(pending(kernel)) is not finished
    assert rows(kernel) == before
    assert found(call)
    cut_off()
    finish(kernel)
    assert found(call)
    assert check(kernel) == []


@pytest.mark.usefixtures("small_slices")
def test_other_writes_come_between_the_slices(kernel: Kernel, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[int] = []
    run = Slices.__call__

    def slice_and_write(slices: Slices[Any], tx: Tx) -> Any:
        kernel.store.write_later(lambda other: left.append(len(next_words(other))), CallContext())
        return run(slices, tx)

    monkeypatch.setattr(Slices, "__call__", slice_and_write)
    fill(call, "paths")
    delete(call, "paths")
    finish(kernel)
    kernel.store.write_sync(lambda _tx: None)
    between = [count for count in left if 0 < count < MANY]
    assert len(between) >= MANY // 8 - 1
    assert between == sorted(between, reverse=True)
    assert check(kernel) == []


@pytest.mark.usefixtures("small_slices")
def test_a_stop_does_not_wait_for_the_words(
    caller: Any, tmp_path: Path, migrated: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config(data=shutil.copytree(migrated, tmp_path / "stopped"))
    stopping, run = app.open_kernel(config), Slices.__call__
    closing, begun = threading.Thread(target=stopping.store.close), threading.Event()

    def stop_and_slice(slices: Slices[Any], tx: Tx) -> Any:
        if closing.ident is None and slices.seconds == dropped._SLICE_SECONDS:
            closing.start()
            begun.set()
            while not stopping.store._writes._stopped:
                time.sleep(0.001)
        return run(slices, tx)

    monkeypatch.setattr(Slices, "__call__", stop_and_slice)
    call = caller(stopping.dispatch)
    fill(call, "paths")
    delete(call, "paths")
    assert begun.wait(30)
    closing.join()
    assert pending(stopping) == MANY - 8


@pytest.fixture
def killed(tmp_path: Path, migrated: Path) -> Iterator[Kernel]:
    """A kernel over a store whose process was killed after the deletion had been committed, before words left."""
    data = shutil.copytree(migrated, tmp_path / "killed")
    program = f"""
        import asyncio, os, signal
        from pathlib import Path
        import msgspec
        from kernel.calls import dispatch
        from kernel.server.app import open_kernel
        from kernel.core.config import Config
        from kernel.search import dropped
        dropped.removal = lambda tx: os.kill(os.getpid(), signal.SIGKILL)
        dispatch.CALL_SLICE_SECONDS = 60.0
        kernel = open_kernel(Config(data=Path({str(data)!r})))
        tools = kernel.dispatch.tools
        async def main():
            for number in range({MANY}):
                arguments = dict(path=str(number), content=f"the heron {{number}} stands in the pond")
                await kernel.dispatch.call(tools["add_memory"], msgspec.json.encode(arguments), TESTER)
            await kernel.dispatch.call(tools["clear_memory"], b"{{}}", TESTER)
        from tests.conftest import TESTER
        asyncio.run(main())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, env=dict(os.environ), check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    kernel = app.open_kernel(Config(data=data))
    yield kernel
    kernel.store.close()


def test_a_start_after_a_kill_finds_nothing_and_removes_the_words(killed: Kernel, caller: Any) -> None:
    call = caller(killed.dispatch)
    assert pending(killed) == MANY
    assert not found(call)
    finish(killed)
    assert not found(call)
    assert check(killed) == []
