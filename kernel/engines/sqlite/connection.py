"""SQLite connections: settings, transactions, savepoints, checkpoints and backups."""

import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, cast

import apsw

from kernel.core.errors import CatchFaults, Fault
from kernel.core.ids import now_ns
from kernel.core.limits import CallLimits
from kernel.engines.sqlite import changesets, full_text
from kernel.engines.sqlite.errors import DAMAGED, integrity_errors
from kernel.engines.sqlite.limited import Limits
from kernel.engines.sqlite.table_rows import TableRows, schema_tables
from kernel.engines.sqlite.unfinished import finish, unfinished
from kernel.engines.sqlite.vector_functions import add_vector_functions
from kernel.security.permissions import Reach
from kernel.store.context import TOO_LONG, CallContext, Cursor, Params, StoreContext, Token
from kernel.store.long_work import Steps
from kernel.store.transaction import Tx

R = TypeVar("R")

BUSY_MILLISECONDS = 5000  # how long a statement waits for the lock of another process
# Between two looks of a writer for that lock. SQLite's own pauses grow to 100 ms, in which another process commits many
# times: with two workers the p99 of a write fell from 204 to 75 ms; with 1 ms each write took more processor time.
_LOOK_SECONDS = 0.004
_CHECKPOINT_PAGES = 2000  # 8 MB of log: from here on a connection without a checkpointer runs a checkpoint itself
_COPIED_PAGES = 256  # of a backup in one step, 1 MB, after which progress is reported
_CACHED_STATEMENTS = 512  # more than sql/ has, so that each statement is prepared once a connection
_MOVE_ROOT = (
    "UPDATE sqlite_schema SET rootpage = (SELECT f.rootpage FROM sqlite_schema AS f WHERE f.name = 'fresh') "
    "WHERE name = :name"
)
_TABLE_EXISTS = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = :name"
_MMAP_BYTES = (1 << 31) - (1 << 16)  # SQLITE_MAX_MMAP_SIZE, the most that SQLite maps
_WRITER_CACHE_KIB = 16384
_READER_CACHE_KIB = 4096  # for pages beyond the mapped part of a large file; 16,384 took 24 MB more at 1M
Fts5Row = apsw.FTS5ExtensionApi  # FTS5's view of the current row for an auxiliary function
_TOKENIZER = ("porter", ["unicode61", "remove_diacritics", "2"])  # the tokenizer of doc_fts (sql/schema/0001)

# As sqlite.org/security.html advises: no double-quoted strings, no functions run by a foreign schema, no writes to
# shadow tables, no triggers (the schema has none; a rebuild of the full-text indexes has some, which writers then run).
SETTINGS: Mapping[str, int] = MappingProxyType(
    {"DQS_DML": 0, "DQS_DDL": 0, "TRUSTED_SCHEMA": 0, "DEFENSIVE": 1, "ENABLE_TRIGGER": 0}
)
# Enough for our own statements; ATTACHED is 1 because VACUUM attaches a file.
LIMITS: Mapping[str, int] = MappingProxyType(
    {
        "ATTACHED": 1,
        "EXPR_DEPTH": 100,
        "VARIABLE_NUMBER": 1000,
        "LIKE_PATTERN_LENGTH": 20_000,
        "COMPOUND_SELECT": 50,
        "TRIGGER_DEPTH": 10,
        "WORKER_THREADS": 0,
    }
)
STEPS = 50_000  # virtual machine steps between two checks of the clock: some milliseconds, so most calls never check


# A server may have a thousand connections, and 48 KB for small blocks of each make nothing quicker. SQLite takes this
# before the first only, and forgets the file systems that others have added.
if not apsw.connections() and apsw.vfs_names()[0] in {"unix", "win32"}:
    apsw.shutdown()
    with suppress(TypeError):  # of an older apsw, so that `quipu doctor` can name it
        apsw.config(apsw.SQLITE_CONFIG_LOOKASIDE, 0, 0)
    apsw.initialize()


