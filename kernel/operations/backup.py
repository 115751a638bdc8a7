"""Backups: one database, or everything in a data directory with a manifest of sizes and checksums, once or
at regular times into dated folders."""

import hashlib
import json
import logging
import os
import shlex
import shutil
import stat
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import msgspec

from kernel.core.config import VERSION
from kernel.core.data_dir import MAIN
from kernel.core.errors import Fault, unless_fault
from kernel.core.ids import utc_now
from kernel.core.lazy_regex import regex
from kernel.core.ordinary_files import open_ordinary, read_bytes
from kernel.engines.migrations import pending_migrations, schema_version
from kernel.engines.sqlite import folder_lock
from kernel.engines.sqlite.connection import Connection
from kernel.engines.sqlite.copy_source import copy_source, is_readonly
from kernel.engines.sqlite.database_file import write_page_sums
from kernel.engines.sqlite.errors import DISK_FULL
from kernel.engines.sqlite.unfinished import SUFFIX, finish, fsync_path, unfinished
from kernel.security import api_keys
from kernel.store.context import StoreContext
from kernel.store.long_work import OnProgress

MANIFEST = "manifest.json"
FORMAT = 1
DATABASE = "quipu.db"
_OF_USE = {folder_lock.NAME, DATABASE, f"{DATABASE}-shm", f"{DATABASE}-wal"}  # written by whatever opens a store
_BEFORE_MIGRATION = "quipu-before-migration-from-"
_COPIES_KEPT = 3  # of those made before migrations
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_CHUNK_BYTES = 1 << 20
_SECRET_MARKS = ("PASSWORD", "SECRET", "TOKEN")

Stamp = tuple[int, int, int]  # inode, size and time of a file


class Folder(NamedTuple):
    """Files of a dialect outside the database: its dialect, the name of the folder, and its path."""

    dialect: str
    name: str
    path: Path


class Tenant(NamedTuple):
    name: str
    file: Path
    context: StoreContext
    folders: Sequence[Folder]


class StoredFolder(NamedTuple):
    at: str
    tenant: str
    dialect: str
    name: str


class Manifest(NamedTuple):
    """The content of a backup: its tenants, folders, settings, and size and SHA-256 of each file."""

    format: int
    version: str
    made: str
    tenants: list[str]
    folders: list[StoredFolder]
    settings: dict[str, str]
    files: dict[str, tuple[int, str]]


_PREFIX = "quipu-"
_NAME = regex(r"quipu-\d{8}T\d{6}Z")
_POLL_SECONDS = 30.0  # how late a backup may begin
_RETRY_SECONDS = 300.0  # after a failed backup, unless the next is due before
_log = logging.getLogger("quipu")

BackUp = Callable[[Path], Manifest | Fault]


class Schedule(NamedTuple):
    """The folder of backups, the seconds between two of them, and how many are kept."""

    to: Path
    every: float
    keep: int


class BackupLoop:
    """Makes the backups of a schedule, counted from the newest backup there, by any program.

    `take` lets a single worker of several do it. `failures` counts those of this process.
    """

    def __init__(self, schedule: Schedule, back_up: BackUp, take: Callable[[], bool]) -> None:
        self.schedule = schedule
        self.failures = 0
        self._back_up = back_up
        self._take = take

    def run(self, stopping: threading.Event) -> None:
        """Make backups until `stopping` is set; a failure is logged, and tried again."""
        wait = 0.0
        while not stopping.wait(wait):
            try:
                wait = self._make_if_due()
            except MemoryError:
                wait = _RETRY_SECONDS

    def _make_if_due(self) -> float:
        """Return the seconds to the next look."""
        now = datetime.fromisoformat(utc_now()).timestamp()
        due = time_of_newest(self.schedule.to) + self.schedule.every - now
        if due > 0:
            return min(_POLL_SECONDS, due)
        if self._take():
            return min(_POLL_SECONDS if self._made() else _RETRY_SECONDS, self.schedule.every)
        return _POLL_SECONDS

    def _made(self) -> bool:
        try:
            folder = back_up_now(self.schedule, self._back_up)
        except Fault as fault:
            self.failures += 1
            _log.error("the backup has failed: %s", fault.message)
            return False
        _log.info("backup %s", folder.name)
        return True


def backup_time() -> str:
    return utc_now().replace(":", "").replace(".", "")


def backup_file(file: Path, context: StoreContext, target: Path, progress: OnProgress | None = None) -> None:
    """Copy one database while it is in use; raises Fault("conflict") if `target` exists."""
    with copy_source(file, context, target) as db:
        schema_version(db)
        db.backup(target, progress)


