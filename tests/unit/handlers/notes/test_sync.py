"""The index follows the files: the next recall knows all changes by hands, editors and version control."""

import asyncio
import errno
import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from handlers.notes import sync
from handlers.notes.files import File
from handlers.notes.safe_fs import Stamp
from handlers.notes.scan import Scan, scan
from kernel.calls.dispatch import Dispatch
from kernel.core.config import Config
from kernel.operations import consistency
from kernel.security.permissions import ANONYMOUS_CALLER
from kernel.server import app
from kernel.server.app import Kernel
from kernel.store import history
from kernel.store.transaction import Tx
from tests.conftest import Call, entry_named, everything
from tests.unit.handlers.notes.conftest import CallOk, put, titles

NOTE = "---\nmemory_type: learning\ntags: [x]\n---\n\n{}\n"


def everything_else(kernel: Kernel) -> dict[str, list[tuple[Any, ...]]]:
    return {name: rows for name, rows in everything(kernel).items() if name != "notes_file"}


def contents(call_ok: CallOk, **arguments: Any) -> dict[str, str]:
    """Return the answer of isAll, content by title."""
    answer = call_ok("memory_recall", isAll=True, **arguments)
    return {memory["title"]: memory["content"] for memory in answer["memories"]}


def events(kernel: Kernel, path: str) -> list[tuple[str, str | None, str | None]]:
    found = kernel.store.read_sync(lambda tx: history.read(tx, "notes:default", path))
    return [(event.operation, event.before, event.after) for event in found]


def agrees(kernel: Kernel) -> bool:
    """Whether rows, documents, full text and vectors agree."""
    return consistency.check(kernel.config.file, app.context_of(kernel.config), app.DIALECTS) == []


@pytest.mark.slow
def test_a_memory_that_another_process_adds_during_a_scan_is_not_taken_for_deleted(
    kernel: Kernel, call_ok: CallOk, monkeypatch: pytest.MonkeyPatch
) -> None:
    call_ok("memory_remember", title="first", content="the sea is salty", memoryType="learning")
    added = {"title": "second", "content": "rain is not", "memoryType": "learning"}

    def scan_before_the_other_adds(root: Path) -> Scan | None:
        seen = scan(root)
        monkeypatch.setattr(sync, "scan", scan)
        other = app.open_kernel(kernel.config)
        tool = entry_named(other.dispatch, "memory_remember")
        asyncio.run(other.dispatch.call(tool, msgspec.json.encode(added), ANONYMOUS_CALLER))
        other.store.close()
        return seen

    monkeypatch.setattr(sync, "scan", scan_before_the_other_adds)
    call_ok("memory_recall", isAll=True)

    assert contents(call_ok) == {"first": "the sea is salty", "second": "rain is not"}
    assert [operation for operation, *_ in events(kernel, "learning/second.md")] == ["created"]


