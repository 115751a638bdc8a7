"""A file is written whole or not at all, is on disk when the call returns, and never through a link."""

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from handlers.notes import files, safe_fs
from handlers.notes.files import File, create, exists, move, read, read_all, remove, replace
from handlers.notes.safe_fs import Stamp


@pytest.fixture(params=["descriptors", "paths", "no hard links"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every way of reaching and naming a file: the later ones are for platforms and file systems without the first."""
    if request.param == "paths":
        monkeypatch.setattr(safe_fs, "_HAS_DIR_FD", False)
    if request.param == "no hard links":

        def refuse(*_: Any, **__: Any) -> None:
            raise OSError(errno.EPERM, "not permitted")

        monkeypatch.setattr("os.link", refuse)
    return request.param


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    return root


def names(root: Path) -> list[str]:
    """Everything below the folder, files and folders."""
    top = root / ".mnemonics"
    return sorted(str(path.relative_to(top)) for path in top.rglob("*"))


def made(root: Path, path: str = "learning/a.md", data: bytes = b"one") -> Stamp:
    stamp = create(root, path, data, ".quipu_1")
    assert stamp is not None
    return stamp


def test_a_new_file_is_private_and_holds_what_was_given(root: Path) -> None:
    previous = os.umask(0)
    try:
        stamp = made(root)
    finally:
        os.umask(previous)
    file = root / ".mnemonics" / "learning" / "a.md"
    seen = file.stat()

    assert names(root) == ["learning", "learning/a.md"]
    assert [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent, file.parent.parent)] == [
        0o600,
        0o700,
        0o700,
    ]
    assert stamp == (seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
    assert read(root, "learning/a.md") == File(b"one", stamp, 0o600)


def test_create_does_not_overwrite(root: Path) -> None:
    made(root)
    (root / ".mnemonics" / "learning" / "link.md").symlink_to("/nowhere")
    (root / ".mnemonics" / "learning" / "dir.md").mkdir()

    for name in ("a.md", "link.md", "dir.md"):
        assert exists(root, f"learning/{name}")
        assert create(root, f"learning/{name}", b"two", ".quipu_1") is None
    assert not exists(root, "learning/b.md")
    assert not exists(root, "nowhere/b.md")
    assert read(root, "learning/a.md").data == b"one"
    assert names(root) == ["learning", "learning/a.md", "learning/dir.md", "learning/link.md"]


def test_a_file_is_replaced_only_if_it_is_the_one_that_was_read(root: Path) -> None:
    made(root)
    file = root / ".mnemonics" / "learning" / "a.md"
    file.chmod(0o644)
    before = read(root, "learning/a.md")
    stamp = replace(root, "learning/a.md", b"two", before, ".quipu_1")

    assert read(root, "learning/a.md") == File(b"two", stamp or before.stamp, 0o644)
    assert replace(root, "learning/a.md", b"three", before, ".quipu_1") is None
    assert read(root, "learning/a.md").data == b"two"
    assert names(root) == ["learning", "learning/a.md"]
    with pytest.raises(FileNotFoundError):
        replace(root, "learning/b.md", b"x", before, ".quipu_1")
    assert names(root) == ["learning", "learning/a.md"]


def test_a_file_moves_to_a_free_name_only(root: Path) -> None:
    made(root)
    made(root, "issue/a.md", b"other")

    assert move(root, "learning/a.md", "issue/a.md") is None
    stamp = move(root, "learning/a.md", "context/new/b.md")
    assert read(root, "context/new/b.md") == File(b"one", stamp or Stamp(0, 0, 0), 0o600)
    assert names(root) == [
        "context",
        "context/new",
        "context/new/b.md",
        "issue",
        "issue/a.md",
        "learning",
    ]


def test_a_file_is_removed(root: Path) -> None:
    made(root)
    remove(root, "learning/a.md")

    assert names(root) == ["learning"]
    with pytest.raises(FileNotFoundError):
        remove(root, "learning/a.md")


def test_read_all_groups_by_folder_and_returns_none_for_missing(root: Path) -> None:
    made(root, "b/2.md", b"two")
    made(root, "b/c/3.md", b"three")
    made(root, "a/1.md", b"one")
    (root / ".mnemonics" / "0.md").write_bytes(b"zero")
    (root / ".mnemonics" / "b" / "link.md").symlink_to("2.md")
    (root / ".mnemonics" / "b" / "dir.md").mkdir()
    os.mkfifo(root / ".mnemonics" / "b" / "pipe.md")
    paths = ["b/2.md", "0.md", "b/c/3.md", "b/link.md", "b/dir.md", "b/pipe.md", "b/none.md", "none/x.md", "a/1.md"]

    found = {path: file and file.data for path, file in read_all(root, paths)}
    assert found == dict.fromkeys(paths) | {"0.md": b"zero", "a/1.md": b"one", "b/2.md": b"two", "b/c/3.md": b"three"}


def test_links_and_special_files_are_never_touched(root: Path) -> None:
    made(root)
    outside = root.parent / "outside.md"
    outside.write_text("outside")
    inside = root / ".mnemonics" / "learning"
    (inside / "link.md").symlink_to(outside)
    (inside / "dir.md").mkdir()
    (root / ".mnemonics" / "away").symlink_to(root.parent)
    before = read(root, "learning/a.md")
    kept = names(root)

    for path in ("learning/link.md", "learning/dir.md", "away/outside.md", "learning/../../../outside.md"):
        with pytest.raises(OSError, match=r"."):
            read(root, path)
        with pytest.raises(OSError, match=r"."):
            replace(root, path, b"x", before, ".quipu_1")
        with pytest.raises(OSError, match=r"."):
            remove(root, path)
        with pytest.raises(OSError, match=r"."):
            move(root, path, "learning/b.md")
    for folder in ("away", "learning/link.md", "learning/a.md", "learning/../.."):
        with pytest.raises((NotADirectoryError, FileNotFoundError)):
            move(root, "learning/a.md", f"{folder}/x.md")
    with pytest.raises(NotADirectoryError):
        create(root, "away/new.md", b"x", ".quipu_1")
    assert (names(root), outside.read_text()) == (kept, "outside")
    assert sorted(path.name for path in root.parent.iterdir()) == ["outside.md", "project"]


def test_a_file_that_is_too_large_is_not_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(root, data=b"12345")
    monkeypatch.setattr(files, "MAX_FILE_BYTES", 4)
    with pytest.raises(OSError, match="too large"):
        read(root, "learning/a.md")


def test_write_syncs_file_and_folder(root: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def note(fd: int) -> None:
        synced.append("file" if stat.S_ISREG(os.fstat(fd).st_mode) else "folder")
        fsync(fd)

    monkeypatch.setattr("os.fsync", note)
    folder = [] if way == "paths" else ["folder"]
    steps: list[tuple[Any, list[str]]] = [
        (lambda: made(root), [*folder * 2, "file", *folder]),
        (lambda: made(root, "learning/b.md"), ["file", *folder]),
        (lambda: replace(root, "learning/a.md", b"two", read(root, "learning/a.md"), ".quipu_1"), ["file", *folder]),
        (lambda: move(root, "learning/a.md", "learning/c.md"), folder * 2),
        (lambda: remove(root, "learning/c.md"), folder),
    ]
    for work, wanted in steps:
        synced.clear()
        work()
        assert synced == wanted


def test_a_write_that_fails_leaves_nothing_behind(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(root)
    before = read(root, "learning/a.md")

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.write", full)
    for work in (
        lambda: create(root, "learning/b.md", b"x", ".quipu_1"),
        lambda: replace(root, "learning/a.md", b"x", before, ".quipu_1"),
    ):
        with pytest.raises(OSError, match="No space"):
            work()
    assert names(root) == ["learning", "learning/a.md"]
    assert read(root, "learning/a.md") == before
