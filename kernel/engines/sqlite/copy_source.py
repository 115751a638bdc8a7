"""Opens a database to copy it, also on a file system that cannot be written to, as after an error of the disk."""

import os
import shutil
import sys
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

from kernel.core.errors import Fault
from kernel.engines.sqlite.connection import Connection
from kernel.engines.sqlite.database_file import log_of, size_of
from kernel.engines.sqlite.errors import CANNOT_OPEN
from kernel.engines.sqlite.unfinished import temporary_folder
from kernel.store.context import StoreContext


def is_readonly(folder: Path) -> bool:
    """Return whether a folder is on a file system that is mounted read-only."""
    if sys.platform != "win32":
        return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
    return False


@contextmanager
def copy_source(file: Path, context: StoreContext, target: Path) -> Generator[Connection]:
    """Open a database that will be copied to `target`.

    On a file system that is read-only SQLite makes no index of the log. Without a log the file is read as it is, else
    a copy of both beside the target, which is gone after the block.
    """
    if not is_readonly(file.parent) or _is_readable(file, context):
        with closing(Connection(file, context, readonly=True)) as db:
            yield db
    elif not size_of(log_of(file)):
        with closing(Connection(file, context, readonly=True, immutable=True)) as db:
            yield db
    else:
        with temporary_folder(target) as folder:
            copy = folder / file.name
            try:
                for source, to in ((file, copy), (log_of(file), log_of(copy))):
                    shutil.copyfile(source, to)
            except OSError as error:
                raise Fault("storage", f"Cannot copy {file} to {target.parent}: {error.strerror}") from None
            with closing(Connection(copy, context, readonly=True)) as db:
                yield db


def _is_readable(file: Path, context: StoreContext) -> bool:
    """Return whether a process that has the file open keeps an index of its log."""
    try:
        with closing(Connection(file, context, readonly=True)) as db:
            db.take_snapshot()
            db.rollback()
    except CANNOT_OPEN:
        return False
    return True
