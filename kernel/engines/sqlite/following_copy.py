"""A copy of a database that follows it: each refresh is one transaction of the copy, so its readers see whole states.

SQLite's backup API writes the pages of a snapshot of the source through the write-ahead log of the copy. A process that
is killed in the middle leaves a log without a commit, which SQLite ignores.
"""

import time
from contextlib import closing
from pathlib import Path

import apsw

from kernel.core.errors import Fault
from kernel.engines.sqlite.connection import copy_database
from kernel.engines.sqlite.errors import integrity_errors
from kernel.engines.sqlite.unfinished import finish, unfinished

_BUSY_MILLISECONDS = 1000
_CHECK_PAUSE = 3  # times as long as a check took until the next, so that a large copy does not fall behind
_MOST_LOG_PAGES = 4000  # 16 MB of log: from here on readers are waited for, so that it starts over


def source_damaged(error: str) -> Fault:
    return Fault(
        "storage", f"The source is damaged: {error}. The copy stays as it was; run `quipu check` on the source."
    )


class FollowingCopy:
    """The copy at `target` of the database at `source`, which must have this schema; other processes use both."""

    def __init__(self, source: Path, target: Path, schema: int) -> None:
        self.source = source
        self._target_file = target
        self._schema = schema
        self._seen: int | None = None
        self._target: apsw.Connection | None = None
        self.damaged = False  # whether the source was, at the last refresh
        self._check_at = 0.0
        self._checked = True  # whether the state that was copied last was also checked
        self._watched = self._open()

    def refresh(self) -> bool:
        """Copy the committed state if it has changed since the last time, and return whether it has.

        Raises Fault, with the copy as it was, for a source with another schema, or with damage. The check takes
        long, so that a change soon after the last is copied first and checked later, even if none follows.
        """
        version: int = self._watched.pragma("data_version")
        changed = version != self._seen
        if not changed and (self._checked or time.monotonic() < self._check_at):
            return False
        # A connection of its own: FTS5 keeps its structure from one transaction to the next, and a check by an old
        # one takes what others have written since for damage.
        with closing(self._open()) as source:
            source.execute("BEGIN")
            schema: int = source.pragma("user_version")
            if schema != self._schema:
                raise Fault("storage", f"The source has schema {schema}, this program {self._schema}: use one version.")
            self._check(source)
            if changed:
                self._copy(source)
            source.execute("ROLLBACK")
        self._seen = version
        return changed

    def close(self) -> None:
        self._watched.close()
        if self._target is not None:
            self._target.close()

    def _open(self) -> apsw.Connection:
        source = apsw.Connection(str(self.source), flags=apsw.SQLITE_OPEN_READONLY)
        source.set_busy_timeout(_BUSY_MILLISECONDS)
        return source

    def _check(self, source: apsw.Connection) -> None:
        start = time.monotonic()
        self._checked = start >= self._check_at
        if not self._checked:
            return
        errors = integrity_errors(source)
        self._check_at = time.monotonic() + _CHECK_PAUSE * (time.monotonic() - start)
        self.damaged = bool(errors)
        if errors:
            raise source_damaged(errors[0])

    def _copy(self, source: apsw.Connection) -> None:
        if self._target is None and not self._target_file.exists():
            with unfinished(self._target_file) as part:
                copy_database(source, part, None)
                finish(part, self._target_file)
            self._opened()
            return
        target = self._target or self._opened()
        with target.backup("main", source, "main") as job:  # pyrefly: ignore[bad-context-manager]
            job.step(-1)
        self._shorten_log(target)

    def _opened(self) -> apsw.Connection:
        target = apsw.Connection(str(self._target_file))
        target.set_busy_timeout(_BUSY_MILLISECONDS)
        target.pragma("journal_mode", "wal")
        target.pragma("synchronous", "NORMAL")  # rows lost to a power cut are copied again
        target.pragma("wal_autocheckpoint", 0)
        self._target = target
        return target

    def _shorten_log(self, target: apsw.Connection) -> None:
        try:
            pages, _ = target.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            if pages > _MOST_LOG_PAGES:
                target.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
        except (apsw.BusyError, apsw.LockedError):
            return  # a read goes on; the next refresh tries again
