"""Moves a tenant to another database while it is written, so that one of the two databases is right at any time, or
erases its rows. The databases compare the rows of both by digests.
"""

import os
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from heapq import merge
from itertools import count, groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple

from kernel.core.errors import Fault
from kernel.engines.postgres.driver import as_fault, connect, load_driver
from kernel.engines.postgres.statements import run
from kernel.engines.postgres.tenants import placement
from kernel.engines.postgres.tenants.placement import PoolOf, TenantPlace

_ROUNDS = 2  # before writes are paused: the second copies the writes during the first
_PAUSE_MILLISECONDS = 60_000  # for writers that are at work, and for a mover whose machine is no more
_LOCK_SECONDS, _LOCK_STEP = 5.0, 0.1  # a mover's statements are short
_SETTINGS = "SET synchronous_commit = on; SET enable_hashjoin = on; SET enable_seqscan = on; SET work_mem = '64MB'"
_TAKEN = "The tenant is being moved by another process."
_OVER_TAKEN = "Another process has begun to move the tenant."
_IN_USE = "That database has a tenant of this name already, which did not come from here."
_DIFFERENT = "What arrived differs from what was sent: the tenant stays where it was."
_POOLED = "A move needs the database itself: use its own address, not that of a pooler."
Report = Callable[[int], None]


class Moved(NamedTuple):
    """The result of a move: the rows it copied, and for how many seconds writes waited."""

    rows: int
    paused: float


_BUCKET_DIGITS = 2  # hexadecimal, of the digest of a key: 256 buckets a table
_PAGE = 2000  # digests of rows that are fetched at once
_MOST_ROWS = 100_000  # that are looked for by their digests, which then take 8 MB


class Table(NamedTuple):
    """A table, and as SQL its columns and those of its primary key, each without the tenant."""

    name: str
    columns: str
    key: str

    def rows(self, number: int) -> str:
        """Return the digests of the key and of the whole of each row of a tenant."""
        return (
            f'SELECT md5(ROW({self.key})::text) COLLATE "C" AS k, md5(ROW({self.columns})::text) AS d '
            f'FROM quipu_data."{self.name}" WHERE tenant = {number}'
        )

    def buckets(self, number: int) -> str:
        return (
            f"SELECT '{self.name}' AS name, left(k, {_BUCKET_DIGITS}) AS bucket, md5(string_agg(d, '' ORDER BY k)) "
            f"FROM ({self.rows(number)}) AS r GROUP BY 2"
        )


class Difference:
    """The writes that make a tenant of the target equal to that of the source.

    Both are connections in a transaction, and come with the number of the tenant there.
    """

    def __init__(self, source: Any, target: Any, sent: int, arriving: int) -> None:
        self._source = source
        self._target = target
        self._sent = sent
        self._arriving = arriving
        self._streams = count()
        self._buckets: dict[str, list[str]] = {}

    def tables(self, among: Sequence[Table] = ()) -> list[Table]:
        tables = among or _tables(self._source)
        with ThreadPoolExecutor(1) as beside:
            digests = beside.submit(_digests, self._source, tables, self._sent)
            here = _digests(self._target, tables, self._arriving)
            there = digests.result()
        self._buckets = {}
        for name, bucket in sorted(at for at in there.keys() | here.keys() if there.get(at) != here.get(at)):
            self._buckets.setdefault(name, []).append(bucket)
        return [table for table in tables if table.name in self._buckets]

    def copy(self, table: Table) -> int:
        """Write the differences of such a table; return the number of rows sent."""
        self._target.execute(f"SET LOCAL quipu.tenant = '{self._arriving}'")
        there = f'SELECT EXISTS (SELECT FROM quipu_data."{table.name}" WHERE tenant = {self._arriving})'
        if not self._target.execute(there).fetchone()[0]:
            return self._send(table, "")
        keys = list(islice(self._differing(table), _MOST_ROWS + 1))
        # All at once: a unique value may have gone from one row to another.
        return self._replace(table, f"AND {_chosen(table, keys)}" if len(keys) <= _MOST_ROWS else "")

    def _differing(self, table: Table) -> Iterator[str]:
        sides = (
            self._stream(self._source, table.rows(self._sent), self._buckets[table.name]),
            self._stream(self._target, table.rows(self._arriving), self._buckets[table.name]),
        )
        for key, group in groupby(merge(*sides), key=itemgetter(0)):
            digests = [digest for _, digest in group]
            if len(digests) != len(sides) or digests[0] != digests[1]:
                yield key

    def _stream(self, db: Any, rows: str, buckets: list[str]) -> Iterator[tuple[str, str]]:
        query = f"SELECT k, d FROM ({rows}) AS r WHERE left(k, {_BUCKET_DIGITS}) = ANY ({_listed(buckets)}) ORDER BY k"
        cursor = f"difference_{next(self._streams)}"  # those that are not read to their end stay open
        db.execute(f"DECLARE {cursor} NO SCROLL CURSOR FOR {query}", prepare=False)
        while page := db.execute(f"FETCH {_PAGE} FROM {cursor}", prepare=False).fetchall():
            yield from page
        db.execute(f"CLOSE {cursor}", prepare=False)

    def _replace(self, table: Table, condition: str) -> int:
        self._target.execute(f'DELETE FROM quipu_data."{table.name}" WHERE tenant = {self._arriving} {condition}')
        return self._send(table, condition)

    def _send(self, table: Table, condition: str) -> int:
        query = f'SELECT {table.columns} FROM quipu_data."{table.name}" WHERE tenant = {self._sent} {condition}'
        arriving = f'COPY quipu_data."{table.name}" ({table.columns}) FROM STDIN'
        with self._source.cursor() as reader, self._target.cursor() as writer:
            with reader.copy(f"COPY ({query}) TO STDOUT") as output, writer.copy(arriving) as target:
                for block in output:
                    target.write(block)
            return int(writer.rowcount)


