"""Changes of files by memory_remember and memory_forget can be taken back, all of it or nothing, until it has been."""

import errno
import itertools
import os
from pathlib import Path

import pytest

from kernel.core.errors import Fault
from kernel.operations.undo import undo
from kernel.search import index
from kernel.server.app import DIALECTS, Kernel
from kernel.store import audit
from tests.conftest import Call, everything
from tests.unit.handlers.notes.conftest import CallOk, put, tree

BY_HAND = "---\nmemory_type: learning\nowner: ada\n---\n\nWritten by a person.\n"


def take_back_last(kernel: Kernel) -> None:
    take_back(kernel, kernel.store.read_sync(lambda tx: audit.read(tx, 1))[0].id)


def take_back(kernel: Kernel, number: int) -> None:
    undo(kernel.config.file, kernel.store.context, DIALECTS, number)


def indexed(kernel: Kernel) -> list[str]:
    docs = [(space, key) for _, space, key, *_ in everything(kernel)["doc"]]
    return kernel.store.read_sync(
        lambda tx: [doc.text for doc in index.documents(tx, index.doc_ids(tx, docs)).values()]
    )


def test_overwritten_text_of_a_person_comes_back(kernel: Kernel, call_ok: CallOk, folder: Path) -> None:
    file = put(folder, "learning/a.md", BY_HAND)
    call_ok("memory_remember", title="x", content="By an agent.", memoryType="learning", filePath=str(file))
    assert indexed(kernel) == ["A\nBy an agent."]

    take_back_last(kernel)

    assert file.read_text() == BY_HAND
    assert indexed(kernel) == ["A\nWritten by a person."]
    assert [memory["content"] for memory in call_ok("memory_recall", isAll=True)["memories"]] == [
        "Written by a person."
    ]


def test_undo_of_a_move_to_another_type_restores_the_old_place(kernel: Kernel, call_ok: CallOk, folder: Path) -> None:
    file = put(folder, "learning/a.md", BY_HAND)
    call_ok("memory_remember", title="x", content="By an agent.", memoryType="issue", filePath=str(file))
    assert not file.exists()

    take_back_last(kernel)

    assert file.read_text() == BY_HAND
    assert not (folder / "issue" / "a.md").exists()
    assert indexed(kernel) == ["A\nWritten by a person."]


def test_undo_of_a_new_memory_deletes_its_file(kernel: Kernel, call_ok: CallOk, folder: Path) -> None:
    call_ok("memory_remember", title="New", content="By an agent.", memoryType="learning")

    take_back_last(kernel)

    assert not (folder / "learning" / "new.md").exists()
    assert indexed(kernel) == []


def test_undo_after_the_stamp_of_the_file_has_settled(kernel: Kernel, call_ok: CallOk, folder: Path) -> None:
    file = put(folder, "learning/a.md", BY_HAND)
    call_ok("memory_remember", title="x", content="By an agent.", memoryType="learning", filePath=str(file))
    os.utime(file, ns=(1, 1))
    put(folder, "learning/b.md", "other")
    call_ok("memory_sync")

    take_back_last(kernel)

    assert file.read_text() == BY_HAND


@pytest.mark.parametrize("change", ["edited", "deleted"])
def test_undo_refuses_a_file_that_was_changed_since(kernel: Kernel, call_ok: CallOk, folder: Path, change: str) -> None:
    file = put(folder, "learning/a.md", BY_HAND)
    call_ok("memory_remember", title="x", content="By an agent.", memoryType="learning", filePath=str(file))
    if change == "edited":
        file.write_text("A later edit.")
    else:
        file.unlink()
    rows, contents = everything(kernel), tree(folder)

    with pytest.raises(Fault, match=r"The file learning/a\.md has been changed again since\.") as refused:
        take_back_last(kernel)

    assert refused.value.code == "conflict"
    assert everything(kernel) == rows
    assert tree(folder) == contents


def test_forgotten_file_comes_back(kernel: Kernel, call: Call, call_ok: CallOk, folder: Path) -> None:
    file = put(folder, "learning/a.md", BY_HAND)
    call_ok("memory_forget", filePaths=[str(file)])

    take_back_last(kernel)

    assert file.read_text() == BY_HAND
    assert indexed(kernel) == ["A\nWritten by a person."]


