"""Every call that changes something adds a row to a hash chain, and destructive calls can be undone."""

import asyncio
from typing import Any

import apsw
import msgspec
import pytest

from kernel.calls import dispatch
from kernel.calls.dispatch import catch_faults
from kernel.cli.main import main
from kernel.cli.output import local_time
from kernel.core.config import Config, from_mapping
from kernel.core.errors import Fault
from kernel.operations import consistency
from kernel.operations.undo import undo
from kernel.security.permissions import FULL_ACCESS, Caller, Forbidden, Permission, grant
from kernel.server import app
from kernel.server.app import Kernel
from kernel.store import audit, history, store
from kernel.store.long_work import STEP_ROWS
from kernel.store.transaction import TARGETS_SHOWN
from tests.catalogue import Catalogue
from tests.conftest import Call, Clock, Rows, everything
from tests.reliability.write_scenario import STORY, Kept

OURS = ("doc", "history", "audit", "undo", "sqlite_", "setting", "migration", "brain_query")


def entries(kernel: Kernel, limit: int = 1000) -> list[audit.Entry]:
    """The audit, oldest first."""
    return kernel.store.read_sync(lambda tx: audit.read(tx, limit))[::-1]


def calls_of(kernel: Kernel) -> list[tuple[str, str, str, list[tuple[str, str, str]]]]:
    """Tool, actor, outcome and targets of each row of the audit."""
    return [(entry.tool, entry.actor, entry.outcome, audit.targets(entry)) for entry in entries(kernel)]


def memories(kernel: Kernel) -> Rows:
    """Every row that belongs to a dialect."""
    return {name: sorted(rows, key=repr) for name, rows in everything(kernel).items() if not name.startswith(OURS)}


def take_back(kernel: Kernel, number: int) -> Any:
    return catch_faults(undo, kernel.config.file, kernel.store.context, app.DIALECTS, number)


def agreed(kernel: Kernel) -> list[consistency.Finding]:
    return consistency.check(kernel.config.file, kernel.store.context, app.DIALECTS)


def test_row_names_actor_tool_and_memories_of_a_change(kernel: Kernel, call: Call) -> None:
    call("add_memory", path="car", content="red")
    call("replace_memory", path="car", content="blue", by="ada")
    call("add_memory", path="car", content="again")
    call("read_memory", path="car")
    call("drop_memory", path="nothing")
    call("recall", query="blue")
    assert calls_of(kernel) == [
        ("add_memory", "tester", "done", [("paths", "car", "created")]),
        ("replace_memory", "ada", "done", [("paths", "car", "replaced")]),
    ]


def test_merged_calls_share_a_row_with_every_memory(kernel: Kernel, call: Call) -> None:
    dispatch = kernel.dispatch
    bound = dispatch.tools["add_memory"]
    speaker = Caller("tester", FULL_ACCESS)

    async def together() -> None:
        await asyncio.gather(
            *[dispatch.call(bound, b'{"path": "a/%d", "content": "x"}' % number, speaker) for number in range(60)]
        )

    asyncio.run(together())
    found = entries(kernel)
    assert sum(entry.touched for entry in found) == 60
    assert len(found) < 60
    assert max(len(audit.targets(entry)) for entry in found) <= TARGETS_SHOWN


def test_forbidden_call_is_audited_and_changes_nothing(kernel: Kernel) -> None:
    async def denied() -> None:
        with pytest.raises(Forbidden):
            await kernel.dispatch.call(
                kernel.dispatch.tools["clear_memory"], b"{}", Caller("eve", grant(Permission.read, frozenset(), True))
            )

    asyncio.run(denied())
    kernel.store.write_sync(lambda tx: None)
    assert calls_of(kernel) == [("clear_memory", "eve", "denied", [])]


def test_export_is_audited(kernel: Kernel, call: Call) -> None:
    call("memory_export", action="export", scopeType="global")
    kernel.store.write_sync(lambda tx: None)
    assert [(tool, outcome) for tool, _, outcome, _ in calls_of(kernel)] == [("memory_export", "done")]


