"""Opens a data directory: its lock, a restore that was interrupted, and the log beside each database."""

from contextlib import ExitStack, closing
from pathlib import Path

from kernel.data_dir import make_private
from kernel.errors import Fault
from kernel.maintenance import restore
from kernel.maintenance.backup import DATABASE
from kernel.store.sqlite.folder_lock import FolderLock
from kernel.store.sqlite.log_stamp import log_belongs
from kernel.store.sqlite.wal_header import check_wal, log_of


class DataAccess:
    """The right to use a database until `close`; `alone` says whether no other process had it open.

    Raises Fault where a restore is under way, and where the log beside the database does not belong to it.
    """

    def __init__(self, data: Path, home: Path) -> None:
        make_private(home)
        self.alone = False
        try:
            with ExitStack() as stack:
                self._locks = [
                    stack.enter_context(closing(FolderLock(folder))) for folder in dict.fromkeys((data, home))
                ]
                for lock in self._locks:
                    self.alone = lock.enter()
                    if lock is self._locks[0]:
                        _finish_restore(lock, data)
                check_log(home / DATABASE, alone=self.alone)
                stack.pop_all()
        except OSError as error:
            raise Fault("storage", f"Cannot use the data directory {home}: {error.strerror}") from None

    def share(self) -> bool:
        """Lets other processes in, which is not so at first where this one is alone; closes where one is faster."""
        shared = all(lock.held == "shared" or lock.take("shared") for lock in self._locks)
        if not shared:
            self.close()
        return shared

    def close(self) -> None:
        """Gives the locks back; safe to call twice."""
        for lock in self._locks:
            lock.close()


def open_shared(data: Path, home: Path) -> DataAccess:
    """The right to use a database beside others."""
    while not (access := DataAccess(data, home)).share():
        pass
    return access


def check_log(file: Path, *, alone: bool) -> None:
    """Raises Fault("storage") for a log that SQLite would discard, or would replay over a file it does not belong to.

    Where others have the database open, it is they who write the log.
    """
    check_wal(file)
    log = log_of(file)
    if alone and not log_belongs(file, log):
        raise Fault(
            "storage",
            f"{log.name} does not belong to {file.name}, which was put in its place. Put a backup in place with "
            f"`quipu restore FILE`, or move {log.name} away to use {file.name} as it is.",
        )


def check_log_now(file: Path) -> None:
    """`check_log` beside whoever has the database open, without waiting for them."""
    if not file.parent.is_dir():
        return
    lock = FolderLock(file.parent)
    try:
        check_log(file, alone=lock.take("exclusive"))
    finally:
        lock.close()


def _finish_restore(lock: FolderLock, data: Path) -> None:
    if restore.is_interrupted(data):
        if lock.held != "exclusive":
            raise Fault("busy", "A restore was interrupted; stop all other processes, the next start finishes it.")
        restore.finish(data)
