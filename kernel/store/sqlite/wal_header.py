"""Checks a database file and its write-ahead log before SQLite opens them, which would discard a bad log silently."""

import struct
import time
from pathlib import Path

from kernel.errors import Fault

HEADER_BYTES = 32  # magic number, format, page size, sequence, two salts, two checksums
LITTLE_ENDIAN, BIG_ENDIAN = 0x377F0682.to_bytes(4), 0x377F0683.to_bytes(4)  # the byte order of the checksums
_SUMMED_BYTES = 24
_ATTEMPTS = 3
_PAUSE_SECONDS = 0.05
ADVICE = "Restore a backup with `quipu restore FILE`, or move it and {} away to lose what it held."


def log_of(file: Path) -> Path:
    """The write-ahead log of a database file."""
    return file.with_name(f"{file.name}-wal")


def index_of(file: Path) -> Path:
    """The index of the write-ahead log of a database file."""
    return file.with_name(f"{file.name}-shm")


def check_wal(file: Path) -> None:
    """Raises Fault("storage") for no file or an empty one beside a log with content, and for a log without a valid
    header.

    SQLite deletes the first log and ignores the second (sqlite.org/walformat.html), but both hold committed writes.
    """
    log = log_of(file)
    header = _read_header(log)
    if not header:
        return
    if not file.is_file() or file.stat().st_size == 0:
        state = "is empty" if file.is_file() else "is missing"
        raise Fault("storage", f"{file.name} {state} and its log is not. {ADVICE.format(index_of(file).name)}")
    for _ in range(_ATTEMPTS):  # another process may be writing it at this moment
        if _is_valid(header):
            return
        time.sleep(_PAUSE_SECONDS)
        header = _read_header(log)
    raise Fault("storage", f"{log.name} is damaged. {ADVICE.format(index_of(file).name)}")


def checksum(content: bytes, sums: tuple[int, int], order: str) -> tuple[int, int]:
    """The checksums of a log, continued over more of its content; `order` is that of `struct`."""
    first, second = sums
    words = iter(struct.unpack(f"{order}{len(content) // 4}I", content))
    for left, right in zip(words, words, strict=True):
        first = (first + left + second) & 0xFFFFFFFF
        second = (second + right + first) & 0xFFFFFFFF
    return first, second


def _read_header(log: Path) -> bytes:
    try:
        with log.open("rb") as opened:
            return opened.read(HEADER_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return b""


def _is_valid(header: bytes) -> bool:
    """Whether the checksums of a WAL header match; a header that was not written to its end belongs to an empty log."""
    if len(header) < HEADER_BYTES or not any(header):
        return True
    sums = checksum(header[:_SUMMED_BYTES], (0, 0), ">" if header[:4] == BIG_ENDIAN else "<")
    return header[:4] in {LITTLE_ENDIAN, BIG_ENDIAN} and struct.unpack(">2I", header[_SUMMED_BYTES:]) == sums
