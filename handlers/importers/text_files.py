"""Reads the files of a source: text without a link on the way, folders in a fixed order, all within bounds."""

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

from handlers.importers.records import LeftOut, damaged, left_out, utc_of
from kernel.core.checkout import HARD_LINK, LINK, Refused, main_worktree, open_file
from kernel.core.errors import Fault
from kernel.core.lazy_regex import regex
from kernel.memories.json_rows import encoding_of_16_bits

_MOST_FILES = 100_000
_MOST_ENTRIES = 250_000  # files of any kind, and folders: they are listed in two seconds
MAX_TEXT_BYTES = 16 << 20  # of one file that is read whole
_MAX_DEPTH = 40  # folders in folders
_SURROGATE = regex(r"[\ud800-\udfff]")  # they stand for bytes of a name that are no UTF-8
OTHER_FILE_SYSTEM = "is on another file system, and is imported by its own path"
_TRASH, _OF_LOGSEQ = ".trash", {"logseq/bak", "logseq/.recycle"}  # of which the second holds older versions, too
_SKIPPED_FOLDERS = {".git", ".obsidian", "node_modules", ".venv", "__pycache__", "__MACOSX"}


class TextFile(NamedTuple):
    """A file below a folder: its path there with slashes, its text, and the time of its last change."""

    name: str
    text: str
    modified: str


def root_of(folder: Path) -> str:
    """Return the folder that an import belongs to: of a linked worktree of a repository the main worktree."""
    here = str(folder.resolve())
    return main_worktree(here) or here


def read_text(folder: Path, name: str, label: str = "") -> TextFile:
    """Return a file below a folder as text, under its name or a label.

    Raises Fault for a file that is too large, is no text, or cannot be read, as for all that `opened` refuses.
    """
    with opened(folder, name) as file:
        return _text(file, label or name)


def read_or_name(folder: Path, name: str, label: str = "") -> TextFile | LeftOut:
    """Return a file as `read_text` does, or its fault."""
    try:
        return read_text(folder, name, label)
    except Fault as fault:
        return left_out(fault)


def read_or_leave_out(folder: Path, name: str) -> TextFile | LeftOut | None:
    """Return a file as text, or why it is left out; None if there is none of this name, or a folder."""
    if (folder / name).is_dir() and not (folder / name).is_symlink():
        return None
    try:
        with os.fdopen(open_file(str(folder), name), "rb") as file:
            return _text(file, name)
    except Refused as refused:
        return LeftOut(str(refused), name)
    except Fault as fault:
        return left_out(fault)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return left_out(damaged(name, f"cannot be read: {error.strerror}"))


def opened(folder: Path, name: str) -> BinaryIO:
    """Open an ordinary file below a folder; raises Fault for a link on the way, and for other things than files."""
    try:
        descriptor = open_file(str(folder), name)
    except Refused as refused:
        raise damaged(name, f"is {refused}") from None
    except OSError as error:
        raise damaged(name, f"cannot be read: {error.strerror}") from None
    return os.fdopen(descriptor, "rb")


def _text(file: BinaryIO, name: str) -> TextFile:
    modified_at = datetime.fromtimestamp(os.fstat(file.fileno()).st_mtime, UTC)
    try:
        data = file.read(MAX_TEXT_BYTES + 1)
    except OSError as error:
        raise damaged(name, f"cannot be read: {error.strerror}") from None
    return TextFile(name, decoded(data, name), utc_of(modified_at.isoformat()))


