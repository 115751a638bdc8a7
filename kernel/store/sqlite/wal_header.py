"""Looks at a database file and its write-ahead log before the engine does, which would begin anew without a word."""

import struct
import time
from pathlib import Path

from kernel.errors import Fault

_HEADER = struct.Struct(">6I")  # magic, format, page size, sequence, two salts; two checksums follow
_SUMS = struct.Struct(">2I")
_LITTLE, _BIG = 0x377F0682, 0x377F0683
_LOOKS = 3
_PAUSE = 0.05


def check_wal(file: Path) -> None:
    """Raises Fault("storage") for an empty file beside a log with content, and for a log that does not begin as one.

    The engine deletes the first log and ignores the second (sqlite.org/walformat.html); both hold answered writes.
    """
    log = file.with_name(f"{file.name}-wal")
    head = _head(log)
    if not head:
        return
    if file.stat().st_size == 0:
        raise Fault("storage", f"{file.name} is empty and its log is not: put a backup in its place.")
    for _ in range(_LOOKS):  # another process may be writing it at this moment
        if _begins(head):
            return
        time.sleep(_PAUSE)
        head = _head(log)
    raise Fault(
        "storage", f"{log.name} is damaged: put a backup in place of both, or move it away to lose what it held."
    )


def _head(log: Path) -> bytes:
    size = _HEADER.size + _SUMS.size
    try:
        with log.open("rb") as opened:
            return opened.read(size)
    except FileNotFoundError:
        return b""


def _begins(head: bytes) -> bool:
    """Whether these bytes are the whole header of a log; one that was not written to its end holds nothing yet."""
    if len(head) < _HEADER.size + _SUMS.size or not any(head):
        return True
    words = struct.unpack(">6I" if head[:4] == _BIG.to_bytes(4) else "<6I", head[: _HEADER.size])
    first = second = 0
    for left, right in zip(words[::2], words[1::2], strict=True):
        first = (first + left + second) & 0xFFFFFFFF
        second = (second + right + first) & 0xFFFFFFFF
    return _HEADER.unpack_from(head)[0] in {_LITTLE, _BIG} and _SUMS.unpack_from(head, _HEADER.size) == (first, second)
