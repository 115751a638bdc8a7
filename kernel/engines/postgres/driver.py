"""psycopg as the store uses it: values as SQLite would return them, and text that may hold U+0000.

PostgreSQL's text cannot hold U+0000, so it is written as two characters, and the first of these as two as well.
"""

import json
from importlib import import_module
from typing import Any

from kernel.core.errors import NO_SPACE, Code, Fault
from kernel.store.engine_types import TOO_LONG

_MARK = "\ue000"
_SETTINGS = (
    "SET search_path = quipu, pg_catalog; SET jit = off; SET TIME ZONE 'UTC'; SET client_min_messages = error; "
    # The statements are written for nested loops in the order of their text, and their results keep that order.
    "SET join_collapse_limit = 1; SET from_collapse_limit = 1; SET enable_hashjoin = off; SET enable_mergejoin = off; "
    "SET enable_seqscan = off; SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; "
    "SET tcp_keepalives_count = 3; SET tcp_user_timeout = 30000"
)
# Both ends notice within half a minute that the machine at the other end is gone, if the address says nothing else.
PATIENCE = 10  # seconds for a new connection
_KEEPALIVE = {
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
_UNKNOWN_TYPE = 705  # of a literal in the columns of a result
PREPARED = 1000  # more than sql/ has
Loaded = Any
CONSTRAINTS = "23"  # the class of violated constraints
_CANCELED = "57014"
UNREACHABLE = "Cannot reach the database."
_LOST = {"08", "57", "58"}  # connections, shutdowns and cancelling, the system beneath
# Faults by SQLSTATE (https://www.postgresql.org/docs/current/errcodes-appendix.html).
_FAULTS: dict[str, tuple[Code, str]] = {
    "40001": ("busy", "The store is busy, try again."),
    "40P01": ("busy", "The store is busy, try again."),
    "55P03": ("busy", "The store is busy, try again."),
    "53200": ("busy", "Too little memory is free, try again."),
    "53300": ("busy", "The database has no connection left, try again."),
    "25P03": ("busy", "The call stood still for too long, try again."),
    "53100": ("storage", NO_SPACE),
    "25006": ("storage", "The database is a standby, which only reads."),
    "42501": ("storage", "The role of the store lacks a right that it needs."),
    "54000": ("invalid", "A key or a value is longer than PostgreSQL can hold."),
    "22003": ("invalid", "A number is too large, or a text is not valid."),
    "22021": ("invalid", "A number is too large, or a text is not valid."),
    "22P05": ("invalid", "A number is too large, or a text is not valid."),
}


def load_driver() -> Any:
    """Return the package psycopg; raises Fault("invalid") if the extra is not installed."""
    try:
        return import_module("psycopg")
    except ImportError:
        raise Fault("invalid", "PostgreSQL needs the package psycopg: pip install 'quipu-memory[postgres]'.") from None


def escape(text: str) -> str:
    """Return text without U+0000; different texts stay different."""
    if "\0" not in text and _MARK not in text:
        return text
    return text.replace(_MARK, f"{_MARK}1").replace("\0", f"{_MARK}0")


def unescape(text: str) -> str:
    """Return the text that `escape` was given."""
    if _MARK not in text:
        return text
    return text.replace(f"{_MARK}0", "\0").replace(f"{_MARK}1", _MARK)


def connect(address: str, patience: int = PATIENCE) -> Any:
    """Return a new connection with the settings and types of the store; psycopg's errors are its own."""
    psycopg = load_driver()
    parameters = psycopg.conninfo.conninfo_to_dict(address)
    settings = {"connect_timeout": patience, **_KEEPALIVE}
    defaults = {name: value for name, value in settings.items() if name not in parameters}
    connection = psycopg.connect(address, autocommit=True, prepare_threshold=0, **defaults)
    connection.prepared_max = PREPARED
    connection.execute(_SETTINGS, prepare=False)
    adapt(psycopg, connection)
    return connection


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


def is_lost(error: BaseException) -> bool:
    """Return whether the connection is gone, or its server is going: the command may have been done without an
    answer.
    """
    state: Any = getattr(error, "sqlstate", None)
    kinds = {kind.__name__ for kind in type(error).__mro__}
    return (state is None or state[:2] in _LOST) and bool(kinds & {"OperationalError", "InterfaceError"})


def adapt(psycopg: Any, connection: Any) -> None:
    """Registers how values are written and read."""
    adapters = connection.adapters
    for kind, dumper in _dumpers(psycopg).items():
        adapters.register_dumper(kind, dumper)
    for name, loader in _loaders(psycopg).items():
        adapters.register_loader(name, loader)
    row = connection.execute("SELECT to_regtype('quipu.item')::oid").fetchone()
    if row[0] is not None:
        adapters.register_loader(row[0], _item_loader(psycopg))


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