@pytest.fixture
def chained(kernel: Kernel, call: Call) -> Kernel:
    """A kernel whose audit holds five rows."""
    for number in range(5):
        call("add_memory", path=f"p{number}", content="x")
    assert kernel.store.read_sync(audit.first_broken) is None
    return kernel


@pytest.mark.parametrize(
    ("damage", "row"),
    [
        ("UPDATE audit SET actor = 'mallory' WHERE id = 2", 2),
        ("UPDATE audit SET targets = '[]' WHERE id = 5", 5),
        ("DELETE FROM audit WHERE id = 1", 2),
        ("DELETE FROM audit WHERE id = 3", 4),
        ("UPDATE audit SET id = id + 1 WHERE id = 5", 6),
        ("INSERT INTO audit SELECT 6, at, dialect, tool, actor, outcome, touched, targets, hash FROM audit LIMIT 1", 6),
    ],
)
def test_changed_removed_or_inserted_row_breaks_the_chain(
    chained: Kernel, damage: str, row: int, capsys: pytest.CaptureFixture[str], catalogue: Catalogue
) -> None:
    db = apsw.Connection(str(chained.config.file))
    db.execute(damage).fetchall()
    db.close()
    assert chained.store.read_sync(audit.first_broken) == row
    assert [(finding.part, finding.rows) for finding in agreed(chained)] == [("audit", 1)]
    assert main(["audit", "--data", str(chained.config.data)]) == 1
    assert f"row {row} breaks the hash chain" in capsys.readouterr().err
    catalogue(
        "S29",
        injected=damage.split(" WHERE", maxsplit=1)[0].split(" SELECT", maxsplit=1)[0],
        times=1,
        outcome=f"found at row {row}",
    )


def test_the_audit_survives_every_purge(chained: Kernel, call: Call, catalogue: Catalogue) -> None:
    assert call("clear_memory").fault is None
    assert call("maintenance", action="purge_all", confirm=True).fault is None
    assert [entry.tool for entry in entries(chained)][:6] == [*["add_memory"] * 5, "clear_memory"]
    assert chained.store.read_sync(audit.first_broken) is None
    catalogue("S29", injected="everything purged", times=2, outcome="the chain is unbroken and has the purges")


@pytest.mark.slow
def test_every_destructive_call_can_be_undone_and_the_index_agrees(
    kernel: Kernel, call: Call, catalogue: Catalogue
) -> None:
    kept, undone = Kept(), list[str]()
    for step in STORY:
        before, count = memories(kernel), len(entries(kernel))
        reply = call(step.tool, **kept.arguments(step))
        assert reply.fault is None, step
        last = entries(kernel)[-1]
        if last.undoable and last.id > count:
            again = memories(kernel)
            assert take_back(kernel, last.id) == last, step
            assert memories(kernel) == before, step
            assert agreed(kernel) == [], step
            undone.append(step.tool)
            if again != before:
                reply = call(step.tool, **kept.arguments(step))
                assert reply.fault is None, step
        kept.take(step, reply)
    tools = [*kernel.dispatch.tools.values(), *(method for dialect in app.DIALECTS for method in dialect.rest)]
    destructive = {one.tool.name for one in tools if one.tool.hints.destructive}
    # The first two have their own tests, for their files; in this scenario the others find nothing to change.
    assert destructive - set(undone) == {"memory_forget", "memory_remember", "memory_import", "cleanup_query_log"}
    assert kernel.store.read_sync(audit.first_broken) is None
    catalogue("S23", injected="destructive calls", times=len(undone), outcome="undone whole, index and all")


def test_undo_restores_search_results(kernel: Kernel, call: Call, clock: Clock) -> None:
    call("add_memory", path="car", content="My automobile goes to the garage in May.", by="ada")
    found = call("recall", query="vehicle maintenance")
    clock.move(hours=1)
    call("drop_memory", path="car")
    assert take_back(kernel, 2).tool == "drop_memory"
    assert call("recall", query="vehicle maintenance") == found
    assert [event[1] for event in everything(kernel)["history"]] == ["paths"] * 3
    assert calls_of(kernel)[-1] == ("undo", "local", "undid 2", [("paths", "car", "undone")])


