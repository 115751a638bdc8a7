"""Looks for bytes in database files, of which this process may have connections open."""

from collections.abc import Sequence
from pathlib import Path

import apsw

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