def copy_before_migration(db: Connection, home: Path) -> None:
    """Keep a copy of a database that is about to be migrated, beside it; the oldest of these copies are deleted."""
    version = schema_version(db)
    if not version or not pending_migrations(db):
        return
    try:
        db.backup(home / f"{_BEFORE_MIGRATION}{version:04}-{backup_time()}.db", complete=write_page_sums)
    except DISK_FULL:
        size = db.pragma("page_count") * db.pragma("page_size")
        raise Fault(
            "storage", f"A copy is made before the database is migrated; free {-(-size >> 20)} MiB in {home} for it."
        ) from None
    except Fault as fault:
        if fault.code != "conflict":  # another process copied the same version in the same millisecond
            raise
    for old in sorted(home.glob(f"{_BEFORE_MIGRATION}*.db"))[:-_COPIES_KEPT]:
        old.unlink(missing_ok=True)


def backup_all(
    data: Path, tenants: Sequence[Tenant], settings: Mapping[str, str], target: Path, progress: OnProgress | None = None
) -> Manifest:
    """Copy databases, folders, keys and settings into a new folder; it appears when it is whole."""
    with unfinished(target) as part:
        try:
            part.mkdir(mode=0o700)
            folders = [folder for tenant in tenants for folder in _copy_tenant(tenant, part, progress)]
            if (data / api_keys.FILE).exists():
                (part / api_keys.FILE).touch(mode=0o600)
                (part / api_keys.FILE).write_bytes(read_bytes(data / api_keys.FILE))
            files = {name: _size_and_digest(part / name) for name in _files_below(part)}
            names = [tenant.name for tenant in tenants]
            public = {name: text for name, text in settings.items() if not any(mark in name for mark in _SECRET_MARKS)}
            manifest = Manifest(FORMAT, VERSION, utc_now(), names, folders, public, files)
            (part / MANIFEST).write_text(json.dumps(manifest._asdict(), indent=1), encoding="utf-8")
            for path in (*part.rglob("*"), part):
                fsync_path(path)
            finish(part, target)
        except OSError as error:
            raise Fault("storage", f"Cannot write {target}: {error.strerror}") from None
    return manifest


def read_manifest(folder: Path) -> Manifest:
    try:
        fields: Any = msgspec.json.decode(read_bytes(folder / MANIFEST))
        if fields["format"] != FORMAT:
            raise Fault("invalid", f"{folder.name} has format {fields['format']}, this program knows {FORMAT}.")
        manifest = msgspec.convert([fields[name] for name in Manifest._fields], Manifest)
        if all(_is_inside(folder.at) and folder.tenant in manifest.tenants for folder in manifest.folders):
            return manifest
        raise ValueError
    except FileNotFoundError:
        raise Fault("invalid", f"{folder} is no backup: {MANIFEST} is missing. {_remedy(folder)}") from None
    except OSError as error:
        raise Fault("invalid", f"{folder} is no backup: {MANIFEST}: {error.strerror}.") from None
    except (msgspec.MsgspecError, ValueError, KeyError, TypeError, RecursionError):
        raise Fault("invalid", f"{folder} is no backup: its {MANIFEST} cannot be read.") from None


def _remedy(folder: Path) -> str:
    if dated := backups_in(folder):
        return f"Name one of its backups, such as {dated[-1]}."
    if (folder / DATABASE).is_file():
        return f"It is a data directory: name the database in it, {folder / DATABASE}."
    return "Name a folder that `quipu backup --all` or `--to` has made, or a copy of a database."


def refuse_backup(data: Path) -> None:
    """Raises Fault for a data directory that is a backup: even a search writes beside the file that it opens."""
    if not os.access(data / MANIFEST, os.F_OK):
        return
    try:
        read_manifest(data)
    except Fault:  # the file of another program
        return
    command = shlex.join(["quipu", "restore", str(data)])
    raise Fault(
        "conflict",
        f"{data} is a backup, and a command that opens it would change it. `{command} --data FOLDER` puts it into "
        "another folder, to look into it; without --data it becomes your data, and those before it are kept.",
    )


def verify(folder: Path, manifest: Manifest) -> None:
    names = {*_files_below(folder)} - {MANIFEST}
    for name in sorted(names ^ manifest.files.keys()):
        raise _changed(folder, name, "not in its manifest" if name in names else "missing")
    for name, size_and_digest in manifest.files.items():
        if _size_and_digest(folder / name) != size_and_digest:
            raise _changed(folder, name, "not as it was when the backup was made")