def test_undone_memory_has_no_text_in_its_history(kernel: Kernel, call: Call) -> None:
    """The first event of a successor holds the text that it replaced, which never was its own."""
    old = msgspec.json.decode(call("save_memory", db="core", content="Rents a flat", category="fact").body)["id"]
    made = msgspec.json.decode(call("supersede_memory", db="core", old_id=old, new_content="Owns a house").body)

    take_back(kernel, entries(kernel)[-1].id)

    texts = [
        kernel.store.read_sync(lambda tx, key=key: history.latest(tx, "brain:core", key))
        for key in (old, made["new_memory"]["id"])
    ]
    assert texts == ["Rents a flat", None]


def test_undo_of_a_later_change_is_a_conflict_and_changes_nothing(
    kernel: Kernel, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "CALL_SLICE_SECONDS", 60.0)  # a call is one row of the audit
    call("add_memory", path="car", content="red")
    call("add_memory", path="dog", content="brown")
    call("clear_memory")
    call("add_memory", path="car", content="blue")
    before = everything(kernel)
    refusal = take_back(kernel, 3)
    assert (refusal.code, refusal.message) == (
        "conflict",
        "Call 3 cannot be undone: paths/car has been changed again since, or is needed by what came later: "
        f"call 4 (add_memory at {entries(kernel)[-1].at}).",
    )
    assert everything(kernel) == before


@pytest.mark.parametrize(
    ("number", "code", "message"),
    [
        (
            1,
            "conflict",
            "Call 1 cannot be undone: it replaced nothing, so nothing was kept; `quipu forget paths/car` deletes what "
            "it added.",
        ),
        (7, "not_found", "There is no call 7 in the audit: the newest is call 1."),
    ],
)
def test_call_without_undo_data_cannot_be_undone(
    kernel: Kernel, call: Call, number: int, code: str, message: str
) -> None:
    call("add_memory", path="car", content="red")
    refusal = take_back(kernel, number)
    assert (refusal.code, refusal.message) == (code, message)


def test_call_can_be_undone_once(kernel: Kernel, call: Call) -> None:
    call("add_memory", path="car", content="red")
    call("drop_memory", path="car")
    assert not isinstance(take_back(kernel, 2), Fault)
    assert take_back(kernel, 2).code == "conflict"


def test_undo_restores_a_forgotten_file(kernel: Kernel, call: Call) -> None:
    assert call("memory_remember", title="Car", content="It is red.", memoryType="context", tags=["x"]).fault is None
    files = sorted((kernel.config.home / "notes").rglob("*.md"))
    texts = [file.read_bytes() for file in files]
    assert call("memory_forget", filePaths=[str(file) for file in files]).fault is None
    assert sorted((kernel.config.home / "notes").rglob("*.md")) == []
    number = entries(kernel, 1)[0].id
    assert take_back(kernel, number).tool == "memory_forget"
    assert [file.read_bytes() for file in files] == texts
    assert b"It is red." in call("memory_recall", query="red").body


def test_undo_data_expires(kernel: Kernel, call: Call, clock: Clock) -> None:
    call("add_memory", path="car", content="red")
    call("drop_memory", path="car")
    clock.move(hours=167)
    call("drop_memory", path="nothing")
    assert entries(kernel)[1].undoable
    clock.move(hours=2)
    call("add_memory", path="dog", content="red")
    call("drop_memory", path="dog")
    assert [entry.undoable for entry in entries(kernel)] == [False, False, False, True]


def test_expiry_is_no_change_of_the_call_that_runs_it(kernel: Kernel, call: Call, clock: Clock) -> None:
    call("add_memory", path="car", content="red")
    call("drop_memory", path="car")
    clock.move(hours=169)
    assert call("clear_memory").fault is None
    assert [(entry.tool, entry.undoable) for entry in entries(kernel)] == [
        ("add_memory", False),
        ("drop_memory", False),
    ]


def test_vacuum_keeps_what_can_be_undone(kernel: Kernel, call: Call) -> None:
    call("add_memory", path="car", content="red")
    call("drop_memory", path="car")
    assert call("maintenance", action="vacuum").fault is None
    assert [entry.undoable for entry in entries(kernel)][:2] == [False, True]