def decoded(data: bytes, name: str) -> str:
    """Return UTF-8 or UTF-16 text; raises Fault naming the byte that is none."""
    if len(data) > MAX_TEXT_BYTES:
        raise damaged(name, f"has more than {MAX_TEXT_BYTES >> 20} MB of text")
    try:
        text = data.decode(encoding_of_16_bits(data) or "utf-8-sig")
    except UnicodeDecodeError as error:
        raise damaged(name, f"is no UTF-8 text: byte {error.start} is {data[error.start]:#04x}") from None
    if "\0" in text:
        raise damaged(name, f"is no text: character {text.index(chr(0))} is NUL")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def files_below(folder: Path, *suffixes: str, others: str = "") -> Iterator[str | LeftOut]:
    """Yield the names of the files with any of these endings, in order, and a LeftOut for every other entry.

    Files with other endings are left out for the reason `others`; without it, they are passed over.
    """
    files = looked_at = device = 0
    waiting = [(folder, "")]
    while waiting:
        here, prefix = waiting.pop()
        folders: list[tuple[Path, str]] = []
        try:
            device = device or device_of(here)
            if device_of(here) != device:
                yield left_out(damaged(prefix, OTHER_FILE_SYSTEM))
                continue
            entries = _entries(here)
        except OSError as error:
            yield left_out(damaged(prefix or folder.name, f"cannot be read: {error.strerror}"))
            continue
        looked_at += len(entries)
        _check(folder, looked_at, _MOST_ENTRIES, "files and folders")
        for file in _in_folder(here, prefix, entries, suffixes, others):
            if isinstance(file, Path):
                folders.append((file, f"{prefix}{file.name}/"))
                continue
            files += isinstance(file, str)
            _check(folder, files, _MOST_FILES, "files to read")
            yield file
        waiting += reversed([below for below in folders if below[1].count("/") <= _MAX_DEPTH])


def _check(folder: Path, count: int, most: int, kind: str) -> None:
    if count > most:
        raise damaged(str(folder), f"holds more than {most:,} {kind}: name the folder in it that is to be imported")


def device_of(folder: Path) -> int:
    """Return the file system that a folder lies on; raises OSError."""
    return folder.stat().st_dev


def _in_folder(
    folder: Path, prefix: str, entries: Sequence[os.DirEntry[str]], suffixes: tuple[str, ...], others: str
) -> Iterator[Path | str | LeftOut]:
    """Yield the folders in a folder, the names of its files, and its other entries."""
    for entry in (entry for entry in entries if entry.name not in _SKIPPED_FOLDERS):
        name = f"{prefix}{entry.name}"
        if refusal := _refusal(entry, name):
            yield refusal
        elif entry.is_dir(follow_symlinks=False):
            yield folder / entry.name
        elif entry.name.lower().endswith(suffixes):
            yield _ordinary(entry, name)
        elif others and not entry.name.startswith("."):
            yield LeftOut(others, name)


def _refusal(entry: os.DirEntry[str], name: str) -> LeftOut | None:
    if entry.name == _TRASH or name in _OF_LOGSEQ:
        return LeftOut("deleted there", name)
    if _SURROGATE.search(entry.name):
        return left_out(damaged(name, "has a name that is no text"))
    return LeftOut(LINK, name) if _is_link(entry) else None


def names_below(folder: Path, *suffixes: str) -> Iterator[str]:
    return (name for name in files_below(folder, *suffixes) if isinstance(name, str))


def _is_link(entry: os.DirEntry[str]) -> bool:
    """Tell whether an entry leads elsewhere: a link, or a junction of Windows."""
    return entry.is_symlink() or getattr(entry, "is_junction", bool)()  # from Python 3.12 on


def _ordinary(entry: os.DirEntry[str], name: str) -> str | LeftOut:
    if not entry.is_file(follow_symlinks=False):
        return left_out(damaged(name, "is no ordinary file"))
    return name if entry.stat(follow_symlinks=False).st_nlink <= 1 else LeftOut(HARD_LINK, name)


def is_own_folder(entry: os.DirEntry[str]) -> bool:
    """Tell whether an entry is a folder to look into: no link, and none of tools."""
    is_folder = entry.is_dir(follow_symlinks=False) and not _is_link(entry)
    return is_folder and entry.name not in {*_SKIPPED_FOLDERS, _TRASH} and not _SURROGATE.search(entry.name)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as listing:
        return sorted(islice(listing, _MOST_ENTRIES + 1), key=lambda entry: entry.name)
