"""Finds out whether a write-ahead log belongs to the database file it lies beside.

SQLite replays a log with sound checksums over any file. So each commit that changes rows renews a stamp, the one row
of the table `log_stamp`: a random identity and the identity before it. A file belongs to a log if its stamp is one of
those in the log, or the one before the first of them. Formats: sqlite.org/fileformat2.html#walformat.
"""

import mmap
import struct
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from kernel.store.sqlite.wal_header import BIG_ENDIAN, HEADER_BYTES, checksum

TABLE = "log_stamp"
MAGIC = bytes.fromhex("8f1d6a3c5be04f2792c7e0d41b76a9f3")  # random; how the row is found without reading the b-tree
ID_BYTES = 16
_NO_ID = bytes(ID_BYTES)
NEW = MAGIC + 2 * _NO_ID
_BLOB_BYTES = len(MAGIC) + 2 * ID_BYTES
# Before the blob in its cell: payload length, rowid 1, length of the record's header, NULL for the rowid, BLOB type.
_CELL = bytes([_BLOB_BYTES + 3, 1, 3, 0, 2 * _BLOB_BYTES + 12])
_LEAF_WITH_ONE_CELL = (b"\x0d", b"\x00\x01")  # the type of the page, and the number of its cells
_REST_OF_HEADER = struct.Struct(">6I")  # page size, sequence, two salts, two checksums
_FRAME_HEADER = struct.Struct(">6I")  # page number, pages after the commit or 0, two salts, two checksums
_ROLLBACK_FORMAT = b"\x01\x01"  # bytes 18 and 19 of a file that is not in WAL mode
_CHECKED_FRAMES = 8192  # 32 MB, under a second; a log whose first commit is longer is taken as sound up to its stamp


class _Stamp(NamedTuple):
    page: int
    frame: int
    id: bytes
    previous: bytes


class _Log(NamedTuple):
    """A mapped log: its frames are those with the salts of its header."""

    content: mmap.mmap
    page_size: int
    salts: bytes
    sums: tuple[int, int]
    order: str

    @property
    def frame_size(self) -> int:
        return _FRAME_HEADER.size + self.page_size

    def frame(self, number: int) -> tuple[bytes, bytes]:
        """Header and page of a frame."""
        start = HEADER_BYTES + number * self.frame_size
        middle = start + _FRAME_HEADER.size
        return self.content[start:middle], self.content[middle : start + self.frame_size]

    def is_current(self, number: int) -> bool:
        """Whether a frame was written since the log started over."""
        header, page = self.frame(number)
        return header[8:16] == self.salts and len(page) == self.page_size


def log_belongs(file: Path, log: Path) -> bool:
    """Whether SQLite may replay a log with a valid header over a file; True where nothing speaks against it."""
    with _mapped(file) as content, _mapped(log) as frames:
        opened = None if frames is None else _open_log(frames)
        if content is None or opened is None or not opened.is_current(0):
            return True
        if content[18:20] == _ROLLBACK_FORMAT:  # a backup, which never had a log
            return False
        stamps = list(_stamps_of_log(opened))
        return not stamps or _belongs(content, opened, stamps)


def _belongs(content: mmap.mmap, log: _Log, stamps: list[_Stamp]) -> bool:
    known = {one for stamp in stamps for one in (stamp.id, stamp.previous)}
    pages = {stamp.page for stamp in stamps}
    held = [found for page in pages if (found := _stamp_on_page(_page(content, page, log.page_size)))]
    if not held:  # VACUUM moves the row; a copy of the log into the file may have ended in the middle of that
        held = list(_stamps_of_file(content, log.page_size))
    if held:
        return any(found[0] in known for found in held) or not _is_replayed(log, stamps[0].frame)
    return _NO_ID in known or _page(content, 1, log.page_size) in _first_pages(log)


def _is_replayed(log: _Log, upto: int) -> bool:
    """Whether the checksums hold up to this frame; SQLite ignores what stands behind a frame that was not written."""
    sums = log.sums
    for number in range(min(upto + 1, _CHECKED_FRAMES)):
        header, page = log.frame(number)
        sums = checksum(header[:8] + page, sums, log.order)
        if _FRAME_HEADER.unpack(header)[4:] != sums:
            return False
    return True


def _open_log(content: mmap.mmap) -> _Log | None:
    if len(content) < HEADER_BYTES:
        return None
    page_size, *_, first, second = _REST_OF_HEADER.unpack_from(content, 8)
    order = ">" if content[:4] == BIG_ENDIAN else "<"
    return _Log(content, page_size, content[16:24], (first, second), order)


def _stamps_of_log(log: _Log) -> Iterator[_Stamp]:
    at = log.content.find(MAGIC)
    while at >= 0:
        number = (at - HEADER_BYTES) // log.frame_size
        header, page = log.frame(number)
        found = _stamp_on_page(page)
        if found and log.is_current(number):
            yield _Stamp(_FRAME_HEADER.unpack(header)[0], number, *found)
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


def _first_pages(log: _Log) -> Iterator[bytes]:
    """Every version of page 1 in the log."""
    number = 0
    while log.is_current(number):
        header, page = log.frame(number)
        if _FRAME_HEADER.unpack(header)[0] == 1:
            yield page
        number += 1


def _page(content: mmap.mmap, number: int, page_size: int) -> bytes:
    return content[(number - 1) * page_size : number * page_size]


@contextmanager
def _mapped(file: Path) -> Generator[mmap.mmap | None]:
    """The content of a file; None where it is empty or not there."""
    try:
        opened = file.open("rb")
    except FileNotFoundError:
        yield None
        return
    with opened:
        try:
            content = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:  # an empty file cannot be mapped
            yield None
            return
        with content:
            yield content
