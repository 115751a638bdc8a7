"""An undo of an import works in slices: others write between them, and one that was cut off goes on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernel.calls import dispatch as calls
from kernel.cli import commands
from kernel.cli.main import parser
from kernel.core.errors import Fault
from kernel.engines import yielding
from kernel.engines.yielding import Turns
from kernel.operations import consistency
from kernel.operations.undo import undo
from kernel.server import app
from kernel.server.app import Kernel
from kernel.store import audit, long_work
from tests.conftest import Call, Rows, everything

ENTITIES = 100


class CutOff(Exception):
    """Ends a command between two slices, as a kill does."""


@pytest.fixture
def imported(kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Rows, int]:
    """Return the state before an import in many slices, and the number of that."""
    monkeypatch.setattr(long_work, "SLICE_SECONDS", -1.0)
    before = everything(kernel)
    source = tmp_path / "memory.jsonl"
    line = '{{"type":"entity","name":"e{0}","entityType":"t","observations":["seen {0}"]}}\n'
    source.write_text("".join(line.format(number) for number in range(ENTITIES)))
    commands.run(parser().parse_args(["import", "server-memory", str(source)]), kernel.config)
    assert len(everything(kernel)["undo_part"]) > 3
    return before, undoable(kernel)[0]


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
    """Make a function that is called before each transaction of a command, of which each takes one step."""
    called: list[Callable[[], object]] = []
    write = Turns.write
    monkeypatch.setattr(yielding, "_HELD_SECONDS", 0.0)

    def counted(turns: Turns, *arguments: Any) -> Any:
        turns._politeness.seconds = -1.0
        for one in called:
            one()
        return write(turns, *arguments)

    monkeypatch.setattr(Turns, "write", counted)
    return called


def undoable(kernel: Kernel) -> list[int]:
    return [entry.id for entry in kernel.store.read_sync(lambda tx: audit.read(tx, 1000)) if entry.undoable]


def undone(kernel: Kernel, number: int) -> audit.Entry:
    return undo(kernel.config.file, kernel.store.context, app.DIALECTS, number, alone=False)


def graph(rows: Rows) -> Rows:
    return {name: held for name, held in rows.items() if name.startswith("graph_")}


def findings(kernel: Kernel) -> list[consistency.Finding]:
    return consistency.check(kernel.config.file, kernel.store.context, app.DIALECTS)


@pytest.mark.slow
def test_others_write_between_the_slices_of_an_undo(
    kernel: Kernel, call: Call, imported: tuple[Rows, int], between: list[Callable[[], object]]
) -> None:
    before, number = imported
    turns: list[int] = []

    def write() -> None:
        turns.append(len(turns))
        assert call("add_memory", path=f"between/{len(turns)}", content="x").fault is None

    between.append(write)
    undone(kernel, number)

    assert len(turns) > 3
    assert graph(everything(kernel)) == graph(before)
    assert len(everything(kernel)["paths_memory"]) == len(turns)
    newest = kernel.store.read_sync(lambda tx: audit.read(tx, 1000))
    told = [entry.outcome for entry in newest if "und" in entry.outcome]
    assert told == [f"undid {number}", f"began to undo {number}"]
    assert (undoable(kernel), findings(kernel)) == ([], [])


@pytest.mark.slow
def test_an_undo_that_was_cut_off_goes_on(
    kernel: Kernel, imported: tuple[Rows, int], between: list[Callable[[], object]]
) -> None:
    before, number = imported
    left: list[int] = []
    cuts: list[int] = []

    def cut() -> None:
        left.append(len(everything(kernel)["graph_entity"]))
        # In the third slice, and in the first that has less left than that: how much a slice takes depends on its time.
        if len(left) == 3 or (len(cuts) == 1 and left[-1] < left[2]):
            cuts.append(left[-1])
            raise CutOff

    between.append(cut)
    for _ in range(2):
        with pytest.raises(CutOff):
            undone(kernel, number)
        assert undoable(kernel) == [number]
    assert ENTITIES > cuts[0] > cuts[1] > 0, "the import is as if it had been cut off earlier"
    between.clear()

    undone(kernel, number)

    assert graph(everything(kernel)) == graph(before)
    assert (undoable(kernel), findings(kernel)) == ([], [])


@pytest.mark.slow
def test_nothing_is_undone_of_an_import_of_which_something_was_changed_since(
    kernel: Kernel, call: Call, imported: tuple[Rows, int]
) -> None:
    _, number = imported
    call("delete_observations", deletions=[{"entityName": "e3", "observations": ["seen 3"]}])
    before = everything(kernel)

    with pytest.raises(Fault, match="been changed again since"):
        undone(kernel, number)

    assert everything(kernel) == before


@pytest.mark.slow
def test_an_undo_stops_at_what_is_changed_while_it_runs_and_says_what_is_left(
    kernel: Kernel, call: Call, imported: tuple[Rows, int], between: list[Callable[[], object]]
) -> None:
    _, number = imported
    turns: list[int] = []

    def change() -> None:
        turns.append(1)
        if len(turns) == 3:
            call("add_observations", observations=[{"entityName": "e3", "contents": ["more"]}])
            call("delete_observations", deletions=[{"entityName": "e3", "observations": ["seen 3"]}])

    between.append(change)
    with pytest.raises(Fault, match=f"`quipu undo {number}` goes on"):
        undone(kernel, number)
    between.clear()

    assert 0 < len(everything(kernel)["graph_entity"]) < ENTITIES
    assert (number in undoable(kernel), findings(kernel)) == (True, [])


@pytest.mark.slow
def test_a_tool_call_of_many_memories_is_undone_at_once_and_indexed_in_slices(
    kernel: Kernel, call: Call, between: list[Callable[[], object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "CALL_SLICE_SECONDS", 60.0)  # the deletion is one slice
    for number in range(40):
        call("remember", content=f"memory {number}", session_id="s")
    assert call("maintenance", action="purge_session", session_id="s", confirm=True).fault is None
    number = undoable(kernel)[0]
    seen: list[int] = []
    between.append(lambda: seen.append(len(everything(kernel)["sessions_memory"])))

    undone(kernel, number)

    assert sorted(set(seen)) == [0, 40]
    assert len(seen) > 3
    assert findings(kernel) == []
