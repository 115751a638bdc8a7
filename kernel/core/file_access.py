"""Whether this process may use a file of the data directory, and else the reason and the remedy."""

import os
import shlex
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from kernel.core.errors import Fault

_OTHER_FOLDER = "choose another folder with --data or QUIPU_DATA"


class Denial(NamedTuple):
    """A file or folder that this process may not use as it needs to."""

    path: Path
    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.path} cannot be used: {self.reason}"


def denial(data: Path, path: Path, wanted: int = os.R_OK | os.W_OK) -> Denial | None:
    """Return the first part of a path that denies this process the access it wants; None for a path that allows it, or
    that is missing. Writing a file takes a folder in which another can be made beside it.
    """
    for part in (*reversed(path.parents), path):
        try:
            status = part.stat()
        except OSError:  # missing, or below a file
            return None
        if stat.S_ISDIR(status.st_mode):
            needed = os.X_OK | (wanted if part == path or (part.is_relative_to(data) and wanted & os.W_OK) else 0)
        else:
            needed = wanted
        if not os.access(part, needed, effective_ids=os.access in os.supports_effective_ids):
            return Denial(part, *_reason_and_remedy(data, part, status, needed))
    return None


def require(data: Path, file: Path) -> None:
    """Raise Fault("storage") for a file that this process may not read and write."""
    if denied := denial(data.absolute(), file.absolute()):
        raise Fault("storage", f"Cannot write to storage: {denied}; {denied.remedy}.")


def _reason_and_remedy(data: Path, part: Path, status: os.stat_result, needed: int) -> tuple[str, str]:
    if sys.platform != "win32":
        if needed & os.W_OK and os.statvfs(part).f_flag & os.ST_RDONLY:
            return "its file system is mounted read-only", f"mount it for writing, or {_OTHER_FOLDER}"
        mode, user = stat.S_IMODE(status.st_mode), os.geteuid()
        if status.st_uid != user:
            return f"it belongs to {_name_of(status.st_uid)} and has mode {mode:04o}", _as_owner(
                data, part, status, user
            )
        if mode & needed << 6 != needed << 6:
            command = ["chmod", "u+rwx" if needed & os.X_OK else "u+rw", str(part)]
            return f"its mode is {mode:04o}", f"`{shlex.join(command)}`"
    return "the system denies it", "look at its attributes and access list"


def _as_owner(data: Path, part: Path, status: os.stat_result, user: int) -> str:
    other = _OTHER_FOLDER
    if part.is_relative_to(data):
        other = f"`{shlex.join(['sudo', 'chown', '-R', _name_of(user), str(data)])}`"
    return f"run Quipu as {_name_of(status.st_uid)}, or {other}"


def _name_of(user: int) -> str:
    if sys.platform != "win32":
        import pwd

        with suppress(KeyError):
            return pwd.getpwuid(user).pw_name
    return str(user)
