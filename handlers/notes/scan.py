"""Lists the memory files of a project with a `stat` each, without reading them."""

import os
import re
import stat
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

from handlers.notes import safe_fs
from handlers.notes.safe_fs import OpenFolder, Stamp, entry_path, is_missing, open_folder, stat_entry
from kernel.core.lazy_regex import regex

SUFFIX = ".md"
MAX_FILE_BYTES = 4 << 20  # 4 MB; a stray dump must not stop every recall
TEMPORARY_PREFIX = ".quipu"
# Matches our own temporary files only, because they are deleted.
_TEMPORARY_NAME = regex(re.escape(TEMPORARY_PREFIX) + "_[0-9a-z]{22}")
_MAX_DEPTH = 32  # folders; bind mounts can form loops that are not links
_LINK_REASON = "a link, which is not followed"
# Files that a wiki of the original keeps beside the memories.
_WIKI_FILE = regex(r"index\.md|SCHEMA\.md|log(?:\.[^/]*)?\.md")


class Scan(NamedTuple):
    """The result of a scan.

    `stamps` of the memories by path; `unreadable` entries with the reason; `leftovers`, temporary files of running or
    killed writes with their mtime in nanoseconds; `unlisted` folders that could not be read now.
    """

    stamps: dict[str, Stamp]
    unreadable: list[tuple[str, str]]
    leftovers: dict[str, int]
    unlisted: list[str]


def is_memory(path: str) -> bool:
    """Return whether a path below `.mnemonics` is a memory: not hidden, not too deep, not a wiki file."""
    *folders, name = path.split("/")
    is_hidden = any(part.startswith(".") for part in folders) or (name.startswith(".") and name != SUFFIX)
    is_deep = len(folders) > _MAX_DEPTH
    return name.endswith(SUFFIX) and not is_hidden and not is_deep and not _WIKI_FILE.fullmatch(path)


def scan(root: Path) -> Scan | None:
    """Return the memories below `<root>/.mnemonics`; None if `root` does not exist. Raises OSError if it is a link."""
    result = Scan({}, [], {}, [])
    with ExitStack() as stack:
        try:
            top = open_folder(stack, root, ())
        except FileNotFoundError:
            return result if os.path.isdir(root) else None  # noqa: PTH112  # of each recall
        _scan(top, "", result, 0)
    return result


def _scan(folder: OpenFolder, prefix: str, result: Scan, depth: int) -> None:
    inner: list[str] = []
    with os.scandir(folder.path if folder.fd is None else folder.fd) as entries:
        for entry in entries:
            name = entry.name
            if name[-3:] == SUFFIX and (name[0] != "." or name == SUFFIX):
                _scan_markdown(entry, prefix, result, inner)
            elif name[0] != ".":
                _scan_other(entry, prefix, result, inner)
            elif _TEMPORARY_NAME.fullmatch(name):
                _scan_temporary(entry, prefix, result)
    for name in inner:
        if depth < _MAX_DEPTH:
            _scan_subfolder(folder, name, prefix, result, depth)
        else:
            result.unreadable.append((prefix + name, f"more than {_MAX_DEPTH} folders deep"))


def _scan_other(entry: "os.DirEntry[str]", prefix: str, result: Scan, inner: list[str]) -> None:
    if entry.is_dir(follow_symlinks=False):
        inner.append(entry.name)
    elif entry.is_symlink():
        result.unreadable.append((prefix + entry.name, _LINK_REASON))


def _scan_temporary(entry: "os.DirEntry[str]", prefix: str, result: Scan) -> None:
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return
    if stat.S_ISREG(status.st_mode):
        result.leftovers[prefix + entry.name] = status.st_mtime_ns


def _scan_subfolder(folder: OpenFolder, name: str, prefix: str, result: Scan, depth: int) -> None:
    with ExitStack() as stack:
        try:
            _scan(safe_fs.open_subfolder(stack, folder, name), f"{prefix}{name}/", result, depth + 1)
        except OSError as error:
            result.unreadable.append((prefix + name, error.strerror or "not readable"))
            if not is_missing(error):
                result.unlisted.append(prefix + name)


def _scan_markdown(entry: "os.DirEntry[str]", prefix: str, result: Scan, inner: list[str]) -> None:
    path = prefix + entry.name
    if entry.name != SUFFIX and entry.is_dir(follow_symlinks=False):
        inner.append(entry.name)
        return
    if not prefix and _WIKI_FILE.fullmatch(path):
        return
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(status.st_mode):
        result.unreadable.append((path, _LINK_REASON if stat.S_ISLNK(status.st_mode) else "not a file"))
    elif status.st_size > MAX_FILE_BYTES:
        result.unreadable.append((path, f"larger than {MAX_FILE_BYTES >> 20} MB"))
    elif not path.isascii() and path.encode("utf-8", "ignore").decode() != path:
        result.unreadable.append((path, "a name that is not UTF-8"))
    else:
        result.stamps[path] = safe_fs.stamp_of(status)


def delete_leftover(root: Path, path: str) -> None:
    """Deletes a temporary file of a killed write; errors are ignored."""
    *folders, name = path.split("/")
    with suppress(OSError), ExitStack() as stack:
        below = open_folder(stack, root, folders)
        if stat.S_ISREG(stat_entry(below, name).st_mode):
            os.unlink(entry_path(below, name), dir_fd=below.fd)
