"""Finds out whether a write-ahead log belongs to the database file it lies beside.

SQLite replays a log with sound checksums over any file. So each commit that changes rows renews a stamp, the one row
of the table `log_stamp`: a random identity and the identity before it. A file belongs to a log if its stamp is one of
those in the log, or the one before the first of them. Formats: sqlite.org/fileformat2.html#walformat.
"""

import mmap
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kernel.store.sqlite.errors import BUSY, DISK_FULL, IO_ERRORS
from kernel.store.sqlite.wal_frames import FRAME_HEADER, Log, mapped, open_log, read_log
from kernel.store.sqlite.wal_header import HEADER_BYTES

if TYPE_CHECKING:
    from kernel.store.sqlite.connection import Connection

TABLE = "log_stamp"
MAGIC = bytes.fromhex("8f1d6a3c5be04f2792c7e0d41b76a9f3")  # random; how the row is found without reading the b-tree
ID_BYTES = 16
_NO_ID = bytes(ID_BYTES)
NEW = MAGIC + 2 * _NO_ID
_BLOB_BYTES = len(MAGIC) + 2 * ID_BYTES
# Before the blob in its cell: payload length, rowid 1, length of the record's header, NULL for the rowid, BLOB type.
_CELL = bytes([_BLOB_BYTES + 3, 1, 3, 0, 2 * _BLOB_BYTES + 12])
_LEAF_WITH_ONE_CELL = (b"\x0d", b"\x00\x01")  # the type of the page, and the number of its cells
_ROLLBACK_FORMAT = b"\x01\x01"  # bytes 18 and 19 of a file that is not in WAL mode


class _Stamp(NamedTuple):
    page: int
    frame: int
    id: bytes
    previous: bytes


def log_belongs(file: Path, log: Path) -> bool:
    """Whether SQLite may replay a log with a valid header over a file; True where nothing speaks against it."""
    with mapped(file) as content, mapped(log) as frames:
        opened = open_log(frames)
        if content is None or opened is None or not opened.is_current(0):
            return True
        if content[18:20] == _ROLLBACK_FORMAT:  # a backup, which never had a log
            return False
        stamps = list(_stamps_of_log(opened))
        return not stamps or _belongs(content, opened, stamps)


def begin_life(db: "Connection") -> None:
    """Makes a file distinct from every copy of it, at the beginning of a life; the log is empty afterwards.

    Where the disk is full the file stays as it is: reads must go on.
    """
    with suppress(*DISK_FULL, *IO_ERRORS, *BUSY):
        db.checkpoint(truncate=True)
        db.renew_stamp()
        db.checkpoint(truncate=True)


def _belongs(content: mmap.mmap, log: Log, stamps: list[_Stamp]) -> bool:
    known = {one for stamp in stamps for one in (stamp.id, stamp.previous)}
    pages = {stamp.page for stamp in stamps}
    held = [found for page in pages if (found := _stamp_on_page(_page(content, page, log.page_size)))]
    if not held:  # VACUUM moves the row; a copy of the log into the file may have ended in the middle of that
        held = list(_stamps_of_file(content, log.page_size))
    if held:
        return any(found[0] in known for found in held) or stamps[0].frame >= read_log(log).sound
    return _NO_ID in known or _page(content, 1, log.page_size) in _first_pages(log)


def _stamps_of_log(log: Log) -> Iterator[_Stamp]:
    at = log.content.find(MAGIC)
    while at >= 0:
        number = (at - HEADER_BYTES) // log.frame_size
        header, page = log.frame(number)
        found = _stamp_on_page(page)
        if found and log.is_current(number):
            yield _Stamp(FRAME_HEADER.unpack(header)[0], number, *found)
        at = log.content.find(MAGIC, HEADER_BYTES + (number + 1) * log.frame_size)


def _stamps_of_file(content: mmap.mmap, page_size: int) -> Iterator[tuple[bytes, bytes]]:
    at = content.find(MAGIC)
    while at >= 0:
        number = at // page_size + 1
        found = _stamp_on_page(_page(content, number, page_size))
        if found:
            yield found
        at = content.find(MAGIC, number * page_size)


def _stamp_on_page(page: bytes) -> tuple[bytes, bytes] | None:
    """The identity on a page and the one before it; None for a page of another table, whatever text it holds."""
    at = page.find(MAGIC)
    if at < 0 or (page[:1], page[3:5]) != _LEAF_WITH_ONE_CELL or page[at - len(_CELL) : at] != _CELL:
        return None
    ids = page[at + len(MAGIC) : at + _BLOB_BYTES]
    return ids[:ID_BYTES], ids[ID_BYTES:]


def _first_pages(log: Log) -> Iterator[bytes]:
    """Every version of page 1 in the log."""
    number = 0
    while log.is_current(number):
        header, page = log.frame(number)
        if FRAME_HEADER.unpack(header)[0] == 1:
            yield page
        number += 1


def _page(content: mmap.mmap, number: int, page_size: int) -> bytes:
    return content[(number - 1) * page_size : number * page_size]
