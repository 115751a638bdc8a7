"""The checks of `quipu doctor` on folders and the file systems below them."""

import os
from pathlib import Path

_GROUP_AND_OTHERS = 0o077
# Write-ahead logging needs memory shared by all processes of one host: https://sqlite.org/wal.html.
NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "fuse.sshfs", "fuse.s3fs", "virtiofs"}
)
# What the folders of programs that copy files elsewhere while they change are called.
_SYNCHRONIZED = ("onedrive", "dropbox", "google drive", "googledrive", "icloud", "mobile documents")


def existing_parent(path: Path) -> Path:
    """Return the path itself, or its nearest ancestor that exists."""
    return next((part for part in (path, *path.parents) if part.exists()), Path("/"))


def readable_by_others(path: Path) -> bool:
    """Return whether other users of this machine can reach it; on Windows the user's folder keeps them out."""
    return os.name == "posix" and path.exists() and bool(path.stat().st_mode & _GROUP_AND_OTHERS)


def synchronized_folder(path: Path) -> str:
    """Return the folder above a path, or the path itself, that a program copies elsewhere; empty if there is none."""
    return next((part for part in path.parts if part.lower().startswith(_SYNCHRONIZED)), "")


def kind_of(path: Path) -> str:
    """Return the type of the file system; empty if the system does not expose it."""
    if path.drive.startswith("\\\\"):  # a share on Windows
        return "smbfs"
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    except OSError:
        return ""
    place = path.resolve()
    found = [(len(mount[1]), mount[2]) for mount in mounts if place.is_relative_to(mount[1].replace("\\040", " "))]
    return max(found, default=(0, ""))[1]
