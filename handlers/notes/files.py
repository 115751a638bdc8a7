"""Reads and writes memory files: atomically, durable when a call returns, never through a link."""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from handlers.notes.safe_fs import (
    NO_FOLLOW,
    OpenFolder,
    Stamp,
    entry_path,
    is_missing,
    open_folder,
    stamp_of,
    stat_entry,
    sync_folder,
)
from handlers.notes.scan import MAX_FILE_BYTES
from kernel.data_dir import fsync

_BINARY = getattr(os, "O_BINARY", 0)
_READ = os.O_RDONLY | NO_FOLLOW | _BINARY | getattr(os, "O_NONBLOCK", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW | _BINARY
_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}
_LINK_OPTIONS = {"follow_symlinks": False} if os.link in os.supports_follow_symlinks else {}


class File(NamedTuple):
    """The content of a file, and its stamp from before it was read."""

    data: bytes
    stamp: Stamp
    mode: int = 0o600


def read(root: Path, path: str) -> File:
    """One file below `.mnemonics`; raises OSError if it is missing or a link is on the path."""
    with ExitStack() as stack:
        *folders, name = path.split("/")
        return _read(open_folder(stack, root, folders), name)


def exists(root: Path, path: str) -> bool:
    """Whether the path exists, as a file or anything else."""
    *folders, name = path.split("/")
    with ExitStack() as stack:
        try:
            stat_entry(open_folder(stack, root, folders), name)
        except FileNotFoundError:
            return False
    return True


def read_all(root: Path, paths: Iterable[str]) -> Iterator[tuple[str, File | None]]:
    """Files below `.mnemonics`, by folder: None for a missing one; one that cannot be read now is left out."""
    for folder, group in groupby(sorted(paths), lambda path: path.rpartition("/")[0]):
        with ExitStack() as stack:
            try:
                below = open_folder(stack, root, folder.split("/") if folder else ())
            except OSError as error:
                if is_missing(error):
                    yield from ((path, None) for path in group)
                continue
            for path in group:
                try:
                    yield path, _read(below, path.rpartition("/")[2])
                except OSError as error:
                    if is_missing(error):
                        yield path, None


def create(root: Path, path: str, data: bytes, temporary: str) -> Stamp | None:
    """Creates a file atomically and durably; None if the path exists."""
    *folders, name = path.split("/")
    with ExitStack() as stack:
        below = open_folder(stack, root, folders, make=True)
        fd = _create_temporary(stack, below, temporary, data, 0o600)
        if not _rename_without_overwrite(below, temporary, below, name):
            return None
        sync_folder(below)
        return _stamp_after(fd, below, name)


def replace(root: Path, path: str, data: bytes, before: File, temporary: str) -> Stamp | None:
    """Replaces a file atomically and durably; None if it has changed since `before`."""
    *folders, name = path.split("/")
    with ExitStack() as stack:
        below = open_folder(stack, root, folders)
        fd = _create_temporary(stack, below, temporary, data, before.mode)
        # Checked as late as possible: an edit between this line and the rename would be lost.
        if _read(below, name).stamp != before.stamp:
            return None
        os.replace(entry_path(below, temporary), entry_path(below, name), src_dir_fd=below.fd, dst_dir_fd=below.fd)
        sync_folder(below)
        return _stamp_after(fd, below, name)


def move(root: Path, path: str, target: str) -> Stamp | None:
    """Moves a file; it has both paths for a moment, but never none. None if the target exists."""
    *folders, old = path.split("/")
    *others, name = target.split("/")
    with ExitStack() as stack:
        here = open_folder(stack, root, folders)
        _require_regular_file(here, old)
        there = open_folder(stack, root, others, make=True)
        if not _rename_without_overwrite(here, old, there, name):
            return None
        sync_folder(there)
        sync_folder(here)
        return stamp_of(stat_entry(there, name))


def remove(root: Path, path: str) -> None:
    """Deletes a file below `.mnemonics`, durably."""
    *folders, name = path.split("/")
    with ExitStack() as stack:
        below = open_folder(stack, root, folders)
        _require_regular_file(below, name)
        os.unlink(entry_path(below, name), dir_fd=below.fd)
        sync_folder(below)


def _read(folder: OpenFolder, name: str) -> File:
    if folder.fd is None:
        _require_regular_file(folder, name)
    fd = os.open(entry_path(folder, name), _READ, dir_fd=folder.fd)
    try:
        seen = os.fstat(fd)
        if not stat.S_ISREG(seen.st_mode):
            raise OSError(errno.ELOOP, "not a file")
        if seen.st_size > MAX_FILE_BYTES:
            raise OSError(errno.EFBIG, "too large")
        data = b"".join(iter(partial(os.read, fd, MAX_FILE_BYTES + 1), b""))
    finally:
        os.close(fd)
    return File(data, stamp_of(seen), stat.S_IMODE(seen.st_mode) & 0o777)


def _require_regular_file(folder: OpenFolder, name: str) -> None:
    """Raises OSError for a link and anything else that is not a regular file."""
    if not stat.S_ISREG(stat_entry(folder, name).st_mode):
        raise OSError(errno.ELOOP, "not a file")


def _create_temporary(stack: ExitStack, folder: OpenFolder, name: str, data: bytes, mode: int) -> int:
    """Creates a durable temporary file; returns its descriptor, open until `stack` closes, which also unlinks it.

    On a platform without folder descriptors (Windows) it is closed at once, because an open file cannot be renamed
    there.
    """
    fd = os.open(entry_path(folder, name), _CREATE, mode, dir_fd=folder.fd)
    stack.callback(_unlink_if_present, folder, name)
    with ExitStack() as mine:
        (mine if folder.fd is None else stack).callback(os.close, fd)
        _write_and_sync(fd, data, mode)
    return fd


def _write_and_sync(fd: int, data: bytes, mode: int) -> None:
    if mode != 0o600 and hasattr(os, "fchmod"):
        os.fchmod(fd, mode)
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
    fsync(fd)


def _stamp_after(fd: int, folder: OpenFolder, name: str) -> Stamp:
    """The stamp of the written file, even if another file has its name by now."""
    return stamp_of(os.fstat(fd) if folder.fd is not None else stat_entry(folder, name))


def _unlink_if_present(folder: OpenFolder, name: str) -> None:
    try:
        os.unlink(entry_path(folder, name), dir_fd=folder.fd)
    except FileNotFoundError:
        return


def _rename_without_overwrite(source: OpenFolder, old: str, target: OpenFolder, name: str) -> bool:
    """Renames `old` to `name` unless `name` exists; whether it was renamed."""
    try:
        _call(os.link, source, old, target, name, **_LINK_OPTIONS)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        return _rename_over_placeholder(source, old, target, name)
    os.unlink(entry_path(source, old), dir_fd=source.fd)
    return True


def _rename_over_placeholder(source: OpenFolder, old: str, target: OpenFolder, name: str) -> bool:
    """`_rename_without_overwrite` for file systems without hard links: an empty placeholder reserves the name."""
    try:
        os.close(os.open(entry_path(target, name), _CREATE, 0o600, dir_fd=target.fd))
    except FileExistsError:
        return False
    _call(os.replace, source, old, target, name)
    return True


def _call(call: Callable[..., None], source: OpenFolder, old: str, target: OpenFolder, name: str, **more: bool) -> None:
    call(entry_path(source, old), entry_path(target, name), src_dir_fd=source.fd, dst_dir_fd=target.fd, **more)
