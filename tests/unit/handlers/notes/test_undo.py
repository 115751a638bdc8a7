"""What memory_remember and memory_forget did to files can be taken back, unless somebody has changed them since."""

import os
from pathlib import Path

import pytest

from kernel.app import DIALECTS, Kernel
from kernel.errors import Fault
from kernel.maintenance.undo import undo
from kernel.search import index
from kernel.store import audit
from tests.conftest import Call, everything
from tests.unit.handlers.notes.conftest import CallOk, put, tree

BY_HAND = "---\nmemory_type: learning\nowner: ada\n---\n\nWritten by a person.\n"


def take_back_last(kernel: Kernel) -> None:
    number = kernel.store.read_sync(lambda tx: audit.read(tx, 1))[0].id
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
