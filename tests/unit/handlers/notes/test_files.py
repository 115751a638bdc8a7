"""A file gets its new content whole or not at all, keeps the text of others, and is never reached by a link."""

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from handlers.notes import files, safe_fs
from handlers.notes.files import File, digest, exists, is_staged, put, read, read_all, remove, stage, sync_folders
from handlers.notes.safe_fs import Stamp
from kernel.core.errors import Fault


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


TEMPORARY = ".quipu_1"


def written(root: Path, path: str = "learning/a.md", data: bytes = b"one", before: bytes | None = None) -> Stamp | None:
    """Stages new content of a file that held `before`, and puts it in place."""
    stage(root, path, TEMPORARY, data, 0o600)
    return put(root, path, TEMPORARY, None if before is None else digest(before), digest(data))


def contents(root: Path) -> dict[str, bytes]:
    """Return the content of every file, by path."""
    top = root / ".mnemonics"
    return {name: (top / name).read_bytes() for name in names(root) if (top / name).is_file()}


def test_a_new_file_is_private_and_holds_what_was_given(root: Path) -> None:
    previous = os.umask(0)
    try:
        stamp = written(root)
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
    assert read(root, "learning/a.md") == File(b"one", stamp or Stamp(0, 0, 0), 0o600)


def test_staged_content_changes_no_file_until_it_is_put_in_place(root: Path) -> None:
    written(root)
    stage(root, "learning/a.md", TEMPORARY, b"two", 0o644)
    assert contents(root) == {f"learning/{TEMPORARY}": b"two", "learning/a.md": b"one"}

    stamp = put(root, "learning/a.md", TEMPORARY, digest(b"one"), digest(b"two"))

    assert contents(root) == {"learning/a.md": b"two"}
    assert read(root, "learning/a.md") == File(b"two", stamp or Stamp(0, 0, 0), 0o644)


def test_whatever_has_a_name_exists(root: Path) -> None:
    written(root)
    (root / ".mnemonics" / "learning" / "link.md").symlink_to("/nowhere")
    (root / ".mnemonics" / "learning" / "dir.md").mkdir()
    found = {name: exists(root, name) for name in ("learning/a.md", "learning/link.md", "learning/dir.md", "b/c.md")}
    assert found == {"learning/a.md": True, "learning/link.md": True, "learning/dir.md": True, "b/c.md": False}


def test_content_put_in_place_twice_is_there_once(root: Path) -> None:
    for before in (None, b"one"):
        first = written(root, before=before)
        assert put(root, "learning/a.md", TEMPORARY, digest(b"zero"), digest(b"one")) == first
        assert contents(root) == {"learning/a.md": b"one"}


@pytest.mark.parametrize("before", [None, b"read"])
def test_a_file_somebody_wrote_meanwhile_is_kept_and_the_new_content_gets_the_next_free_name(
    root: Path, before: bytes | None
) -> None:
    written(root, data=b"by hand")
    (root / ".mnemonics" / "learning" / "a-2.md").symlink_to("/nowhere")
    (root / ".mnemonics" / "learning" / "a-3.md").mkdir()

    for _ in range(2):
        assert written(root, data=b"ours", before=before) is None
        assert contents(root) == {"learning/a.md": b"by hand", "learning/a-4.md": b"ours"}


def test_content_of_a_file_that_was_deleted_meanwhile_is_there_all_the_same(root: Path) -> None:
    assert written(root, data=b"two", before=b"one") == read(root, "learning/a.md").stamp
    assert contents(root) == {"learning/a.md": b"two"}


def test_content_is_staged_until_it_is_gone(root: Path) -> None:
    def staged() -> bool:
        return is_staged(root, "learning/a.md", TEMPORARY, digest(b"two"))

    assert not staged()
    written(root)
    assert not staged()
    stage(root, "learning/a.md", TEMPORARY, b"two", 0o600)
    assert staged()
    put(root, "learning/a.md", TEMPORARY, digest(b"one"), digest(b"two"))
    assert staged()


def test_a_file_is_deleted_only_if_it_holds_what_was_read(root: Path) -> None:
    written(root)
    remove(root, "learning/a.md", digest(b"another"))
    assert contents(root) == {"learning/a.md": b"one"}

    for _ in range(2):
        remove(root, "learning/a.md", digest(b"one"))
        assert names(root) == ["learning"]
    remove(root, "nowhere/a.md", digest(b"one"))