class Budget:
    """A progress handler that stops a statement once its call has used up its processor time.

    It counts the thread's processor time inside statements only, so a call pays neither for its neighbours nor for what
    its handler does between two statements. `left` is the seconds that the call has left, None between two calls;
    `new_statement` marks that a statement begins.
    """

    __slots__ = ("_last", "left", "new_statement", "streamed")

    def __init__(self) -> None:
        self.left: float | None = None
        self._last = 0.0
        self.new_statement = True
        self.streamed = False  # SQLite reads every row when it is asked for

    def __call__(self) -> bool:
        if self.left is None:
            return False
        now = time.thread_time()
        if self.new_statement:
            self.new_statement = False
        else:
            self.left -= now - self._last
        self._last = now
        return self.left < 0


class Connection:
    """One connection to a database file, and the engine of its transactions; a reader is opened read-only. One of an
    `immutable` file reads it without locks and without its log.
    """

    def __init__(
        self,
        file: Path,
        context: StoreContext,
        *,
        readonly: bool,
        durable: bool = True,
        mapped: bool | None = None,
        immutable: bool = False,
    ) -> None:
        flags = apsw.SQLITE_OPEN_READONLY if readonly else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        name = f"{file.absolute().as_uri()}?immutable=1" if immutable else str(file)
        flags |= apsw.SQLITE_OPEN_URI if immutable else 0
        self._db = apsw.Connection(name, flags=flags, statementcachesize=_CACHED_STATEMENTS)
        self.context = context
        # The driver's own methods: one Python call less for each statement.
        self.execute = self.run_ahead = cast("Callable[[str, Params | None], Cursor]", self._db.execute)
        self.clock = now_ns
        self.changes = self._db.changes
        self.total_changes = self._db.total_changes
        self.tables = TableRows(self.execute)
        self.before_begin: Callable[[], object] = dict  # may refuse a write transaction
        self.wal_pages = 0  # pages of the write-ahead log after the last commit of this connection
        self._db.set_busy_timeout(BUSY_MILLISECONDS)
        self.budget = apply_limits(self._db, apsw, context.call_limits)
        self._call_seconds = context.call_limits.milliseconds / 1000
        maps = readonly if mapped is None else mapped
        for name, value in _pragmas(readonly=readonly, durable=durable, mapped=maps).items():
            self._db.pragma(name, value)
        add_text_functions(self._db)
        for name, function in context.fts5_functions.items():
            self._db.register_fts5_function(name, function)
        if not readonly:
            self._db.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, int(full_text.has_own_triggers_only(self)))
            self._db.set_wal_hook(self._note_wal)
            self._db.set_busy_handler(self._wait_for_lock)
        self._vectors_loaded = self._large = False
        self._limits: Limits | None = None
        self._waits_until = 0.0
        self._readonly = readonly
        self._open_tx: Tx | None = None

    def _note_wal(self, _db: apsw.Connection, _name: str, pages: int) -> int:
        self.wal_pages = pages
        return apsw.SQLITE_OK

    def _wait_for_lock(self, looks: int) -> bool:
        if looks == 0:
            self._waits_until = time.monotonic() + BUSY_MILLISECONDS / 1000
        time.sleep(_LOOK_SECONDS)
        return time.monotonic() < self._waits_until

    @property
    def filename(self) -> str:
        return self._db.filename

    def vacuum(self) -> None:
        """Rewrites the file without its free pages, by way of a temporary file."""
        self.keep_temporary_pages(in_file=True)
        self.script("VACUUM")

    def passes_check(self, text: str, params: Params) -> bool:
        try:
            self.execute(text, params).fetchall()
        except DAMAGED:
            return False
        return True

    def tokenize(self, text: str) -> list[Token]:
        """Return the tokens of `text` as (start byte, end byte, stem), by the tokenizer of the full-text index."""
        tokens = self._db.fts5_tokenizer(*_TOKENIZER)(text.encode(), apsw.FTS5_TOKENIZE_QUERY, None)
        return cast("list[Token]", tokens)

    def limit(self, reach: Reach | None) -> Mapping[str, str]:
        """Return the statements for a reach, None for all rows; raises Fault("disabled") if writes cannot be held."""
        if self._limits is None:
            if reach is None:
                return self.context.statements
            self._limits = Limits(self._db, self.context.statements)
        self._limits.reach = None
        if reach is None:
            return self.context.statements
        if not self._readonly:
            self._limits.guard()
        self._limits.reach = reach
        return self._limits.statements

    def load_vectors(self) -> None:
        """Adds the vector functions, which databases without an index do not need."""
        if not self._vectors_loaded:
            add_vector_functions(self._db)
            self._vectors_loaded = True

    def pragma(self, name: str, value: Any = None) -> Any:
        return self._db.pragma(name, value) if value is not None else self._db.pragma(name)

    def enable_wal(self) -> None:
        """Turns the write-ahead log on where it is off; SQLite's busy timeout does not apply to this change."""
        deadline = time.monotonic() + BUSY_MILLISECONDS / 1000
        while self._db.pragma("journal_mode") != "wal":
            try:
                self._db.pragma("journal_mode", "wal")
            except apsw.BusyError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.005)

    def script(self, text: str) -> None:
        self._db.execute(text).fetchall()

    def values(self, text: str, params: Params | None = None) -> list[tuple[Any, ...]]:
        """Return rows of one statement given as text: for the kernel's own files and pragmas, never for input."""
        return self.execute(text, params).fetchall()

    def integrity_errors(self, *, quick: bool = False, full_text: bool = False) -> list[str]:
        """Return at most a hundred errors of SQLite's integrity check, those of `full_text` only if asked for.

        A `quick` check does not compare indexes with their tables.
        """
        errors = integrity_errors(self._db, quick=quick)
        return errors if full_text else [text for text in errors if "fts5" not in text.lower()]

    def empty_tree(self, name: str, *, rowid_table: bool) -> None:
        """Give a damaged table or index an empty tree; the pages of the old tree are free after the next VACUUM."""
        kind = "" if rowid_table else " WITHOUT ROWID"  # such a table has the tree of an index
        with self.writing_shadow_tables():  # or into the schema
            try:
                self.script(f"BEGIN IMMEDIATE; CREATE TABLE fresh (id INTEGER PRIMARY KEY){kind}")
                self.script("PRAGMA writable_schema = ON")
                self.execute(_MOVE_ROOT, {"name": name})
                self.script("DELETE FROM sqlite_schema WHERE name = 'fresh'; COMMIT; PRAGMA writable_schema = RESET")
            finally:
                self.rollback()

    def orphans(self) -> int:
        """Return the number of rows that refer to a row that is not there, without those of derived and
        foreign tables.
        """
        ours = schema_tables().names()
        tables = [table for table, *_ in self.values("PRAGMA foreign_key_check")]
        return sum(table in ours and changesets.is_recorded(table) for table in tables)

    def begin(self, call_context: CallContext, *, large: bool = False) -> Tx:
        """Opens a write transaction, which holds the write lock of the file.

        A savepoint keeps the pages that change after it. Those of a `large` transaction go to a file, in the folder
        that SQLITE_TMPDIR names.
        """
        self.before_begin()
        self.keep_temporary_pages(in_file=large)
        self._db.execute("BEGIN IMMEDIATE")
        self._open_tx = Tx(self, call_context, readonly=False)
        return self._open_tx

    def commit(self, tx: Tx) -> None:
        tx.flush_deferred()
        self._db.execute("COMMIT")
        self._open_tx = None
        if tx.vacuum_after_commit:
            self.vacuum()

    @contextmanager
    def writing_shadow_tables(self) -> Generator[None]:
        """Lets statements write into the tables in which FTS5 keeps an index."""
        self._db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        try:
            yield
        finally:
            self._db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)

    def check_full_text(self) -> tuple[bool, bool]:
        return full_text.check(self)

    def rebuild_full_text(self) -> Steps[None]:
        return full_text.rebuild_steps(self)

    def has_table(self, name: str) -> bool:
        return bool(self.values(_TABLE_EXISTS, {"name": name}))

    def keep_temporary_pages(self, *, in_file: bool) -> None:
        """Where SQLite keeps the pages that a transaction may have to restore, and the copy that a vacuum makes."""
        if in_file is not self._large:
            self._db.pragma("temp_store", "file" if in_file else "memory")
            self._large = in_file

    def rollback(self) -> None:
        tx, self._open_tx = self._open_tx, None
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        finally:
            if tx is not None:
                tx.rolled_back()

    def ahead(self, text: str, params: Params) -> list[tuple[Any, ...]]:
        return self.execute(text, params).fetchall()

    def call(
        self, tx: Tx, call_context: CallContext, catch_faults: CatchFaults, work: Callable[[Tx], R], budget: int = 1
    ) -> R | Fault:
        """Runs one call under its own savepoint, with `budget` times the usual cost limit; a Fault is rolled back."""
        tx.begin_call(call_context)
        self._db.execute("SAVEPOINT call")
        self.budget.left = self._call_seconds * budget
        answer = self._end(catch_faults(tx.within, self.budget.left, work))
        if isinstance(answer, Fault):
            if not self._db.in_transaction:  # a full disk or an interrupt makes SQLite roll back the transaction
                raise answer
            self._db.execute("ROLLBACK TO call")
            tx.discard_call()
        self._db.execute("RELEASE call")
        return answer

    def record_changes(self, limit_bytes: int) -> changesets.Recorder:
        return changesets.Recorder(self._db, limit_bytes)

    def can_revert(self, parts: Callable[[], Iterable[bytes]]) -> bool:
        return changesets.can_revert(self._db, parts)

    def revert_changes(self, changes: bytes) -> bool:
        return changesets.revert(self._db, changes)

    def read(self, call_context: CallContext, work: Callable[[Tx], R]) -> R:
        """Return `work(tx)` in one snapshot, taken by its first statement; raises Fault if it takes too long."""
        tx = Tx(self, call_context, readonly=True)
        self.budget.left = self._call_seconds
        try:
            return tx.within(self._call_seconds, work)
        except apsw.InterruptError as error:
            raise self._end(error) from None
        finally:
            self.budget.left = None
            if self._db.in_transaction:
                self._db.execute("COMMIT")

    def _end(self, answer: R) -> R | Fault:
        """Ends a call; its answer, or the Fault for a call that exceeded its time."""
        left, self.budget.left = self.budget.left, None
        return Fault("invalid", TOO_LONG) if left is not None and left < 0 else answer

    @contextmanager
    def writing(self, call_context: CallContext = CallContext()) -> Generator[Tx]:
        """A write transaction that commits at the end of the block and rolls back on any exception.

        What was to run after the commit has run when the block is left. There is no checkpointer here, so a log that
        has grown long is copied into the file afterwards.
        """
        tx = self.begin(call_context, large=True)
        try:
            yield tx
            self.commit(tx)
        finally:
            self.rollback()
        for work in tx.work_after_commit:
            with self.writing(call_context) as following:
                work(following)
        if self.wal_pages > _CHECKPOINT_PAGES:
            with suppress(apsw.FullError, apsw.IOError):  # it is committed: the log has it
                self.checkpoint()

    def checkpoint(self, *, truncate: bool = False, wait_milliseconds: int = BUSY_MILLISECONDS) -> None:
        """Copies the write-ahead log into the file; without `truncate` it never waits for readers or a writer."""
        mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if truncate else apsw.SQLITE_CHECKPOINT_PASSIVE
        self._copy_log(mode, wait_milliseconds)

    def restart_log(self, wait_milliseconds: int) -> bool:
        """Copy all of the log and return whether the next commit starts it over; waits for the reads under way."""
        return self._copy_log(apsw.SQLITE_CHECKPOINT_RESTART, wait_milliseconds)

    def _copy_log(self, mode: int, wait_milliseconds: int) -> bool:
        with suppress(apsw.BusyError, apsw.LockedError), ExitStack() as stack:
            self._db.set_busy_timeout(wait_milliseconds)
            if self._readonly:
                stack.callback(self._db.set_busy_timeout, BUSY_MILLISECONDS)
            else:
                stack.callback(self._db.set_busy_handler, self._wait_for_lock)
            self._db.wal_checkpoint(mode=mode)
            return True
        return False

    def backup(
        self,
        target: Path,
        progress: Callable[[int, int], None] | None = None,
        *,
        complete: Callable[[Path], None] | None = None,
    ) -> None:
        """Copies the whole database to `target` while it is read and written; `target` appears when it is whole.

        `complete` takes the copy before that; by default it raises Fault("storage") for a copy that is damaged.
        """
        with unfinished(target) as part:
            try:
                self.take_snapshot()  # else each commit restarts the copy
                copy_database(self._db, part, progress)
            finally:
                self.rollback()
            (complete or self._check_copy)(part)
            finish(part, target)

    def _check_copy(self, part: Path) -> None:
        with closing(Connection(part, self.context, readonly=True)) as copy:
            errors = copy.integrity_errors()
        if errors:
            raise Fault("storage", f"The database is damaged: {errors[0]}. Run `quipu check`; no copy was made.")

    def take_snapshot(self) -> None:
        """Keeps the view of the database as it is now, or as it was at an earlier call, until `rollback`."""
        if not self._db.in_transaction:
            self.script("BEGIN; SELECT 1 FROM sqlite_schema")

    def backup_committed(self, target: Path, progress: Callable[[int, int], None] | None = None) -> None:
        """`backup` through a connection of its own, without writes of the open transaction."""
        with closing(Connection(Path(self.filename), self.context, readonly=True)) as db:
            db.backup(target, progress)

    @contextmanager
    def limited(self, seconds: float) -> Generator[None]:
        """Stops statements that take more processor time; they raise as if they were interrupted."""
        self.budget.left = seconds
        try:
            yield
        finally:
            self.budget.left = None

    def interrupt(self) -> None:
        self._db.interrupt()

    def drop_pages(self) -> None:
        self._db.release_memory()

    def close(self) -> None:
        self._db.close()