def move(home: str, tenant: str, to: str, pool_of: PoolOf, report: Report) -> Moved:
    """Moves a tenant to the database of an address, and finishes a move there that was interrupted; raises Fault."""
    to = placement.HOME if to == home else to
    place = TenantPlace(home, tenant, pool_of).find()
    try:
        if place.address == to:
            _clear_left(home, tenant, place, pool_of)
            return Moved(0, 0.0)
        pool_of(to or home)  # its schema is current
        with _session(home, place.address) as source, _session(home, to) as target:
            moved = _Move(source, target, tenant, place, report).run(to)
    except load_driver().Error as error:
        if (fault := as_fault(error)) is None:
            raise
        raise fault from error
    placement.repoint(pool_of(home), tenant, place.address, to)
    _clear_left(home, tenant, TenantPlace(home, tenant, pool_of).find(), pool_of)
    return moved


@contextmanager
def _session(home: str, address: str) -> Generator[Any]:
    with closing(connect(address or home)) as connection:
        if connection.quipu_pooled:  # which would give the lock of movers to another session
            raise Fault("invalid", _POOLED)
        connection.execute(_SETTINGS, prepare=False)
        yield connection


class _Move:
    """One move from a place. The lock of movers belongs to the session that says that the tenant has left: whoever has
    lost it can no longer say so.
    """

    def __init__(self, source: Any, target: Any, tenant: str, place: placement.Place, report: Report) -> None:
        self._source = source
        self._target = target
        self._tenant = tenant
        self._place = place
        self._report = report
        self._mover = int.from_bytes(os.urandom(8)) >> 1
        self._arriving = 0  # its number in the target
        self._rows = 0

    def run(self, to: str) -> Moved:
        number = self._place.number
        with self._source.transaction(), self._target.transaction():
            if placement.same_database(self._source, self._target):  # by another address
                return Moved(0, 0.0)
        self._lock()
        moves, _, here = run(self._source, "engine.directory.state", number=number).fetchone()
        if not here:
            raise Fault("conflict", _OVER_TAKEN)
        self._claim(moves + 1)
        difference = Difference(self._source, self._target, number, self._arriving)
        for _ in range(_ROUNDS):
            with self._reading():
                self._copy(difference)
        with self._paused() as began:
            tables = self._copy(difference)
            with self._target.transaction():
                self._check_claim()
                if tables and difference.tables(tables):
                    raise Fault("storage", _DIFFERENT)
                run(self._source, "engine.moving.leave", address=to, number=number)
                self._source.execute("COMMIT")  # from here on the target is right
                run(self._target, "engine.moving.arrived", number=self._arriving)
        return Moved(self._rows, round(time.monotonic() - began, 3))

    def _lock(self) -> None:
        """Keeps other movers out; waits for the session of a killed mover, which ends with its statement."""
        seconds = 0.0
        while not run(self._source, "engine.moving.lock", number=self._place.number).fetchone()[0]:
            if seconds >= _LOCK_SECONDS:
                raise Fault("conflict", _TAKEN)
            time.sleep(_LOCK_STEP)
            seconds += _LOCK_STEP

    def _claim(self, moves: int) -> None:
        with self._target.transaction():
            run(self._target, "engine.moving.expect", tenant=self._tenant)
            self._arriving, here = run(self._target, "engine.moving.find", tenant=self._tenant).fetchone()
            if here:
                raise Fault("conflict", _IN_USE)
            claim = {"mover": self._mover, "moves": moves, "address": self._place.address}
            run(self._target, "engine.moving.claim", number=self._arriving, **claim)

    def _check_claim(self) -> None:
        if run(self._target, "engine.moving.claimed", number=self._arriving, mover=self._mover).fetchone() is None:
            raise Fault("conflict", _OVER_TAKEN)

    def _copy(self, difference: Difference) -> list[Table]:
        """Makes the target equal to the view of the source's open transaction, one table in a transaction; the
        tables that differed.
        """
        tables = difference.tables()
        for table in tables:
            with self._target.transaction():
                self._check_claim()
                self._rows += difference.copy(table)
            self._report(self._rows)
        return tables

    @contextmanager
    def _reading(self) -> Generator[None]:
        self._source.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield
        self._source.execute("COMMIT")

    @contextmanager
    def _paused(self) -> Generator[float]:
        """Make writers wait until the end of the transaction; yield the time of the beginning."""
        self._source.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
        self._source.execute(f"SET LOCAL lock_timeout = {_PAUSE_MILLISECONDS}")
        self._source.execute(f"SET LOCAL idle_in_transaction_session_timeout = {_PAUSE_MILLISECONDS}")
        run(self._source, "engine.moving.pause", number=self._place.number)
        yield time.monotonic()


