"""Files and folders that appear under their name only when they are whole and on disk.

Until then they lie in a locked folder beside it. What a killed process left in such a folder goes with the next one.
"""

import os
import secrets
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from kernel.data_dir import fsync_folder
from kernel.errors import Fault
from kernel.store.sqlite.folder_lock import FolderLock

SUFFIX = ".quipu-unfinished"


@contextmanager
def unfinished(target: Path) -> Generator[Path]:
    """The path to write first, which `finish` renames to `target`; without that nothing is left of it.

    Raises Fault("conflict") where `target` exists, Fault("storage") where its folder cannot be written to.
    """
    _check_name(target)
    folder = target.with_name(f"{target.name}.{secrets.token_hex(4)}{SUFFIX}")
    try:
        for left in target.parent.glob(f"*{SUFFIX}"):
            _discard_abandoned(left)
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise Fault("storage", f"Cannot write {target}: {error.strerror}") from None
    lock = FolderLock(folder)
    try:
        lock.take("exclusive")
        yield folder / target.name
    finally:
        lock.close()
        shutil.rmtree(folder, ignore_errors=True)


def finish(part: Path, target: Path) -> None:
    """Gives a whole file or folder its name, and syncs both; raises Fault("conflict") where the name is taken."""
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
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _check_name(target: Path) -> None:
    if os.path.lexists(target):
        raise Fault("conflict", f"{target.name} exists already, choose another name")


def _discard_abandoned(folder: Path) -> None:
    lock = FolderLock(folder)
    try:
        if lock.take("exclusive"):
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        lock.close()