@pytest.mark.slow
@pytest.mark.parametrize("trusted", [False, True], ids=["fresh stamps", "trusted stamps"])
def test_a_new_file_an_edit_a_rename_and_a_deletion_are_seen_by_the_next_recall(
    kernel: Kernel, call_ok: CallOk, folder: Path, trusted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if trusted:
        monkeypatch.setattr(sync, "_TIMESTAMP_GRAIN_NS", -(10**15))
    file = put(folder, "learning/first.md", NOTE.format("the sea is salty"))
    assert contents(call_ok) == {"First": "the sea is salty"}
    assert titles(call_ok("memory_recall", query="ocean water")) == ["First"]

    file.write_text(NOTE.format("ravens are clever"))
    assert contents(call_ok) == {"First": "ravens are clever"}
    assert titles(call_ok("memory_recall", query="ravens", type="search")) == ["First"]
    assert titles(call_ok("memory_recall", query="salty", type="search")) == []

    file.rename(folder / "learning" / "second.md")
    assert contents(call_ok) == {"Second": "ravens are clever"}

    (folder / "learning" / "second.md").unlink()
    assert contents(call_ok) == {}
    assert titles(call_ok("memory_recall", query="ravens", type="query")) == []
    assert agrees(kernel)


def test_manual_changes_are_in_the_history(kernel: Kernel, call_ok: CallOk, folder: Path) -> None:
    file = put(folder, "learning/a.md", "one")
    contents(call_ok)
    file.write_text("two!")
    contents(call_ok)
    file.unlink()
    contents(call_ok)

    assert events(kernel, "learning/a.md") == [
        ("found", None, "one"),
        ("edited", "one", "two!"),
        ("gone", "two!", None),
    ]


def test_a_folder_that_is_there_before_the_server_is_read_whole(
    call_ok: CallOk, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "_WRITE_FILES", 10)
    monkeypatch.setattr(sync, "_ROWS_PER_QUERY", 4)
    for number in range(35):
        put(folder, f"learning/n{number}.md", f"note {number}")

    assert contents(call_ok) == {f"N{number}": f"note {number}" for number in range(35)}


def test_batch_is_bounded_by_bytes(call_ok: CallOk, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "_WRITE_BYTES", 3)
    monkeypatch.setattr(sync, "_ROWS_PER_QUERY", 1)
    for number in range(5):
        put(folder, f"learning/n{number}.md", f"note {number}")

    assert len(contents(call_ok)) == 5


def test_a_recall_that_finds_nothing_changed_writes_nothing(kernel: Kernel, call_ok: CallOk, folder: Path) -> None:
    put(folder, "learning/a.md", "one")
    contents(call_ok)
    before = everything(kernel)
    for _ in range(3):
        assert contents(call_ok) == {"A": "one"}
        assert titles(call_ok("memory_recall", query="one", type="query")) == ["A"]
    assert everything(kernel) == before


def test_a_file_that_was_only_touched_is_not_a_change(kernel: Kernel, call_ok: CallOk, folder: Path) -> None:
    file = put(folder, "learning/a.md", "one")
    contents(call_ok)
    before = everything_else(kernel)
    os.utime(file, ns=(10**18, 10**18))
    (memory,) = call_ok("memory_recall", isAll=True)["memories"]

    assert memory["modified"] == "2001-09-09T01:46:40.000Z"
    assert everything_else(kernel) == before


@pytest.mark.parametrize("seconds", [13_600_000_000, -13_600_000_000])
def test_a_file_from_a_far_future_or_past_is_a_memory_like_any_other(
    kernel: Kernel, call_ok: CallOk, folder: Path, seconds: int
) -> None:
    file = put(folder, "learning/a.md", "one")
    os.utime(file, ns=(seconds * 10**9, seconds * 10**9))
    assert contents(call_ok) == {"A": "one"}
    assert contents(call_ok) == {"A": "one"}
    assert call_ok("memory_sync")["success"] is True
    assert call_ok("memory_lint")["summary"]["totalMemories"] == 1
    assert agrees(kernel)


def same_stamp(file: Path, text: str) -> None:
    """Other content of the same size under a stamp that shows nothing, as a coarse clock would leave it."""
    seen = file.stat()
    assert len(text.encode()) == seen.st_size
    file.write_text(text)
    os.utime(file, ns=(seen.st_atime_ns, seen.st_mtime_ns))


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system without ctime: its stamps show only a modification time, which any program can set."""
    look = sync.scan
    read = sync.read_all

    def blind(stamp: Stamp) -> Stamp:
        return stamp._replace(changed=stamp.modified)

    def scanned(root: Path) -> Any:
        found = look(root)
        return found and found._replace(stamps={path: blind(stamp) for path, stamp in found.stamps.items()})

    def files(root: Path, paths: Any) -> Any:
        for path, file in read(root, paths):
            yield path, file and File(file.data, blind(file.stamp))

    monkeypatch.setattr(sync, "scan", scanned)
    monkeypatch.setattr(sync, "read_all", files)


@pytest.mark.usefixtures("coarse")
def test_second_edit_within_timestamp_grain_is_seen(call_ok: CallOk, folder: Path) -> None:
    file = put(folder, "learning/a.md", "one")
    assert contents(call_ok) == {"A": "one"}
    same_stamp(file, "two")
    assert contents(call_ok) == {"A": "two"}


@pytest.mark.usefixtures("coarse")
def test_unchanged_stamp_is_trusted_after_the_grain(call_ok: CallOk, folder: Path) -> None:
    """Only the sync, which reads everything, sees an edit that leaves no trace."""
    file = put(folder, "learning/a.md", "one")
    os.utime(file, ns=(10**18, 10**18))
    assert contents(call_ok) == {"A": "one"}
    same_stamp(file, "two")
    assert contents(call_ok) == {"A": "one"}
    assert call_ok("memory_sync") == {"success": True, "message": "Index and embeddings updated successfully"}
    assert contents(call_ok) == {"A": "two"}


@pytest.mark.usefixtures("coarse")
def test_a_sync_reads_every_file_whatever_else_has_changed(call_ok: CallOk, folder: Path) -> None:
    file = put(folder, "learning/a.md", "one")
    os.utime(file, ns=(10**18, 10**18))
    assert contents(call_ok) == {"A": "one"}
    same_stamp(file, "two")
    put(folder, "learning/b.md", "new")
    assert call_ok("memory_sync")["success"] is True
    assert contents(call_ok) == {"A": "two", "B": "new"}


@pytest.mark.usefixtures("coarse")
def test_doubtful_files_are_settled_once_there_are_many(
    kernel: Kernel, call_ok: CallOk, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def doubtful() -> int:
        return sum(row[5] for row in everything(kernel)["notes_file"])

    for number in range(4):
        put(folder, f"learning/n{number}.md", "x")
    assert len(contents(call_ok)) == 4
    assert doubtful() == 4
    monkeypatch.setattr(sync, "_TIMESTAMP_GRAIN_NS", -(10**15))
    contents(call_ok)
    assert doubtful() == 4
    monkeypatch.setattr(sync, "_MAX_UNWRITTEN_SETTLED", 3)
    contents(call_ok)
    assert doubtful() == 0


@pytest.mark.slow
def test_sync_drops_files_of_removed_projects(
    config: Config, caller: Callable[[Dispatch], Call], tmp_path: Path
) -> None:
    put(tmp_path, "web/.mnemonics/a.md", "a")
    put(config.data, "notes/.mnemonics/b.md", "b")
    roots = {"QUIPU_NOTES_ROOTS": f"{tmp_path / 'web'}"}
    for environment, space, found in (
        (roots, "notes:web", ["a.md"]),
        ({}, "notes:web", []),
        ({}, "notes:default", ["b.md"]),
    ):
        kernel = app.open_kernel(config._replace(environment=environment))
        call = caller(kernel.dispatch)
        call("memory_recall", isAll=True)
        call("memory_sync")
        assert [
            source.key for source in kernel.store.read_sync(lambda tx: list(sync.sources(tx))) if source.space == space
        ] == found
        assert agrees(kernel)
        kernel.store.close()


@pytest.mark.parametrize(("files", "size"), [(4, 1 << 20), (1000, 300)], ids=["files", "bytes"])
def test_a_folder_that_appears_or_vanishes_is_taken_in_by_parts(
    kernel: Kernel, call_ok: CallOk, folder: Path, monkeypatch: pytest.MonkeyPatch, files: int, size: int
) -> None:
    monkeypatch.setattr(sync, "_WRITE_FILES", files)
    monkeypatch.setattr(sync, "_ROWS_PER_QUERY", files)
    monkeypatch.setattr(sync, "_WRITE_BYTES", size)
    parts: list[int] = []
    write = history.flush
    monkeypatch.setattr(history, "flush", lambda tx, rows: parts.append(len(rows)) or write(tx, rows))
    for number in range(10):
        put(folder, f"learning/n{number}.md", NOTE.format("x" * 70))
    assert len(contents(call_ok)) == 10
    (folder / "learning").rename(folder.parent / "away")
    assert contents(call_ok) == {}
    assert (sum(parts), max(parts) <= 4) == (20, True)
    assert agrees(kernel)


def test_missing_project_keeps_its_memories(config: Config, caller: Callable[[Dispatch], Call], tmp_path: Path) -> None:
    put(tmp_path, "web/.mnemonics/a.md", "a")
    kernel = app.open_kernel(config._replace(environment={"QUIPU_NOTES_ROOTS": f"{tmp_path / 'web'}"}))
    call = caller(kernel.dispatch)
    before = call("memory_recall", isAll=True)
    rows = everything(kernel)
    (tmp_path / "web").rename(tmp_path / "unmounted")
    assert call("memory_recall", isAll=True).fault is None
    assert everything(kernel) == rows
    (tmp_path / "unmounted").rename(tmp_path / "web")
    assert call("memory_recall", isAll=True) == before
    kernel.store.close()


@pytest.mark.parametrize("number", [errno.EIO, errno.EMFILE, errno.EACCES, errno.ESTALE])
@pytest.mark.parametrize("place", ["learning", "a.md"])
def test_temporarily_unreadable_file_is_kept(
    kernel: Kernel, call_ok: CallOk, folder: Path, monkeypatch: pytest.MonkeyPatch, number: int, place: str
) -> None:
    put(folder, "learning/a.md", "one")
    put(folder, "issue/b.md", "two")
    before = contents(call_ok)
    rows = everything(kernel)
    really = os.open

    def failing(path: Any, *arguments: Any, **more: Any) -> int:
        if path == place:
            raise OSError(number, os.strerror(number))
        return really(path, *arguments, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", failing)
        assert contents(call_ok) == before
        assert call_ok("memory_sync")["success"] is True
        assert everything(kernel) == rows
    assert contents(call_ok) == before


@pytest.mark.parametrize("number", [errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.ENXIO])
def test_files_of_a_missing_folder_count_as_deleted(
    call_ok: CallOk, folder: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    put(folder, "learning/a.md", "one")
    put(folder, "issue/b.md", "two")
    contents(call_ok)
    really = os.open

    def failing(path: Any, *arguments: Any, **more: Any) -> int:
        if path == "learning":
            raise OSError(number, os.strerror(number))
        return really(path, *arguments, **more)

    monkeypatch.setattr(os, "open", failing)
    assert contents(call_ok) == {"B": "two"}


def test_leftover_is_deleted_after_an_hour(call_ok: CallOk, folder: Path) -> None:
    young, old = put(folder, f".quipu_{22 * '1'}", "half"), put(folder, f"learning/.quipu_{22 * '2'}", "half")
    os.utime(old, ns=(10**18, 10**18))
    assert contents(call_ok) == {}
    assert [young.exists(), old.exists()] == [True, False]


@pytest.mark.parametrize(
    "name", [".quipu-notes.txt", ".quipu", ".quipu_1", f".quipu_{23 * 'a'}", f".quipu_{22 * 'A'}", ".quipu_mine.md"]
)
def test_file_with_a_similar_name_is_kept(call_ok: CallOk, folder: Path, name: str) -> None:
    file = put(folder, name, "mine")
    os.utime(file, ns=(10**18, 10**18))
    assert contents(call_ok) == {}
    assert file.read_text() == "mine"


@pytest.mark.parametrize("name", [".quipu", f".quipu_{22 * 'a'}"])
def test_folder_named_like_a_leftover_is_kept(call_ok: CallOk, folder: Path, name: str) -> None:
    put(folder, "learning/a.md", "one")
    file = put(folder, f"{name}/keep", "mine")
    os.utime(file.parent, ns=(10**18, 10**18))
    assert contents(call_ok) == {"A": "one"}
    assert file.read_text() == "mine"


def test_undeletable_leftover_does_not_fail_recall(
    call_ok: CallOk, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    put(folder, "learning/a.md", "one")
    old = put(folder, f".quipu_{22 * '2'}", "half")
    os.utime(old, ns=(10**18, 10**18))
    monkeypatch.setattr("handlers.notes.scan.os.unlink", denied)
    assert contents(call_ok) == {"A": "one"}
    assert old.exists()


def test_a_link_in_the_place_of_the_folder_is_refused_and_not_followed(
    unchanged: Call, folder: Path, tmp_path: Path
) -> None:
    put(tmp_path, "elsewhere/learning/a.md", "secret")
    folder.parent.mkdir(parents=True)
    folder.symlink_to(tmp_path / "elsewhere")
    for name, arguments in (
        ("memory_recall", {"query": "secret"}),
        ("memory_recall", {"isAll": True}),
        ("memory_sync", {}),
        ("memory_lint", {}),
        ("memory_remember", {"title": "x", "content": "y", "memoryType": "learning"}),
    ):
        reply = unchanged(name, **arguments)
        assert reply.fault == "blocked"
        assert b"is a link, or leads through one, or is no file." in reply.body


def test_changes_taken_in_by_another_call_are_skipped(kernel: Kernel, call_ok: CallOk, folder: Path) -> None:
    file = put(folder, "learning/a.md", "one")
    put(folder, "learning/b.md", "gone soon")
    contents(call_ok)
    file.write_text("two!")
    (folder / "learning" / "b.md").unlink()
    found = kernel.store.read_sync(lambda tx: sync.check(tx, None))
    assert found is not None
    file.write_text("three")
    put(folder, "learning/b.md", "back again")
    assert contents(call_ok) == {"A": "three", "B": "back again"}
    before = everything(kernel)

    def late(tx: Tx) -> bool:
        return sync.write(tx, None, found)

    assert kernel.store.write_sync(late) is True
    assert everything(kernel) == before


PATHS = st.sampled_from(["learning/a.md", "learning/b.md", "issue/a.md", "c.md", "context/deep/d.md", "issue/é.md"])
TEXTS = st.sampled_from(["salt", "raven", "---\nmemory_type: issue\n---\nknot", "---\ntags: a, b\n---\nsalt", ""])


class Following(RuleBasedStateMachine):
    """Hands and tools change the files in any order; after each step a recall shows exactly the present files."""

    made: ClassVar[Iterator[tuple[Kernel, Call, Path]]]

    def __init__(self) -> None:
        super().__init__()
        self.kernel, self.call, self.folder = next(self.made)

    def files(self) -> list[str]:
        found = sorted(self.folder.rglob("*.md")) if self.folder.exists() else []
        return [str(path.relative_to(self.folder)) for path in found]

    @rule(path=PATHS, text=TEXTS)
    def write(self, path: str, text: str) -> None:
        put(self.folder, path, text)

    @precondition(lambda self: self.files())
    @rule(data=st.data(), goal=PATHS)
    def rename(self, data: st.DataObject, goal: str) -> None:
        source = self.folder / data.draw(st.sampled_from(self.files()))
        (self.folder / goal).parent.mkdir(parents=True, exist_ok=True)
        source.replace(self.folder / goal)

    @precondition(lambda self: self.files())
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        (self.folder / data.draw(st.sampled_from(self.files()))).unlink()

    @rule(title=st.sampled_from(["a", "A!", "語"]), kind=st.sampled_from(["learning", "issue"]), text=TEXTS)
    def remember(self, title: str, kind: str, text: str) -> None:
        self.call("memory_remember", title=title, content=text or "x", memoryType=kind)

    @precondition(lambda self: self.files())
    @rule(data=st.data(), kind=st.sampled_from(["learning", "issue"]), text=TEXTS)
    def update(self, data: st.DataObject, kind: str, text: str) -> None:
        path = data.draw(st.sampled_from(self.files()))
        reply = self.call("memory_remember", title="a", content=text or "x", memoryType=kind, filePath=path)
        assert reply.fault is None

    @precondition(lambda self: self.files())
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        self.call("memory_forget", filePaths=[data.draw(st.sampled_from(self.files()))])

    @invariant()
    def a_recall_shows_what_is_there(self) -> None:
        shown = msgspec.json.decode(self.call("memory_recall", isAll=True).body)["memories"]
        found = [str(Path(memory["path"]).relative_to(self.folder)) for memory in shown]
        assert found == sorted(self.files())
        for memory in shown:
            assert Path(memory["path"]).read_text().removesuffix("\n").endswith(memory["content"])
        query = msgspec.json.decode(self.call("memory_recall", query="salt", type="search", limit=100).body)
        wanted = {memory["path"] for memory in shown if "salt" in memory["content"]}
        assert {memory["path"] for memory in query["memories"]} == wanted

    def teardown(self) -> None:
        assert agrees(self.kernel)
        self.kernel.store.close()


@pytest.mark.slow
def test_index_follows_manual_and_tool_changes_in_any_order(tmp_path: Path, caller: Callable[[Dispatch], Call]) -> None:
    def made() -> Iterator[tuple[Kernel, Call, Path]]:
        for number in itertools.count():
            data = tmp_path / str(number)
            kernel = app.open_kernel(Config(data=data))
            yield kernel, caller(kernel.dispatch), data / "notes" / ".mnemonics"

    few = settings(
        max_examples=12,
        stateful_step_count=15,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    run_state_machine_as_test(type("Machine", (Following,), {"made": made()}), settings=few)
