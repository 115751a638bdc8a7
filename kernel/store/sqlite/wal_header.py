"""Checks a database file and its write-ahead log before SQLite opens them, which would discard a bad log silently."""

import struct
import time
from pathlib import Path

from kernel.errors import Fault

_HEADER = struct.Struct(">6I")  # magic, format, page size, sequence, two salts; two checksums follow
_SUMS = struct.Struct(">2I")
_LITTLE, _BIG = 0x377F0682, 0x377F0683  # the magic number says the byte order of the checksums
_ATTEMPTS = 3
_PAUSE_SECONDS = 0.05


def check_wal(file: Path) -> None:
    """Raises Fault("storage") for an empty file beside a log with content, and for a log without a valid header.

    SQLite deletes the first log and ignores the second (sqlite.org/walformat.html), but both hold committed writes.
    """
    log = file.with_name(f"{file.name}-wal")
    header = _read_header(log)
    if not header:
        return
    if file.stat().st_size == 0:
        raise Fault("storage", f"{file.name} is empty and its log is not: put a backup in its place.")
    for _ in range(_ATTEMPTS):  # another process may be writing it at this moment
        if _is_valid(header):
            return
        time.sleep(_PAUSE_SECONDS)
        header = _read_header(log)
    raise Fault(
        "storage", f"{log.name} is damaged: put a backup in place of both, or move it away to lose what it held."
    )


def _read_header(log: Path) -> bytes:
    size = _HEADER.size + _SUMS.size
    try:
        with log.open("rb") as opened:
            return opened.read(size)
    except FileNotFoundError:
        return b""


def _is_valid(header: bytes) -> bool:
    """Whether the checksums of a WAL header match; a header that was not written to its end belongs to an empty log."""
    if len(header) < _HEADER.size + _SUMS.size or not any(header):
        return True
    words = struct.unpack(">6I" if header[:4] == _BIG.to_bytes(4) else "<6I", header[: _HEADER.size])
    first = second = 0
    for left, right in zip(words[::2], words[1::2], strict=True):
        first = (first + left + second) & 0xFFFFFFFF
        second = (second + right + first) & 0xFFFFFFFF
    return _HEADER.unpack_from(header)[0] in {_LITTLE, _BIG} and _SUMS.unpack_from(header, _HEADER.size) == (
        first,
        second,
    )
