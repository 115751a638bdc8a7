"""Reads ordinary files of the user and refuses others: a pipe never blocks, a device never fills the memory."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
MAX_BYTES = 64 << 20  # of a file that is read whole


def open_ordinary(path: Path, flags: int = 0) -> BinaryIO:
    """Open a file to read it, with further flags; raises OSError for a pipe, a socket, a device and a folder."""
    _check(path, path.stat(follow_symlinks=not flags & getattr(os, "O_NOFOLLOW", 0)))
    file = os.fdopen(os.open(path, _READ | flags), "rb")
    try:
        _check(path, os.fstat(file.fileno()))
    except OSError:
        file.close()
        raise
    return file


def read_bytes(path: Path, most: int = MAX_BYTES) -> bytes:
    with open_ordinary(path) as file:
        if os.fstat(file.fileno()).st_size <= most and len(data := file.read(most + 1)) <= most:
            return data
    raise OSError(errno.EFBIG, f"it has more than {most >> 20} MiB", str(path))


def _check(path: Path, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is no ordinary file", str(path))
