"""Files and folders that appear under their name only when they are whole and on disk.

Until then they lie in a locked folder beside it. What a killed process left in such a folder goes with the next.
"""

import os
import secrets
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from kernel.core.data_dir import fsync, fsync_folder
from kernel.core.errors import Fault
from kernel.engines.sqlite.folder_lock import NAME, FolderLock

SUFFIX = ".quipu-unfinished"
_ATTEMPTS = 20


@contextmanager
def unfinished(target: Path) -> Generator[Path]:
    """The path to write first, which `finish` renames to `target`; without that nothing is left of it.

    Raises Fault("conflict") if `target` exists, Fault("storage") if its folder cannot be written to.
    """
    _check_name(target)
    with temporary_folder(target) as folder:
        yield folder / target.name


@contextmanager
def temporary_folder(target: Path) -> Generator[Path]:
    """A private folder beside `target`, named after it, which is gone after the block."""
    folder, lock = _locked_folder(target)
    try:
        yield folder
    finally:
        lock.close()
        shutil.rmtree(folder, ignore_errors=True)


def discard_abandoned(parent: Path) -> None:
    """Delete unfinished files of killed processes in a folder."""
    for folder in parent.glob(f"*{SUFFIX}"):
        with suppress(Fault):  # of another user, or gone by now
            lock = FolderLock(folder)
            try:
                is_ours = lock.take("exclusive")
                if is_ours:
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                lock.close()
            if is_ours:  # Windows does not delete open files, and one of them was the lock
                shutil.rmtree(folder, ignore_errors=True)


def _locked_folder(target: Path) -> tuple[Path, FolderLock]:
    """Return a new folder, and the lock that keeps it; another process may take it for abandoned before it has its
    lock.
    """
    discard_abandoned(target.parent)
    for _ in range(_ATTEMPTS):
        folder = target.with_name(f"{target.name}.{secrets.token_hex(4)}{SUFFIX}")
        try:
            folder.mkdir(mode=0o700)
        except OSError as error:
            raise Fault("storage", f"Cannot write {target}: {error.strerror}") from None
        with suppress(Fault):  # the folder is gone
            lock = FolderLock(folder)
            if lock.take("exclusive") and (folder / NAME).exists():
                return folder, lock
            lock.close()
        shutil.rmtree(folder, ignore_errors=True)
    raise Fault("storage", f"Cannot write {target}: its folder cannot be locked")


def finish(part: Path, target: Path) -> None:
    """Gives a whole file or folder its name, and syncs both; raises Fault("conflict") if the name is taken."""
    fsync_path(part)
    _check_name(target)
    part.rename(target)
    fsync_folder(target.parent)


def fsync_path(path: Path) -> None:
    """Syncs a file; of a folder the names in it."""
    if path.is_dir():
        fsync_folder(path)
        return
    descriptor = os.open(path, os.O_RDWR)
    try:
        fsync(descriptor)
    finally:
        os.close(descriptor)


def _check_name(target: Path) -> None:
    if os.path.lexists(target):
        raise Fault("conflict", f"{target} exists already, choose another name")
