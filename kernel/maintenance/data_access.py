"""Opens a data directory: its lock, a restore that was interrupted, the log beside each database, and what was left
unfinished there.
"""

from contextlib import ExitStack, closing
from pathlib import Path

from kernel.config import Config
from kernel.data_dir import make_private
from kernel.errors import Fault
from kernel.maintenance import restore
from kernel.maintenance.backup import DATABASE
from kernel.store.sqlite.folder_lock import FolderLock
from kernel.store.sqlite.log_stamp import log_belongs
from kernel.store.sqlite.unfinished import discard_abandoned
from kernel.store.sqlite.wal_frames import cut_log, loss_of
from kernel.store.sqlite.wal_header import check_wal, index_of, log_of


class DataAccess:
    """The right to use a database until `close`; `alone` says whether no other process had it open, and `unclean`
    whether the last that had it did not close it.

    Raises Fault where a restore is under way, and where the log beside the database does not belong to it.
    """

    def __init__(self, data: Path, home: Path, *, durable: bool = True) -> None:
        make_private(home)
        self.alone = self.unclean = False
        try:
            with ExitStack() as stack:
                self._locks = [
                    stack.enter_context(closing(FolderLock(folder))) for folder in dict.fromkeys((data, home))
                ]
                for lock in self._locks:
                    self.alone = lock.enter()
                    if lock is self._locks[0]:
                        _finish_restore(lock, data)
                check_log(home / DATABASE, alone=self.alone, durable=durable)
                self.unclean = self.alone and log_of(home / DATABASE).exists()
                discard_abandoned(home)
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


def open_shared(config: Config) -> DataAccess:
    """The right to use a database beside others."""
    while not (access := DataAccess(config.data, config.home, durable=config.durable)).share():
        pass
    return access


def check_log(file: Path, *, alone: bool, durable: bool = True) -> None:
    """Raises Fault("storage") for a log that SQLite would discard, in whole or in part, or would replay over a file it
    does not belong to.

    Where others have the database open, it is they who write the log.
    """
    _check_whose_log(file, alone=alone)
    loss = loss_of(file, durable=durable) if alone else ""
    if loss:
        raise Fault(
            "storage",
            f"{log_of(file).name} {loss}. Restore a backup with `quipu restore FILE`, or go on with what can be read, "
            "by `quipu check --cut-log`, which keeps the damaged log.",
        )


def cut_damaged_log(config: Config, time: str) -> str:
    """Takes what can be read of a log for all that there is, and keeps the log under another name; what was done.

    Raises Fault("conflict") where another process has the database open.
    """
    file = config.file
    lock = FolderLock(config.home)
    try:
        if not lock.take("exclusive"):
            raise Fault("conflict", f"{config.home} is in use: stop the server and the clients that start one.")
        _check_whose_log(file, alone=True)
        loss = loss_of(file, durable=config.durable)
        if not loss:
            return f"{log_of(file).name} is not damaged: nothing was cut"
        aside = file.with_name(f"{file.stem}-damaged-{time}.db-wal")
        kept = cut_log(file, aside)
        return f"{log_of(file).name} {loss}. {kept} pages were kept; the damaged log is {aside.name}"
    finally:
        lock.close()


def _check_whose_log(file: Path, *, alone: bool) -> None:
    check_wal(file)
    log = log_of(file)
    if alone and not log_belongs(file, log):
        raise Fault(
            "storage",
            f"{log.name} does not belong to {file.name}, which was put in its place. Put a backup in place with "
            f"`quipu restore FILE`, or move it and {index_of(file).name} away to use {file.name} as it is.",
        )


def check_log_now(file: Path, *, durable: bool = True) -> None:
    """`check_log` beside the processes that have the database open, without waiting for them."""
    if not file.parent.is_dir():
        return
    lock = FolderLock(file.parent)
    try:
        check_log(file, alone=lock.take("exclusive"), durable=durable)
    finally:
        lock.close()


def _finish_restore(lock: FolderLock, data: Path) -> None:
    if restore.is_interrupted(data):
        if lock.held != "exclusive":
            raise Fault("busy", "A restore was interrupted; stop all other processes, the next start finishes it.")
        restore.finish(data)
