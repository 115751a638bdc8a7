"""Folders are entered one by one, and no name, link or race leads out of the first."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from handlers.notes import safe_fs
from handlers.notes.safe_fs import entry_path, open_folder, open_subfolder, stat_entry


@pytest.fixture(params=["descriptors", "paths"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of reaching a file: the second is for platforms without the first."""
    if request.param == "paths":
        monkeypatch.setattr(safe_fs, "_HAS_DIR_FD", False)
    return request.param


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / ".mnemonics" / "learning").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    return root


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_missing_folder_is_created_private(root: Path, stack: ExitStack, way: str) -> None:
    previous = os.umask(0)
    try:
        made = open_folder(stack, root, ["a", "b"], make=True)
    finally:
        os.umask(previous)
    assert made.path == root / ".mnemonics" / "a" / "b"
    assert [path.stat().st_mode & 0o777 for path in (made.path, made.path.parent)] == [0o700, 0o700]
    assert stat_entry(open_folder(stack, root, ["a"]), "b").st_ino == made.path.stat().st_ino
    with pytest.raises(FileNotFoundError):
        open_folder(stack, root, ["missing"])
    with pytest.raises(FileNotFoundError):
        open_folder(stack, root / "missing", [], make=True)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", "learning\0"])
def test_only_single_names_are_opened(root: Path, stack: ExitStack, way: str, name: str) -> None:
    with pytest.raises((FileNotFoundError, ValueError)):
        open_folder(stack, root, [name])
    with pytest.raises((FileNotFoundError, ValueError)):
        open_subfolder(stack, open_folder(stack, root, []), name)


def test_links_are_never_followed(root: Path, stack: ExitStack, way: str) -> None:
    outside = root.parent / "outside"
    (outside / "inner").mkdir()
    (root / ".mnemonics" / "link").symlink_to(outside)
    (root / ".mnemonics" / "loop").symlink_to(".")
    (root / ".mnemonics" / "file").write_text("x")
    for names in (["link"], ["link", "inner"], ["loop"], ["loop", "learning"], ["file"]):
        for make in (False, True):
            with pytest.raises(NotADirectoryError):
                open_folder(stack, root, names, make=make)
    other = root.parent / "other"
    other.mkdir()
    (other / ".mnemonics").symlink_to(root / ".mnemonics")
    with pytest.raises(NotADirectoryError):
        open_folder(stack, other, ["learning"])
    assert [path.name for path in outside.iterdir()] == ["inner"]


def test_configured_root_may_be_a_link(root: Path, stack: ExitStack, way: str) -> None:
    (root.parent / "alias").symlink_to(root)

    assert stat_entry(open_folder(stack, root.parent / "alias", []), "learning").st_mode


def test_swap_after_open_has_no_effect(root: Path, stack: ExitStack) -> None:
    inner = root / ".mnemonics" / "learning"
    (inner / "a.md").write_text("inside")
    (root.parent / "outside" / "a.md").write_text("outside")
    folder = open_folder(stack, root, ["learning"])
    inner.rename(root / "moved")
    inner.symlink_to(root.parent / "outside")

    fd = os.open(entry_path(folder, "a.md"), os.O_RDONLY, dir_fd=folder.fd)
    stack.callback(os.close, fd)
    assert os.read(fd, 100) == b"inside"


def test_no_descriptor_leaks(root: Path) -> None:
    def lowest() -> int:
        fd = os.open(root, os.O_RDONLY)
        os.close(fd)
        return fd

    before = lowest()
    with ExitStack() as stack:
        open_folder(stack, root, ["learning", "deep", "deeper"], make=True)
        assert lowest() > before
    assert lowest() == before
