"""A look at the folder finds every memory and says of everything else why it is none."""

import os
from pathlib import Path

import pytest

from handlers.notes import scan as module
from handlers.notes.safe_fs import Stamp
from handlers.notes.scan import Scan, delete_leftover, is_memory, scan
from tests.unit.handlers.notes.conftest import put

DEEP = "/".join(33 * "x")
ONE, TWO = f".quipu_{22 * '1'}", f".quipu_{22 * '2'}"


def test_every_memory_is_found_with_its_stamp(tmp_path: Path) -> None:
    folder = tmp_path / ".mnemonics"
    paths = [
        "a.md",
        "learning/b.md",
        "learning/deep/er/c.md",
        "learning/.md",
        "learning/index.md",
        "learning/log.md",
        "日本/語 x.md",
        "notes.md/d.md",
        "log.a.md/deep.md/e.md",
        "/".join(32 * "x") + "/f.md",
    ]
    for path in paths:
        put(folder, path, path)
    for path in (
        "index.md",
        "log.md",
        "log.2026-01-01.md",
        "SCHEMA.md",
        ".hidden.md",
        ".git/x.md",
        "learning/.obsidian/y.md",
        "notes.txt",
        "README",
        "learning/._b.md",
        "review/x.ndjson",
    ):
        put(folder, path, "no memory")

    found = scan(tmp_path)
    assert found is not None
    assert sorted(found.stamps) == sorted(paths)
    assert (found.unreadable, found.leftovers) == ([], {})
    seen = (folder / "a.md").stat()
    assert found.stamps["a.md"] == Stamp(seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
    assert [is_memory(path) for path in paths] == [True] * len(paths)
    assert not any(
        map(
            is_memory,
            ("index.md", "log.1.md", ".git/x.md", "a/.x.md", "a/x.txt", "SCHEMA.md", "", f"{DEEP}/a.md", ".md/a.md"),
        )
    )


def test_unreadable_entries_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_FILE_BYTES", 1 << 20)
    folder = tmp_path / ".mnemonics"
    put(folder, "large.md", b"x" * ((1 << 20) + 1))
    put(folder, "ok.md", "x")
    (folder / "link.md").symlink_to("ok.md")
    (folder / "away").symlink_to(tmp_path)
    (folder / "broken").symlink_to("nowhere")
    (folder / ".md").mkdir()
    put(folder, f"{DEEP}/a.md", "x")
    os.mkfifo(folder / "pipe.md")
    with (Path(os.fsdecode(bytes(folder) + b"/\xff.md"))).open("w"):
        pass

    found = scan(tmp_path)
    assert found is not None
    assert list(found.stamps) == ["ok.md"]
    assert sorted(found.unreadable) == [
        (".md", "not a file"),
        ("away", "a link, which is not followed"),
        ("broken", "a link, which is not followed"),
        ("large.md", "larger than 1 MB"),
        ("link.md", "a link, which is not followed"),
        ("pipe.md", "not a file"),
        (DEEP, "more than 32 folders deep"),
        ("\udcff.md", "a name that is not UTF-8"),
    ]


def test_a_project_without_memories_is_empty_and_one_that_is_not_there_is_none(tmp_path: Path) -> None:
    assert scan(tmp_path) == Scan({}, [], {}, [])
    assert scan(tmp_path / "missing") is None


def test_a_link_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".mnemonics").symlink_to("elsewhere")
    with pytest.raises(NotADirectoryError):
        scan(tmp_path)


def test_leftovers_are_reported_and_deleted(tmp_path: Path) -> None:
    left = [put(tmp_path / ".mnemonics", path, "half") for path in (ONE, f"learning/deep/{TWO}")]
    found = scan(tmp_path)
    assert found is not None
    assert found.leftovers == {
        ONE: left[0].stat().st_mtime_ns,
        f"learning/deep/{TWO}": left[1].stat().st_mtime_ns,
    }
    for path in found.leftovers:
        delete_leftover(tmp_path, path)
    assert not any(file.exists() for file in left)
