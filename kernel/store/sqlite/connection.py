"""SQLite connections, and the transaction a handler sees."""

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import apsw

from kernel.embed.model import Embedding
from kernel.errors import Fault
from kernel.ids import new_id, utc_now
from kernel.search.bm25 import tally
from kernel.store.context import Origin, World, vector_extension
from kernel.store.sqlite.errors import UNSOUND
from kernel.store.sqlite.query_budget import Budget, tame

R = TypeVar("R")
Row = Callable[..., R]
BUSY_MILLISECONDS = 5000
_LOG_PAGES = 2000
Flush = Callable[["Tx", list[Any]], None]
Guard = Callable[..., Any]


class Tx:
    """One moment of the store: rows by named statement, the time, new ids and embeddings."""

    __slots__ = (
        "_before",
        "_budget",
        "_db",
        "_flushed",
        "_later",
        "_lazy",
        "_now",
        "_origin",
        "_readonly",
        "_shrink",
        "_vectors",
        "_waits",
        "_world",
    )

    def __init__(self, db: apsw.Connection, world: World, origin: Origin, budget: Budget = Budget(0), *, lazy: bool):
        self._now = ""
        self._before = 0
        self._shrink = False
        self._db = db
        self._world = world
        self._budget = budget
        self._origin = origin
        self._lazy = lazy
        self._readonly = lazy
        self._later: list[tuple[Flush, Any]] = []
        self._flushed: list[tuple[Flush, Any]] | None = None
        self._vectors: dict[str, Embedding] = {}
        self._waits: Any = None

    @property
    def now(self) -> str:
        """The time of this transaction, the same each time it is asked for: ISO 8601 UTC with milliseconds and Z."""
        if not self._now:
            self._now = utc_now()
        return self._now

    @property
    def readonly(self) -> bool:
        """Whether this is a read of what is committed, on a connection that cannot write."""
        return self._readonly

    def new_id(self, prefix: str) -> str:
        """A fresh id that sorts by time, `prefix_` first."""
        return new_id(prefix)

    def one(self, query: str, row: Row[R], /, **params: Any) -> R | None:
        """The first row of `query` as `row(*columns)`, or None."""
        rows = self._execute(query, params).fetchall()
        return row(*rows[0]) if rows else None

    def all(self, query: str, row: Row[R], /, **params: Any) -> list[R]:
        """Every row of `query`, each as `row(*columns)`."""
        return [row(*values) for values in self._execute(query, params).fetchall()]

    def run(self, query: str, /, **params: Any) -> int:
        """Runs `query` for its effect; the number of rows it changed."""
        self._execute(query, params).fetchall()
        return self._db.changes()

    def holds(self, query: str, /, **params: Any) -> bool:
        """Whether a self-check of the engine succeeds."""
        try:
            self._execute(query, params).fetchall()
        except apsw.CorruptError:
            return False
        return True

    def preload(self, vectors: Mapping[str, Embedding]) -> None:
        """Hands over embeddings computed before the transaction began."""
        self._vectors.update(vectors)

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """The embedding of each text; those computed before the transaction began are not computed again."""
        known, embedder = self._vectors, self._world.embedder
        missing = [text for text in texts if text not in known]
        if missing:
            if embedder is None:
                raise Fault("disabled", "No embedding model is configured.")
            try:
                known.update(zip(missing, embedder.embed(missing), strict=True))
            except (OSError, ValueError) as error:
                raise Fault("disabled", "The embedding model cannot be read.") from error
        return [known[text] for text in texts]

    def _execute(self, query: str, params: dict[str, Any]) -> apsw.Cursor:
        if self._lazy:
            self._lazy = False
            self._db.execute("BEGIN")
        self._budget.fresh = True
        return self._db.execute(self._world.statements[query], params)


def origin(tx: Tx) -> Origin:
    """Who the current call comes from, for provenance."""
    return tx._origin  # pyright: ignore[reportPrivateUsage]


def world(tx: Tx) -> World:
    """What the transaction shares with every other of its store."""
    return tx._world  # pyright: ignore[reportPrivateUsage]


def waiting(tx: Tx, who: Any = None) -> Any:
    """Who hears how far the transaction is, if anybody; sets it where one is given."""
    tx._waits = who or tx._waits  # pyright: ignore[reportPrivateUsage]
    return tx._waits  # pyright: ignore[reportPrivateUsage]


def model(tx: Tx) -> tuple[str, int] | None:
    """Identity and dimensions of the configured embedding model; None without one, or where it cannot be read."""
    embedder = tx._world.embedder  # pyright: ignore[reportPrivateUsage]
    with suppress(OSError, ValueError):
        return embedder and (embedder.identity, embedder.dimensions)


def tokenize(tx: Tx, text: str) -> Any:
    """The full-text tokens of `text` as (start byte, end byte, stem), by the tokenizer the index itself uses."""
    tokenizer = tx._db.fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2"])  # pyright: ignore[reportPrivateUsage]
    return tokenizer(text.encode(), apsw.FTS5_TOKENIZE_QUERY, None)


def defer(tx: Tx, flush: Flush, item: Any) -> None:
    """Leaves `item` for `flush(tx, items)`, which runs once for the whole group of calls, before they commit."""
    tx._later.append((flush, item))  # pyright: ignore[reportPrivateUsage]