def test_an_expired_call_of_many_parts_cannot_be_undone_and_its_parts_go_some_at_a_time(
    kernel: Kernel, call: Call, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "_EXPIRED_PARTS", 3)
    for number in range(3):
        call("add_memory", path=f"p{number}", content="red")
    call("drop_memory", path="p0")

    def parts() -> int:
        return sum(len(rows) for name, rows in everything(kernel).items() if name == "undo_part")

    kernel.store.write_sync(
        lambda tx: [
            tx.run(
                "kernel.audit.add_part",
                call=tx.one("kernel.audit.undo_call", str, audit=4),
                part=part,
                targets="[]",
                changes=b"",
            )
            for part in range(1, 8)
        ]
    )
    assert parts() == 8
    clock.move(hours=169)
    left: list[int] = []
    for path in ("p1", "p2", "none", "other"):
        call("drop_memory", path=path)
        left.append(parts())
    assert [entry.undoable for entry in entries(kernel)][:4] == [False] * 4
    assert left == [6, 4, 2, 2]


def test_zero_undo_hours_keep_no_undo_data(config: Config, caller: Any) -> None:
    running = app.open_kernel(config._replace(undo_hours=from_mapping({"QUIPU_UNDO_HOURS": "0"}).undo_hours))
    ours = caller(running.dispatch)
    ours("add_memory", path="car", content="red")
    ours("drop_memory", path="car")
    assert [(entry.tool, entry.undoable) for entry in entries(running)] == [
        ("add_memory", False),
        ("drop_memory", False),
    ]
    running.store.close()


def test_changes_over_the_limit_are_made_without_undo_data(
    kernel: Kernel, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_UNDO_BYTES", 20_000)
    monkeypatch.setattr(dispatch, "CALL_SLICE_SECONDS", 60.0)
    for number in range(20):
        call("add_memory", path=f"p{number}", content="x" * 2000)
    call("drop_memory", path="p0")
    call("clear_memory")
    assert [entry.undoable for entry in entries(kernel)[-2:]] == [True, False]
    assert call("list_memories").body.startswith(b"status: ok\ntotal: 0")


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(2000, 10), (10, 12_000)], ids=["first", "last"])
def test_call_of_which_one_slice_is_over_the_limit_cannot_be_undone_in_part(
    kernel: Kernel, call: Call, monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, int]
) -> None:
    monkeypatch.setattr(store, "_UNDO_BYTES", 20_000)
    monkeypatch.setattr(dispatch, "CALL_SLICE_SECONDS", -1.0)
    for number in range(STEP_ROWS + 8):
        call("add_memory", path=f"p{number}", content="x" * sizes[number >= STEP_ROWS])
    call("clear_memory")
    ends = [(entry.outcome, entry.touched, entry.undoable) for entry in entries(kernel)[-2:]]
    assert ends == [("begun", STEP_ROWS, False), ("done", STEP_ROWS + 8, False)]


def test_command_line_shows_the_audit_and_undoes(
    kernel: Kernel, call: Call, capsys: pytest.CaptureFixture[str], clock: Clock
) -> None:
    call("add_memory", path="car", content="red")
    call("drop_memory", path="car")
    data = ["--data", str(kernel.config.data)]
    assert main(["audit", *data]) == 0
    at = clock.now
    assert capsys.readouterr().out.splitlines() == [
        f"2  {local_time(at)}  paths  drop_memory  tester  done  paths car dropped  (can be undone)",
        f"1  {local_time(at)}  paths  add_memory  tester  done  paths car created",
    ]
    assert main(["undo", "2", *data]) == 0
    assert main(["undo", "2", *data]) == 1
    again = f"quipu: Call 2 cannot be undone: call 3 of local undid it at {at}.\n"
    assert capsys.readouterr().err == f"undone\n{again}"
    assert call("read_memory", path="car").fault is None


def test_two_stores_write_one_chain(kernel: Kernel, call: Call, caller: Any) -> None:
    second = app.open_kernel(kernel.config)
    ours = caller(second.dispatch)
    for number in range(6):
        (call, ours)[number % 2]("add_memory", path=f"p{number}", content="x")
    assert [entry.id for entry in entries(kernel)] == [1, 2, 3, 4, 5, 6]
    assert kernel.store.read_sync(audit.first_broken) is None
    second.store.close()
