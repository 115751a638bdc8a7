"""The Nth operation on the database or on a file fails under every call on notes: a refused call left every file as it
was, and a committed call is completed by the next call.
"""

import errno
import json
import os
import stat
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import apsw
import pytest

from handlers.notes import sync
from kernel.calls.tools import Reply
from kernel.core.errors import Fault
from kernel.operations.undo import undo
from kernel.server.app import DIALECTS, Kernel
from kernel.store import audit
from tests.catalogue import Catalogue
from tests.conftest import Call, everything
from tests.reliability.disk_images import Countdown, Faulty, used
from tests.unit.handlers.notes.conftest import put, titles

LATER = "The change is recorded, and the next call completes it."
OLD = "---\nmemory_type: learning\n---\n\nold\n"
UPDATE = {"title": "x", "content": "new", "filePath": "learning/a.md"}
Files = dict[str, str]
CALLS: dict[str, tuple[str, dict[str, Any], Files]] = {
    "create": (
        "memory_remember",
        {"title": "New", "content": "new", "memoryType": "learning"},
        {"learning/a.md": "old", "learning/b.md": "old", "learning/new.md": "new"},
    ),
    "update": (
        "memory_remember",
        UPDATE | {"memoryType": "learning"},
        {"learning/a.md": "new", "learning/b.md": "old"},
    ),
    "move": ("memory_remember", UPDATE | {"memoryType": "issue"}, {"issue/a.md": "new", "learning/b.md": "old"}),
    "forget": ("memory_forget", {"filePaths": ["learning/a.md", "learning/b.md"]}, {}),
}
STEPS = ("open", "write", "fsync", "link", "unlink", "replace")
_numbers = count()


@pytest.fixture
def disk() -> Iterator[Faulty]:
    """A disk that fails on demand, for everything the database opens until the end of the test."""
    faulty = Faulty(f"faulty-notes-{next(_numbers)}")
    yield from used(faulty)


@pytest.fixture
def notes(disk: Faulty, kernel: Kernel, call: Call) -> Path:
    """The folder with two memories that the store knows, on that disk."""
    folder = kernel.config.data / "notes" / ".mnemonics"
    reset(folder, call)
    return folder


def reset(folder: Path, call: Call) -> None:
    for path in folder.rglob("*.md"):
        path.unlink()
    for name in "ab":
        put(folder, f"learning/{name}.md", OLD)
    assert call("memory_sync").fault is None


def recalled(call: Call) -> list[str]:
    """The titles of all memories, sorted."""
    return sorted(titles(json.loads(call("memory_recall", isAll=True).body)))


def is_done(reply: Reply) -> bool:
    answer = json.loads(reply.body) if reply.fault is None else {}
    return answer.get("success") is True and "errors" not in answer


def held(folder: Path) -> Files:
    """Return the last line of every file, also of hidden files, by path."""
    found = (path for path in folder.rglob("*") if stat.S_ISREG(path.lstat().st_mode))
    return {str(path.relative_to(folder)): path.read_text().splitlines()[-1] for path in found}


class FailingCall:
    """A function of `os` whose Nth call fails, counted with the others that share `left`."""

    left = 0

    def __init__(self, name: str, number: int) -> None:
        self._call = getattr(os, name)
        self._number = number

    def __call__(self, *args: Any, **more: Any) -> Any:
        FailingCall.left -= 1
        if FailingCall.left == 0:
            raise OSError(self._number, os.strerror(self._number))
        return self._call(*args, **more)


@pytest.fixture(params=["full disk", "database error", "failing file"])
def failing(request: pytest.FixtureRequest, disk: Faulty) -> Callable[[int], pytest.MonkeyPatch]:
    """Makes the Nth operation fail, until the returned function undoes it."""

    def arm(nth: int) -> pytest.MonkeyPatch:
        patch = pytest.MonkeyPatch()
        if request.param == "failing file":
            FailingCall.left = nth
            for name in STEPS:
                patch.setattr(os, name, FailingCall(name, errno.ENOSPC))
        else:
            full = request.param == "full disk"
            patch.setattr(disk, "plan", Countdown(nth, apsw.FullError if full else apsw.IOError, lasting=full))
        return patch

    return arm


@pytest.mark.parametrize("name", CALLS)
def test_a_refused_call_leaves_every_file_as_it_was_and_a_recorded_one_is_completed(
    failing: Callable[[int], pytest.MonkeyPatch],
    kernel: Kernel,
    call: Call,
    notes: Path,
    name: str,
    catalogue: Catalogue,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sync, "_LEFTOVER_AGE_NS", -(10**15))
    tool, arguments, new = CALLS[name]
    old = held(notes)
    refused = 0
    for nth in count(1):
        rows = everything(kernel)
        patch = failing(nth)
        reply = call(tool, **arguments)
        seen = FailingCall.left
        patch.undo()
        if is_done(reply):
            assert held(notes) == new, nth
            if seen > 0 or everything(kernel)["notes_change"] == []:
                break
        elif LATER.encode() in reply.body:
            refused += 1
        else:
            refused += 1
            named = json.loads(reply.body)["deletedFiles"] if reply.fault is None else []
            deleted = [str(Path(path).relative_to(notes)) for path in named]
            assert held(notes) == {path: text for path, text in old.items() if path not in deleted}, (nth, reply)
            assert deleted or everything(kernel) == rows, (nth, reply)
            reset(notes, call)
            continue
        assert recalled(call) == sorted(Path(path).stem.title() for path in new), nth
        assert held(notes) == new, nth
        assert everything(kernel)["notes_change"] == []
        reset(notes, call)
    assert refused
    outcome = "refused with every file as it was, or completed later"
    catalogue("R05", injected=f"the Nth operation fails under a call on files: {name}", times=refused, outcome=outcome)


def test_an_undo_that_fails_changes_no_file_and_can_be_tried_again(
    failing: Callable[[int], pytest.MonkeyPatch], kernel: Kernel, call: Call, notes: Path, catalogue: Catalogue
) -> None:
    old = held(notes)
    call("memory_forget", filePaths=["learning/a.md", "learning/b.md"])
    number = kernel.store.read_sync(lambda tx: audit.read(tx, 1))[0].id
    refused = 0
    for nth in count(1):
        patch = failing(nth)
        try:
            undo(kernel.config.file, kernel.store.context, DIALECTS, number)
        except (Fault, apsw.Error):
            refused += 1
        patch.undo()
        if kernel.store.read_sync(lambda tx: audit.undo_call(tx, number)) is None:
            break
        assert held(notes) == {}
    assert recalled(call) == ["A", "B"]
    assert held(notes) == old
    catalogue("R05", injected="the Nth operation fails under an undo", times=refused, outcome="nothing or all undone")


def test_on_a_full_disk_a_recall_answers_from_what_is_stored(
    disk: Faulty, kernel: Kernel, call: Call, notes: Path, catalogue: Catalogue
) -> None:
    put(notes, "learning/c.md", OLD)
    (notes / "learning" / "a.md").unlink()
    disk.plan = Countdown(1, apsw.FullError, lasting=True)
    assert recalled(call) == ["A", "B"]
    assert json.loads(call("recall", query="old").body)["memories"]
    refused = call("memory_sync")
    assert (refused.fault, refused.body) == ("storage", b"Cannot write to storage, insufficient disk space.")
    disk.plan = lambda _operation: None
    assert recalled(call) == ["B", "C"]
    catalogue("R07", injected="full disk, files changed by hand", times=2, outcome="recall answers, then follows")
