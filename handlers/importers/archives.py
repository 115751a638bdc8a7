"""Opens archives within bounds: no path that leads out, no link, and no more than fits."""

import gzip
import os
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from msgspec import Struct

from handlers.importers.records import LeftOut, damaged, left_out, shown
from handlers.importers.text_files import files_below, opened
from kernel.core.checkout import LINK
from kernel.core.errors import Fault
from kernel.memories.import_records import Source
from kernel.memories.json_rows import Element, encoding_of_16_bits, rows

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
_TEXTS = {"", ".md", ".mdc", ".markdown", ".txt"}  # the endings of files that folders are read for
_GZIP, _ZIP = b"\x1f\x8b", ".zip"
_ENCRYPTED = 1  # the bit of a member that needs a password


class Part(NamedTuple):
    """A file of an export: its name in a folder or archive, empty for a file by itself, and how it is opened."""

    name: str
    open: Callable[[], IO[bytes]]


class _Sizes(Struct):
    """The members of an archive so far, and their bytes."""

    archive: str
    members: int = 0
    total: int = 0
    largest: int = 0


def parts_of(source: Source, stack: ExitStack) -> list[Part | LeftOut]:
    """Return the files of an export, which is a folder, a ZIP archive, or a file; each may be compressed."""
    if source.path.is_dir():
        names = files_below(source.path, "")
        parts = [
            name if isinstance(name, LeftOut) else Part(name, partial(opened, source.path, name)) for name in names
        ]
    elif is_zip(source.path):
        archive = open_zip(source.path, stack)
        parts = [
            info if isinstance(info, LeftOut) else Part(info.filename, partial(archive.open, info))
            for info in _members_of_zip(archive)
        ]
    else:
        parts = [Part("", partial(source.path.open, "rb"))]
    return [
        part if isinstance(part, LeftOut) else part._replace(open=partial(_unpacked, part, source)) for part in parts
    ]


def rows_of(part: Part, members: Collection[str] = (), text: str = "") -> Iterator[Element | LeftOut]:
    """Yield the rows of a file; an unreadable file in a folder or archive is reported as left out."""
    try:
        with part.open() as file:
            yield from rows(file, part.name, members, text)
    except UNREADABLE as error:
        if not part.name:
            raise
        yield left_out(damaged(part.name, str(error)))
    except Fault as fault:
        if not part.name:
            raise
        yield left_out(fault)


def unknown_member(element: Element) -> Iterator[LeftOut]:
    """Yield that a value is left out, since no importer takes its member; numbers, times and words are headings."""
    value = element.value
    words = value.split() if isinstance(value, str) else ()
    is_text = len(words) > 1 and any(map(str.isalpha, words))
    if element.row or is_text or isinstance(value, list):
        yield LeftOut(f"of the member {shown(element.member)}")


def _unpacked(part: Part, source: Source) -> IO[bytes]:
    """Return a file, or a copy of its content if it is compressed."""
    file = part.open()
    is_compressed = file.read(2) == _GZIP
    file.seek(0)
    if not is_compressed:
        return file
    copy = source.copies / f"part-{hash(part.name):x}"
    with file, gzip.open(file) as whole, copy.open("wb") as target:
        try:
            sizes = _Sizes(part.name or source.path.name)
            while chunk := whole.read(_COPY_BYTES):
                _grow(sizes, target.write(chunk))
        except UNREADABLE as error:
            raise damaged(part.name or source.path.name, f"cannot be unpacked: {error}") from None
    return copy.open("rb")


def has_files(path: Path, names: Collection[str]) -> bool:
    """Return whether a folder or ZIP archive has a file of any of these names, which may have patterns."""
    if path.is_dir():
        return any(True for name in names for _ in path.glob(name))
    try:
        with zipfile.ZipFile(path) as archive:
            return any(PurePosixPath(member).match(name) for member in archive.namelist() for name in names)
    except UNREADABLE:
        return False


