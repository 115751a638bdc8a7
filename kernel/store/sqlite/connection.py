"""SQLite connections with our settings; a writer may change the file, a reader is opened read-only."""

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import apsw

from kernel.errors import CatchFaults, Fault
from kernel.store.context import CallContext, StoreContext
from kernel.store.sqlite.errors import UNSOUND
from kernel.store.sqlite.extension import vector_extension
from kernel.store.sqlite.query_budget import apply_limits
from kernel.store.transaction import Token, Tx

BUSY_MILLISECONDS = 5000
_WAL_PAGES = 2000  # 8 MB: the length from which a connection without a checkpointer folds its log back itself
_MMAP_BYTES = (1 << 31) - (1 << 16)  # the most that SQLite maps
_CACHE_KIB = 16384
_TOKENIZER = ("porter", ["unicode61", "remove_diacritics", "2"])  # the tokenizer of doc_fts (sql/schema/0001)


class Connection:
    """One connection: the engine of its transactions."""

    def __init__(self, file: Path, context: StoreContext, *, readonly: bool, durable: bool = True) -> None:
        flags = apsw.SQLITE_OPEN_READONLY if readonly else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        self._db = apsw.Connection(str(file), flags=flags, statementcachesize=512)
        self.context = context
        self.wal_pages = 0  # in the write-ahead log after the last commit of this connection
        self.execute, self.changes = self._db.execute, self._db.changes
        self._db.set_busy_timeout(BUSY_MILLISECONDS)
        self.budget = apply_limits(self._db, apsw, context.call_limits)
        settings = {
            "cache_size": -_CACHE_KIB,
            "temp_store": "memory",
            "query_only": int(readonly),
            "mmap_size": _MMAP_BYTES if readonly else 0,
            "synchronous": "FULL" if durable else "NORMAL",
        }
        for name, value in settings.items():
            self._db.pragma(name, value)
        for name, function in context.fts5_functions.items():
            self._db.register_fts5_function(name, function)
        if not readonly:
            self._db.set_wal_hook(self._note_wal)
        self._vectors_loaded = False

    def _note_wal(self, _db: apsw.Connection, _name: str, pages: int) -> int:
        self.wal_pages = pages
        return apsw.SQLITE_OK

    @property
    def raw(self) -> apsw.Connection:
        """The connection of the driver, for changesets."""
        return self._db

    @property
    def filename(self) -> str:
        """The path of the database file."""
        return self._db.filename

    def passes_check(self, text: str, params: Mapping[str, Any]) -> bool:
        """Whether a self-check of FTS5 succeeds."""
        try:
            self._db.execute(text, params).fetchall()
        except apsw.CorruptError:
            return False
        return True

    def tokenize(self, text: str) -> list[Token]:
        """The tokens of `text` as (start byte, end byte, stem), by the tokenizer of the full-text index."""
        found = self._db.fts5_tokenizer(*_TOKENIZER)(text.encode(), apsw.FTS5_TOKENIZE_QUERY, None)
        return cast("list[Token]", found)

    @property
    def changed(self) -> int:
        """How many rows this connection has changed in its life."""
        return self._db.total_changes()

    def load_vectors(self) -> None:
        """Makes sqlite-vec's functions available; extension loading is off before and after."""
        if self._vectors_loaded:
            return
        self._db.enable_load_extension(True)
        self._db.load_extension(str(vector_extension()))
        self._db.enable_load_extension(False)
        self._vectors_loaded = True

    def pragma(self, name: str, value: Any = None) -> Any:
        """Reads or sets one pragma."""
        return self._db.pragma(name, value) if value is not None else self._db.pragma(name)

    def enable_wal(self) -> None:
        """Turns the write-ahead log on where it is off; the engine does not wait here for others who do the same."""
        deadline = time.monotonic() + BUSY_MILLISECONDS / 1000
        while self._db.pragma("journal_mode") != "wal":
            try:
                self._db.pragma("journal_mode", "wal")
            except apsw.BusyError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.005)

    def script(self, text: str) -> None:
        """Runs several statements that return nothing anybody wants."""
        self._db.execute(text).fetchall()

    def values(self, text: str, params: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Rows of one statement given as text: for the kernel's own files and pragmas, never for input."""
        return self._db.execute(text, params or {}).fetchall()

    def integrity_errors(self, *, quick: bool = False) -> list[str]:
        """What the engine finds wrong with the file itself; `quick` does not compare indexes with their tables."""
        try:
            found = self._db.execute(f"PRAGMA {'quick' if quick else 'integrity'}_check(10)").fetchall()
        except UNSOUND as error:
            return [str(error)]
        return [str(text) for (text,) in found if text != "ok"]

    def begin(self, call_context: CallContext) -> Tx:
        """A write transaction, holding the write lock of the file."""
        self._db.execute("BEGIN IMMEDIATE")
        return Tx(self, call_context, readonly=False)

    def commit(self, tx: Tx) -> None:
        """Flushes what was deferred and commits; no call of the group is answered before."""
        tx.flush_deferred()
        self._db.execute("COMMIT")
        if tx.vacuum_after_commit:
            self.script("PRAGMA temp_store = file; VACUUM; PRAGMA temp_store = memory")

    def rollback(self) -> None:
        """Ends a transaction, if one is open, without a trace."""
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def call(
        self, tx: Tx, call_context: CallContext, catch_faults: CatchFaults, work: Callable[[Tx], Any], times: int = 1
    ) -> Any:
        """One call of a group under its own savepoint, with `times` the usual cost limit; a Fault leaves no trace."""
        tx.begin_call(call_context)
        self._db.execute("SAVEPOINT call")
        self.budget.begin(times)
        answer = self.budget.end(catch_faults(work, tx))
        if isinstance(answer, Fault):
            if not self._db.in_transaction:  # a full disk, or a call cut short, has ended the whole transaction
                raise answer
            self._db.execute("ROLLBACK TO call")
            tx.discard_call()
        self._db.execute("RELEASE call")
        return answer

    def read(self, call_context: CallContext, work: Callable[[Tx], Any]) -> Any:
        """`work(tx)` in one snapshot, taken by its first statement; raises Fault where it takes too long."""
        tx = Tx(self, call_context, readonly=True)
        self.budget.begin()
        try:
            return work(tx)
        except apsw.InterruptError as error:
            raise self.budget.end(error) from None
        finally:
            self.budget.end()
            if self._db.in_transaction:
                self._db.execute("COMMIT")

    @contextmanager
    def writing(self, call_context: CallContext = CallContext()) -> Generator[Tx]:
        """A write transaction of its own that commits at the end of the block and rolls back on any exception.

        A log that has become long is copied into the file afterwards: who writes like this has nobody who does that.
        """
        tx = self.begin(call_context)
        try:
            yield tx
            self.commit(tx)
        finally:
            self.rollback()
        if self.wal_pages > _WAL_PAGES:
            self.checkpoint()

    def checkpoint(self, *, truncate: bool = False) -> None:
        """Copies the write-ahead log into the file; the passive form never waits for anybody."""
        mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if truncate else apsw.SQLITE_CHECKPOINT_PASSIVE
        with suppress(apsw.BusyError, apsw.LockedError):
            self._db.wal_checkpoint(mode=mode)

    def backup(self, target: Path, progress: Callable[[int, int], None] | None = None) -> None:
        """Copies the whole database to `target` while others read and write."""
        self._db.execute("BEGIN")
        self._db.execute("SELECT 1 FROM sqlite_schema").fetchall()  # one moment: else every commit begins the copy anew
        copy = apsw.Connection(str(target))
        job = copy.backup("main", self._db, "main")
        try:
            while not job.done:
                job.step(256)
                if progress:
                    progress(job.page_count - job.remaining, job.page_count)
            job.finish()
            copy.pragma("journal_mode", "delete")
        finally:
            job.close(True)
            copy.close()
        self.rollback()

    def interrupt(self) -> None:
        """Stops the statement another thread is running on this connection."""
        self._db.interrupt()

    def close(self) -> None:
        """Closes the connection; safe to call twice."""
        self._db.close()
