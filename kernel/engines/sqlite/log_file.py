"""The write-ahead log beside a database file, and the three states of the two that lose what the log holds."""

from pathlib import Path

from kernel.core.errors import Fault

_FORMAT_AT = slice(18, 20)  # of the header of the file: the versions that write and read it
_ROLLBACK_FORMAT = b"\x01\x01"  # of a file that is not in WAL mode


def log_of(file: Path) -> Path:
    return file.with_name(f"{file.name}-wal")


def check_log(file: Path) -> None:
    """Raise Fault("storage") for a log whose file is missing, empty, or replaced by a backup.

    SQLite would delete the log in the first two states, and replay it over the backup in the third. It leaves none of
    them itself, nor does a program that uses it: page 1 is written before the first log, and the log of a file is
    deleted before the file leaves WAL mode.
    """
    log = log_of(file)
    if not size_of(log):
        return
    if not size_of(file):
        problem = f"{file.name} is {'empty' if file.is_file() else 'missing'} and its log is not"
    elif _is_rollback_file(file):
        problem = f"{log.name} does not belong to {file.name}, which was put in its place"
    else:
        return
    raise Fault(
        "storage",
        f"{problem}. Restore a backup with `quipu restore FILE`, or move {log.name} and {file.name}-shm away to lose "
        "what they held.",
    )


def size_of(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _is_rollback_file(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(_FORMAT_AT.stop)[_FORMAT_AT] == _ROLLBACK_FORMAT
