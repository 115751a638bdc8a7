"""A reader or the writer of one tenant in PostgreSQL: transactions, savepoints, and statements by name."""

import itertools
import math
import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar, cast

from kernel.core.errors import CatchFaults, Fault
from kernel.engines.migrations import migrate
from kernel.engines.postgres.driver import Pool, as_fault, escape, is_lost, load_driver
from kernel.engines.postgres.full_text import Seen, WordIndex, rebuild_steps, short
from kernel.engines.postgres.replica import Replica
from kernel.engines.postgres.session import Sent, Session, Together
from kernel.engines.postgres.statements import Statement, values_of
from kernel.engines.postgres.tenants.placement import TenantPlace
from kernel.engines.sqlite import table_rows
from kernel.engines.sqlite.connection import Connection as FileConnection
from kernel.engines.sqlite.full_text import Tokenizers
from kernel.engines.sqlite.table_rows import schema_tables
from kernel.engines.sqlite.unfinished import finish, unfinished
from kernel.security.permissions import Reach
from kernel.store.context import CallContext, Cursor, Params, Rows, StoreContext, Token
from kernel.store.long_work import Steps
from kernel.store.statements import load
from kernel.store.tenant_copy import copy
from kernel.store.transaction import Tx

Value = table_rows.Value
PAGE = 200  # rows of a result that is read as it is needed


