"""Folders entered step by step from a descriptor, so that no link leads out of the first one.

Every name is looked up in the folder that was opened before it, and links are refused, at the moment of use. Where a
platform has no such calls, each step of the path is looked at before it is taken.
"""

import errno
import os
import stat
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

FOLDER = ".mnemonics"
ONLY_HERE = getattr(os, "O_NOFOLLOW", 0)
_RELATIVE = os.open in os.supports_dir_fd and os.scandir in os.supports_fd
_STEP = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_NO_NAMES = {"", ".", ".."}
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_SEPARATORS = [mark for mark in (os.sep, os.altsep, "\0") if mark]


# What the system says where there is no file or folder, or only a link or some other thing in its place; whatever else
# it says may be over the next time.
_GONE = {errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.ENXIO, errno.EFBIG}


class Stamp(NamedTuple):
    """What changes whenever a file changes: its size in bytes, and when it and its entry last did, in nanoseconds."""

    size: int
    modified: int
    changed: int


class Folder(NamedTuple):
    """An open folder; without a descriptor its names are looked up by path."""

    path: Path
    fd: int | None


def enter(stack: ExitStack, root: Path, folders: Sequence[str], *, make: bool = False) -> Folder:
    """`<root>/.mnemonics` or a folder below it, open until `stack` closes; with `make`, made where it is missing."""
    fd = os.open(root, _STEP) if _RELATIVE else None
    if fd is not None:
        stack.callback(os.close, fd)
    here = Folder(root, fd)
    for name in (FOLDER, *folders):
        if make:
            _make(here, name)
        here = step(stack, here, name)
    return here


def step(stack: ExitStack, parent: Folder, name: str) -> Folder:
    """A folder in another one, open until `stack` closes; raises OSError for a link."""
    if name in _NO_NAMES or any(mark in name for mark in _SEPARATORS):
        raise FileNotFoundError(errno.ENOENT, "not a name")
    path = parent.path / name
    if parent.fd is None:
        if not stat.S_ISDIR(path.lstat().st_mode) or path.resolve() != path.parent.resolve() / path.name:
            raise NotADirectoryError(errno.ENOTDIR, "not a folder")
        return Folder(path, None)
    try:
        fd = os.open(name, _STEP | ONLY_HERE, dir_fd=parent.fd)
    except OSError as error:
        if error.errno == errno.ELOOP:  # what some systems say of a link where others say that it is no folder
            raise NotADirectoryError(errno.ENOTDIR, "not a folder") from None
        raise
    stack.callback(os.close, fd)
    return Folder(path, fd)


def _make(parent: Folder, name: str) -> None:
    try:
        os.mkdir(at(parent, name), 0o700, dir_fd=parent.fd)
    except FileExistsError:
        return
    synced(parent)


def at(folder: Folder, name: str) -> str:
    """What the calls of `os` take for a name in a folder, beside the descriptor of the folder."""
    return name if folder.fd is not None else str(folder.path / name)


def look(folder: Folder, name: str) -> os.stat_result:
    """What stands under a name in a folder, links not followed."""
    return os.stat(at(folder, name), dir_fd=folder.fd, follow_symlinks=False)


def gone(error: OSError) -> bool:
    """Whether an error says that a file is not there, rather than that it cannot be read just now."""
    return error.errno in _GONE


def stamp_of(seen: os.stat_result) -> Stamp:
    """The stamp of a file, its times within what a column of the store can hold."""
    return Stamp(seen.st_size, _stored(seen.st_mtime_ns), _stored(seen.st_ctime_ns))


def _stored(nanoseconds: int) -> int:
    return min(max(nanoseconds, _LEAST), _MOST)


def synced(folder: Folder) -> None:
    """Puts the names of a folder on disk."""
    if folder.fd is not None:
        os.fsync(folder.fd)
