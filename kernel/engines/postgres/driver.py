"""psycopg as the store uses it: values as SQLite would return them, and text that may hold U+0000.

PostgreSQL's text cannot hold U+0000, so it is written as two characters, and the first of these as two as well."""

import json
import sys
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import count
from typing import Any

from kernel.core.errors import NO_MEMORY, NO_SPACE, Code, Fault
from kernel.store.context import TOO_LONG

_MARK = "\ue000"
_SETTINGS = (
    "search_path = quipu, pg_catalog",
    "jit = off",
    "timezone = 'UTC'",
    "client_min_messages = error",
    "standard_conforming_strings = on",
    # The statements are written for nested loops in the order of their text, and their results keep that order.
    "join_collapse_limit = 1",
    "from_collapse_limit = 1",
    "enable_hashjoin = off",
    "enable_mergejoin = off",
    "enable_seqscan = off",
)
_POOLER = "pgbouncer="  # the word of addresses that other programs take too; libpq does not know it
# Both ends notice within half a minute that the machine at the other end is gone, if the address says nothing else.
PATIENCE = 10  # seconds for a new connection
_SERVER_KEEPALIVE = (
    "tcp_keepalives_idle = 15",
    "tcp_keepalives_interval = 5",
    "tcp_keepalives_count = 3",
    "tcp_user_timeout = 30000",
)
_KEEPALIVE = {
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
_UNKNOWN_TYPE = 705  # of a literal in the columns of a result
Loaded = Any
CONSTRAINTS = ("23", "22P02", "42804")  # the class of violated constraints, and values of another type
_CANCELED = "57014"
_LOCKED = "55P03"
UNREACHABLE = "Cannot reach the database."
_LOST = {"08", "57", "58"}  # connections, shutdowns and cancelling, the system beneath
# Faults by SQLSTATE (https://www.postgresql.org/docs/current/errcodes-appendix.html).
_FAULTS: dict[str, tuple[Code, str]] = {
    "40001": ("busy", "The store is busy, try again."),
    "40P01": ("busy", "The store is busy, try again."),
    _LOCKED: ("busy", "The store is busy, try again."),
    "53200": ("busy", NO_MEMORY),
    "53300": ("busy", "The database has no connection left, try again."),
    "25P03": ("busy", "The call stood still for too long, try again."),
    "53100": ("storage", NO_SPACE),
    "25006": ("storage", "The database takes no changes: it is a standby, or set to only read."),
    "42501": ("storage", "The role of the store lacks a right that it needs."),
    "54000": ("invalid", "A key or a value is longer than PostgreSQL can hold."),
    "22003": ("invalid", "A number is too large, or a text is not valid."),
    "22021": ("invalid", "A number is too large, or a text is not valid."),
    "22P05": ("invalid", "A number is too large, or a text is not valid."),
}

_REMEDY = "`make binary POSTGRES=1`" if hasattr(sys, "frozen") else "pip install 'quipu-memory[postgres]'"


def load_driver() -> Any:
    """Return the package psycopg; raises Fault("invalid") if the extra is not installed."""
    try:
        return import_module("psycopg")
    except ImportError:
        raise Fault("invalid", f"PostgreSQL needs the package psycopg: {_REMEDY}.") from None


def escape(text: str) -> str:
    """Return text without U+0000; different texts stay different."""
    if "\0" not in text and _MARK not in text:
        return text
    return text.replace(_MARK, f"{_MARK}1").replace("\0", f"{_MARK}0")


def unescape(text: str) -> str:
    if _MARK not in text:
        return text
    return text.replace(f"{_MARK}0", "\0").replace(f"{_MARK}1", _MARK)


def connect(address: str, patience: int = PATIENCE) -> Any:
    """Return a new connection with the settings and types of the store; psycopg's errors are its own.

    Behind a pooler the next transaction may have another session, so there each transaction brings its settings, and
    nothing is prepared. A pooler is one whose key for cancelling names another process than the session's, or which the
    address says is one, by `pgbouncer=true`.
    """
    psycopg = load_driver()
    parameters, declared = address_parts(address)
    settings = {"connect_timeout": patience, **_KEEPALIVE, **parameters, "client_encoding": "UTF8"}
    # psycopg prepares nothing itself, since after a rollback it deallocates what others have prepared too.
    connection = psycopg.connect(autocommit=True, prepare_threshold=None, **settings)
    process, item = connection.execute("SELECT pg_backend_pid(), to_regtype('quipu.item')::oid").fetchone()
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED  # of `transaction`, whatever the database has
    connection.quipu_pooled = declared if declared is not None else process != connection.info.backend_pid
    if not connection.quipu_pooled:
        connection.execute("; ".join(f"SET {setting}" for setting in _SETTINGS + _SERVER_KEEPALIVE), prepare=False)
    connection.quipu_trips, connection.quipu_seconds = 0, 0.0  # since it was given back
    connection.quipu_owes = False  # the answer to a last command
    connection.quipu_prepared, connection.quipu_names = {}, count()
    adapt(psycopg, connection, item)
    return connection


def is_usable(connection: Any) -> bool:
    """Return whether a connection that was given back can be used, once its last command is answered."""
    if connection.quipu_owes and not connection.closed:
        connection.quipu_owes = False
        try:
            connection.wait(import_module("psycopg.generators").fetch_many(connection.pgconn))
        except load_driver().Error:
            connection.close()
    return not connection.closed and connection.info.transaction_status == 0


def address_parts(address: str) -> tuple[dict[str, Any], bool | None]:
    """Return the parameters of an address for libpq, and whether it says that a pooler is there; None if it does not
    say.

    Raises psycopg's error for an address that is not valid.
    """
    front, _, options = address.partition("?")
    words = options.split("&")
    poolers = [word.removeprefix(_POOLER) for word in words if word.startswith(_POOLER)]
    rest = "&".join(word for word in words if not word.startswith(_POOLER))
    return load_driver().conninfo.conninfo_to_dict(f"{front}?{rest}"), poolers[-1] == "true" if poolers else None


def transaction_settings(connection: Any) -> list[str]:
    return [f"SET LOCAL {setting}" for setting in _SETTINGS] if connection.quipu_pooled else []


@contextmanager
def timed(connection: Any) -> Generator[None]:
    start = time.perf_counter()
    try:
        yield
    finally:
        connection.quipu_trips += 1
        connection.quipu_seconds += time.perf_counter() - start


@contextmanager
def transaction(connection: Any, *settings: str) -> Generator[None]:
    """Open a transaction that begins with these commands; psycopg's errors are its own."""
    with connection.transaction():
        if commands := [*transaction_settings(connection), *settings]:
            connection.execute("; ".join(commands), prepare=False)
        yield


Statements = Sequence[tuple[str, Sequence[Any], bool]]
Outcome = tuple[list[tuple[Any, ...]], str, int]


def run_together(connection: Any, statements: Statements) -> list[Outcome]:
    """Run statements with their values, which are prepared or not; return of each the rows, the status, and how many
    rows it changed. Raises psycopg's error of the first that fails; the later statements are not run.

    They leave in one piece: a process that stands still between two would keep its locks, since PostgreSQL ends only a
    transaction that is idle, and between two statements that came without a break it is not.
    """
    psycopg, receive = load_driver(), import_module("psycopg.generators")
    pgconn, transformer = connection.pgconn, load_driver().adapt.Transformer(connection)
    pgconn.enter_pipeline_mode()
    try:
        new_names = _send_together(connection, transformer, statements)
        connection.wait(receive.send(pgconn))
        results = [connection.wait(receive.fetch_many(pgconn))[-1] for _ in new_names]
        connection.wait(receive.fetch_many(pgconn))  # the end of all
    finally:
        if pgconn.status != psycopg.pq.ConnStatus.BAD:
            pgconn.exit_pipeline_mode()
    outcomes: list[Outcome] = []
    for result, names in zip(results, new_names, strict=True):
        if (error := failure(result)) is not None:
            raise error
        connection.quipu_prepared.update(names or ())
        if names is None:
            outcomes.append(_outcome(psycopg, transformer, result))
    return outcomes


def _send_together(connection: Any, transformer: Any, statements: Statements) -> list[dict[Any, bytes] | None]:
    """Send statements; return for each result to come the name that it prepares, or None."""
    psycopg, pgconn = load_driver(), connection.pgconn
    binary, any_format = psycopg.pq.Format.BINARY, psycopg.adapt.PyFormat.AUTO
    prepared: list[dict[Any, bytes] | None] = []
    for text, values, prepare in statements:
        params = transformer.dump_sequence(values, [any_format] * len(values))
        types, formats = transformer.types, transformer.formats
        if prepare and not connection.quipu_pooled:
            name = connection.quipu_prepared.get((text, types))
            if name is None:
                name = b"quipu_%d" % next(connection.quipu_names)
                pgconn.send_prepare(name, text.encode(), types)
                prepared.append({(text, types): name})
            pgconn.send_query_prepared(name, params, formats, binary)
        else:
            pgconn.send_query_params(text.encode(), params, types, formats, binary)
        prepared.append(None)
    pgconn.pipeline_sync()
    return prepared


def _outcome(psycopg: Any, transformer: Any, result: Any) -> Outcome:
    rows: list[tuple[Any, ...]] = []
    if result.status == psycopg.pq.ExecStatus.TUPLES_OK:
        transformer.set_pgresult(result)
        rows = transformer.load_rows(0, result.ntuples, tuple)
    return rows, (result.command_status or b"").decode(), result.command_tuples or 0


def failure(result: Any) -> Exception | None:
    """Return the error of a command that was given to libpq itself."""
    psycopg = load_driver()
    if result.status != psycopg.pq.ExecStatus.FATAL_ERROR:
        return None
    message = bytes(result.error_message).decode(errors="replace")
    state = result.error_field(psycopg.pq.DiagnosticField.SQLSTATE)
    kind = psycopg.errors.lookup(state.decode()) if state else psycopg.OperationalError  # it was lost
    return kind(message.removeprefix("ERROR:").strip())


def as_fault(error: BaseException, *, cancelled: bool = False) -> Fault | None:
    """Return the Fault for an error of psycopg; None for a bug, which callers must not see."""
    state: Any = getattr(error, "sqlstate", None)
    if state == _CANCELED:
        return Fault("busy", "The call was cancelled.") if cancelled else Fault("invalid", TOO_LONG)
    if state in _FAULTS:
        return Fault(*_FAULTS[state])
    return Fault("busy", UNREACHABLE) if is_lost(error) else None


def is_locked(error: BaseException) -> bool:
    """Return whether a statement has waited for a lock for as long as it may."""
    return getattr(error, "sqlstate", None) == _LOCKED


def is_lost(error: BaseException) -> bool:
    """Return whether the connection is gone, or its server is going: the command may have been done without an
    answer.
    """
    state: Any = getattr(error, "sqlstate", None)
    kinds = {kind.__name__ for kind in type(error).__mro__}
    return (state is None or state[:2] in _LOST) and bool(kinds & {"OperationalError", "InterfaceError"})


def adapt(psycopg: Any, connection: Any, item: int | None) -> None:
    """Registers how values are written and read; `item` is the type quipu.item, if the schema is there."""
    adapters = connection.adapters
    for kind, dumper in _dumpers(psycopg).items():
        adapters.register_dumper(kind, dumper)
    for name, loader in _loaders(psycopg).items():
        adapters.register_loader(name, loader)
    if item is not None:
        adapters.register_loader(item, _item_loader(psycopg))


def _dumpers(psycopg: Any) -> dict[type, Any]:
    """Numbers and text go without a type, so that each takes the type of its place in the statement."""

    class Number(psycopg.adapt.Dumper):
        def dump(self, obj: Any) -> bytes:
            return b"%d" % obj

    class Real(psycopg.adapt.Dumper):
        def dump(self, obj: float) -> bytes:
            return repr(obj).encode()

    class Text(psycopg.adapt.Dumper):
        def dump(self, obj: str) -> bytes:
            return obj.encode()

    return {int: Number, bool: Number, float: Real, str: Text}


def _loaders(psycopg: Any) -> dict[str | int, Any]:
    binary = psycopg.pq.Format.BINARY
    numeric: Any = import_module("psycopg.types.numeric").NumericBinaryLoader

    class Truth(psycopg.adapt.Loader):
        format = binary

        def load(self, data: Any) -> int:
            return int(data != b"\x00")

    class Text(psycopg.adapt.Loader):
        format = binary

        def load(self, data: Any) -> str:
            return unescape(bytes(data).decode())

    class Sum(numeric):
        def load(self, data: Any) -> float:
            value: Any = numeric.load(self, data)
            return int(value) if value.as_tuple().exponent == 0 else float(value)

    return {"bool": Truth, "text": Text, "varchar": Text, "name": Text, _UNKNOWN_TYPE: Text, "numeric": Sum}


def _item_loader(psycopg: Any) -> Any:
    class Item(psycopg.adapt.Loader):
        """quipu.item: one field of jsonb, after the number of fields, its type, its size and a version byte."""

        format = psycopg.pq.Format.BINARY

        def load(self, data: Any) -> Loaded:
            raw = bytes(data)
            if len(raw) < 13:
                return None
            value = json.loads(raw[13:])
            if isinstance(value, str):
                return unescape(value)
            return int(value) if isinstance(value, bool) else value

    return Item


MOST = 16  # connections of a process, however many tenants it serves
BUSY = "The server is busy, try again."
_WAIT_SECONDS = 5.0
_ATTEMPTS = 5  # of a new connection, with pauses that double: half a second in all
_FIRST_PAUSE = 0.03
# For so long after these no connection is tried: a thread that opens a tenant keeps others waiting.
_REST_SECONDS = 0.25


class Pool:
    """At most `most` connections; the connection given back last is taken first, since its statements are prepared.

    A new connection is tried `attempts` times, each for `patience` seconds if the address says nothing else.
    """

    def __init__(self, address: str, most: int = MOST, attempts: int = _ATTEMPTS, patience: int = PATIENCE) -> None:
        self.address = address
        self._attempts = attempts
        self._patience = patience
        self._free: list[Any] = []
        self._lock = threading.Lock()
        self._room = threading.Semaphore(most)
        self.most = most
        self.used = 0  # connections that are lent
        self.waiting = 0  # callers that wait for a connection
        self.trips, self.seconds = 0, 0.0  # waits for the database by transactions of tenants
        self._away_until = 0.0
        self.taken = 0  # how often a connection was

    def take(self) -> Any:
        """Return a connection that is not in a transaction; raises Fault if none is free or the database does
        not answer.
        """
        if not self._room.acquire(blocking=False):
            with self._lock:
                self.waiting += 1
            has_room = self._room.acquire(timeout=_WAIT_SECONDS)
            with self._lock:
                self.waiting -= 1
            if not has_room:
                raise Fault("busy", BUSY)
        connection: Any = None
        try:
            with self._lock:
                self.taken += 1
                self.used += 1
                free = self._free.pop(self._next()) if self._free else None
            connection = free if free is not None and is_usable(free) else self._connected()
        finally:
            if connection is None:
                with self._lock:
                    self.used -= 1
                self._room.release()
        return connection

    def give(self, connection: Any) -> None:
        """Returns a connection, which is closed if it is broken or in a transaction."""
        with self._lock:
            self.used -= 1
            self.trips += connection.quipu_trips
            self.seconds += connection.quipu_seconds
        connection.quipu_trips, connection.quipu_seconds = 0, 0.0
        idle = not connection.closed and (connection.quipu_owes or connection.info.transaction_status == 0)
        if idle:
            with self._lock:
                self._free.append(connection)
        else:
            connection.close()
            self.close()  # the connections that are free were most likely lost too
        self._room.release()

    @contextmanager
    def lent(self) -> Generator[Any]:
        """Yield a connection in no transaction; errors of the database are Faults."""
        connection = self.take()
        try:
            yield connection
        except load_driver().Error as error:
            raise as_fault(error) or Fault("storage", UNREACHABLE) from error
        finally:
            self.give(connection)

    @contextmanager
    def transaction(self, *settings: str) -> Generator[Any]:
        """Yield a connection in a transaction that begins with these commands; errors of the database are Faults."""
        with self.lent() as connection, transaction(connection, *settings):
            yield connection

    def close(self) -> None:
        with self._lock:
            free, self._free = self._free, []
        for connection in free:
            connection.close()

    def _next(self) -> int:
        places = range(len(self._free) - 1, -1, -1)
        return next((at for at in places if not self._free[at].quipu_owes), 0)

    def _connected(self) -> Any:
        psycopg = load_driver()
        if time.monotonic() < self._away_until:
            raise Fault("busy", UNREACHABLE)
        end = time.monotonic() + _WAIT_SECONDS  # a machine that is gone refuses nothing, and each attempt takes long
        for attempt in range(self._attempts):
            try:
                return connect(self.address, self._patience)
            except psycopg.Error as error:
                fault = as_fault(error)
                if fault is None:
                    raise
                if attempt == self._attempts - 1 or time.monotonic() > end:
                    self._away_until = time.monotonic() + _REST_SECONDS
                    raise fault from error
            time.sleep(_FIRST_PAUSE * 2**attempt)
        raise Fault("busy", UNREACHABLE)
