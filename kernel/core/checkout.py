"""Reads files below a folder that somebody else may have made, such as a clone, without being led out of it.

Hooks of clients start with this module, so it imports nothing that takes time.
"""

import os
import stat

LINK, HARD_LINK, SPECIAL = "a link", "a hard link", "no ordinary file"
_HAS_DIR_FD = os.open in os.supports_dir_fd and os.stat in os.supports_dir_fd
_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER = _FLAGS | getattr(os, "O_DIRECTORY", 0)
_FILE = _FLAGS | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
_MOST_GIT = 4096  # bytes of the small files that name the repository of a worktree
_REPARSE_POINT = 0x400  # links and junctions of Windows
# Terminals obey these, and the last ten change the order in which a line is read; a text has tabs and line ends.
_CONTROLS = frozenset(
    map(chr, (*range(9), 11, 12, *range(14, 32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A)))
)


class Refused(Exception):
    """A file that is not read; the message is the reason, such as `a link`."""


def open_file(root: str, name: str) -> int:
    """Open an ordinary file below `root` by its path there, with slashes, and return the descriptor.

    Raises Refused for links in any part below the root, for pipes, devices and sockets, and for a file with several
    names, since another of them may lie elsewhere; OSError if it is missing or cannot be read. It never waits.
    """
    *folders, last = name.split("/")
    if not {"", ".", ".."}.isdisjoint((*folders, last)):
        raise Refused("a path that leads out")
    here = os.open(root, _FOLDER & ~getattr(os, "O_NOFOLLOW", 0)) if _HAS_DIR_FD else None
    path = root
    try:
        for part in folders:
            path = part if _HAS_DIR_FD else os.path.join(path, part)
            if not stat.S_ISDIR(_status(path, here).st_mode):
                raise NotADirectoryError(f"{part} is no folder")
            if here is not None:
                below = os.open(path, _FOLDER, dir_fd=here)
                os.close(here)
                here = below
        path = last if _HAS_DIR_FD else os.path.join(path, last)
        before = _ordinary(_status(path, here))
        return _checked(os.open(path, _FILE, dir_fd=here), before)
    finally:
        if here is not None:
            os.close(here)


def read(root: str, name: str, most: int) -> bytes:
    """Return the first `most` bytes of a file that `open_file` opens."""
    with os.fdopen(open_file(root, name), "rb") as file:
        return file.read(most)


def read_text(root: str, name: str, most: int) -> str:
    """Return the start of a file as text, at most so many bytes of it; raises Refused if it is not plain text."""
    data = read(root, name, most + 1)
    try:
        text = data[:most].decode()
    except UnicodeDecodeError as error:
        if len(data) <= most or error.start < most - 3:  # else it was cut inside a character
            raise Refused("no UTF-8 text") from None
        text = data[: error.start].decode()
    text = text.removeprefix("\ufeff")
    if has_controls(text):
        raise Refused("a text with control characters")
    return text


def main_worktree(here: str) -> str:
    """Return the root of the repository of a linked worktree, from its `.git` file; empty if that repository does not
    say so.
    """
    own = linked_git(here)
    return os.path.dirname(os.path.dirname(os.path.dirname(own)))


def linked_git(here: str) -> str:
    """Return the folder of a linked worktree in its repository; empty if that repository does not list it.

    Anybody can write into a `.git` file that it belongs to a repository; only the user's own lists its worktrees.
    """
    try:
        git_folder = read_text(here, ".git", _MOST_GIT).strip().removeprefix("gitdir: ")
        own = os.path.realpath(os.path.join(here, git_folder))
        listed_file = read_text(own, "gitdir", _MOST_GIT).strip()
        common = read_text(own, "commondir", _MOST_GIT).strip()
        real, worktrees = os.path.split(os.path.dirname(own))
        if (
            worktrees != "worktrees"
            or not os.path.samefile(os.path.join(own, common), real)
            or not os.path.samefile(os.path.join(own, listed_file), os.path.join(here, ".git"))
        ):
            return ""
        return own
    except (OSError, ValueError, Refused):
        return ""


def has_controls(text: str) -> bool:
    return not _CONTROLS.isdisjoint(text)


def _status(path: str, here: int | None) -> os.stat_result:
    status = os.stat(path, dir_fd=here, follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode) or getattr(status, "st_file_attributes", 0) & _REPARSE_POINT:
        raise Refused(LINK)
    return status


def _ordinary(status: os.stat_result) -> os.stat_result:
    if not stat.S_ISREG(status.st_mode):
        raise Refused(SPECIAL)
    if status.st_nlink > 1:
        raise Refused(HARD_LINK)
    return status


def _checked(descriptor: int, before: os.stat_result) -> int:
    """Return the descriptor if it is of the file that was looked at, and not of one put in its place."""
    try:
        status = _ordinary(os.fstat(descriptor))
        if (status.st_dev, status.st_ino) != (before.st_dev, before.st_ino):
            raise Refused("a file that is being replaced")
    except Refused:
        os.close(descriptor)
        raise
    return descriptor