def test_a_folder_that_cannot_be_written_is_known_before_a_file_in_it_is_to_go(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(root)
    files.require_writable(root, "learning/a.md")
    monkeypatch.setattr("os.access", lambda *_given, **_more: False)
    with pytest.raises(PermissionError, match="Permission denied"):
        files.require_writable(root, "learning/a.md")


def test_read_all_groups_by_folder_and_returns_none_for_missing(root: Path) -> None:
    written(root, "b/2.md", b"two")
    written(root, "b/c/3.md", b"three")
    written(root, "a/1.md", b"one")
    (root / ".mnemonics" / "0.md").write_bytes(b"zero")
    (root / ".mnemonics" / "b" / "link.md").symlink_to("2.md")
    (root / ".mnemonics" / "b" / "dir.md").mkdir()
    os.mkfifo(root / ".mnemonics" / "b" / "pipe.md")
    paths = ["b/2.md", "0.md", "b/c/3.md", "b/link.md", "b/dir.md", "b/pipe.md", "b/none.md", "none/x.md", "a/1.md"]

    found = {path: file and file.data for path, file in read_all(root, paths)}
    assert found == dict.fromkeys(paths) | {"0.md": b"zero", "a/1.md": b"one", "b/2.md": b"two", "b/c/3.md": b"three"}


def test_links_and_special_files_are_never_touched(root: Path) -> None:
    written(root)
    outside = root.parent / "outside.md"
    outside.write_text("outside")
    inside = root / ".mnemonics" / "learning"
    (inside / "link.md").symlink_to(outside)
    (inside / "dir.md").mkdir()
    (root / ".mnemonics" / "away").symlink_to(root.parent)
    kept = names(root)

    for path in ("learning/link.md", "learning/dir.md", "away/outside.md", "learning/../../../outside.md"):
        with pytest.raises(OSError, match=r"."):
            read(root, path)
        remove(root, path, digest(b"outside"))
    for folder in ("away", "learning/link.md", "learning/a.md", "learning/../.."):
        with pytest.raises((NotADirectoryError, FileNotFoundError)):
            stage(root, f"{folder}/x.md", TEMPORARY, b"x", 0o600)
        with pytest.raises((NotADirectoryError, FileNotFoundError)):
            put(root, f"{folder}/x.md", TEMPORARY, None, digest(b"x"))
        assert not is_staged(root, f"{folder}/x.md", TEMPORARY, digest(b"x"))
    assert (names(root), outside.read_text()) == (kept, "outside")
    assert sorted(path.name for path in root.parent.iterdir()) == ["outside.md", "project"]


def test_a_file_that_is_too_large_is_not_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(root, data=b"12345")
    monkeypatch.setattr(files, "MAX_FILE_BYTES", 4)
    with pytest.raises(OSError, match="too large"):
        read(root, "learning/a.md")


def test_staged_content_is_synced_and_folders_once_for_all_their_files(
    root: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def note(fd: int) -> None:
        synced.append("file" if stat.S_ISREG(os.fstat(fd).st_mode) else "folder")
        fsync(fd)

    monkeypatch.setattr("os.fsync", note)
    folder = [] if way == "paths" else ["folder"]
    stage(root, "learning/a.md", TEMPORARY, b"one", 0o600)
    assert synced == [*folder * 2, "file"]
    synced.clear()
    put(root, "learning/a.md", TEMPORARY, None, digest(b"one"))
    assert synced == []
    sync_folders(root, ["learning/a.md", "learning/b.md", "gone/c.md", "d.md"])
    assert synced == folder * 2


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (OSError(28, "No space left on device"), "storage", "Cannot write to storage, insufficient disk space."),
        (OSError(20, "Not a directory"), "blocked", "/x is a link, or leads through one, or is no file."),
        (OSError(13, "Permission denied"), "storage", "Cannot use /x: Permission denied."),
    ],
)
def test_os_errors_become_faults(error: OSError, code: str, message: str) -> None:
    fault = files.file_fault(error, "/x")
    assert isinstance(fault, Fault)
    assert (fault.code, fault.message) == (code, message)