def left(tx: Tx) -> list[tuple[Flush, Any]]:
    """What the call that was run last has deferred, be it settled or not."""
    later = tx._later if tx._flushed is None else tx._flushed + tx._later  # pyright: ignore[reportPrivateUsage]
    return later[tx._before :]  # pyright: ignore[reportPrivateUsage]


def settle(tx: Tx) -> None:
    """Runs what was deferred, so that a statement in the same transaction sees it."""
    pending = tx._later  # pyright: ignore[reportPrivateUsage]
    if not pending:
        return
    tx._flushed = (tx._flushed or []) + pending  # pyright: ignore[reportPrivateUsage]
    tx._later = []  # pyright: ignore[reportPrivateUsage]
    grouped: dict[Flush, list[Any]] = {}
    for flush, item in pending:
        grouped.setdefault(flush, []).append(item)
    for flush, items in grouped.items():
        flush(tx, items)


class Connection:
    """One connection with our settings; a writer may change the file, a reader is opened read-only."""

    def __init__(self, file: Path, world: World, *, readonly: bool, durable: bool = True) -> None:
        flags = apsw.SQLITE_OPEN_READONLY if readonly else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        self._db = apsw.Connection(str(file), flags=flags, statementcachesize=512)
        self._world = world
        self.wal_pages = 0  # in the write-ahead log after the last commit of this connection
        self._db.set_busy_timeout(BUSY_MILLISECONDS)
        self._budget = tame(self._db, apsw, world.engine)
        for name, value in (
            ("cache_size", -16384),
            ("temp_store", "memory"),
            ("query_only", int(readonly)),  # KiB
            ("mmap_size", (1 << 31) - (1 << 16) if readonly else 0),  # the most that the engine maps
            ("synchronous", "FULL" if durable else "NORMAL"),
        ):
            self._db.pragma(name, value)
        self._db.register_fts5_function("tally", tally)
        if not readonly:
            self._db.set_wal_hook(self._note_wal)
        self._vectors_loaded = False

    def _note_wal(self, _db: apsw.Connection, _name: str, pages: int) -> int:
        self.wal_pages = pages
        return apsw.SQLITE_OK

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

    def log_ahead(self) -> None:
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

    def damage(self, *, quick: bool = False) -> list[str]:
        """What the engine finds wrong with the file itself; `quick` does not compare indexes with their tables."""
        try:
            found = self._db.execute(f"PRAGMA {'quick' if quick else 'integrity'}_check(10)").fetchall()
        except UNSOUND as error:
            return [str(error)]
        return [str(text) for (text,) in found if text != "ok"]

    def begin(self, who: Origin) -> Tx:
        """A write transaction, holding the write lock of the file."""
        self._db.execute("BEGIN IMMEDIATE")
        return Tx(self._db, self._world, who, self._budget, lazy=False)

    def commit(self, tx: Tx) -> None:
        """Runs what was deferred and commits; only then may anybody be answered."""
        settle(tx)
        self._db.execute("COMMIT")
        if tx._shrink:  # pyright: ignore[reportPrivateUsage]
            self.script("PRAGMA temp_store = file; VACUUM; PRAGMA temp_store = memory")

    def rollback(self) -> None:
        """Ends a transaction, if one is open, without a trace."""
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def call(self, tx: Tx, who: Origin, guard: Guard, work: Callable[[Tx], Any], times: int = 1) -> Any:
        """One call of a group under its own savepoint, `times` as long as any: a Fault leaves nothing of it behind."""
        tx._origin = who  # pyright: ignore[reportPrivateUsage]
        tx._before = kept = len(tx._later)  # pyright: ignore[reportPrivateUsage]
        tx._flushed = tx._waits = None  # pyright: ignore[reportPrivateUsage]
        self._db.execute("SAVEPOINT call")
        self._budget.begin(times)
        answer = self._budget.end(guard(work, tx))
        if isinstance(answer, Fault):
            if not self._db.in_transaction:  # a full disk, or a call cut short, has ended the whole transaction
                raise answer
            self._db.execute("ROLLBACK TO call")
            pending = tx._flushed if tx._flushed is not None else tx._later  # pyright: ignore[reportPrivateUsage]
            tx._later = pending[:kept]  # pyright: ignore[reportPrivateUsage]
        self._db.execute("RELEASE call")
        return answer

    def read(self, who: Origin, work: Callable[[Tx], Any]) -> Any:
        """`work(tx)` in one snapshot, begun by its first statement; raises Fault where it takes too long."""
        tx = Tx(self._db, self._world, who, self._budget, lazy=True)
        self._budget.begin()
        try:
            return work(tx)
        except apsw.InterruptError as error:
            raise self._budget.end(error) from None
        finally:
            self._budget.end()
            if self._db.in_transaction:
                self._db.execute("COMMIT")

    @contextmanager
    def writing(self, who: Origin = Origin()) -> Generator[Tx]:
        """A write transaction of its own that commits at the end of the block and rolls back on any exception.

        A log that has become long is copied into the file afterwards: who writes like this has nobody who does that.
        """
        tx = self.begin(who)
        try:
            yield tx
            self.commit(tx)
        finally:
            self.rollback()
        if self.wal_pages > _LOG_PAGES:
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
