"""The SQLite version in use, SQLite's errors as Faults, and the errors of its integrity check."""

import errno

import apsw

from kernel.core.errors import NO_MEMORY, NO_SPACE, Code, Fault, is_disk_full
from kernel.store.context import ConstraintFailed

OLDEST_SQLITE = 3051003  # 3.51.3: older versions can lose pages while checkpointing
DAMAGED = (apsw.CorruptError, apsw.NotADBError)  # raised for a file that is no sound database
WRONG_SCHEMA = (apsw.SQLError,)  # raised by a statement of ours if the text of the schema is damaged
MALFORMED = "database disk image is malformed"  # SQLite's words if a read meets damage
SQLITE_ERRORS = (apsw.Error,)
CONSTRAINTS = (apsw.ConstraintError, apsw.MismatchError, ConstraintFailed)  # a mismatch: a text as a rowid
DISK_FULL = (apsw.FullError,)
BUSY = (apsw.BusyError,)
CANNOT_OPEN = (apsw.CantOpenError, apsw.ReadOnlyError)  # of a log without an index on a file system that is read-only
# SQLite reports memory that it cannot map, or that its I/O layer cannot get, as an error of the disk.
_OUT_OF_MEMORY = {apsw.SQLITE_IOERR_NOMEM, apsw.SQLITE_IOERR_SHMMAP}
_EXHAUSTED = {errno.ENOMEM, errno.EMFILE, errno.ENFILE}
_FAULTS: tuple[tuple[tuple[type[BaseException], ...], Code, str], ...] = (
    ((apsw.BusyError, apsw.LockedError), "busy", "The store is busy, try again."),
    ((apsw.InterruptError,), "busy", "The call was cancelled."),
    ((apsw.NoMemError, MemoryError), "busy", NO_MEMORY),
    ((apsw.FullError,), "storage", NO_SPACE),
    ((apsw.IOError, apsw.ReadOnlyError, apsw.CantOpenError), "storage", "Cannot write to storage."),
    (
        (*DAMAGED, UnicodeDecodeError),
        "storage",
        "The database is damaged: run `quipu check`, or `quipu restore` a backup.",
    ),
    ((apsw.TooBigError,), "invalid", "A value is larger than QUIPU_LIMIT_STORE_VALUE allows."),
    ((OverflowError, UnicodeEncodeError), "invalid", "A number is too large, or a text is not valid."),
)


def as_fault(error: BaseException) -> Fault | None:
    """Return the Fault for an error of SQLite or the system; None for a bug, which callers must not see."""
    if is_disk_full(error) or getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE:
        return Fault("storage", NO_SPACE)
    if getattr(error, "extendedresult", 0) in _OUT_OF_MEMORY:
        return Fault("busy", NO_MEMORY)
    if isinstance(error, OSError) and error.errno in _EXHAUSTED:
        return Fault("busy", "The system gives the server no more memory or open files, try again.")
    return next((Fault(code, text) for kinds, code, text in _FAULTS if isinstance(error, kinds)), None)


def sqlite_version() -> int:
    return apsw.SQLITE_VERSION_NUMBER


def integrity_errors(db: apsw.Connection, *, quick: bool = False) -> list[str]:
    """Return at most a hundred errors; a `quick` check does not compare indexes with their tables."""
    errors: list[str] = []
    try:
        for (text,) in db.execute(f"PRAGMA {'quick' if quick else 'integrity'}_check"):
            errors += [" ".join(line.split()) for line in str(text).splitlines()]
    except DAMAGED as error:
        errors.append(str(error))
    return [text for text in errors if text != "ok" and not text.startswith("***")]