def open_zip(path: Path, stack: ExitStack, sizes: "_Sizes | None" = None) -> zipfile.ZipFile:
    """Return a ZIP archive of which every member is within bounds."""
    try:
        _check_directory(path)
        archive = stack.enter_context(zipfile.ZipFile(path))
        members = archive.infolist()
    except UNREADABLE as error:
        raise damaged(path.name, f"is no ZIP archive that can be read: {error}") from None
    sizes = sizes or _Sizes(path.name)
    for info in members:
        _add(sizes, info.file_size)
        _check_name(path.name, info.filename)
    files = [info for info in members if not info.is_dir()]
    if files and all(info.flag_bits & _ENCRYPTED for info in files):
        raise damaged(path.name, "is encrypted")
    return archive


def _members_of_zip(archive: zipfile.ZipFile) -> Iterator[zipfile.ZipInfo | LeftOut]:
    """Yield the files that can be read, of several with one name the last, and why others are left out."""
    last = {info.filename: info for info in archive.infolist()}
    for info in archive.infolist():
        if info.is_dir():
            continue
        if stat.S_ISLNK(info.external_attr >> 16):
            yield LeftOut(LINK, info.filename)
        elif info.flag_bits & _ENCRYPTED:
            yield LeftOut("encrypted", info.filename, is_damage=True)
        elif last[info.filename] is not info:
            yield LeftOut("a later member has its name", info.filename)
        else:
            yield info


def _check_directory(path: Path) -> None:
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
    """Return whether a file begins or ends as a ZIP archive does, of which either may be damaged."""
    return path.is_file() and (head_of(path, 4) == b"PK\x03\x04" or zipfile.is_zipfile(path))


def unpack_zip(path: Path, target: Path, most: int = MAX_MEMBER_BYTES, sizes: "_Sizes | None" = None) -> list[LeftOut]:
    """Copy a ZIP archive into a folder, of its texts at most so many bytes; return the members that are left out.

    Other files, such as pictures, are there without their content. An archive of nothing but archives, as Notion
    writes it, is what they hold together.
    """
    left, is_part = list[LeftOut](), sizes is not None
    sizes = sizes or _Sizes(path.name)
    with ExitStack() as stack:
        archive = open_zip(path, stack, sizes)
        is_of_parts = not is_part and _is_of_parts(archive)
        for info in _members_of_zip(archive):
            if isinstance(info, LeftOut):
                left.append(info)
                continue
            place = target.joinpath(*PurePosixPath(info.filename).parts)
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(info) as file, place.open("xb") as copy:
                    size = MAX_MEMBER_BYTES if is_of_parts else most if place.suffix.lower() in _TEXTS else 0
                    while size and (chunk := file.read(min(size, _COPY_BYTES))):
                        size -= copy.write(chunk)
                if is_of_parts:
                    left += _unpack_part(place, target, most, sizes)
            except UNREADABLE as error:
                with suppress(OSError):  # of a path that is too long, or leads through a file
                    place.unlink()
                left.append(left_out(damaged(info.filename, f"cannot be unpacked: {_reason(error)}")))
                continue
            with suppress(ValueError, FileNotFoundError):  # some programs write the month 0
                at = datetime(*info.date_time, tzinfo=UTC).timestamp()
                os.utime(place, (at, at))
    return left


def _unpack_part(path: Path, target: Path, most: int, sizes: _Sizes) -> list[LeftOut]:
    try:
        return unpack_zip(path, target, most, sizes)
    except Fault as fault:
        return [left_out(fault)]
    finally:
        path.unlink()


def _is_of_parts(archive: zipfile.ZipFile) -> bool:
    names = [info.filename for info in archive.infolist() if not info.is_dir()]
    return bool(names) and all(name.lower().endswith(_ZIP) for name in names)


