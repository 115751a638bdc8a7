"""The folders of the data directory: one for each tenant, readable only by their owner."""

import os
import stat
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from kernel.core.errors import Fault
from kernel.core.lazy_regex import regex

MAIN = "main"  # the tenant of callers without another
_NAME = regex(r"[a-z0-9][a-z0-9_-]{0,62}")
TENANTS = "tenants"
_REPLACE_SECONDS, _REPLACE_POLL_SECONDS = 2.0, 0.01  # a server reads the file of keys in a millisecond
_LOCK_POLL_SECONDS = 0.02


def tenant_name(name: str) -> str:
    """Return `name`, if it is valid as a folder on every system; raises Fault("invalid")."""
    if not _NAME.fullmatch(name):
        raise Fault("invalid", "A tenant has a name of 1 to 63 characters: a-z, 0-9, - and _, the first no - or _.")
    return name


def home(data: Path, name: str) -> Path:
    """Return the folder of a tenant; that of the main tenant is the data directory itself."""
    return data if name == MAIN else data / TENANTS / tenant_name(name)


def other_tenants(data: Path) -> list[str]:
    """Return the names of the tenants besides the main one that have a folder."""
    return sorted(folder.name for folder in (data / TENANTS).glob("*/") if _NAME.fullmatch(folder.name))


def make_private(folder: Path) -> None:
    """Creates a folder and its missing parents with mode 0700; raises Fault("storage")."""
    try:
        for part in (*reversed(folder.parents), folder):
            if not part.is_dir():
                part.mkdir(mode=0o700, exist_ok=True)
                fsync_folder(part.parent)
    except OSError as error:
        reason = f"{error.filename} is not a folder" if isinstance(error, FileExistsError) else error.strerror
        raise Fault("storage", f"Cannot use the data directory {folder}: {reason}") from None


def fsync(descriptor: int) -> None:
    """Makes a file durable; `os.fsync` on macOS leaves it in the cache of the drive."""
    if sys.platform == "darwin":
        import fcntl

        with suppress(OSError):  # some file systems do not have it
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def replace(source: Path, target: Path) -> None:
    """Renames a file over another; on Windows it waits a moment for programs that have the other one open."""
    deadline = time.monotonic() + _REPLACE_SECONDS
    while True:
        try:
            source.replace(target)
        except PermissionError:
            if sys.platform != "win32" or time.monotonic() > deadline:
                raise
            time.sleep(_REPLACE_POLL_SECONDS)
        else:
            return


def write_private(file: Path, content: bytes) -> None:
    """Put a new file, which only its owner can read, in the place of another at once; raises OSError."""
    draft = file.with_name(f".{file.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        draft.touch(mode=0o600)
        draft.write_bytes(content)
        replace(draft, file)
    finally:
        draft.unlink(missing_ok=True)


def hand_over(data: Path) -> None:
    """Give to the owner of a data directory the files and folders in it that root has made, since the service that runs
    as that user could not read them.
    """
    with suppress(OSError):
        if sys.platform != "win32" and os.geteuid() == 0 != data.stat().st_uid:
            for _, folders, files, descriptor in os.fwalk(data):  # follows no link, nor a folder that becomes one
                for name in (*folders, *files):
                    _give_entry(name, descriptor, data)


def _give_entry(name: str, folder: int, data: Path) -> None:
    if sys.platform != "win32":
        with suppress(OSError):
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
            try:
                give(descriptor, data)
            finally:
                os.close(descriptor)


def give(descriptor: int, folder: Path) -> None:
    """Give what root has made to the owner of a folder; a file with another name may lie in a folder of root too."""
    if sys.platform != "win32":
        status, owner = os.fstat(descriptor), folder.stat()
        is_single = stat.S_ISDIR(status.st_mode) or (stat.S_ISREG(status.st_mode) and status.st_nlink == 1)
        if os.geteuid() == status.st_uid == 0 != owner.st_uid and is_single:
            os.fchown(descriptor, owner.st_uid, owner.st_gid)


def fsync_folder(folder: Path) -> None:
    """Syncs a folder, so that new and renamed files survive a power cut."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def file_lock(path: Path, seconds: float) -> Generator[None]:
    """Holds the lock on a file, which ends with the process; raises Fault("busy") if another holds it so long."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise Fault("storage", f"Cannot write {path.name}: {error.strerror}") from None
    try:
        deadline = time.monotonic() + seconds
        while not _locked(descriptor):
            if time.monotonic() > deadline:
                raise Fault("busy", f"Another process holds {path.name}, try again.")
            time.sleep(_LOCK_POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
