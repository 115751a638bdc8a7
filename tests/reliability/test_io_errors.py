"""The Nth write, sync or cut of a file fails, once or from then on, under every tool that writes: the caller is told,
nothing of the call stays, and the next one works. Slices of a call that had been committed can be undone.

IO_ERRORS=all tries every N under every step of the story; without it every tool once and one N in seven.
"""

import os
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count

import apsw
import pytest

from handlers.scopes import import_merge
from kernel.calls import dispatch as calls
from kernel.operations import consistency
from kernel.server import app
from kernel.server.app import Kernel
from kernel.store import audit
from kernel.store.context import CallContext
from tests.catalogue import Catalogue
from tests.conftest import Call, everything
from tests.reliability.disk_images import Countdown, Faulty, used
from tests.reliability.write_scenario import STORY, Kept, Step
from tests.support.operations_undo import undo_call

EVERY = os.environ.get("IO_ERRORS") == "all"
RECORDS = ("doc", "history", "audit", "undo", "sqlite_")  # of tables in which a call that was undone leaves rows
_numbers = count()


@pytest.fixture
def disk() -> Iterator[Faulty]:
    """A disk that fails on demand, for everything opened until the end of the test."""
    faulty = Faulty(f"faulty-{next(_numbers)}")
    yield from used(faulty)


@pytest.fixture
def writing(disk: Faulty, kernel: Kernel, call: Call) -> Call:
    """A call to a kernel whose files lie on that disk."""
    return call


def test_everybody_who_writes_is_in_the_story(kernel: Kernel) -> None:
    all_ = [*kernel.dispatch.tools.values(), *(method for dialect in app.DIALECTS for method in dialect.rest)]
    tools = {one.tool.name for one in all_ if one.tool.mode != "read"}
    elsewhere = {"memory_remember", "memory_forget", "memory_conflict"}  # files of their own; nothing to write at first
    assert {step.tool for step in STORY} - {"memory_export"} == tools - elsewhere


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from then on"])
def test_a_failing_disk_is_reported_and_leaves_nothing_of_the_call(
    disk: Faulty, writing: Call, kernel: Kernel, catalogue: Catalogue, lasting: bool
) -> None:
    failed = 0
    kept = Kept()
    for number, step in enumerate(STORY):
        failed += tried(disk, writing, kernel, kept, step, lasting=lasting, first=number % 7 + 1)
    name = "I/O error from the Nth operation on" if lasting else "I/O error at the Nth operation"
    catalogue("R05", injected=name, times=failed, outcome=f"{len(STORY)} writing steps, none half done")
    assert failed > len(STORY)


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from then on"])
def test_an_import_that_fails_between_any_two_of_its_steps_can_be_taken_back_or_has_left_nothing(
    disk: Faulty, writing: Call, kernel: Kernel, lasting: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "CALL_SLICE_SECONDS", -1.0)
    monkeypatch.setattr(import_merge, "_CHUNK", 1)
    kept = Kept()
    for step in STORY:
        if step.tool == "memory_import":
            assert tried(disk, writing, kernel, kept, step, lasting=lasting, first=1, every=1) > 10
        else:
            reply = writing(step.tool, **kept.arguments(step))
            assert reply.fault is None
            kept.take(step, reply)


def tried(
    disk: Faulty,
    call: Call,
    kernel: Kernel,
    kept: Kept,
    step: Step,
    *,
    lasting: bool,
    first: int,
    every: int = 1 if EVERY else 7,
) -> int:
    """Makes one operation after the other fail until the call does not meet it any more; how many did."""
    failed = 0
    kernel.store.write_sync(lambda _tx: None)  # an export leaves its row of the audit behind it
    for nth in count(first, every):
        before = everything(kernel)
        plan = Countdown(nth, apsw.IOError, lasting=lasting)
        disk.plan = plan
        reply = call(step.tool, **kept.arguments(step))
        disk.plan = lambda _operation: None
        if reply.fault is None:
            # A failure after the commit, in a checkpoint, is no concern of the caller.
            kept.take(step, reply)
            return failed + min(1, plan.failed)
        failed += 1  # noqa: SIM113  not every turn of the loop gets here
        assert (reply.fault, plan.failed > 0) == ("storage", True), (step, nth, reply)
        # A file is made small after the commit.
        allowed = {"audit"} if step.arguments.get("action") == "vacuum" else set[str]()
        if b"quipu undo" in reply.body:
            take_back(kernel)
            allowed |= {name for name in before if name.startswith(RECORDS)}
        after = everything(kernel)
        assert {**after, **{name: before[name] for name in allowed}} == before, (step, nth)
    raise AssertionError("counting has no end")


