"""Opens archives within bounds: no path that leads out, no link, and no more than fits."""

import gzip
import os
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import IO

from handlers.importers.records import damaged
from kernel.core.errors import Fault

MAX_MEMBERS = 100_000
MAX_MEMBER_BYTES = 512 << 20
MAX_BYTES = 2 << 30  # of all members together
_COPY_BYTES = 1 << 20
_END_BYTES = 1 << 17  # of a ZIP archive, in which its last records stand, with a comment of the longest kind
_MAX_DIRECTORY_BYTES = 16 << 20  # of the list of its members
_BLOCK = 512  # bytes of a header of a TAR archive; the sizes of its members are multiples of it
_LONG_KINDS, _MAX_LONG_BYTES = (b"x", b"g", b"L", b"K"), 1 << 16  # headers that tarfile reads whole
UNREADABLE = (
    zipfile.BadZipFile,
    ValueError,
    tarfile.TarError,
    zlib.error,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
)
_ENCRYPTED = 1  # the bit of a member that needs a password


def open_zip(path: Path, stack: ExitStack) -> zipfile.ZipFile:
    """Return a ZIP archive of which every member is within bounds."""
    try:
        _check_directory(path)
        archive = stack.enter_context(zipfile.ZipFile(path))
        members = archive.infolist()
    except UNREADABLE as error:
        raise damaged(path.name, f"is no ZIP archive that can be read: {error}") from None
    _check_sizes(path.name, [info.file_size for info in members])
    for info in members:
        if stat.S_ISLNK(info.external_attr >> 16) or info.flag_bits & _ENCRYPTED:
            raise damaged(path.name, f"its member {info.filename} is a link or encrypted")
        _check_name(path.name, info.filename)
    if len({info.filename for info in members}) < len(members):
        raise damaged(path.name, "has two members of one name")
    return archive


def _check_directory(path: Path) -> None:
    """Raises for a list of members that is too large to read whole; a record at the end of the file has its size."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        tail_at = max(0, size - _END_BYTES)
        file.seek(tail_at)
        tail = file.read()
        at = tail.rfind(b"PK\5\6")
        if at < 0 or len(tail) < at + 20:
            raise zipfile.BadZipFile("it has no end")
        (list_bytes,) = struct.unpack_from("<L", tail, at + 12)
        large = tail.rfind(b"PK\6\6", 0, at)
        if large >= 0 and len(tail) >= large + 48:
            (list_bytes,) = struct.unpack_from("<Q", tail, large + 40)
    if list_bytes > _MAX_DIRECTORY_BYTES:
        raise zipfile.BadZipFile(f"its list of members has {list_bytes} bytes")


def is_zip(path: Path) -> bool:
    """Return whether a file begins as a ZIP archive does."""
    return head_of(path, 4) == b"PK\x03\x04"


def is_gzip(path: Path) -> bool:
    """Return whether a file begins as a gzip file does."""
    return head_of(path, 2) == b"\x1f\x8b"


def head_of(path: Path, size: int) -> bytes:
    """Return the first bytes of a file; none for a file that cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError:
        return b""


def unpack_tar(path: Path, target: Path, suffixes: tuple[str, ...]) -> Path:
    """Return the files of a compressed TAR archive with any of these endings, copied into a folder."""
    try:
        _check_headers(path)
        with gzip.open(path) as whole, tarfile.open(fileobj=whole, mode="r|") as archive:
            for name, file in _members(path.name, archive):
                if name.endswith(suffixes):
                    place = target.joinpath(*PurePosixPath(name).parts)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    _copy(file, place)
            _read_to_end(path.name, whole)
    except UNREADABLE as error:
        raise damaged(path.name, f"is no archive that can be read: {error}") from None
    return target


def _check_headers(path: Path) -> None:
    """Read the headers alone: tarfile takes the size in a header for granted."""
    sizes: list[int] = []
    with gzip.open(path) as file:
        while len(head := file.read(_BLOCK)) == _BLOCK and head.strip(b"\0"):
            digits = head[124:136].strip(b" \0")
            if not digits.isdigit():
                raise damaged(path.name, f"its member {len(sizes) + 1} has no size that is read")
            sizes.append(int(digits, 8))
            if head[156:157] in _LONG_KINDS and sizes[-1] > _MAX_LONG_BYTES:
                raise damaged(path.name, f"its member {len(sizes)} has a name of {sizes[-1]} bytes")
            _check_sizes(path.name, sizes)
            file.seek(-(-sizes[-1] // _BLOCK) * _BLOCK, os.SEEK_CUR)


def _read_to_end(name: str, file: gzip.GzipFile) -> None:
    """Read past the members, for the checksum at the end; the rest is short, or this is no archive."""
    left = MAX_MEMBER_BYTES
    while chunk := file.read(_COPY_BYTES):
        left -= len(chunk)
        _check_sizes(name, [MAX_MEMBER_BYTES - min(left, 0)])


def _members(name: str, archive: tarfile.TarFile) -> Iterator[tuple[str, IO[bytes]]]:
    sizes: list[int] = []
    for info in archive:
        sizes.append(info.size)
        _check_sizes(name, sizes)
        _check_name(name, info.name)
        if not info.isfile() and not info.isdir():
            raise damaged(name, f"its member {info.name} is a link or no ordinary file")
        file = archive.extractfile(info) if info.isfile() else None
        if file is not None:
            yield info.name, file


def _copy(file: IO[bytes], target: Path) -> None:
    with target.open("xb") as copy:
        while chunk := file.read(_COPY_BYTES):
            copy.write(chunk)


def _check_sizes(name: str, sizes: list[int]) -> None:
    if len(sizes) > MAX_MEMBERS or max(sizes, default=0) > MAX_MEMBER_BYTES or sum(sizes) > MAX_BYTES:
        limits = f"{MAX_MEMBERS:,} members, {MAX_MEMBER_BYTES >> 20} MB in one and {MAX_BYTES >> 30} GB in all"
        raise Fault("invalid", f"{name} holds more than {limits}. Nothing was imported.")


def _check_name(archive: str, name: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name or "\0" in name:
        raise damaged(archive, f"its member {name} would lead out of the archive")
