"""Opens a data directory: its lock, an interrupted restore, the log beside the database, and unfinished files."""

from contextlib import ExitStack, closing
from pathlib import Path

from kernel.core.config import Config
from kernel.core.data_dir import make_private
from kernel.core.errors import Fault
from kernel.engines.sqlite.database_file import check_log, log_of, size_of
from kernel.engines.sqlite.folder_lock import FolderLock
from kernel.engines.sqlite.unfinished import discard_abandoned
from kernel.operations import restore
from kernel.operations.backup import DATABASE


class DataAccess:
    """The right to use a database until `close`; `alone` says whether no other process had it open, and `unclean`
    whether the last that had it did not close it.

    Raises Fault if a restore is under way, and if the log beside the database does not belong to it. A process that has
    the data directory already needs the lock of the tenant's folder only.
    """

    def __init__(self, data: Path, home: Path, *, has_data: bool = False) -> None:
        make_private(home)
        self.alone = self.unclean = False
        try:
            with ExitStack() as stack:
                self._locks = [
                    stack.enter_context(closing(FolderLock(folder)))
                    for folder in ((home,) if has_data else dict.fromkeys((data, home)))
                ]
                for lock in self._locks:
                    self.alone = lock.enter()
                    if lock is self._locks[0] and not has_data:
                        _finish_restore(lock, data)
                check_log(home / DATABASE)
                self.unclean = self.alone and size_of(log_of(home / DATABASE)) > 0
                discard_abandoned(home)
                stack.pop_all()
        except OSError as error:
            raise Fault("storage", f"Cannot use the data directory {home}: {error.strerror}") from None

    def share(self) -> bool:
        """Let other processes in, if this process has the folders alone; close if another process is faster."""
        is_shared = all(lock.held == "shared" or lock.take("shared") for lock in self._locks)
        if not is_shared:
            self.close()
        return is_shared

    def close(self) -> None:
        """Give the locks back; safe to call twice."""
        for lock in self._locks:
            lock.close()


def open_shared(config: Config) -> DataAccess:
    while not (access := DataAccess(config.data, config.home)).share():
        pass
    return access


def _finish_restore(lock: FolderLock, data: Path) -> None:
    if restore.is_interrupted(data):
        if lock.held != "exclusive":
            raise Fault("busy", "A restore was interrupted; stop all other processes, the next start finishes it.")
        restore.finish(data)
