"""Reads and writes files of memories: whole or not at all, on disk when a call returns, never through a link."""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from handlers.notes.safe_fs import ONLY_HERE, Folder, Stamp, at, enter, gone, look, stamp_of, synced
from handlers.notes.scan import LARGEST

_BINARY = getattr(os, "O_BINARY", 0)
_READ = os.O_RDONLY | ONLY_HERE | _BINARY | getattr(os, "O_NONBLOCK", 0)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | ONLY_HERE | _BINARY
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}
_FOLLOWS = {"follow_symlinks": False} if os.link in os.supports_follow_symlinks else {}


class File(NamedTuple):
    """What a file holds, and its stamp from just before it was read."""

    data: bytes
    stamp: Stamp
    mode: int = 0o600


def read(root: Path, path: str) -> File:
    """One file below `.mnemonics`; raises OSError where there is none, or a link stands on the way."""
    with ExitStack() as stack:
        *folders, name = path.split("/")
        return _read(enter(stack, root, folders), name)


def taken(root: Path, path: str) -> bool:
    """Whether anything has this path."""
    *folders, name = path.split("/")
    with ExitStack() as stack:
        try:
            look(enter(stack, root, folders), name)
        except FileNotFoundError:
            return False
    return True


def read_all(root: Path, paths: Iterable[str]) -> Iterator[tuple[str, File | None]]:
    """Files below `.mnemonics`, by folder: None for one that is gone, nothing for one not readable just now."""
    for folder, group in groupby(sorted(paths), lambda path: path.rpartition("/")[0]):
        with ExitStack() as stack:
            try:
                below = enter(stack, root, folder.split("/") if folder else ())
            except OSError as error:
                if gone(error):
                    yield from ((path, None) for path in group)
                continue
            for path in group:
                try:
                    yield path, _read(below, path.rpartition("/")[2])
                except OSError as error:
                    if gone(error):
                        yield path, None


def create(root: Path, path: str, data: bytes, temporary: str) -> Stamp | None:
    """Writes a new file, whole or not at all, on disk when it returns; None if something has its name already."""
    *folders, name = path.split("/")
    with ExitStack() as stack:
        below = enter(stack, root, folders, make=True)
        fd = _fresh(stack, below, temporary, data, 0o600)
        if not _linked(below, temporary, below, name):
            return None
        synced(below)
        return _stamp_after(fd, below, name)


def replace(root: Path, path: str, data: bytes, before: File, temporary: str) -> Stamp | None:
    """Puts `data` in the place of a file, whole or not at all; None if it is not the file it was `before`."""
    *folders, name = path.split("/")
    with ExitStack() as stack:
        below = enter(stack, root, folders)
        fd = _fresh(stack, below, temporary, data, before.mode)
        if _read(below, name).stamp != before.stamp:
            return None
        os.replace(at(below, temporary), at(below, name), src_dir_fd=below.fd, dst_dir_fd=below.fd)
        synced(below)
        return _stamp_after(fd, below, name)


def move(root: Path, path: str, target: str) -> Stamp | None:
    """Gives a file another path, and both for a moment, but never none; None if something is there already."""
    *folders, old = path.split("/")
    *others, name = target.split("/")
    with ExitStack() as stack:
        here = enter(stack, root, folders)
        _sure(here, old)
        there = enter(stack, root, others, make=True)
        if not _linked(here, old, there, name):
            return None
        synced(there)
        synced(here)
        return stamp_of(look(there, name))


def remove(root: Path, path: str) -> None:
    """Deletes one file below `.mnemonics`, for good when it returns."""
    *folders, name = path.split("/")
    with ExitStack() as stack:
        below = enter(stack, root, folders)
        _sure(below, name)
        os.unlink(at(below, name), dir_fd=below.fd)
        synced(below)


def _read(folder: Folder, name: str) -> File:
    if folder.fd is None:
        _sure(folder, name)
    fd = os.open(at(folder, name), _READ, dir_fd=folder.fd)
    try:
        seen = os.fstat(fd)
        if not stat.S_ISREG(seen.st_mode):
            raise OSError(errno.ELOOP, "not a file")
        if seen.st_size > LARGEST:
            raise OSError(errno.EFBIG, "too large")
        data = b"".join(iter(partial(os.read, fd, LARGEST + 1), b""))
    finally:
        os.close(fd)
    return File(data, stamp_of(seen), stat.S_IMODE(seen.st_mode) & 0o777)


def _sure(folder: Folder, name: str) -> None:
    """Raises OSError for a link, or what else is no file."""
    if not stat.S_ISREG(look(folder, name).st_mode):
        raise OSError(errno.ELOOP, "not a file")


def _fresh(stack: ExitStack, folder: Folder, name: str, data: bytes, mode: int) -> int:
    """A new file with `data`, on disk; its descriptor, open until `stack` closes, when the name goes too.

    Without descriptors of folders it is closed at once, since an open file could not be given its name there.
    """
    fd = os.open(at(folder, name), _NEW, mode, dir_fd=folder.fd)
    stack.callback(_forget, folder, name)
    with ExitStack() as mine:
        (mine if folder.fd is None else stack).callback(os.close, fd)
        _fill(fd, data, mode)
    return fd


def _fill(fd: int, data: bytes, mode: int) -> None:
    if mode != 0o600 and hasattr(os, "fchmod"):
        os.fchmod(fd, mode)
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
    os.fsync(fd)


def _stamp_after(fd: int, folder: Folder, name: str) -> Stamp:
    """The stamp of what was just written, even if somebody else's file has its name by now."""
    return stamp_of(os.fstat(fd) if folder.fd is not None else look(folder, name))


def _forget(folder: Folder, name: str) -> None:
    try:
        os.unlink(at(folder, name), dir_fd=folder.fd)
    except FileNotFoundError:
        return


def _linked(source: Folder, old: str, target: Folder, name: str) -> bool:
    """Whether `name` was free and is now that of the file called `old`, which has no other name any more."""
    try:
        _name(os.link, source, old, target, name, **_FOLLOWS)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return _renamed(source, old, target, name)
    os.unlink(at(source, old), dir_fd=source.fd)
    return True


def _renamed(source: Folder, old: str, target: Folder, name: str) -> bool:
    """`_linked` where files have one name only: the new one is taken first, so that nobody else's is overwritten."""
    try:
        os.close(os.open(at(target, name), _NEW, 0o600, dir_fd=target.fd))
    except FileExistsError:
        return False
    _name(os.replace, source, old, target, name)
    return True


def _name(call: Callable[..., None], source: Folder, old: str, target: Folder, name: str, **more: bool) -> None:
    call(at(source, old), at(target, name), src_dir_fd=source.fd, dst_dir_fd=target.fd, **more)
