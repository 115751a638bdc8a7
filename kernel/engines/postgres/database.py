"""One tenant in PostgreSQL as a Store uses it."""

import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from kernel.core.data_dir import make_private, write_private
from kernel.core.errors import CatchFaults, Fault
from kernel.engines.postgres.connection import Connection
from kernel.engines.postgres.driver import Pool, escape
from kernel.engines.postgres.full_text import ANSWERED, WordIndex
from kernel.engines.postgres.replica import Replica
from kernel.engines.postgres.schema import migrate
from kernel.engines.postgres.statements import statements
from kernel.engines.postgres.tenants.placement import TenantPlace
from kernel.store.context import StoreContext
from kernel.store.engine import DatabaseUse

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
    is_remote = True

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
