"""Files follow the commit: a call that fails leaves each as it was, and committed changes are made, now or later."""

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from handlers.notes import files as module
from handlers.notes import journal
from handlers.notes.projects import projects
from kernel.calls.dispatch import Dispatch
from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.engines.sqlite.connection import Connection
from kernel.server import app
from kernel.server.app import Kernel
from kernel.store.transaction import Tx
from tests.conftest import Call, everything
from tests.unit.handlers.notes.conftest import CallOk, files, put, titles, tree

OLD = "---\nmemory_type: learning\n---\n\nold words\n"
UPDATE = {"title": "x", "content": "new", "filePath": "learning/a.md"}
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "create": ("memory_remember", {"title": "New", "content": "new", "memoryType": "learning"}),
    "update": (
        "memory_remember",
        {"title": "x", "content": "new", "memoryType": "learning", "filePath": "learning/a.md"},
    ),
    "move": ("memory_remember", {"title": "x", "content": "new", "memoryType": "issue", "filePath": "learning/a.md"}),
    "forget": ("memory_forget", {"filePaths": ["learning/a.md", "learning/b.md"]}),
}
EVERY_CALL = pytest.mark.parametrize("name", CALLS)


@pytest.fixture
def notes(folder: Path, call_ok: CallOk) -> Path:
    """The folder with two memories that the store knows."""
    for name in "ab":
        put(folder, f"learning/{name}.md", OLD)
    (folder / "issue").mkdir()
    call_ok("memory_sync")
    return folder


def execute(kernel: Kernel, text: str) -> None:
    """Runs a statement on the database from outside."""
    db = Connection(kernel.config.file, kernel.store.context, readonly=False)
    db.script(text)
    db.close()


def waiting(kernel: Kernel) -> list[tuple[Any, ...]]:
    """The committed changes that are still to be made."""
    return everything(kernel)["notes_change"]


def settle(kernel: Kernel) -> None:
    def work(tx: Tx) -> None:
        for project in projects(tx):
            journal.settle(tx, project)

    kernel.store.write_sync(work)


