"""Where the files of each tenant lie, and folders that nobody but their owner can read."""

import os
from pathlib import Path

from kernel.errors import Fault
from kernel.lazy_regex import regex

MAIN = "main"  # the tenant of callers without another
_NAME = regex(r"[a-z0-9][a-z0-9_-]{0,62}")
_TENANTS = "tenants"


def tenant_name(name: str) -> str:
    """`name` if a tenant may have it: it becomes the name of a folder on any system. Raises Fault("invalid")."""
    if not _NAME.fullmatch(name):
        raise Fault("invalid", "A tenant has a name of 1 to 63 characters: a-z, 0-9, - and _, the first no - or _.")
    return name


def home(data: Path, name: str) -> Path:
    """The folder of a tenant; the main one has the data directory itself."""
    return data if name == MAIN else data / _TENANTS / tenant_name(name)


def other_tenants(data: Path) -> list[str]:
    """The tenants besides the main one that have a folder."""
    return sorted(folder.name for folder in (data / _TENANTS).glob("*/") if _NAME.fullmatch(folder.name))


def make_private(folder: Path) -> None:
    """Makes a folder and those above it where they lack, for their owner alone; raises Fault("storage")."""
    try:
        for part in (*reversed(folder.parents), folder):
            if not part.is_dir():
                part.mkdir(mode=0o700, exist_ok=True)
                fsync_folder(part.parent)
    except OSError as error:
        raise Fault("storage", f"Cannot use the data directory: {error.strerror}") from None


def fsync_folder(folder: Path) -> None:
    """Has the names in a folder on disk before anybody is told of them."""
    if os.name != "posix":
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
