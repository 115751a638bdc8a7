"""A file that all servers of a database share: a row of the database counts, and the file is its copy."""

import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from kernel.core.data_dir import make_private, write_private
from kernel.core.errors import CatchFaults, Fault
from kernel.engines.postgres.driver import escape
from kernel.engines.postgres.pool import Pool

_POLL_SECONDS, _IDLE_SECONDS = 0.25, 1.0  # between two looks, and while nothing else asks the database
_LOCK = 0x51554950  # "QUIP", as for the writers of tenants, of which none has this number
_READING = f"SELECT pg_advisory_xact_lock_shared({_LOCK}, -1)"
_CHANGING = f"SELECT pg_advisory_xact_lock({_LOCK}, -1)"
_ROW = "SELECT version, content FROM quipu.shared_file WHERE name = %s"
_VERSION = "SELECT version FROM quipu.shared_file WHERE name = %s"
_CAN_ADOPT = "SELECT NOT pg_is_in_recovery()::boolean AND NOT EXISTS (SELECT FROM quipu.shared_file WHERE name = %s)"
_STORE = (
    "INSERT INTO quipu.shared_file (name, version, content) VALUES (%s, 1, %s) "
    "ON CONFLICT (name) DO UPDATE SET version = shared_file.version + 1, content = excluded.content"
)


class SharedFile:
    """The copy on this machine. Raises Fault if the database or the file cannot be used."""

    def __init__(self, pool: Pool, path: Path) -> None:
        self._pool = pool
        self._path = path
        self._version = 0  # of the row, when it was read last
        self._stopping = threading.Event()
        self._following: threading.Thread | None = None

    def look(self) -> None:
        """Pulls if the row has changed since the last time."""
        with self._pool.lent() as db:
            row = db.execute(_VERSION, (self._path.name,)).fetchone()
        if row is not None and row[0] != self._version:
            self.pull()

    def pull(self) -> None:
        """Writes the file if the row has changed since the last time."""
        with self._pool.transaction() as db:
            db.execute(_READING)
            self._pull(db)

    def adopt(self) -> None:
        """Pulls; if there is no row, a file of this machine becomes the row."""
        with self._pool.transaction() as db:
            db.execute(_READING)
            (adopts,) = db.execute(_CAN_ADOPT, (self._path.name,)).fetchone()
            self._pull(db)
        if adopts and self._path.exists():
            with self.changing():
                pass

    @contextmanager
    def changing(self) -> Generator[None]:
        """Hold others off the file during the block, and make it the row for everybody afterwards."""
        before: str | None = None
        complete = False
        try:
            with self._pool.transaction() as db:
                db.execute(_CHANGING)
                self._pull(db)
                before = self._content()
                yield
                after = self._content()
                if after is not None and (not self._version or after != before):
                    db.execute(_STORE, (self._path.name, escape(after)))
            complete = True
        finally:
            if not complete and before is not None and before != self._content():
                self._write(before)

    def follow(self, catch_faults: CatchFaults) -> None:
        """Pulls in a thread until it is closed; while the database is away, the file stays as it is."""

        def run() -> None:
            before, seconds = self._pool.taken, _POLL_SECONDS
            while not self._stopping.wait(seconds):
                seconds = _IDLE_SECONDS if self._pool.taken == before else _POLL_SECONDS
                catch_faults(self.look)
                before = self._pool.taken

        self._following = threading.Thread(target=run, name="quipu-shared-file", daemon=True)
        self._following.start()

    def close(self) -> None:
        self._stopping.set()
        if self._following is not None:
            self._following.join()

    def _pull(self, db: Any) -> None:
        row: tuple[int, str] | None = db.execute(_ROW, (self._path.name,)).fetchone()
        if row is not None and row[0] != self._version:
            if row[1] != self._content():
                self._write(row[1])
            self._version = row[0]

    def _content(self) -> str | None:
        with suppress(OSError, UnicodeDecodeError):
            return self._path.read_text(encoding="utf-8")
        return None

    def _write(self, content: str) -> None:
        try:
            make_private(self._path.parent)
            write_private(self._path, content.encode())
        except OSError as error:
            raise Fault("storage", f"Cannot write {self._path.name}: {error.strerror}") from None
