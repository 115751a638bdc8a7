"""Forgetting deletes the files of memories, and nothing else."""

import json
from pathlib import Path

import pytest

from tests.conftest import Call
from tests.unit.handlers.notes.conftest import CallOk, files, put, titles


def test_forget_deletes_memories_and_reports_skipped_paths(call_ok: CallOk, folder: Path, tmp_path: Path) -> None:
    for path in ("learning/a.md", "learning/b.md", "learning/c.md", "learning/keep.txt", "index.md", "learning/.x.md"):
        put(folder, path, "x")
    outside = put(tmp_path, "outside.md", "x")
    (folder / "learning" / "link.md").symlink_to(outside)
    (folder / "away").symlink_to(tmp_path)
    paths = [
        str(folder / "learning" / "a.md"),
        "qmd://learning/b.md",
        str(outside),
        "learning/keep.txt",
        "learning/a.md",
        "index.md",
        "learning/.x.md",
        "learning/link.md",
        "away/outside.md",
        str(folder),
        "learning/../../../outside.md",
    ]
    answer = call_ok("memory_forget", filePaths=paths)

    assert answer == {
        "success": True,
        "deletedCount": 2,
        "deletedFiles": [str(folder / "learning" / "a.md"), str(folder / "learning" / "b.md")],
        "errors": [
            f"Skipped {outside}: not within .mnemonics/",
            "Skipped learning/keep.txt: not a .md file",
            "Skipped learning/a.md: file not found",
            "Skipped index.md: not a memory file",
            "Skipped learning/.x.md: not a memory file",
            "Skipped learning/link.md: not within .mnemonics/",
            "Skipped away/outside.md: not within .mnemonics/",
            f"Skipped {folder}: not within .mnemonics/",
            "Skipped learning/../../../outside.md: not within .mnemonics/",
        ],
    }
    assert files(folder / "learning") == [".x.md", "c.md", "keep.txt", "link.md"]
    assert outside.read_text() == "x"
    assert titles(call_ok("memory_recall", isAll=True)) == ["C"]


@pytest.mark.parametrize("form", ["one", "array in a text"])
def test_paths_to_forget_may_come_as_text(call_ok: CallOk, folder: Path, form: str) -> None:
    file = put(folder, "learning/a.md", "x")
    given = str(file) if form == "one" else json.dumps([str(file)])

    assert call_ok("memory_forget", filePaths=given) == {
        "success": True,
        "deletedCount": 1,
        "deletedFiles": [str(file)],
    }


def test_nothing_deleted_is_no_success_and_no_error(unchanged: Call) -> None:
    reply = unchanged("memory_forget", filePaths=["learning/none.md"])
    assert reply.fault is None
    assert json.loads(reply.body) == {
        "success": False,
        "deletedCount": 0,
        "deletedFiles": [],
        "errors": ["Skipped learning/none.md: file not found"],
    }


def test_a_path_given_twice_is_forgotten_once(call_ok: CallOk, folder: Path) -> None:
    file = str(put(folder, "learning/a.md", "x"))
    assert call_ok("memory_forget", filePaths=[file, file]) == {
        "success": True,
        "deletedCount": 1,
        "deletedFiles": [file],
    }
