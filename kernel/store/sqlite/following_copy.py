"""A copy of a database that follows it: each refresh is one transaction of the copy, so its readers see whole states.

SQLite's backup API writes the pages of a snapshot of the source through the write-ahead log of the copy. A process that
is killed in the middle leaves a log without a commit, which SQLite ignores.
"""

from pathlib import Path

import apsw

from kernel.errors import Fault
from kernel.store.sqlite.integrity import integrity_errors
from kernel.store.sqlite.online_backup import copy_database
from kernel.store.sqlite.unfinished import finish, unfinished

_BUSY_MILLISECONDS = 1000
_MOST_LOG_PAGES = 4000  # 16 MB of log: from here on readers are waited for, so that it starts over


def source_damaged(error: str) -> Fault:
    """Return the Fault for a source that is not copied."""
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
        self._source = apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READONLY)
        self._source.set_busy_timeout(_BUSY_MILLISECONDS)

    def refresh(self) -> bool:
        """Copies what is committed, if that has changed since the last time; whether it has.

        Raises Fault, with the copy as it was, for a source that is damaged or has another schema.
        """
        self._source.execute("BEGIN")
        try:
            version: int = self._source.pragma("data_version")
            if version == self._seen:
                return False
            schema: int = self._source.pragma("user_version")
            if schema != self._schema:
                raise Fault("storage", f"The source has schema {schema}, this program {self._schema}: use one version.")
            self._check()
            self._copy()
            self._seen = version
            return True
        finally:
            if self._source.in_transaction:
                self._source.execute("ROLLBACK")

    def close(self) -> None:
        """Closes both files."""
        self._source.close()
        if self._target is not None:
            self._target.close()

    def _check(self) -> None:
        errors = integrity_errors(self._source)
        self.damaged = bool(errors)
        if errors:
            raise source_damaged(errors[0])

    def _copy(self) -> None:
        if self._target is None and not self._target_file.exists():
            with unfinished(self._target_file) as part:
                copy_database(self._source, part, None)
                finish(part, self._target_file)
            self._opened()
            return
        target = self._target or self._opened()
        with target.backup("main", self._source, "main") as job:
            job.step(-1)
        self._shorten_log(target)

    def _opened(self) -> apsw.Connection:
        target = apsw.Connection(str(self._target_file))
        target.set_busy_timeout(_BUSY_MILLISECONDS)
        target.pragma("journal_mode", "wal")
        target.pragma("synchronous", "NORMAL")  # what a power cut takes is copied again
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
