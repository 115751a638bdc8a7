"""The connection of the pool that a transaction holds, to the database of its tenant, and the statements that are sent
together on it: those whose rows are not waited for go with the next whose rows are.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from kernel.core.errors import Fault
from kernel.engines.postgres import driver
from kernel.engines.postgres.replica import Replica
from kernel.engines.postgres.tenants.placement import MOVING, TenantPlace
from kernel.store.context import ConstraintFailed

_WAIT = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = {}"
_LOCK = "SELECT pg_advisory_xact_lock({}, {})"
_LOCKS = 0x51554950  # "QUIP": the first key of our advisory locks; the second is the tenant
_HERE = (
    "SELECT NOT EXISTS (SELECT FROM quipu.directory WHERE id = {} AND (moved_to IS NOT NULL OR mover IS NOT NULL)), "
    "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)"
)
_CANCEL_SECONDS = 2.0  # for the database to take note that a statement is to stop
_CHANGES = ("INSERT", "UPDATE", "DELETE", "WITH")
_MOST_PLACES = 4  # in which a transaction looks for its tenant

Row = tuple[Any, ...]


class Session:
    """Holds a connection while a transaction is open; reads of a tenant at home go to the `replica`."""

    def __init__(self, finder: TenantPlace, replica: Replica | None) -> None:
        self._finder = finder
        self._place = finder.find()
        self._replica = replica
        self._owner: driver.Pool = self._place.pool  # of the connection
        self._psycopg = driver.load_driver()
        self._cancelled = False
        self.blocked: Fault | None = None  # the error of a statement of the transaction that waited for a lock in vain
        self.held: Any = None
        self.ahead = 0  # nanoseconds by which the database's clock is ahead of our monotonic clock

    @property
    def pool(self) -> driver.Pool:
        return self._place.pool

    @property
    def on_replica(self) -> bool:
        return self._replica is not None and self.held is not None and self._owner is self._replica.pool

    @property
    def in_transaction(self) -> bool:
        return self.held is not None and not self.held.closed and self.held.info.transaction_status != 0

    def begin(self, kind: str, *settings: str, wait: int | None = None, also: str = "") -> list[int]:
        """Opens a transaction on the database of the tenant.

        A transaction that may `wait` so many milliseconds writes: nobody else does until its end, and the tenant cannot
        leave. The limits of the settings begin after the wait. Returns the numbers of the row that the query `also`
        selects, without a round trip of its own.
        """
        self.blocked = None
        for _ in range(_MOST_PLACES):
            number = self._place.number
            begin = f"BEGIN {kind}"
            commands = (
                f"SET LOCAL quipu.tenant = '{number}'",
                *(() if wait is None else (_WAIT.format(wait), _LOCK.format(_LOCKS, number))),
                *settings,
                also.replace("SELECT", f"{_HERE.format(number)},", 1) or _HERE.format(number),
            )
            result = self._send(begin, *commands)
            if result.get_value(0, 0) == b"t":
                self.ahead = int(result.get_value(0, 1)) * 1000 - time.monotonic_ns()
                return [int(result.get_value(0, at) or 0) for at in range(2, result.nfields)]
            self.command("ROLLBACK")
            self.release()
            self._place = self._finder.find_again(self._place)
        raise Fault("busy", MOVING)

    def _send(self, begin: str, *commands: str) -> Any:
        """Sends the first commands on a connection of the pool, and on another if it was lost while it was free."""

        def send() -> Any:
            if self.held is None:
                self._take()
            return self.command("; ".join((begin, *driver.transaction_settings(self.held), *commands)))

        try:
            return send()
        except Fault:
            if self.held is None or not self.held.closed:
                raise
        self.release()
        return send()

    def _take(self) -> None:
        replica = self._replica if not self._place.address else None  # which follows the home alone
        connection = replica.take() if replica is not None else None
        if replica is not None and connection is not None:
            self.held, self._owner = connection, replica.pool
        else:
            self.held, self._owner = self._place.pool.take(), self._place.pool

    def command(self, text: str) -> Any:
        """Runs commands without parameters in one round trip.

        Returns the result of the last command.
        """
        try:
            with driver.timed(self.held):
                result = self.held.pgconn.exec_(text.encode())
            command_error = driver.failure(result)
        except self._psycopg.Error as error:
            self.fail(error)
        if command_error is not None:
            self.fail(command_error)
        return result

    def fail(self, error: Exception) -> NoReturn:
        fault = driver.as_fault(error, cancelled=self._cancelled)
        self._cancelled = False
        if fault is not None:
            if driver.is_locked(error):
                self.blocked = fault
            raise fault from error
        if (getattr(error, "sqlstate", None) or "").startswith(driver.CONSTRAINTS):
            raise ConstraintFailed(str(error).partition("\n")[0]) from error
        raise error

    def interrupt(self) -> None:
        connection = self.held
        if connection is not None:
            self._cancelled = True
            with suppress(self._psycopg.Error):  # if it cannot be reached, the statement ends by its time limit
                connection.cancel_safe(timeout=_CANCEL_SECONDS)

    def leave(self) -> bool:
        """Ends a transaction that has read, without waiting for the answer: the next user of the connection reads
        it; False if it cannot be sent.
        """
        with suppress(self._psycopg.Error):
            self.held.pgconn.send_query(b"ROLLBACK")
            self.held.quipu_owes = True
            return True
        return False

    def release(self) -> None:
        """Gives the connection back; safe to call twice."""
        connection, self.held = self.held, None
        if connection is not None:
            self._owner.give(connection)


class Sent:
    """A statement, and its rows once it has `left` and run: who reads them sends it, with all before it."""

    __slots__ = ("_together", "left", "prepare", "rows", "status", "text", "values")

    def __init__(self, together: "Together", text: str, values: Sequence[Any], *, prepare: bool) -> None:
        self._together = together
        self.text = text
        self.values = values
        self.prepare = prepare
        self.left = False
        self.rows: list[Row] = []
        self.status = ""

    def __iter__(self) -> Iterator[Row]:
        return iter(self.fetchall())

    def fetchall(self) -> list[Row]:
        if not self.left:
            self._together.run()
        return self.rows


class Together:
    """The statements of one session that wait to be sent. `count` is how many rows the last statement changed, and
    `total` how many all have.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._psycopg = driver.load_driver()
        self._waiting: list[Sent] = []
        self.count = 0
        self.total = 0

    def add(self, text: str, values: Sequence[Any] = (), *, prepare: bool = True) -> Sent:
        """Return a statement that is sent with the next that is run."""
        statement = Sent(self, text, values, prepare=prepare)
        self._waiting.append(statement)
        return statement

    def run(self) -> None:
        """Runs everything that waits, in one round trip; raises Fault."""
        try:
            self.run_or_raise()
        except self._psycopg.Error as error:
            self._session.fail(error)

    def run_or_raise(self) -> None:
        """Runs everything that waits; psycopg's errors are its own."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        for statement in waiting:
            statement.left = True
        with driver.timed(self._session.held):
            outcomes = driver.run_together(
                self._session.held, [(statement.text, statement.values, statement.prepare) for statement in waiting]
            )
        for statement, (rows, status, count) in zip(waiting, outcomes, strict=True):
            statement.rows, statement.status = rows, status
            self.count = 0 if status.startswith("SELECT") else count
            self.total += self.count

    def has_changes(self) -> bool:
        return any(statement.text.startswith(_CHANGES) for statement in self._waiting)

    def waits_after(self, statement: Sent) -> bool:
        return bool(self._waiting) and self._waiting[-1] is not statement

    def drop(self, since: Sent | None = None) -> None:
        """Forgets what waits: all, or this statement and those after it."""
        del self._waiting[self._waiting.index(since) if since is not None else 0 :]
