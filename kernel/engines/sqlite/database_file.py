"""A database file and the log beside it, read and written as bytes, past SQLite as far as that is safe."""

from collections.abc import Sequence
from pathlib import Path

import apsw

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


_CHUNK_BYTES = 1 << 20
_FLAGS = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY


def holds_any(file: Path, pieces: Sequence[bytes]) -> bool:
    """Return whether a piece stands in the file.

    SQLite opens it: a process that closes any descriptor of a file loses all locks that it has there, and SQLite
    alone knows when that is safe (https://sqlite.org/howtocorrupt.html, section 2.2).
    """
    if not pieces or not file.is_file():
        return False
    overlap = max(map(len, pieces)) - 1
    handle = apsw.VFSFile("", str(file), [_FLAGS, 0])
    try:
        before, size = b"", handle.xFileSize()
        for offset in range(0, size, _CHUNK_BYTES):
            chunk = before + handle.xRead(min(_CHUNK_BYTES, size - offset), offset)
            if any(piece in chunk for piece in pieces):
                return True
            before = chunk[-overlap:] if overlap else b""
        return False
    finally:
        handle.xClose()


_HEADER_BYTES = 21  # as far as the number of bytes that are reserved in each page
_SUMS_BYTES = b"\x08"
_PAGES_AT_ONCE = 256  # 1 MB, which stays in the cache of a core


def write_page_sums(file: Path) -> None:
    """Write the checksums of a file with room for them: two sums of the 32-bit words of a page.

    SQLite keeps that room, but writes no sums into it: sqlite.org/cksumvfs.html.
    """
    with file.open("rb") as stream:
        header = stream.read(_HEADER_BYTES)
    if header[20:] != _SUMS_BYTES:
        return
    import numpy as np

    count = int.from_bytes(header[16:18]) // 4
    words = np.memmap(file, "<u4", "r+")
    for at in range(0, len(words), count * _PAGES_AT_ONCE):
        pages = words[at : at + count * _PAGES_AT_ONCE].reshape(-1, count)
        sums = np.zeros((2, len(pages)), np.uint32)
        for word in range(0, count - 2, 2):
            sums[0] += pages[:, word] + sums[1]
            sums[1] += pages[:, word + 1] + sums[0]
        pages[:, -2:] = sums.T
    words.flush()
