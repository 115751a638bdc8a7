"""Opens archives within bounds: no path that leads out, no link, and no more than fits.

Sources that are only packed are unpacked first: TAR archives, ZIP archives of archives, and JSON in a block of code.
"""

import gzip
import os
import re
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
from typing import IO, NamedTuple, cast

from msgspec import Struct

from handlers.importers.records import LeftOut, damaged, left_out, shown
from handlers.importers.text_files import MAX_TEXT_BYTES, decoded, files_below, opened
from kernel.core.checkout import LINK, SPECIAL
from kernel.core.errors import Fault
from kernel.core.lazy_regex import regex
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
# Records of these, each with its length first. Before Python 3.11.10 and 3.12.6 tarfile takes the square of many digits
# in a row, and of records that are none (CVE-2024-6232).
_PAX, _PAX_RECORD, _MANY_DIGITS = (b"x", b"g"), regex(r"(\d{1,5}) [^=\n]{1,255}="), regex(r"\d{100}")
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
# The endings of files that folders and exports are read for.
_READ = {"", ".md", ".mdc", ".markdown", ".txt", ".json", ".jsonl", ".gz", ".af", ".db", ".sqlite", ".sqlite3"}
_GZIP, _ZIP, _TARS = b"\x1f\x8b", ".zip", (".tar", ".tar.gz", ".tgz")
_MAGIC_OF_TAR, _HEADER_BYTES = b"ustar", 512
_OF_MACOS = "__MACOSX"
# The lines around JSON in an answer of a chat program.
_FENCE_LINE = regex(r"^[ ]{0,3}```[ ]{0,3}(?:json[cl5]?)?[ ]{0,3}$", re.MULTILINE | re.IGNORECASE)
_FENCE_BYTES = 1 << 16
_REPLACED = "a later member has its name"
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
    if not element.member:
        yield LeftOut("is no record of this kind", element.place, is_damage=True)
        return
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
            yield LeftOut(_REPLACED, info.filename)
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
        is_of_parts = not is_part and _is_of_parts(archive.namelist())
        for info in _members_of_zip(archive):
            if isinstance(info, LeftOut):
                left.append(info)
                continue
            size = MAX_MEMBER_BYTES if is_of_parts else most if Path(info.filename).suffix.lower() in _READ else 0
            at = None
            with suppress(ValueError):  # some programs write the month 0
                at = datetime(*info.date_time, tzinfo=UTC).timestamp()
            fault = _put(info.filename, partial(archive.open, info), target, size, at)
            if is_of_parts and not fault:
                left += _unpack_part(target / info.filename, target, most, sizes)
            left += [fault] if fault else []
    return left


def _put(name: str, opens: Callable[[], IO[bytes]], target: Path, size: int, at: float | None) -> LeftOut | None:
    """Copy at most so many bytes of a member into a folder, with the time of its last change, or return the fault."""
    place = target.joinpath(*PurePosixPath(name).parts)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with opens() as file, place.open("xb") as copy:
            while size and (chunk := file.read(min(size, _COPY_BYTES))):
                size -= copy.write(chunk)
        if at is not None:
            os.utime(place, (at, at))
    except UNREADABLE as error:
        if not isinstance(error, FileExistsError):  # that is another member
            with suppress(OSError):  # of a path that is too long, or leads through a file
                place.unlink()
        return left_out(damaged(name, f"cannot be unpacked: {_reason(error)}"))
    return None


def _unpack_part(path: Path, target: Path, most: int, sizes: _Sizes) -> list[LeftOut]:
    try:
        return unpack_zip(path, target, most, sizes)
    except Fault as fault:
        return [left_out(fault)]
    finally:
        path.unlink()


def _is_of_parts(names: Collection[str]) -> bool:
    names = [name for name in names if not name.endswith("/")]
    return bool(names) and all(name.lower().endswith(_ZIP) for name in names)


def unpacked(source: Source, *, is_text: bool) -> Source:
    """Return a source without the packing around it, unless it is the text of a kind that is named."""
    path, target, named = source.path, source.copies / "unpacked", source.copies / "named"
    named.mkdir()
    try:
        if _is_tar(path):
            left = _unpack_tar(path, target)
        elif is_zip(path) and _is_of_parts(_names(path)):
            left = unpack_zip(path, target)
        elif not is_text and (json := _in_block(path)):
            target.write_text(json[0], encoding="utf-8")
            left = json[1]
        else:
            return source
    except OSError as error:  # such as a name that no folder can hold
        raise damaged(path.name, f"cannot be unpacked: {_reason(error)}") from None
    ending = next((ending for ending in _TARS if path.name.lower().endswith(ending)), path.suffix)
    root = str(path.resolve().with_name(path.name[: -len(ending)] or path.name))
    if is_zip(path) and _is_of_parts([file.name for file in target.rglob("*") if file.is_file()]):
        raise damaged(path.name, "holds archives of archives: unpack it first")
    found = inner(target)
    if found.is_dir() or found == target:  # messages have the name of the source
        found = found.rename(named / path.name)
    return source._replace(path=found, packed=path, root=root, left_out=left)