def _clear_left(home: str, tenant: str, place: placement.Place, pool_of: PoolOf) -> None:
    """Deletes the rows that a tenant has left in its last database, which only take room."""
    with ExitStack() as stack:
        here = stack.enter_context(placement.transaction(place.pool))
        (came_from,) = run(here, "engine.moving.came_from", number=place.number).fetchone()
        if came_from is None:
            return
        before = stack.enter_context(placement.transaction(pool_of(came_from or home)))
        if (left := run(before, "engine.moving.left", tenant=tenant).fetchone()) is not None:
            forget_rows(before, left[0])
        run(here, "engine.moving.cleared", number=place.number)


def erase_rows(home: str, tenant: str, pool_of: PoolOf) -> int:
    """Erase a tenant in its database and in the directory; return the number of its rows. Raises Fault.

    Its number is not used again, so that a server that still has it open finds nothing.
    """
    if tenant not in dict(placement.placements(pool_of(home))):
        return 0
    place = TenantPlace(home, tenant, pool_of).find()
    _clear_left(home, tenant, place, pool_of)
    with placement.transaction(place.pool) as db:
        if not run(db, "engine.moving.lock_alone", number=place.number).fetchone()[0]:
            raise Fault("conflict", _TAKEN)
        run(db, "engine.moving.pause", number=place.number)
        rows = forget_rows(db, place.number)
        run(db, "engine.directory.bury", number=place.number)
    with placement.transaction(pool_of(home)) as db:
        run(db, "engine.directory.unplace", tenant=tenant)
    return rows


def forget_rows(db: Any, number: int) -> int:
    return sum(
        db.execute(f'DELETE FROM quipu_data."{table.name}" WHERE tenant = {number}').rowcount for table in _tables(db)
    )


def _tables(db: Any) -> list[Table]:
    return [Table(*row) for row in run(db, "engine.moving.tables").fetchall()]


def _digests(db: Any, tables: Sequence[Table], number: int) -> dict[tuple[str, str], str]:
    rows = db.execute(" UNION ALL ".join(table.buckets(number) for table in tables)).fetchall()
    return {(name, bucket): digest for name, bucket, digest in rows}


def _chosen(table: Table, keys: Sequence[str]) -> str:
    return f"md5(ROW({table.key})::text) = ANY ({_listed(keys)})"


def _listed(digests: Sequence[str]) -> str:
    return f"CAST('{{{','.join(digests)}}}' AS text [])"
