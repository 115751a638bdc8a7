"""Checksums at the end of each page of a database file, written by SQLite's checksum VFS (sqlite.org/cksumvfs.html).

A page gets its checksum where it is copied from the log into the file, so every connection that can write goes through
the VFS; it verifies what it reads from the file too. Other readers map the file and verify nothing. Within the log a
page has the checksum of its frame. The library is part of apsw, where its wheel has it.
"""

import struct
import time
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import apsw

from kernel.errors import Fault
from kernel.store.sqlite.linear_checksum import block_sums
from kernel.store.sqlite.wal_frames import pages_in_log

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RESERVED = 8  # bytes of a page, at its end
_VFS = "cksmvfs"
_LIBRARY = "cksumvfs"
_HEADER_BYTES = 100
_SIZE_AT, _RESERVED_AT, _FREE_AT = slice(16, 18), 20, 32
_PAGES_AT_ONCE = 2048  # 8 MB
_ATTEMPTS = 5  # a page may be read while a checkpoint writes it
_PAUSE_SECONDS = 0.02


def checksum_vfs() -> str | None:
    """The name of the VFS, which lies over what was the default and is it now; None where the library is not there."""
    if _VFS not in apsw.vfs_names():
        library = _library()
        if library is None:
            return None
        with closing(apsw.Connection(":memory:")) as loading:
            loading.enable_load_extension(True)
            loading.load_extension(str(library))
    return _VFS


def plain_vfs() -> str | None:
    """The name of the VFS below it."""
    names = apsw.vfs_names()  # the default is the first
    return names[1] if names[0] == _VFS else None


@cache
def _library() -> Path | None:
    folder = Path(apsw.__file__).parent / "sqlite_extra_binaries"
    return next((file for file in folder.glob(f"{_LIBRARY}.*")), None)


def vfs_to_write(file: Path) -> str | None:
    """The VFS for a connection that can write; raises Fault where this system cannot write the checksums of a file."""
    vfs = checksum_vfs()
    if vfs is None and has_checksums(file):
        raise Fault(
            "storage",
            f"The pages of {file.name} have checksums, and the apsw package of this system lacks {_LIBRARY} to write "
            "them. Use another build of apsw, or the system that wrote the file.",
        )
    return vfs


def has_checksums(file: Path) -> bool:
    """Whether the pages of a file have checksums."""
    return _layout(file)[1] == RESERVED


def copy_log(file: str, mode: int, wait_milliseconds: int) -> None:
    """Copies the write-ahead log through a connection of its own, for one that began before there were checksums."""
    with closing(apsw.Connection(file, vfs=checksum_vfs())) as db:
        db.set_busy_timeout(wait_milliseconds)
        db.pragma("checkpoint_fullfsync", 1)
        db.pragma("schema_version")  # reads the file, and learns of the log
        db.wal_checkpoint(mode=mode)


def damaged_pages(file: Path) -> list[int]:
    """The numbers of pages whose checksum is wrong, without those that the log holds anew; none without checksums."""
    size, reserved = _layout(file)
    if reserved != RESERVED:
        return []
    with file.open("rb") as opened:
        wrong = _wrong_pages(opened, size)
        for _ in range(_ATTEMPTS if wrong else 0):
            renewed = pages_in_log(file)
            wrong = [number for number in wrong if number not in renewed and not _is_sound(opened, number, size)]
            time.sleep(_PAUSE_SECONDS)
    return wrong


def free_pages(file: Path) -> set[int]:
    """The pages that hold nothing, as far as their list can be read: sqlite.org/fileformat2.html#the_freelist."""
    size, _ = _layout(file)
    found: set[int] = set()
    with file.open("rb") as opened:
        opened.seek(_FREE_AT)
        trunk = int.from_bytes(opened.read(4))
        while trunk and trunk not in found:
            opened.seek((trunk - 1) * size)
            following, count, *leaves = struct.unpack(f">{size // 4}I", opened.read(size).ljust(size, b"\0"))
            found |= {trunk, *leaves[:count]}
            trunk = following
    return found


def _layout(file: Path) -> tuple[int, int]:
    """Bytes of a page, and how many of them are reserved; zeros for no database."""
    try:
        with file.open("rb") as opened:
            header = opened.read(_HEADER_BYTES)
    except OSError:
        return 0, 0
    if len(header) < _HEADER_BYTES:
        return 0, 0
    size = int.from_bytes(header[_SIZE_AT])
    return (65536 if size == 1 else size), header[_RESERVED_AT]


def _wrong_pages(opened: BinaryIO, size: int) -> list[int]:
    import numpy as np

    found: list[int] = []
    first = 1
    while content := opened.read(_PAGES_AT_ONCE * size):
        count = len(content) // size
        pages = np.frombuffer(content, np.uint8, count * size).reshape(count, size)
        found += (np.nonzero(~_are_sound(pages))[0] + first).tolist()
        first += count
    return found


def _is_sound(opened: BinaryIO, number: int, size: int) -> bool:
    import numpy as np

    opened.seek((number - 1) * size)
    page = opened.read(size)
    return len(page) < size or bool(_are_sound(np.frombuffer(page, np.uint8)[None, :])[0])


def _are_sound(pages: "NDArray[np.uint8]") -> "NDArray[np.bool_]":
    import numpy as np

    stored = np.ascontiguousarray(pages[:, -RESERVED:]).view("<u4")
    return (block_sums(pages[:, :-RESERVED]) == stored).all(axis=1)
