"""The lock of a data folder: shared by processes that have its database open, exclusive for a process that replaces it.

The locks are SQLite's own, on an empty file, so they work on every platform and end with their process.
"""

import errno
import time
from pathlib import Path
from typing import Literal

import apsw

from kernel.core.errors import Fault

NAME = "quipu.lock"
_WAIT_SECONDS = 30.0  # for a shared lock: others hold an exclusive lock while they migrate or restore
_POLL_SECONDS = 0.02

Lock = Literal["shared", "exclusive"]
_BEGIN: dict[Lock, str] = {"shared": "BEGIN; SELECT 1 FROM sqlite_schema", "exclusive": "BEGIN EXCLUSIVE"}


class FolderLock:
    """A lock on one folder; `held` is its present state."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.held: Lock | None = None
        file = folder / NAME
        name = str(file)
        try:
            if not file.exists():  # a descriptor that is closed would take the locks of this process with it
                try:
                    file.touch(mode=0o600, exist_ok=True)
                except OSError as error:
                    if error.errno != errno.EROFS:
                        raise
                    name = ":memory:"  # no process can replace a database there
            self._db = apsw.Connection(name, flags=apsw.SQLITE_OPEN_READWRITE, statementcachesize=0)
            self._db.pragma("page_size", 512)  # it has none, but SQLite keeps room for twenty
        except (OSError, apsw.CantOpenError, UnicodeEncodeError) as error:
            reason = "its name is not UTF-8" if isinstance(error, UnicodeEncodeError) else error
            reason = error.strerror if isinstance(error, OSError) else reason
            raise Fault("storage", f"Cannot use the data directory {folder}: {reason}") from None

    def take(self, kind: Lock) -> bool:
        """Takes a lock at once instead of the present lock; False if another process is in the way."""
        self.release()
        try:
            self._db.pragma("journal_mode", "memory")  # nothing is written, so no journal is needed
            self._db.execute(_BEGIN[kind]).fetchall()
        except (apsw.BusyError, apsw.LockedError):
            self.release()
            return False
        except apsw.ReadOnlyError:
            raise Fault("storage", f"Cannot use the data directory {self._folder}: Read-only file system") from None
        self.held = kind
        return True

    def enter(self) -> bool:
        """Takes the exclusive lock if no process holds any, else a shared lock; whether it is exclusive.

        Raises Fault("busy") if another process holds the exclusive lock for seconds.
        """
        deadline = time.monotonic() + _WAIT_SECONDS
        while not (self.take("exclusive") or self.take("shared")):
            if time.monotonic() > deadline:
                raise Fault("busy", "Another process is opening or restoring this data directory, try again later.")
            time.sleep(_POLL_SECONDS)
        return self.held == "exclusive"

    def release(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")
        self.held = None

    def close(self) -> None:
        self._db.close()
        self.held = None