def test_a_file_somebody_made_in_place_of_a_forgotten_one_stops_the_undo_until_it_is_gone(
    kernel: Kernel, call_ok: CallOk, folder: Path
) -> None:
    notes = [put(folder, f"context/u-{number}.md", BY_HAND.replace("a person", f"{number}")) for number in range(3)]
    texts = [note.read_text() for note in notes]
    call_ok("memory_forget", filePaths=[str(note) for note in notes])
    notes[2].write_text("by hand")
    rows, contents = everything(kernel), tree(folder)

    for _ in range(2):
        with pytest.raises(Fault, match=r"The file context/u-2\.md has been changed again since\.") as refused:
            take_back_last(kernel)
        assert refused.value.code == "conflict"
        assert everything(kernel) == rows
        assert tree(folder) == contents
    notes[2].unlink()
    take_back_last(kernel)

    assert [note.read_text() for note in notes] == texts
    assert len(indexed(kernel)) == 3


@pytest.mark.parametrize("what", ["forget", "update", "create"])
def test_what_is_as_it_was_before_the_call_counts_as_restored(
    kernel: Kernel, call_ok: CallOk, folder: Path, what: str
) -> None:
    one, two = put(folder, "learning/a.md", BY_HAND), put(folder, "learning/b.md", BY_HAND)
    if what == "forget":
        call_ok("memory_forget", filePaths=[str(one), str(two)])
    else:
        path = {"filePath": str(one)} if what == "update" else {}
        call_ok("memory_remember", title="New", content="By an agent.", memoryType="learning", **path)
    one.write_text(BY_HAND)
    (folder / "learning" / "new.md").unlink(missing_ok=True)
    call_ok("memory_recall", isAll=True)

    take_back_last(kernel)

    assert (one.read_text(), two.read_text()) == (BY_HAND, BY_HAND)
    assert sorted(indexed(kernel)) == ["A\nWritten by a person.", "B\nWritten by a person."]
    with pytest.raises(Fault, match="call 2 of local undid it at "):
        take_back(kernel, 1)


def test_an_undo_whose_files_cannot_be_written_changes_nothing_and_can_be_tried_again(
    kernel: Kernel, call_ok: CallOk, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = [put(folder, f"context/u-{number}.md", BY_HAND) for number in range(3)]
    call_ok("memory_forget", filePaths=[str(note) for note in notes])
    rows, contents = everything(kernel), tree(folder)
    write, writes = os.write, itertools.count()

    def full(fd: int, data: bytes) -> int:
        if next(writes) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(fd, data)

    with monkeypatch.context() as patch:
        patch.setattr("os.write", full)
        with pytest.raises(Fault, match="insufficient disk space"):
            take_back_last(kernel)
    assert everything(kernel) == rows
    assert tree(folder) == contents
    take_back_last(kernel)
    assert [note.read_text() for note in notes] == [BY_HAND] * 3


@pytest.mark.slow
def test_forgetting_more_than_undo_data_may_hold_can_be_undone(
    kernel: Kernel, call_ok: CallOk, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The texts are in the history: the undo data of a call does not grow with them."""
    monkeypatch.setattr("kernel.store.store._UNDO_BYTES", 10_000)
    notes = [put(folder, f"context/u-{number}.md", BY_HAND * 20) for number in range(20)]
    call_ok("memory_recall", isAll=True)
    call_ok("memory_forget", filePaths=[str(note) for note in notes])

    take_back_last(kernel)

    assert [note.read_text() for note in notes] == [BY_HAND * 20] * 20


@pytest.mark.parametrize("kind", ["learning", "issue"])
def test_the_audit_says_of_every_overwriting_call_that_it_can_be_undone(
    kernel: Kernel, call_ok: CallOk, folder: Path, kind: str
) -> None:
    file = put(folder, "learning/a.md", BY_HAND)
    for given in ({}, {"filePath": str(file)}):
        call_ok("memory_remember", title="x", content="By an agent.", memoryType=kind, **given)
    call_ok("memory_forget", filePaths=[str(folder / kind / "x.md")])
    entries = kernel.store.read_sync(lambda tx: audit.read(tx, 10))
    assert [(entry.tool, entry.undoable) for entry in entries] == [
        ("memory_forget", True),
        ("memory_remember", True),
        ("memory_remember", True),
    ]
