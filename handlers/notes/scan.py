"""What stands below the folder of the memories, by one look at every entry and at no content."""

import os
import re
import stat
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

from handlers.notes.safe_fs import Folder, Stamp, at, enter, gone, look, stamp_of, step
from kernel.lazy_regex import regex

SUFFIX = ".md"
LARGEST = 4 << 20
TEMPORARY = ".quipu"
# The names of our own temporary files, and of nothing else.
_TEMPORARY = regex(re.escape(TEMPORARY) + "_[0-9a-z]{22}")
_DEEPEST = 32
_LINK = "a link, which is not followed"
# What a wiki keeps beside its memories.
_ARTEFACT = regex(r"index\.md|SCHEMA\.md|log(?:\.[^/]*)?\.md")


class Scan(NamedTuple):
    """The memories below a folder by path, with their stamps; paths of what else was there and what is wrong with it;
    what writes left that are under way, or were killed, with the time of its last change in nanoseconds; paths of files
    and folders that the system would not show just now.
    """

    stamps: dict[str, Stamp]
    odd: list[tuple[str, str]]
    left: dict[str, int]
    unseen: list[str]


def is_memory(path: str) -> bool:
    """Whether a path below `.mnemonics` is that of a memory: not hidden, not too deep, and none a wiki keeps there."""
    *folders, name = path.split("/")
    hidden = any(part.startswith(".") for part in folders) or (name.startswith(".") and name != SUFFIX)
    deep = len(folders) > _DEEPEST
    return name.endswith(SUFFIX) and not hidden and not deep and not _ARTEFACT.fullmatch(path)


def scan(root: Path) -> Scan | None:
    """Every memory below `<root>/.mnemonics`; None where there is no `root`. Raises OSError for a link in its place."""
    found = Scan({}, [], {}, [])
    with ExitStack() as stack:
        try:
            top = enter(stack, root, ())
        except FileNotFoundError:
            return found if root.is_dir() else None
        _scan(top, "", found, 0)
    return found


def _scan(folder: Folder, prefix: str, found: Scan, depth: int) -> None:
    inner: list[str] = []
    with os.scandir(folder.path if folder.fd is None else folder.fd) as entries:
        for entry in entries:
            name = entry.name
            if name[-3:] == SUFFIX and (name[0] != "." or name == SUFFIX):
                _note(entry, prefix, found, inner)
            elif name[0] != ".":
                _enter_later(entry, prefix, found, inner)
            elif _TEMPORARY.fullmatch(name):
                _leftover(entry, prefix, found)
    for name in inner:
        if depth < _DEEPEST:
            _below(folder, name, prefix, found, depth)
        else:
            found.odd.append((prefix + name, f"more than {_DEEPEST} folders deep"))


def _enter_later(entry: "os.DirEntry[str]", prefix: str, found: Scan, inner: list[str]) -> None:
    if entry.is_dir(follow_symlinks=False):
        inner.append(entry.name)
    elif entry.is_symlink():
        found.odd.append((prefix + entry.name, _LINK))


def _leftover(entry: "os.DirEntry[str]", prefix: str, found: Scan) -> None:
    try:
        seen = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return
    if stat.S_ISREG(seen.st_mode):
        found.left[prefix + entry.name] = seen.st_mtime_ns


def _below(folder: Folder, name: str, prefix: str, found: Scan, depth: int) -> None:
    with ExitStack() as stack:
        try:
            _scan(step(stack, folder, name), f"{prefix}{name}/", found, depth + 1)
        except OSError as error:
            found.odd.append((prefix + name, error.strerror or "not readable"))
            if not gone(error):
                found.unseen.append(prefix + name)


def _note(entry: "os.DirEntry[str]", prefix: str, found: Scan, inner: list[str]) -> None:
    path = prefix + entry.name
    if entry.name != SUFFIX and entry.is_dir(follow_symlinks=False):
        inner.append(entry.name)
        return
    if not prefix and _ARTEFACT.fullmatch(path):
        return
    try:
        seen = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(seen.st_mode):
        found.odd.append((path, _LINK if stat.S_ISLNK(seen.st_mode) else "not a file"))
    elif seen.st_size > LARGEST:
        found.odd.append((path, f"larger than {LARGEST >> 20} MB"))
    elif not path.isascii() and path.encode("utf-8", "ignore").decode() != path:
        found.odd.append((path, "a name that is not UTF-8"))
    else:
        found.stamps[path] = stamp_of(seen)


def sweep(root: Path, path: str) -> None:
    """Deletes what a killed write left behind; what cannot be deleted stays."""
    *folders, name = path.split("/")
    with suppress(OSError), ExitStack() as stack:
        below = enter(stack, root, folders)
        if stat.S_ISREG(look(below, name).st_mode):
            os.unlink(at(below, name), dir_fd=below.fd)
