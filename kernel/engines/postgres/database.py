"""One tenant in PostgreSQL as a Store uses it."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from kernel.core.errors import CatchFaults
from kernel.engines.postgres.connection import Connection
from kernel.engines.postgres.full_text import ANSWERED
from kernel.engines.postgres.pool import Pool
from kernel.engines.postgres.replica import Replica
from kernel.engines.postgres.schema import migrate
from kernel.engines.postgres.shared_file import SharedFile
from kernel.engines.postgres.statements import statements
from kernel.engines.postgres.tenants.placement import TenantPlace
from kernel.engines.postgres.word_index import WordIndex
from kernel.store.context import StoreContext
from kernel.store.engine import DatabaseUse

_pools: dict[str, Pool] = {}
_replicas: dict[str, Replica] = {}
_USES = ("used", "most", "waiting", "trips")
_making: dict[str, Lock] = {}  # by address: a database that does not answer makes nobody else wait


@cache
def texts() -> Mapping[str, str]:
    return statements(ANSWERED)


def pool_of(address: str) -> Pool:
    """Return the pool of this process for a database; its schema is current."""
    with _making.setdefault(address, Lock()):
        if address not in _pools:
            pool = Pool(address)
            try:
                migrate(pool)
            finally:
                pool.close()  # a connection of before does not know our types
            _pools[address] = pool
        return _pools[address]


def _replica_of(address: str) -> Replica:
    """Return the replica of this process at an address; it has its schema from the database that it follows."""
    with _making.setdefault(address, Lock()):
        return _replicas.setdefault(address, Replica(address))


def database_use() -> DatabaseUse:
    replicas = [*_replicas.values()]
    pools = [*_pools.values(), *(replica.pool for replica in replicas)]
    in_use, most, waiting, trips = (sum(getattr(pool, name) for pool in pools) for name in _USES)
    seconds = sum(pool.seconds for pool in pools)
    state = next((replica.state for replica in replicas), "")
    past, lag = (sum(getattr(replica, name) for replica in replicas) for name in ("passed_over", "lag"))
    return DatabaseUse(in_use, most, waiting, trips, seconds, state, past, lag)


def forget_pool(address: str) -> None:
    """Let stores opened from here on have connections of their own, as another process would."""
    with _making.setdefault(address, Lock()):
        for pool in (_pools.pop(address, None), getattr(_replicas.pop(address, None), "pool", None)):
            if pool is not None:
                pool.close()


def postgres_context(
    context: StoreContext, address: str, tenant: str, file: Path, *, durable: bool = True, replica: str = ""
) -> StoreContext:
    """Return the context of a tenant in a database, which it connects to when it is first needed.

    `address` is the home, whose directory has the address of the tenant. `file` stands for the tenant if a path is
    needed; there is nothing at it. Without `durable` a crash of the database may lose the last commits. If a
    `replica` of the home is named, reads of tenants that are there go to it.
    """

    place, words = TenantPlace(address, tenant, pool_of), WordIndex()

    def connect(opened_context: StoreContext, *, reading: bool = False) -> Connection:
        reads = _replica_of(replica) if replica else None
        return Connection(
            place, opened_context, str(file), durable=durable, replica=reads, reading=reading, words=words
        )

    return context._replace(statements=texts(), connect=connect)


class PostgresDatabase:
    read_head_start = 0.0  # a read mostly waits for the server

    def __init__(self, file: Path, context: StoreContext, shared_file: SharedFile | None = None) -> None:
        self._shared_file = shared_file
        self.file = file
        self.context = context

    def start(self, catch_faults: CatchFaults) -> None:
        """Follows the shared file; PostgreSQL does its upkeep itself."""
        if self._shared_file is not None:
            self._shared_file.follow(catch_faults)

    def reader(self) -> Connection:
        return self._connect(reading=True)

    def writer(self) -> Connection:
        return self._connect()

    def _connect(self, *, reading: bool = False) -> Connection:
        assert self.context.connect is not None
        return self.context.connect(self.context, reading=reading)

    def after_commit(self, _writer: Any) -> None:
        """Do nothing: PostgreSQL writes its checkpoints itself."""

    def probe(self) -> dict[str, str]:
        """Tells whether a primary or a standby answers, and whether the replica answers, is away or is behind."""
        writer = self.writer()
        roles = {"store": _role(writer)}
        if writer.replica is not None:
            role, state = _role(self.reader()), writer.replica.state
            roles["read_store"] = role if state == "standby" else state
        return roles

    def sizes(self) -> tuple[int, int]:
        """Return zeros: the database tells its sizes itself."""
        return 0, 0

    def close(self, writer: Connection | None) -> None:
        """Closes the connection of the writer, and those that are free; other tenants open theirs again."""
        if self._shared_file is not None:
            self._shared_file.close()
        writer = writer or self.writer()
        writer.close()
        writer.pool.close()


def _role(db: Connection) -> str:
    db.execute("BEGIN", None)
    try:
        return str(db.query("engine.transaction.role")[0][0])
    finally:
        db.rollback()
