"""The engine we carry: its version, and its errors put into our own words."""

import apsw

from kernel.errors import Code, Fault

OLDEST_SQLITE = 3051003
UNSOUND = (apsw.CorruptError, apsw.NotADBError)  # what the engine says of a file that is no sound database
_FAULTS: tuple[tuple[tuple[type[BaseException], ...], Code, str], ...] = (
    ((apsw.BusyError, apsw.LockedError), "busy", "The store is busy, try again."),
    ((apsw.InterruptError,), "busy", "The call was cancelled."),
    ((apsw.NoMemError, MemoryError), "busy", "Too little memory is free, try again."),
    ((apsw.FullError,), "storage", "Cannot write to storage, insufficient disk space."),
    ((apsw.IOError, apsw.ReadOnlyError, apsw.CantOpenError), "storage", "Cannot write to storage."),
    ((*UNSOUND, UnicodeDecodeError), "storage", "The database is damaged: run `quipu check`, or restore a backup."),
    ((apsw.TooBigError, OverflowError, UnicodeEncodeError), "invalid", "A value is too large or is not valid text."),
)


def as_fault(error: BaseException) -> Fault | None:
    """The engine's error as a Fault, or None if it is not one of the engine's that a caller should hear of."""
    return next((Fault(code, text) for kinds, code, text in _FAULTS if isinstance(error, kinds)), None)


def sqlite_version() -> int:
    """The version number of the SQLite we carry, for example 3054001."""
    return apsw.SQLITE_VERSION_NUMBER