class TableRows:
    """The tables of a tenant. Names of tables and columns are those of the schema, never input."""

    def __init__(self, db: "Connection") -> None:
        self._db = db
        self._unique: dict[str, list[list[str]]] = {}
        self._counted: dict[str, str] = {}

    def names(self) -> list[str]:
        return schema_tables().names()

    def columns(self, table: str) -> list[str]:
        return schema_tables().columns(table)

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        order = table_rows.quoted(*schema_tables().key(table))
        text = f"SELECT {table_rows.quoted(*columns)} FROM {_view(table)} ORDER BY {order}"
        return self._db.stream(text, PAGE)

    def found(self, table: str, row: dict[str, Value]) -> dict[str, Value] | None:
        key = schema_tables().key(table)
        text = f"SELECT {table_rows.quoted(*row)} FROM {_view(table)} WHERE {_equal(key)}"
        rows = self._db.execute(Statement(text, key), {name: row.get(name) for name in key}).fetchall()
        return dict(zip(row, rows[0], strict=True)) if rows else None

    def put(self, table: str, row: dict[str, Value], *, replace: bool) -> None:
        self._describe(table)
        for key in self._unique[table] if replace else ():
            if all(row.get(name) is not None for name in key):
                self._db.execute(Statement(f"DELETE FROM {_view(table)} WHERE {_equal(key)}", key), row)
        places = ", ".join(f"${at}" for at in range(1, len(row) + 1))
        text = f"INSERT INTO {_view(table)} ({table_rows.quoted(*row)}) VALUES ({places})"
        self._db.execute(Statement(text, [*row]), row)
        if (number := row.get(self._counted[table])) is not None:
            self._db.query("engine.rows.give", table=table, id=number)

    def copied(self) -> Mapping[str, Sequence[str]]:
        columns: dict[str, list[str]] = {}
        for table, column in self._db.query("engine.copy.columns"):
            columns.setdefault(table, []).append(column)
        return columns

    def replace_all(self, table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
        self._db.command(f"DELETE FROM {_view(table)}")
        values = (tuple(escape(value) if isinstance(value, str) else value for value in row) for row in rows)
        target = f"quipu_data.{table_rows.quoted(table)}"
        self._db.copy_in(f"COPY {target} ({table_rows.quoted(*columns)}) FROM STDIN", values)

    def last_ids(self) -> Mapping[str, int]:
        return dict(self._db.query("engine.copy.last_ids"))

    def set_last_ids(self, ids: Mapping[str, int]) -> None:
        for name, last in ids.items():
            self._db.query("engine.copy.set_last_id", name=name, last=last)

    def _describe(self, table: str) -> None:
        if table not in self._unique:
            self._unique[table] = [text.split() for (text,) in self._db.query("engine.rows.unique_keys", table=table)]
            self._counted[table] = next((name for (name,) in self._db.query("engine.rows.counted", table=table)), "")


def _view(table: str) -> str:
    return f"quipu.{table_rows.quoted(table)}"


def _equal(names: Sequence[str]) -> str:
    return " AND ".join(f"{table_rows.quoted(name)} = ${at}" for at, name in enumerate(names, 1))


R = TypeVar("R")
Row = tuple[Any, ...]

UNKNOWN = "It is not known whether the change was recorded: the connection to the database was lost."
OUTCOME_SECONDS = 30.0  # for the outcome of a commit that was not answered
_OUTCOME_PAUSE = 0.1
_MARKS_FORGOTTEN = 64  # one commit of so many deletes old marks
BUSY_MILLISECONDS = 5000  # for the writer of another process
IDLE_MILLISECONDS = 60_000  # between two statements of a writer: a process that stands still gives its lock to others
_LOCK_SHARE = 0.8  # of the time of a statement, in which it waits for a lock of another program
_LARGE_FACTOR = 60  # times the usual time limits, for a call with a transaction of its own
_UNPREPARED = frozenset({"engine.full_text.matching"})  # planned for its parameters each time
_READING = "ISOLATION LEVEL REPEATABLE READ READ ONLY"
_WRITING = "ISOLATION LEVEL READ COMMITTED"  # so that a writer sees the changes of the one that it has waited for
_NO_ROWS = Rows(())


def _limits(milliseconds: int) -> tuple[str, ...]:
    """Return the limits of a statement: one that waits for a lock ends before it counts as one that takes too long."""
    longest = f"SET LOCAL statement_timeout = {milliseconds}"
    if not milliseconds:  # no limit
        return (longest,)
    return longest, f"SET LOCAL lock_timeout = {min(BUSY_MILLISECONDS, max(1, int(milliseconds * _LOCK_SHARE)))}"


class Budget:
    """The flags of a transaction; PostgreSQL's statement_timeout limits its calls."""

    new_statement = False
    streamed = False


class Recorder:
    """Records the changes of a call, as images of rows that triggers keep, in parts of at most `limit_bytes`."""

    def __init__(self, db: "Connection", limit_bytes: int) -> None:
        self._db = db
        self._limit = limit_bytes
        db.together.add("SET LOCAL quipu.undo = 'on'", prepare=False)

    def take(self) -> bytes | None:
        """Return the changes since the last time; None if they are larger than the limit."""
        ((text,),) = self._db.query("engine.changes.take")
        changes = (text or "").encode()
        return changes if len(changes) <= self._limit else None

    def close(self) -> None:
        """Stops recording; a transaction that has failed has stopped by itself."""
        self._db.together.add("SET LOCAL quipu.undo = 'off'", prepare=False)


class Connection:
    """The engine of a tenant's transactions; it holds a connection of the pool during each.

    A connection that is `reading` reads a tenant at home from the `replica`, if there is any. Others tell the replica
    how far it has to be. `words` holds the words that committed transactions have added, for transactions that read.
    """

    def __init__(
        self,
        place: TenantPlace,
        context: StoreContext,
        filename: str,
        *,
        durable: bool = True,
        replica: Replica | None = None,
        reading: bool = False,
        words: WordIndex | None = None,
    ) -> None:
        self.words = words or WordIndex()
        self.reading = False  # in this transaction
        self.context = context
        self.filename = filename
        self.budget = Budget()
        self._finder = place
        self.replica = replica
        self._session = Session(place, replica if reading else None)
        self.together = Together(self._session)
        self._durable = durable
        self._psycopg = load_driver()
        self._open_tx: Tx | None = None
        self._changes_before = 0
        self._called = False  # in this transaction
        self.tables = TableRows(self)
        self._streams = itertools.count()
        self._seen: Seen | None = None
        self.inserted: dict[int, Row] = {}  # documents that the next statements index
        self._tokenizers = Tokenizers()

    def changes(self) -> int:
        return self.together.count

    def total_changes(self) -> int:
        return self.together.total

    def execute(self, text: str, params: Params | None) -> Cursor:
        """Runs one statement; `BEGIN` opens a snapshot that cannot be written to."""
        if not isinstance(text, Statement):
            self._begin(_READING, *_limits(self.context.call_limits.milliseconds))
            return _NO_ROWS
        if text.answered is not None:
            before = self.together.total
            rows = list(text.answered(self, params or {}))
            self.together.count = self.together.total - before
            return Rows(rows)
        values = values_of(text, params or {})
        if self.budget.streamed:
            self.budget.streamed = False
            return Rows(self.stream(text, PAGE, values))
        statement = self._add(text, values)
        self.together.run()
        return statement

    def ahead(self, text: str, params: Params | None) -> Cursor:
        """Return the rows of a statement that is sent with the next."""
        assert isinstance(text, Statement)
        if text.answered is not None:
            return self.execute(text, params)
        return self._add(text, values_of(text, params or {}))

    run_ahead = ahead

    def query(self, name: str, /, **params: Any) -> list[Row]:
        return self.send(name, **params).fetchall()

    def send(self, name: str, /, **params: Any) -> Sent:
        """Return a statement of `sql/postgres/engine` that is sent with the next."""
        text = cast("Statement", self.context.statements[name])
        return self._add(text, values_of(text, params), prepare=name not in _UNPREPARED)

    def command(self, text: str) -> None:
        """Runs commands without parameters, after the statements that wait."""
        self.together.run()
        self._session.command(text)

    def _add(self, text: str, values: list[Any], *, prepare: bool = True) -> Sent:
        limit = self.context.call_limits.value
        if any(len(value) > limit for value in values if isinstance(value, (str, bytes))):
            raise Fault("invalid", "A value is larger than QUIPU_LIMIT_STORE_VALUE allows.")
        return self.together.add(str.__str__(text), values, prepare=prepare)

    def stream(self, text: str, page: int, values: Sequence[Any] = ()) -> Iterator[Row]:
        """Yield the rows of a query in pages, so that not all are in memory; they stay readable for this
        transaction.
        """
        self.together.run()
        name = f"page_{next(self._streams)}"
        cursor = self._psycopg.RawCursor(self._session.held)
        try:
            cursor.execute(f"DECLARE {name} NO SCROLL CURSOR FOR {text}", values, prepare=False)
            while rows := self._session.held.execute(
                f"FETCH {page} FROM {name}", prepare=False, binary=True
            ).fetchall():
                yield from rows
        except self._psycopg.Error as error:
            self._session.fail(error)
        self.command(f"CLOSE {name}")

    def copy_in(self, text: str, rows: Iterable[Row]) -> None:
        self.together.run()
        try:
            with self._session.held.cursor() as cursor, cursor.copy(text) as copy:
                for row in rows:
                    copy.write_row(row)
        except self._psycopg.Error as error:
            self._session.fail(error)

    @property
    def pool(self) -> Pool:
        return self._session.pool

    def _begin(self, kind: str, *settings: str, wait: int | None = None) -> None:
        self.reading = kind == _READING
        also = str.__str__(self.context.statements["engine.full_text.seen"]) if self.reading else ""
        more = self._session.begin(kind, *settings, wait=wait, also=also)
        self._seen = Seen(*more) if self.reading else None

    def _begin_writing(self, *, large: bool = False) -> None:
        """Takes the lock of the tenant, for which no time limit but its own holds."""
        factor = _LARGE_FACTOR if large else 1
        self._begin(
            _WRITING,
            f"SET LOCAL synchronous_commit = {'on' if self._durable else 'off'}",
            f"SET LOCAL idle_in_transaction_session_timeout = {IDLE_MILLISECONDS * factor}",
            *_limits(self.context.call_limits.milliseconds * factor),
            wait=BUSY_MILLISECONDS,
        )

    @property
    def seen(self) -> Seen:
        """Return the words as a transaction that reads sees them."""
        assert self._seen is not None
        return self._seen

    def limit(self, reach: Reach | None) -> Mapping[str, str]:
        """Return the statements; raises Fault("disabled") for a key that is held to places."""
        if reach is not None:
            raise Fault("disabled", "A key that is held to places needs a store in a file, not PostgreSQL.")
        return self.context.statements

    def tokenize(self, text: str) -> list[Token]:
        return self._tokenizers.tokens(text)

    def stems(self, text: str, *, trigrams: bool = False) -> list[str]:
        """Return the stems of a text as the index holds them."""
        return [*map(short, self._tokenizers.stems(text, trigrams=trigrams))]

    def clock(self) -> int:
        """Return nanoseconds since 1970 by the clock of the database, in an open transaction: machines may differ.

        A writer reads it when it has the lock, and adds the time since: the next writer reads a later time.
        """
        return self._session.ahead + time.monotonic_ns()

    @property
    def in_transaction(self) -> bool:
        return self._session.in_transaction

    def begin(self, call_context: CallContext, *, large: bool = False) -> Tx:
        """Opens a write transaction and takes the lock of the tenant, which one process has at a time."""
        self._begin_writing(large=large)
        self._changes_before = self.together.total
        self._called = False
        self._open_tx = Tx(self, call_context, readonly=False)
        return self._open_tx

    def call(
        self, tx: Tx, call_context: CallContext, catch_faults: CatchFaults, work: Callable[[Tx], R], budget: int = 1
    ) -> R | Fault:
        """Runs one call under its own savepoint; a Fault is rolled back.

        After a call that has waited for a lock in vain, the others of the transaction are not tried.
        """
        if self._session.blocked is not None:
            return self._session.blocked
        tx.begin_call(call_context)
        if self._called:  # COMMIT ends the last savepoint
            self.together.add("RELEASE call", prepare=False)
        savepoint = self.together.add("SAVEPOINT call", prepare=False)
        self._called = True

        def whole(tx: Tx) -> R:
            answer = work(tx)
            if self.together.waits_after(savepoint):  # an error of it belongs to this call
                self.together.run()
            return answer

        answer = catch_faults(tx.within, self.context.call_limits.milliseconds / 1000 * budget, whole)
        if isinstance(answer, Fault):
            if not self.in_transaction:
                raise answer
            if savepoint.left:
                self.together.drop()
                self._session.command("ROLLBACK TO call")
            else:
                self.together.drop(savepoint)
                self._called = False
            tx.discard_call()
        return answer

    def commit(self, tx: Tx) -> None:
        tx.flush_deferred()
        has_changes = self.together.has_changes() or self.together.total != self._changes_before
        mark = self._add_mark() if has_changes else None
        try:
            status = self._end()
        except self._psycopg.Error as error:
            self._settle(mark, error)
            status = "COMMIT"
        if status != "COMMIT":  # a statement had failed, and its call went on
            raise RuntimeError(f"the transaction ended with {status}")
        self._open_tx = None
        self._session.release()

    def _end(self) -> str:
        """Commits; the position in the log follows in the same round trip, for the replica."""
        commit, position = self.together.add("COMMIT", prepare=False), None
        if self.replica is not None:
            position = self.send(f"engine.replica.{'flushed' if self._durable else 'inserted'}")
        self.together.run_or_raise()
        if self.replica is not None and position is not None:
            self.replica.wrote(position.rows[0][0])
        return commit.status

    def _add_mark(self) -> int:
        """Marks the transaction before it commits, so that its outcome can be looked up if the commit has no answer."""
        mark = int.from_bytes(os.urandom(8)) >> 1
        self.send("engine.transaction.end", mark=mark)
        if mark % _MARKS_FORGOTTEN == 0:
            self.send("engine.transaction.forget_marks")
        return mark

    def _settle(self, mark: int | None, error: Exception) -> None:
        """Determine the outcome of a transaction whose commit was not answered; raises unless it has committed."""
        fault = as_fault(error)
        if fault is None or not (self._session.held.closed or is_lost(error)):
            self._session.fail(error)
        outcome = mark is not None and self._has_committed(mark)
        if outcome is None:
            raise Fault("storage", UNKNOWN) from error
        if not outcome:
            raise fault from error

    def _has_committed(self, mark: int) -> bool | None:
        """Return whether the transaction with this mark has committed; None if the database does not answer for long.

        The lock of the tenant waits for a transaction that may still write the mark. A mark that is there is written
        again: this commit waits until a synchronous standby has everything that was committed before. A standby, which
        may lack the mark yet, refuses to write.
        """
        end = time.monotonic() + OUTCOME_SECONDS
        while time.monotonic() < end:
            with suppress(Fault, self._psycopg.Error):
                self._session.release()
                self._begin_writing()
                marks = self.query("engine.transaction.find_mark", mark=mark)
                self.command("COMMIT")
                return bool(marks)
            time.sleep(_OUTCOME_PAUSE)
        return None

    def rollback(self) -> None:
        tx, self._open_tx = self._open_tx, None
        self.together.drop()
        try:
            if self.in_transaction and not (self.reading and self._session.leave()):
                self._session.command("ROLLBACK")
        finally:
            self._session.release()
            if tx is not None:
                tx.rolled_back()

    def read(self, call_context: CallContext, work: Callable[[Tx], R]) -> R:
        seconds = self.context.call_limits.milliseconds / 1000 or math.inf  # 0 is no limit, as for statement_timeout
        again = True
        while True:
            try:
                return Tx(self, call_context, readonly=True).within(seconds, work)
            except Fault:
                if not (again and self._session.on_replica and self._session.held.closed):
                    raise
                again = False  # once, on the primary, since the connection to the replica broke
            finally:
                self.rollback()

    @contextmanager
    def writing(self, call_context: CallContext = CallContext()) -> Generator[Tx]:
        tx = self.begin(call_context, large=True)
        try:
            yield tx
            self.commit(tx)
        finally:
            self.rollback()
        for work in tx.work_after_commit:
            with self.writing(call_context) as following:
                work(following)

    def record_changes(self, limit_bytes: int) -> Recorder:
        return Recorder(self, limit_bytes)

    def can_revert(self, parts: Callable[[], Iterable[bytes]]) -> bool:
        """Return True: only the attempt to revert them tells."""
        return True

    def revert_changes(self, changes: bytes) -> bool:
        if not changes:
            return True
        self.command("SAVEPOINT revert")
        ((reverted_all,),) = self.query("engine.changes.revert", changes=changes.decode())
        self.command("RELEASE revert" if reverted_all else "ROLLBACK TO revert; RELEASE revert")
        return bool(reverted_all)

    def check_full_text(self) -> tuple[bool, bool]:
        """Return whether there are words and trigrams of each document, and of no other."""

        def agree(tx: Tx) -> tuple[bool, bool]:
            _ = tx.now  # takes the snapshot
            return not self.query("engine.full_text.differing"), not self.query("engine.full_text.differing_parts")

        return self.read(CallContext(), agree)

    def rebuild_full_text(self) -> Steps[None]:
        return rebuild_steps(self)

    def orphans(self) -> int:
        with self.writing():
            ((orphans,),) = self.query("engine.changes.orphans")
        return orphans

    def backup_committed(self, target: Path, progress: Callable[[int, int], None] | None = None) -> None:
        """Copy committed rows into a file of SQLite, without writes of the open transaction."""
        patient = self.context._replace(call_limits=self.context.call_limits._replace(milliseconds=0))
        texts = {name: statement.text for name, statement in load().items()}
        with unfinished(target) as part:
            part.touch(mode=0o600)
            with (
                closing(FileConnection(part, StoreContext(texts), readonly=False)) as file,
                closing(Connection(self._finder, patient, self.filename)) as rows,
            ):
                migrate(file)
                with file.writing() as copied:
                    rows.read(CallContext(), lambda tx: copy(tx, copied, progress))
                file.pragma("journal_mode", "delete")
            finish(part, target)

    def interrupt(self) -> None:
        self._session.interrupt()

    def drop_pages(self) -> None:
        """Frees nothing: the database has the pages."""

    def close(self) -> None:
        self._session.release()