def inner(path: Path) -> Path:
    """Return the folder or file that a folder holds and nothing beside it."""
    entries = [entry for entry in path.iterdir() if entry.name != _OF_MACOS] if path.is_dir() else []
    is_inner = len(entries) == 1 and not entries[0].name.startswith(".")
    return entries[0] if is_inner else path


def _is_tar(path: Path) -> bool:
    is_marked = head_of(path, _HEADER_BYTES, unpacked=True)[257:262] == _MAGIC_OF_TAR
    return is_marked or (path.is_file() and path.name.lower().endswith(_TARS))


def _names(path: Path) -> list[str]:
    try:
        _check_directory(path)
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except UNREADABLE:
        return []


def _in_block(path: Path) -> tuple[str, list[LeftOut]] | None:
    """Return the JSON in the blocks of code of a text, if the most of it is that, and the rest of the text."""
    if b"```" not in (head := head_of(path, _FENCE_BYTES, unpacked=True)) or head.lstrip()[:3] == b"---":
        return None
    try:
        with path.open("rb") as file:
            text = decoded(file.read(MAX_TEXT_BYTES + 1), path.name)
    except (OSError, Fault):
        return None
    parts = [*_FENCE_LINE.split(text)]
    inside, outside = "\n".join(parts[1::2]), "".join(parts[::2]).strip()
    if len(outside) > len(inside) or not inside.lstrip().startswith(("{", "[")):
        return None
    return inside, [LeftOut("the text around a block of code", path.name)] * bool(outside)


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


def _unpack_tar(path: Path, target: Path) -> list[LeftOut]:
    """Copy a TAR archive, which may be compressed, into a folder; return the members that are left out."""
    left, sizes = list[LeftOut | None](), _Sizes(path.name)
    target.mkdir()
    try:
        _check_headers(path)
        with _whole(path) as whole, tarfile.open(fileobj=whole, mode="r|") as archive:
            for info in archive:
                _add(sizes, info.size)
                _check_name(path.name, info.name)
                if info.isfile():
                    if (target / info.name).is_file():
                        (target / info.name).unlink()
                        left.append(LeftOut(_REPLACED, info.name))
                    opens = partial(cast("Callable[[tarfile.TarInfo], IO[bytes]]", archive.extractfile), info)
                    left.append(_put(info.name, opens, target, MAX_MEMBER_BYTES, info.mtime))
                elif not info.isdir():
                    left.append(LeftOut(LINK if info.issym() or info.islnk() else SPECIAL, info.name))
            _read_to_end(path.name, whole)
    except UNREADABLE as error:
        raise damaged(path.name, f"is no archive that can be read: {_reason(error)}") from None
    return [part for part in left if part]


def _whole(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path)) if is_gzip(path) else path.open("rb")


def _check_headers(path: Path) -> None:
    """Read the headers alone: tarfile takes the size in a header for granted."""
    sizes = _Sizes(path.name)
    with _whole(path) as file:
        while len(head := file.read(_BLOCK)) == _BLOCK and head.strip(b"\0"):
            digits = head[124:136].strip(b" \0")
            if not digits.isdigit():
                raise damaged(path.name, f"its member {sizes.members + 1} has no size that is read")
            size = int(digits, 8)
            _add(sizes, size)
            if head[156:157] in _LONG_KINDS and size > _MAX_LONG_BYTES:
                raise damaged(path.name, f"its member {sizes.members} has a name of {size} bytes")
            blocks = -(-size // _BLOCK) * _BLOCK
            if head[156:157] not in _PAX:
                file.seek(blocks, os.SEEK_CUR)
            elif not _are_records(file.read(blocks)[:size].decode("latin-1")):
                raise damaged(path.name, f"its member {sizes.members} has a header that is none")


def _are_records(header: str) -> bool:
    at = 0
    while at < len(header):
        record = _PAX_RECORD.match(header, at)
        at += int(record[1]) if record else 0
        if record is None or at <= record.end() or header[at - 1 : at] != "\n":
            return False
    return not _MANY_DIGITS.search(header)


def _reason(error: Exception) -> str:
    """Return an error in words, without the path of the copy."""
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def _read_to_end(name: str, file: IO[bytes]) -> None:
    """Read past the members, for the checksum at the end; the rest is short, or this is no archive."""
    sizes = _Sizes(name)
    while chunk := file.read(_COPY_BYTES):
        _grow(sizes, len(chunk))


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
