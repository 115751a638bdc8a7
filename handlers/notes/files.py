"""Reads memory files, and writes them in two steps, staged and put in place: atomically, never through a link."""

import errno
import hashlib
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from itertools import count, groupby
from pathlib import Path
from typing import NamedTuple

from handlers.notes import safe_fs
from handlers.notes.safe_fs import LINK_ERRNOS, OpenFolder, Stamp, entry_path, is_missing, open_folder, stat_entry
from handlers.notes.scan import MAX_FILE_BYTES, SUFFIX
from kernel.core.data_dir import fsync
from kernel.core.errors import NO_SPACE, Fault, is_disk_full

_BINARY = getattr(os, "O_BINARY", 0)
_READ = os.O_RDONLY | safe_fs.NO_FOLLOW | _BINARY | getattr(os, "O_NONBLOCK", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | safe_fs.NO_FOLLOW | _BINARY
_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}
_LINK_OPTIONS = {"follow_symlinks": False} if os.link in os.supports_follow_symlinks else {}


class File(NamedTuple):
    """The content of a file, and its stamp from before it was read."""

    data: bytes
    stamp: Stamp
    mode: int = 0o600


def read(root: Path, path: str) -> File:
    """Return one file below `.mnemonics`; raises OSError if it is missing or a link is on the path."""
    with ExitStack() as stack:
        *folders, name = path.split("/")
        return _read(open_folder(stack, root, folders), name)


def exists(root: Path, path: str) -> bool:
    *folders, name = path.split("/")
    with ExitStack() as stack:
        try:
            stat_entry(open_folder(stack, root, folders), name)
        except FileNotFoundError:
            return False
    return True


def read_all(root: Path, paths: Iterable[str]) -> Iterator[tuple[str, File | None]]:
    """Yield files below `.mnemonics`, by folder: None for a missing file; unreadable files are left out."""
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


def stage(root: Path, path: str, temporary: str, data: bytes, mode: int) -> Stamp:
    """Writes the coming content of a file beside it, under a temporary name, durably; makes missing folders."""
    with ExitStack() as stack:
        below = open_folder(stack, root, path.split("/")[:-1], make=True)
        fd = os.open(entry_path(below, temporary), _CREATE, mode, dir_fd=below.fd)
        try:
            _write_and_sync(fd, data, mode)
        finally:
            os.close(fd)
        return safe_fs.stamp_of(stat_entry(below, temporary))


def put(root: Path, path: str, temporary: str, before: str | None, after: str) -> Stamp | None:
    """Gives the staged content its name: the file's, if it still holds `before`, else the next free name.

    The texts are given by their digests, None for no file. Done again it changes nothing. The stamp of the file at
    `path`, or None if that is not the staged content.
    """
    *folders, name = path.split("/")
    with ExitStack() as stack:
        below = open_folder(stack, root, folders)
        for spot in names_from(name):
            content = _digest(below, spot)
            if content == after:
                with suppress(FileNotFoundError):
                    os.unlink(entry_path(below, temporary), dir_fd=below.fd)
            elif content == before is not None and spot == name:
                # Read as late as possible: an edit between that line and this line would be lost.
                _call(os.replace, below, temporary, below, name)
            elif content is not None or not _rename_without_overwrite(below, temporary, below, spot):
                continue
            return safe_fs.stamp_of(stat_entry(below, name)) if spot == name else None
    raise AssertionError("names do not end")


def is_staged(root: Path, path: str, temporary: str, after: str) -> bool:
    """Return whether the content for a file is there, staged or already under its name."""
    with ExitStack() as stack:
        below = _open_parent(stack, root, path)
        return below is not None and after in (_digest(below, temporary), _digest(below, path.rpartition("/")[2]))


def remove(root: Path, path: str, before: str) -> None:
    """Deletes a file if it still holds the text of this digest."""
    name = path.rpartition("/")[2]
    with ExitStack() as stack:
        below = _open_parent(stack, root, path)
        if below is not None and _digest(below, name) == before:
            os.unlink(entry_path(below, name), dir_fd=below.fd)


def require_writable(root: Path, path: str) -> None:
    """Raises OSError if the folder of a file does not let this process delete the file."""
    with ExitStack() as stack:
        below = open_folder(stack, root, path.split("/")[:-1])
        here = "." if below.fd is not None else below.path
        if not os.access(here, os.W_OK | os.X_OK, dir_fd=below.fd):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def sync_folders(root: Path, paths: Iterable[str]) -> None:
    """Makes the entries of the folders of these files durable; a folder that is gone needs nothing."""
    for _, path in sorted({path.rpartition("/")[0]: path for path in paths}.items()):
        with ExitStack() as stack:
            below = _open_parent(stack, root, path)
            if below is not None:
                safe_fs.sync_folder(below)


def _open_parent(stack: ExitStack, root: Path, path: str) -> OpenFolder | None:
    try:
        return open_folder(stack, root, path.split("/")[:-1])
    except OSError as error:
        if not is_missing(error):
            raise
        return None


def file_fault(error: OSError, path: str) -> Fault:
    if is_disk_full(error):
        return Fault("storage", NO_SPACE)
    if error.errno in LINK_ERRNOS:
        return Fault("blocked", f"{path} is a link, or leads through one, or is no file.")
    return Fault("storage", f"Cannot use {path}: {error.strerror}.")


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _digest(folder: OpenFolder, name: str) -> str | None:
    """Return the digest of a file; None for no file, empty for a file that is not ours or not readable."""
    try:
        return digest(_read(folder, name).data)
    except FileNotFoundError:
        return None
    except OSError as error:
        if not is_missing(error):
            raise
        return ""


def names_from(name: str) -> Iterator[str]:
    """Yield a name, then the same with numbers from 2 on; it may be a path."""
    stem = name.removesuffix(SUFFIX)
    return (name if number == 1 else f"{stem}-{number}{SUFFIX}" for number in count(1))


def _read(folder: OpenFolder, name: str) -> File:
    if folder.fd is None and not stat.S_ISREG(stat_entry(folder, name).st_mode):
        raise OSError(errno.ELOOP, "not a file")
    fd = os.open(entry_path(folder, name), _READ, dir_fd=folder.fd)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.ELOOP, "not a file")
        if status.st_size > MAX_FILE_BYTES:
            raise OSError(errno.EFBIG, "too large")
        data = b"".join(iter(partial(os.read, fd, MAX_FILE_BYTES + 1), b""))
    finally:
        os.close(fd)
    return File(data, safe_fs.stamp_of(status), stat.S_IMODE(status.st_mode) & 0o777)


def _write_and_sync(fd: int, data: bytes, mode: int) -> None:
    if mode != 0o600 and sys.platform != "win32":
        os.fchmod(fd, mode)
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
    fsync(fd)


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
    """Renames on file systems without hard links: an empty placeholder reserves the name."""
    try:
        os.close(os.open(entry_path(target, name), _CREATE, 0o600, dir_fd=target.fd))
    except FileExistsError:
        return False
    _call(os.replace, source, old, target, name)
    return True


def _call(call: Callable[..., None], source: OpenFolder, old: str, target: OpenFolder, name: str, **more: bool) -> None:
    call(entry_path(source, old), entry_path(target, name), src_dir_fd=source.fd, dst_dir_fd=target.fd, **more)