def _changed(folder: Path, name: str, how: str) -> Fault:
    """Return the fault for a file of a backup, with the way out if a program has opened the database in it."""
    used = name in _OF_USE and (folder / DATABASE).is_file()
    remedy = f" Has a program opened it? `quipu restore {folder / DATABASE}` takes what is there now."
    return Fault("invalid", f"{folder.name}: {name} is {how}.{remedy if used else ''}")


def copy_tree(source: Path, target: Path, earlier: Mapping[str, Stamp] | None = None) -> dict[str, Stamp]:
    """Copy the regular files below a folder, without links; those in `earlier` only if they have changed since."""
    before = earlier or {}
    stamps: dict[str, Stamp] = {}
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in _files_below(source):
        with suppress(FileNotFoundError):  # deleted meanwhile
            status = (source / name).lstat()
            stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
            if before.get(name) != stamp:
                _copy_file(source / name, target / name)
            stamps[name] = stamp
    for name in before.keys() - stamps.keys():
        (target / name).unlink()
    return stamps


def place(folder: Path, tenant: str) -> Path:
    return folder if tenant == MAIN else folder / "tenants" / tenant


def _copy_tenant(tenant: Tenant, part: Path, progress: OnProgress | None) -> list[StoredFolder]:
    """Copy a tenant; folders and database are of one moment, since no other process writes at that moment."""
    home = place(part, tenant.name)
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    folders = [(folder, home / "folders" / f"{folder.dialect}-{at}") for at, folder in enumerate(tenant.folders, 1)]
    folders = [(folder, target) for folder, target in folders if folder.path.is_dir()]
    with copy_source(tenant.file, tenant.context, home / DATABASE) as reader:
        schema_version(reader)
        stamps = [copy_tree(folder.path, target) for folder, target in folders]
        if folders and not is_readonly(tenant.file.parent):
            with closing(Connection(tenant.file, tenant.context, readonly=False)) as writer, writer.writing():
                for (folder, target), before in zip(folders, stamps, strict=True):
                    copy_tree(folder.path, target, before)
                reader.take_snapshot()
        reader.backup(home / DATABASE, progress)
    return [StoredFolder(target.relative_to(part).as_posix(), tenant.name, *folder[:2]) for folder, target in folders]


def _files_below(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield path.relative_to(folder).as_posix()


def _is_inside(at: str) -> bool:
    return not PurePosixPath(at).is_absolute() and ".." not in PurePosixPath(at).parts and "\0" not in at


def _copy_file(source: Path, target: Path) -> None:
    with open_ordinary(source, _NO_FOLLOW) as reading:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with target.open("wb") as writing:
            shutil.copyfileobj(reading, writing, _CHUNK_BYTES)
        status = os.fstat(reading.fileno())
        target.chmod(stat.S_IMODE(status.st_mode))
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def _size_and_digest(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return file.tell(), digest


def backups_in(folder: Path) -> list[Path]:
    with suppress(OSError):
        return sorted(entry for entry in folder.iterdir() if _begun(entry) and (entry / MANIFEST).is_file())
    return []


def time_of_newest(folder: Path) -> float:
    """Return when the newest backup was begun, in seconds since 1970; 0 without any."""
    return max(map(_begun, backups_in(folder)), default=0.0)


def _begun(backup: Path) -> float:
    with suppress(ValueError):
        if _NAME.fullmatch(backup.name):
            return datetime.fromisoformat(backup.name.removeprefix(_PREFIX)).timestamp()
    return 0.0


def back_up_now(schedule: Schedule, back_up: BackUp) -> Path:
    """Make a backup, then delete the oldest of those that are too many; raises Fault."""
    name = f"{_PREFIX}{utc_now()[:19].replace('-', '').replace(':', '')}Z"
    try:
        schedule.to.mkdir(mode=0o700, exist_ok=True)  # without parents: a disk may not be mounted
    except OSError as error:
        raise Fault("storage", f"Cannot write {schedule.to}: {error.strerror}") from None
    unless_fault(back_up(schedule.to / name))
    for old in backups_in(schedule.to)[: -schedule.keep]:
        _delete(old)
    return schedule.to / name


def _delete(backup: Path) -> None:
    renamed_folder = backup.with_name(f"{backup.name}.old{SUFFIX}")
    with suppress(OSError):
        backup.rename(renamed_folder)
        shutil.rmtree(renamed_folder)