def is_gzip(path: Path) -> bool:
    """Return whether a file begins as a gzip file does."""
    return head_of(path, 2) == _GZIP


def head_of(path: Path, size: int, *, unpacked: bool = False) -> bytes:
    """Return the first bytes of a file, `unpacked` those of its content as UTF-8; none if it cannot be read."""
    if not path.is_file():  # a pipe may never end
        return b""
    try:
        with gzip.open(path) if unpacked and is_gzip(path) else path.open("rb") as file:
            head = file.read(size)
    except UNREADABLE:
        return b""
    encoding = unpacked and encoding_of_16_bits(head)
    return head.decode(encoding, "replace").encode() if encoding else head


def unpack_tar(path: Path, target: Path) -> Path:
    """Return the files of a compressed TAR archive, copied into a folder."""
    try:
        _check_headers(path)
        with gzip.open(path) as whole, tarfile.open(fileobj=whole, mode="r|") as archive:
            for name, file in _members(path.name, archive):
                place = target.joinpath(*PurePosixPath(name).parts)
                place.parent.mkdir(parents=True, exist_ok=True)
                _copy(file, place)
            _read_to_end(path.name, whole)
    except UNREADABLE as error:
        raise damaged(path.name, f"is no archive that can be read: {_reason(error)}") from None
    return target


def _check_headers(path: Path) -> None:
    """Read the headers alone: tarfile takes the size in a header for granted."""
    sizes = _Sizes(path.name)
    with gzip.open(path) as file:
        while len(head := file.read(_BLOCK)) == _BLOCK and head.strip(b"\0"):
            digits = head[124:136].strip(b" \0")
            if not digits.isdigit():
                raise damaged(path.name, f"its member {sizes.members + 1} has no size that is read")
            size = int(digits, 8)
            _add(sizes, size)
            if head[156:157] in _LONG_KINDS and size > _MAX_LONG_BYTES:
                raise damaged(path.name, f"its member {sizes.members} has a name of {size} bytes")
            file.seek(-(-size // _BLOCK) * _BLOCK, os.SEEK_CUR)


def _reason(error: Exception) -> str:
    """Return an error in words, without the path of the copy."""
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def _read_to_end(name: str, file: gzip.GzipFile) -> None:
    """Read past the members, for the checksum at the end; the rest is short, or this is no archive."""
    sizes = _Sizes(name)
    while chunk := file.read(_COPY_BYTES):
        _grow(sizes, len(chunk))


def _members(name: str, archive: tarfile.TarFile) -> Iterator[tuple[str, IO[bytes]]]:
    sizes = _Sizes(name)
    for info in archive:
        _add(sizes, info.size)
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


def _add(sizes: _Sizes, size: int) -> None:
    """Counts a member; raises Fault past the bounds."""
    sizes.members += 1
    sizes.largest = max(sizes.largest, size)
    _check(sizes, size)


def _grow(sizes: _Sizes, size: int) -> None:
    """Counts further bytes of a single member; raises Fault past the bounds."""
    sizes.largest += size
    _check(sizes, size)


def _check(sizes: _Sizes, size: int) -> None:
    sizes.total += size
    if sizes.members > MAX_MEMBERS or sizes.largest > MAX_MEMBER_BYTES or sizes.total > MAX_BYTES:
        limits = f"{MAX_MEMBERS:,} members, {MAX_MEMBER_BYTES >> 20} MB in one and {MAX_BYTES >> 30} GB in all"
        raise Fault("invalid", f"{sizes.archive} holds more than {limits}. Nothing was imported.")


def _check_name(archive: str, name: str) -> None:
    path = PurePosixPath(name)
    is_colon_odd = ":" in (name if os.name == "nt" else name[1:2])  # a drive; elsewhere names may have one
    if path.is_absolute() or ".." in path.parts or "\\" in name or is_colon_odd or "\0" in name:
        raise damaged(archive, f"its member {name} would lead out of the archive")
