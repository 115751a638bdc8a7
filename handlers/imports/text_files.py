"""Reads the files of a source: text without a link on the way, folders in a fixed order, all within bounds."""

import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from handlers.imports.records import damaged, shown, utc_of
from kernel.errors import Fault
from kernel.lazy_regex import regex

MAX_FILES = 100_000
MAX_TEXT_BYTES = 16 << 20  # of one file that is read whole
_MAX_DEPTH = 40  # folders in folders
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
_READ = os.O_RDONLY | _NO_FOLLOW | _NO_WAIT | getattr(os, "O_BINARY", 0)
_SURROGATE = regex(r"[\ud800-\udfff]")  # what stands for bytes of a name that are no UTF-8
_SKIPPED_FOLDERS = {".git", ".obsidian", ".trash", "node_modules", ".venv", "__pycache__"}


class TextFile(NamedTuple):
    """A file below a folder: its path there with slashes, its text, and the time of its last change."""

    name: str
    text: str
    modified: str


def read_text(path: Path, name: str) -> TextFile:
    """A file as text; raises Fault for one that is too large, is no text, or cannot be read."""
    try:
        descriptor = os.open(path, _READ)
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise damaged(name, "is no ordinary file")
            data = file.read(MAX_TEXT_BYTES + 1)
    except OSError as error:
        raise damaged(name, f"cannot be read: {error.strerror}") from None
    return TextFile(name, decoded(data, name), utc_of(datetime.fromtimestamp(found.st_mtime, UTC).isoformat()))


def decoded(data: bytes, name: str) -> str:
    """UTF-8 text; raises Fault naming the byte that is none."""
    if len(data) > MAX_TEXT_BYTES:
        raise damaged(name, f"has more than {MAX_TEXT_BYTES >> 20} MB of text")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise damaged(name, f"is no UTF-8 text: byte {error.start} is {data[error.start]:#04x}") from None
    if "\0" in text:
        raise damaged(name, f"is no text: character {text.index(chr(0))} is NUL")
    return text.replace("\r\n", "\n")


def files_below(folder: Path, *suffixes: str) -> Iterator[tuple[Path, str]]:
    """The files of a folder with one of these endings and their names, in the order of the names; no link is taken."""
    count = 0
    waiting = [(folder, "", 0)]
    while waiting:
        here, prefix, depth = waiting.pop()
        folders: list[tuple[Path, str, int]] = []
        for entry in _entries(here):
            name = f"{prefix}{entry.name}"
            if entry.is_symlink():
                continue
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in _SKIPPED_FOLDERS and depth < _MAX_DEPTH:
                    folders.append((Path(entry.path), f"{name}/", depth + 1))
            elif entry.name.lower().endswith(suffixes):
                count += 1
                if count > MAX_FILES:
                    raise Fault("invalid", f"{shown(folder.name)} holds more than {MAX_FILES:,} files.")
                yield _ordinary(entry, name), name
        waiting += reversed(folders)


def _ordinary(entry: os.DirEntry[str], name: str) -> Path:
    if not entry.is_file(follow_symlinks=False):
        raise damaged(name, "is no ordinary file")
    return Path(entry.path)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        raise damaged(str(folder), f"cannot be read: {error.strerror}") from None
    odd = next((entry.name for entry in entries if _SURROGATE.search(entry.name)), None)
    if odd is not None:
        raise damaged(odd, "has a name that is no text")
    return entries
