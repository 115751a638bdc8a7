"""A note says who wrote it and when: the tool that did, or the file where a person did."""

import os
from pathlib import Path
from typing import Any

from msgspec.structs import astuple

from kernel.search import index
from kernel.server.app import Kernel
from tests.conftest import Call, Clock, everything
from tests.unit.handlers.notes.conftest import CallOk, put


def provenance(kernel: Kernel) -> dict[str, tuple[str, ...]]:
    """Dialect, tool, actor, creation and change of each document, by key."""

    def read(tx: Any) -> dict[str, tuple[str, ...]]:
        keys = [(space, key) for _, space, key, *_ in everything(kernel)["doc"]]
        return {doc.key: astuple(doc)[5:10] for doc in index.documents(tx, index.doc_ids(tx, keys)).values()}

    return kernel.store.read_sync(read)


def test_provenance_of_a_file_written_by_hand_is_the_file_and_its_times_are_those_of_its_front_matter(
    kernel: Kernel, call_ok: CallOk, folder: Path
) -> None:
    put(folder, "learning/a.md", "---\ncreated: 2026-02-16\nmodified: 2026-03-17T10:30:00Z\n---\n\nkiwi\n")
    bare = put(folder, "learning/b.md", "kiwi\n")
    os.utime(bare, ns=(0, 1_700_000_000_000_000_000))
    call_ok("memory_recall", query="kiwi")

    assert provenance(kernel) == {
        "learning/a.md": ("notes", "file", "", "2026-02-16T00:00:00.000Z", "2026-03-17T10:30:00.000Z"),
        "learning/b.md": ("notes", "file", "", "2023-11-14T22:13:20.000Z", "2023-11-14T22:13:20.000Z"),
    }


def test_provenance_of_a_file_edited_by_hand_is_the_file_and_its_change_the_time_of_the_file(
    kernel: Kernel, call: Call, call_ok: CallOk, clock: Clock, folder: Path
) -> None:
    path = call_ok("memory_remember", title="a", content="kiwi", memoryType="learning")["filePath"]
    born = clock.now
    assert provenance(kernel) == {"learning/a.md": ("notes", "memory_remember", "tester", born, born)}
    file = Path(path)
    file.write_text(file.read_text().replace("kiwi", "emu"))
    os.utime(file, ns=(0, 1_800_000_000_000_000_000))
    call("memory_recall", isAll=True)

    assert provenance(kernel) == {"learning/a.md": ("notes", "file", "", born, "2027-01-15T08:00:00.000Z")}


def test_provenance_of_a_file_updated_by_a_tool_keeps_the_creation_of_the_file(
    kernel: Kernel, call_ok: CallOk, clock: Clock, folder: Path
) -> None:
    file = put(folder, "learning/a.md", "---\ncreated: 2025-02-16\n---\n\nkiwi\n")
    for kind in ("learning", "issue"):
        call_ok("memory_remember", title="a", content="emu", memoryType=kind, filePath=str(file))
        assert provenance(kernel) == {
            f"{kind}/a.md": ("notes", "memory_remember", "tester", "2025-02-16T00:00:00.000Z", clock.now)
        }
