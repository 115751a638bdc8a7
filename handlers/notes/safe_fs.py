"""Opens folders step by step, each relative to its parent's descriptor, so that no link leads out of the first one.

Links are refused by the same system call that opens the entry (`O_NOFOLLOW`), so there is no time between check and
use. A platform without these calls (Windows) checks each step before it takes it.
"""

import errno
import os
import stat
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from kernel.core.data_dir import fsync

FOLDER = ".mnemonics"
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
LINK_ERRNOS = {errno.ELOOP, errno.ENOTDIR}  # the errors of O_NOFOLLOW for a link
_HAS_DIR_FD = os.open in os.supports_dir_fd and os.scandir in os.supports_fd
_OPEN_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_NOT_NAMES = {"", ".", ".."}
_MIN_INT64, _MAX_INT64 = -(1 << 63), (1 << 63) - 1
_SEPARATORS = [mark for mark in (os.sep, os.altsep, "\0") if mark]


# The entry is missing, or is not a regular file or folder. Any other error may be temporary.
_MISSING_ERRNOS = {errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.ENXIO, errno.EFBIG}


class Stamp(NamedTuple):
    """Detects changes of a file: its size in bytes, mtime and ctime in nanoseconds."""

    size: int
    modified: int
    changed: int


class OpenFolder(NamedTuple):
    """An open folder; without a descriptor its entries are accessed by path."""

    path: Path
    fd: int | None


def open_folder(stack: ExitStack, root: Path, folders: Sequence[str], *, make: bool = False) -> OpenFolder:
    """Return `<root>/.mnemonics` or a folder below it, open until `stack` closes; `make` creates missing folders."""
    fd = os.open(root, _OPEN_DIRECTORY) if _HAS_DIR_FD else None
    if fd is not None:
        stack.callback(os.close, fd)
    here = OpenFolder(root, fd)
    for name in (FOLDER, *folders):
        if make:
            _make(here, name)
        here = open_subfolder(stack, here, name)
    return here


def open_subfolder(stack: ExitStack, parent: OpenFolder, name: str) -> OpenFolder:
    """Return a folder in another one, open until `stack` closes; raises OSError for a link."""
    if name in _NOT_NAMES or any(mark in name for mark in _SEPARATORS):
        raise FileNotFoundError(errno.ENOENT, "not a name")
    path = parent.path / name
    if parent.fd is None:
        if not stat.S_ISDIR(path.lstat().st_mode) or path.resolve() != path.parent.resolve() / path.name:
            raise NotADirectoryError(errno.ENOTDIR, "not a folder")
        return OpenFolder(path, None)
    try:
        fd = os.open(name, _OPEN_DIRECTORY | NO_FOLLOW, dir_fd=parent.fd)
    except OSError as error:
        if error.errno == errno.ELOOP:  # for a link, some systems report ELOOP and others ENOTDIR
            raise NotADirectoryError(errno.ENOTDIR, "not a folder") from None
        raise
    stack.callback(os.close, fd)
    return OpenFolder(path, fd)


def _make(parent: OpenFolder, name: str) -> None:
    try:
        os.mkdir(entry_path(parent, name), 0o700, dir_fd=parent.fd)
    except FileExistsError:
        return
    sync_folder(parent)


def entry_path(folder: OpenFolder, name: str) -> str:
    """Return the path argument of an `os` call with `dir_fd=folder.fd`."""
    return name if folder.fd is not None else str(folder.path / name)


def stat_entry(folder: OpenFolder, name: str) -> os.stat_result:
    return os.stat(entry_path(folder, name), dir_fd=folder.fd, follow_symlinks=False)


def is_missing(error: OSError) -> bool:
    """Return whether an error means that a file does not exist, rather than that it cannot be read now."""
    return error.errno in _MISSING_ERRNOS


def stamp_of(status: os.stat_result) -> Stamp:
    """Return the stamp of a file, its times clamped to 64 bits for a column of the store."""
    return Stamp(status.st_size, _clamp_int64(status.st_mtime_ns), _clamp_int64(status.st_ctime_ns))


def _clamp_int64(nanoseconds: int) -> int:
    return min(max(nanoseconds, _MIN_INT64), _MAX_INT64)


def sync_folder(folder: OpenFolder) -> None:
    if folder.fd is not None:
        fsync(folder.fd)