def take_back(kernel: Kernel) -> None:
    """Undoes the last call, which was cut off between two of its slices."""
    entry = kernel.store.read_sync(lambda tx: audit.read(tx, 1))[0]
    assert (entry.outcome, entry.undoable) == ("begun", True)
    kernel.store.write_sync(partial(undo_call, number=entry.id), CallContext("kernel", "undo"))


def test_a_vacuum_without_room_keeps_what_can_be_undone(
    disk: Faulty, writing: Call, kernel: Kernel, catalogue: Catalogue
) -> None:
    for path in ("kept", "dropped"):
        assert writing("add_memory", path=path, content="x" * 9000).fault is None
    assert writing("drop_memory", path="dropped").fault is None

    def undoable() -> list[int]:
        return [entry.id for entry in kernel.store.read_sync(lambda tx: audit.read(tx, 9)) if entry.undoable]

    before = undoable()
    assert len(before) == 1
    refused = 0
    while True:
        disk.plan = Countdown(refused + 1, apsw.FullError, lasting=True)
        fault = writing("maintenance", action="vacuum").fault
        disk.plan = lambda _operation: None
        if fault is None:
            break
        assert (fault, undoable()) == ("storage", before)
        refused += 1
    assert refused > 3
    assert undoable() == before
    catalogue("R05", injected="no room for a vacuum", times=refused, outcome="refused, an earlier call can be undone")


def test_a_failed_sync_is_no_answer_and_the_next_call_begins_on_a_fresh_connection(
    disk: Faulty, writing: Call, kernel: Kernel, catalogue: Catalogue
) -> None:
    def attempt(plan: Callable[[str], Exception | None]) -> str | None:
        disk.plan = plan
        try:
            return writing("add_memory", path="synced", content="or not").fault
        finally:
            disk.plan = lambda _operation: None

    before = everything(kernel)
    for nth in (1, 1, 1):
        assert attempt(Countdown(nth, apsw.IOError, lasting=False, only="sync")) == "storage"
        assert everything(kernel) == before
    assert writing("add_memory", path="synced", content="at last").fault is None
    catalogue("R06", injected="failed sync", times=3, outcome="refused, then written by a new connection")


def test_a_commit_that_only_lacked_its_sync_is_wholly_there_or_wholly_absent(
    disk: Faulty, writing: Call, kernel: Kernel, catalogue: Catalogue
) -> None:
    kept: dict[str, str | None] = {}
    for number in range(10):
        path = f"synced/{number}"
        disk.plan = Countdown(1, apsw.IOError, lasting=True, only="sync")
        assert writing("add_memory", path=path, content="or not").fault == "storage"
        disk.plan = lambda _operation: None
        kept[path] = writing("read_memory", path=path).fault
        assert kept[path] in {None, "not_found"}
        assert consistency.check(kernel.config.file, kernel.store.context, app.DIALECTS) == []
    assert {path: writing("read_memory", path=path).fault for path in kept} == kept
    catalogue(
        "R06", injected="sync fails from then on", times=len(kept), outcome="refused; whole or absent, and so it stays"
    )


def test_a_full_disk_refuses_writes_by_name_serves_reads_and_recovers(
    disk: Faulty, writing: Call, kernel: Kernel, catalogue: Catalogue
) -> None:
    writing("add_memory", path="kept", content="from before")
    before = everything(kernel)
    disk.plan = Countdown(1, apsw.FullError, lasting=True)
    for number in range(5):
        reply = writing("add_memory", path=f"new/{number}", content="no room")
        assert (reply.fault, b"insufficient disk space" in reply.body) == ("storage", True)
        assert b"from before" in writing("read_memory", path="kept").body
    assert everything(kernel) == before
    disk.plan = lambda _operation: None
    assert writing("add_memory", path="new/0", content="room again").fault is None
    catalogue("R07", injected="full disk", times=5, outcome="refused by name, reads served, recovers")
