"""Errors of PostgreSQL as Faults, by their SQLSTATE (www.postgresql.org/docs/current/errcodes-appendix.html)."""

from typing import Any

from kernel.core.errors import NO_SPACE, Code, Fault
from kernel.store.engine_types import TOO_LONG

CANCELED = "57014"
CONSTRAINTS = "23"  # the class of violated constraints
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
_LOST = {"08", "57", "58"}  # connections, shutdowns and cancelling, the system beneath
UNREACHABLE = "Cannot reach the database."


def as_fault(error: BaseException, *, cancelled: bool = False) -> Fault | None:
    """Return the Fault for an error of psycopg; None for one that callers must not see, since it is a bug."""
    state: Any = getattr(error, "sqlstate", None)
    if state == CANCELED:
        return Fault("busy", "The call was cancelled.") if cancelled else Fault("invalid", TOO_LONG)
    if state in _FAULTS:
        return Fault(*_FAULTS[state])
    return Fault("busy", UNREACHABLE) if is_lost(error) else None


def is_lost(error: BaseException) -> bool:
    """Return whether the connection is gone, or its server is going: what was asked may have been done, and not
    answered.
    """
    state: Any = getattr(error, "sqlstate", None)
    kinds = {kind.__name__ for kind in type(error).__mro__}
    return (state is None or state[:2] in _LOST) and bool(kinds & {"OperationalError", "InterfaceError"})
