"""The database of each tenant: the home, which servers are started with, has the directory of all tenants."""

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from kernel.core.errors import Fault
from kernel.engines.postgres.driver import Pool
from kernel.engines.postgres.statements import run
from kernel.store.statements import ROOT

HOME = ""  # the address of the home in its own tables
_MOST_HOPS = 4
_PAUSE_SECONDS = 0.05  # before a tenant that is just arriving is looked for again
_LOCK_WAIT = "SET LOCAL lock_timeout = 5000"
_SEEDS = ROOT / "postgres/schema/tenant/0001_seeds.sql"  # the rows that a new tenant begins with
MOVING = "The tenant is being moved to another database, try again."
_REMOVED = "The tenant was removed."
_NO_SERVER = "No database takes new tenants: `quipu store add ADDRESS` names one."
PoolOf = Callable[[str], Pool]


class Place(NamedTuple):
    """The database of a tenant: its address in the directory, and the tenant's number there."""

    address: str
    pool: Pool
    number: int


class Server(NamedTuple):
    """A database of the directory: whether it takes new tenants, and how many it has."""

    address: str
    new: bool
    tenants: int


class TenantPlace:
    """Finds a tenant when it is first needed, and anew once a transaction has met it elsewhere."""

    def __init__(self, home: str, tenant: str, pool_of: PoolOf) -> None:
        self._home = home
        self._tenant = tenant
        self._pool_of = pool_of
        self._found: Place | None = None
        self._is_new = True  # whether it was never there: a tenant that is gone is not made again

    def find(self) -> Place:
        if self._found is None:
            self._found = self._look()
            self._is_new = False
        return self._found

    def find_again(self, left: Place) -> Place:
        """Return the place of the tenant after it moved; other tenants of the old place open connections again."""
        left.pool.close()
        if self._found is left or self._found is None:
            self._found = None
            time.sleep(_PAUSE_SECONDS)
        return self.find()

    def _look(self) -> Place:
        home = self._pool_of(self._home)
        address = _placed(home, self._tenant, new=self._is_new)
        for _ in range(_MOST_HOPS):
            pool = self._pool_of(address or self._home)
            number = _number(pool, self._tenant, new=self._is_new)
            with transaction(pool) as db:
                moves, moved_to, _ = run(db, "engine.directory.state", number=number).fetchone()
            if moved_to is None:
                return Place(address, pool, number)
            # A tenant that has left is whole in its new database, and arrives there even if its mover was killed.
            with transaction(self._pool_of(moved_to or self._home)) as db:
                run(db, "engine.directory.arrive", tenant=self._tenant, moves=moves + 1)
            repoint(home, self._tenant, address, moved_to)
            address = moved_to
        raise Fault("busy", MOVING)


def _placed(home: Pool, tenant: str, *, new: bool) -> str:
    """Return the address of a tenant; a new tenant goes to the database with the fewest."""
    with transaction(home) as db:
        if (row := run(db, "engine.directory.find", tenant=tenant).fetchone()) is not None:
            return row[0]
        if not new:
            raise Fault("not_found", _REMOVED)
        run(db, "engine.directory.lock")
        row = run(db, "engine.directory.find", tenant=tenant).fetchone()
        if row is None:
            row = run(db, "engine.directory.fewest").fetchone()
            if row is None:
                raise Fault("storage", _NO_SERVER)
            run(db, "engine.directory.place", tenant=tenant, address=row[0])
        return row[0]


def _number(pool: Pool, tenant: str, *, new: bool) -> int:
    """Return the number of a tenant in a database; a new tenant is made if it does not exist."""
    with pool.transaction() as db:
        if row := run(db, "engine.directory.number", tenant=tenant).fetchone():
            return row[0]
        if not new:
            raise Fault("not_found", _REMOVED)
        row = run(db, "engine.directory.add", tenant=tenant).fetchone()
        (number,) = row or run(db, "engine.directory.number", tenant=tenant).fetchone()
        db.execute(f"SET LOCAL quipu.tenant = '{int(number)}'")
        if row:
            db.execute(_SEEDS.read_text(encoding="utf-8"), prepare=False)
            run(db, "engine.directory.keep_ids")
        return number


def repoint(home: Pool, tenant: str, before: str, after: str) -> None:
    with transaction(home) as db:
        run(db, "engine.directory.repoint", tenant=tenant, before=before, after=after)


def add_server(home: Pool, address: str, pool: Pool) -> None:
    """Let new tenants go to a database; raises Fault for another address of the home."""
    with transaction(home) as db:
        with transaction(pool) as connection:
            if address != HOME and same_database(db, connection):
                raise Fault("invalid", "That is the database of QUIPU_STORE, whose name is home.")
        run(db, "engine.directory.add_server", address=address)


def remove_server(home: Pool, address: str) -> None:
    """Let no new tenants go to a database; raises Fault if none did."""
    with transaction(home) as db:
        if not run(db, "engine.directory.remove_server", address=address).rowcount:
            raise Fault("not_found", "That database takes no new tenants: `quipu store list` shows those that do.")


def placements(home: Pool) -> list[tuple[str, str]]:
    with transaction(home) as db:
        return run(db, "engine.directory.tenants").fetchall()


def servers(home: Pool) -> list[Server]:
    with transaction(home) as db:
        return [
            Server(address, bool(new), count) for address, new, count in run(db, "engine.directory.servers").fetchall()
        ]


def same_database(left: Any, right: Any) -> bool:
    """Return whether two connections in transactions have the same database: a lock of the first is in the way of
    the second.
    """
    key = int.from_bytes(os.urandom(8)) >> 1
    return not all(run(db, "engine.directory.identify", key=key).fetchone()[0] for db in (left, right))


def transaction(pool: Pool) -> AbstractContextManager[Any]:
    """Return a connection in a transaction that does not wait long for locks."""
    return pool.transaction(_LOCK_WAIT)