@pytest.fixture
def crashing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Calls commit and their files do not follow, as after a crash, until the function is called."""
    with monkeypatch.context() as patch:
        patch.setattr(Tx, "work_after_commit", [])
        yield patch.undo


@EVERY_CALL
def test_a_call_that_breaks_a_constraint_leaves_every_file_as_it_was(
    kernel: Kernel, call: Call, notes: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    call("memory_remember", title="One row", content="of the audit", memoryType="context")
    execute(kernel, "CREATE UNIQUE INDEX refuse ON audit (dialect)")
    rows, contents = everything(kernel), tree(notes)
    tool, arguments = CALLS[name]

    assert call(tool, **arguments).fault == "internal"
    assert everything(kernel) == rows
    assert tree(notes) == contents
    caplog.clear()


def test_a_call_with_a_value_too_large_for_the_store_leaves_every_file_as_it_was(
    config: Config, caller: Callable[[Dispatch], Call]
) -> None:
    limits = config.limits._replace(store_value=1 << 20)
    kernel = app.open_kernel(config._replace(limits=limits))
    call, folder = caller(kernel.dispatch), config.data / "notes" / ".mnemonics"
    put(folder, "learning/a.md", OLD)
    put(folder, "learning/b.md", OLD + "x" * (1 << 20))
    rows, contents = everything(kernel), tree(folder)
    for name in ("update", "forget"):
        tool, arguments = CALLS[name]
        large = {"content": "x" * (1 << 20)} if name == "update" else {}
        reply = call(tool, **arguments | large)
        assert reply.fault == "invalid", reply.body
        assert everything(kernel) == rows
        assert tree(folder) == contents
    kernel.store.close()


@EVERY_CALL
def test_a_call_that_fails_at_its_end_leaves_every_file_as_it_was(
    kernel: Kernel, call: Call, notes: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, contents = everything(kernel), tree(notes)
    tool, arguments = CALLS[name]

    def refuse(*_given: Any) -> None:
        raise Fault("invalid", "No.")

    monkeypatch.setattr("kernel.calls.dispatch.checked_size", refuse)
    assert call(tool, **arguments).fault == "invalid"
    assert everything(kernel) == rows
    assert tree(notes) == contents


@EVERY_CALL
def test_a_call_whose_changes_are_written_before_its_end_changes_files_after_its_commit(
    kernel: Kernel, call: Call, notes: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    defer = Tx.defer

    def at_once(tx: Tx, flush: Callable[[Tx, list[Any]], None], item: Any, *size: int) -> None:
        defer(tx, flush, item, *size)
        tx.flush_deferred()

    def refuse(*_given: Any) -> None:
        raise Fault("invalid", "No.")

    rows, contents = everything(kernel), tree(notes)
    tool, arguments = CALLS[name]
    monkeypatch.setattr(Tx, "defer", at_once)
    with monkeypatch.context() as patch:
        patch.setattr("kernel.calls.dispatch.checked_size", refuse)
        assert call(tool, **arguments).fault == "invalid"
    assert everything(kernel) == rows
    assert tree(notes) == contents
    assert call(tool, **arguments).fault is None
    assert tree(notes) != contents
    assert waiting(kernel) == []


@EVERY_CALL
def test_what_is_committed_and_not_made_is_made_by_the_next_start(
    config: Config,
    kernel: Kernel,
    call_ok: CallOk,
    notes: Path,
    name: str,
    crashing: Callable[[], None],
    tmp_path: Path,
) -> None:
    before = files(notes)
    tool, arguments = CALLS[name]
    call_ok(tool, **arguments)
    crashing()
    assert [path for path in files(notes) if not path.rpartition("/")[2].startswith(".")] == before

    again = app.open_kernel(kernel.config)
    again.store.write_sync(lambda _tx: None)
    again.store.close()
    expected = {
        "create": ["learning/a.md", "learning/b.md", "learning/new.md"],
        "update": before,
        "move": ["issue/a.md", "learning/b.md"],
        "forget": [],
    }[name]
    assert files(notes) == expected
    assert waiting(kernel) == []
    written = {"create": "learning/new.md", "update": "learning/a.md", "move": "issue/a.md"}.get(name)
    assert written is None or (notes / written).read_text().endswith("\nnew\n")
    assert sorted(titles(call_ok("memory_recall", isAll=True))) == sorted(
        {"a": "A", "b": "B", "new": "New"}[Path(path).stem] for path in expected
    )


@pytest.mark.parametrize("later", ["memory_recall", "recall", "memory_remember", "memory_forget"])
def test_what_is_committed_and_not_made_is_made_before_the_next_call(
    kernel: Kernel, call_ok: CallOk, notes: Path, later: str, crashing: Callable[[], None]
) -> None:
    call_ok("memory_forget", filePaths=["learning/a.md"])
    assert (notes / "learning" / "a.md").exists()
    crashing()
    given: dict[str, dict[str, Any]] = {
        "memory_recall": {"isAll": True},
        "recall": {"query": "words"},
        "memory_remember": {"title": "A", "content": "another", "memoryType": "learning"},
        "memory_forget": {"filePaths": ["learning/b.md"]},
    }
    call_ok(later, **given[later])
    assert (notes / "learning" / "a.md").exists() == (later == "memory_remember")
    assert waiting(kernel) == []


def test_making_changes_twice_changes_nothing(kernel: Kernel, call_ok: CallOk, notes: Path) -> None:
    for name in ("update", "create", "forget"):
        tool, arguments = CALLS[name]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Tx, "work_after_commit", [])
            call_ok(tool, **arguments)
        rows = waiting(kernel)
        settle(kernel)
        made = {path: (notes / path).read_bytes() for path in files(notes)}
        values = ", ".join(str(tuple(value or "" for value in row)) for row in rows)
        execute(kernel, f"INSERT INTO notes_change VALUES {values}")
        execute(kernel, "UPDATE notes_change SET temporary = nullif(temporary, ''), before = nullif(before, '')")
        settle(kernel)
        assert {path: (notes / path).read_bytes() for path in files(notes)} == made
        assert waiting(kernel) == []


@EVERY_CALL
def test_a_text_that_somebody_writes_between_commit_and_change_is_not_lost(
    kernel: Kernel, call_ok: CallOk, notes: Path, name: str, crashing: Callable[[], None]
) -> None:
    tool, arguments = CALLS[name]
    call_ok(tool, **arguments)
    crashing()
    place = {"create": "learning/new.md", "update": "learning/a.md", "move": "issue/a.md", "forget": "learning/a.md"}
    put(notes, place[name], "by hand")
    settle(kernel)

    assert (notes / place[name]).read_text() == "by hand"
    ours = {"create": "learning/new-2.md", "update": "learning/a-2.md", "move": "issue/a-2.md"}.get(name)
    assert ours is None or (notes / ours).read_text().endswith("\nnew\n")
    found = call_ok("memory_recall", isAll=True)["memories"]
    contents = {Path(memory["path"]).relative_to(notes).as_posix(): memory["content"] for memory in found}
    assert contents[place[name]] == "by hand"
    assert ours is None or contents[ours] == "new"


def test_changes_of_a_project_that_is_not_there_wait_for_it(
    kernel: Kernel, call_ok: CallOk, notes: Path, crashing: Callable[[], None]
) -> None:
    call_ok("memory_forget", filePaths=["learning/a.md"])
    crashing()
    away = notes.parent.with_name("away")
    notes.parent.rename(away)
    assert titles(call_ok("memory_recall", isAll=True)) == ["B"]
    assert len(waiting(kernel)) == 1
    away.rename(notes.parent)
    assert titles(call_ok("memory_recall", isAll=True)) == ["B"]
    assert files(notes) == ["learning/b.md"]
    assert waiting(kernel) == []


def test_no_file_is_deleted_where_the_one_it_moved_to_is_missing(
    kernel: Kernel, call_ok: CallOk, notes: Path, crashing: Callable[[], None]
) -> None:
    tool, arguments = CALLS["move"]
    call_ok(tool, **arguments)
    crashing()
    shutil.rmtree(notes / "issue")

    assert sorted(titles(call_ok("memory_recall", isAll=True))) == ["A", "B"]
    assert (notes / "learning" / "a.md").read_text() == OLD
    assert waiting(kernel) == []


@EVERY_CALL
def test_a_disk_that_fails_after_the_commit_is_reported_and_the_change_is_made_once_it_works(
    kernel: Kernel, call: Call, call_ok: CallOk, notes: Path, name: str
) -> None:
    contents = tree(notes)
    tool, arguments = CALLS[name]

    def broken(*_given: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "put", broken)
        patch.setattr(module, "remove", broken)
        reply = call(tool, **arguments)
        assert (reply.fault, reply.body.decode()) == (
            "storage",
            "The change is recorded, and the next call completes it. "
            f"Cannot use {notes.parent}: Read-only file system.",
        )
        seen = sorted(titles(call_ok("memory_recall", isAll=True)))
        assert call("memory_sync").fault == "storage"
        assert contents.items() <= tree(notes).items()
    assert sorted(titles(call_ok("memory_recall", isAll=True))) == seen
    assert seen == {"create": ["A", "B", "New"], "forget": []}.get(name, ["A", "B"])
    assert waiting(kernel) == []


def test_a_path_in_two_spellings_is_forgotten_once(call_ok: CallOk, notes: Path) -> None:
    answer = call_ok("memory_forget", filePaths=["learning/a.md", str(notes / "learning" / "a.md")])
    assert answer["deletedFiles"] == [str(notes / "learning" / "a.md")]
    assert answer["errors"] == [f"Skipped {notes / 'learning' / 'a.md'}: file not found"]


def test_a_file_in_a_folder_that_cannot_be_written_is_not_forgotten(
    call_ok: CallOk, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda *_given, **_more: False)
    answer = call_ok("memory_forget", filePaths=["learning/a.md"])
    assert json.dumps(answer["errors"]) == '["Error deleting learning/a.md: Permission denied"]'
    assert titles(call_ok("memory_recall", isAll=True)) == ["A", "B"]