def memory_used() -> int:
    return apsw.memory_used()


def copy_database(db: apsw.Connection, target: Path, progress: Callable[[int, int], None] | None) -> None:
    target.touch(mode=0o600)
    copy = apsw.Connection(str(target))
    try:
        with copy.backup("main", db, "main") as job:  # pyrefly: ignore[bad-context-manager]
            while not job.done:
                job.step(_COPIED_PAGES)
                if progress:
                    progress(job.page_count - job.remaining, job.page_count)
        copy.pragma("journal_mode", "delete")  # so no log belongs to it, see log_file.py
    finally:
        copy.close()


@contextmanager
def open_writer(file: Path, context: StoreContext) -> Generator[Connection]:
    """A connection for maintenance, with the vector functions loaded, closed at the end of the block."""
    with closing(Connection(file, context, readonly=False)) as db:
        db.load_vectors()
        yield db


def _pragmas(*, readonly: bool, durable: bool, mapped: bool) -> Mapping[str, str | int]:
    return {
        "cache_size": -(_READER_CACHE_KIB if readonly else _WRITER_CACHE_KIB),
        "temp_store": "memory",
        "query_only": int(readonly),
        "mmap_size": _MMAP_BYTES if mapped else 0,
        "synchronous": "FULL" if durable else "NORMAL",
        # On macOS fsync leaves data in the cache of the drive; elsewhere SQLite ignores these two.
        "fullfsync": int(durable),
        "checkpoint_fullfsync": 1,
    }


def apply_limits(db: Any, names: Any, limits: CallLimits) -> Budget:
    """Sets the limits of a connection of the driver `names`; returns the budget of its calls."""
    budget = Budget()
    db.set_progress_handler(budget, STEPS)
    for name, value in SETTINGS.items():
        db.config(getattr(names, f"SQLITE_DBCONFIG_{name}"), value)
    for name, value in {**LIMITS, "LENGTH": limits.value}.items():
        db.limit(getattr(names, f"SQLITE_LIMIT_{name}"), value)
    return budget


def add_text_functions(db: apsw.Connection) -> None:
    """Adds `fold`, after which texts that differ in case are equal: NOCASE knows the letters of ASCII alone."""
    db.create_scalar_function("fold", cast("Any", _folded), 1, deterministic=True)


def _folded(text: str | None) -> str | None:
    return text and text.casefold()
