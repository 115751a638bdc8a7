"""Puts a backup in the place of a data directory: all of it or nothing, whenever the process is interrupted.

The copies are made and verified first. Then `restore.json` lists the renamings, and from that moment on the restore is
finished by the next process that opens the data directory. The data before it are kept under a name with the time.
"""

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple

from kernel.core import data_dir
from kernel.core.data_dir import fsync_folder, make_private
from kernel.core.errors import NO_SPACE, Fault
from kernel.core.ordinary_files import open_ordinary, read_bytes
from kernel.core.text import counted
from kernel.engines.migrations import pending_migrations, schema_version
from kernel.engines.sqlite.connection import Connection
from kernel.engines.sqlite.database_file import check_log, log_of
from kernel.engines.sqlite.errors import DAMAGED, SQLITE_ERRORS
from kernel.engines.sqlite.folder_lock import FolderLock
from kernel.engines.sqlite.unfinished import fsync_path
from kernel.operations import backup
from kernel.operations.backup import DATABASE, Manifest, Tenant
from kernel.security import api_keys
from kernel.store.context import CallContext, StoreContext

JOURNAL = "restore.json"
_MAGIC = b"SQLite format 3\0"
_CHUNK_BYTES = 1 << 20
_STAGING = ".restoring"  # folder of the verified copies, and the end of the name of one beside a folder elsewhere


class Step(NamedTuple):
    """One change: `final` is renamed to `aside`, and `staged`, if it is there, to `final`."""

    staged: str
    final: str
    aside: str


class Restored(NamedTuple):
    """A line for each part that is restored, and whether anything was there before, which is kept."""

    lines: list[str]
    is_kept: bool


class Restoring(NamedTuple):
    """A restore in preparation; `report` are the lines to print at its end."""

    data: Path
    context: StoreContext
    time: str
    steps: list[Step]
    report: list[str]

    @property
    def staging(self) -> Path:
        return self.data / _STAGING

    def add(self, copy: Path | None, final: Path, aside: str) -> None:
        from_ = "" if copy is None else _relative(self.data, copy)
        self.steps.append(Step(from_, _relative(self.data, final), _relative(self.data, final.with_name(aside))))


def restore(
    data: Path, places: Mapping[str, Tenant], source: Path, context: StoreContext, *, tenant: str, time: str
) -> Restored:
    """Restore a file as the database of `tenant`, or all that is in a folder.

    Raises Fault, with nothing changed, if the data directory is in use or the source is no sound backup.
    """
    if not source.exists():
        raise Fault("not_found", f"There is no file and no folder {source}.")
    if source.resolve() == data.resolve():
        raise Fault("invalid", f"{source} is the data directory itself, not a backup of it.")
    homes = [place.file.parent for place in places.values()]
    for home in homes:
        make_private(home)
    with ExitStack() as stack:
        locks = [stack.enter_context(closing(FolderLock(folder))) for folder in dict.fromkeys([data, *homes])]
        if not all(lock.take("exclusive") for lock in locks):
            raise Fault(
                "conflict", f"{data} is in use: stop the server and the clients that start one, then try again."
            )
        if is_interrupted(data):
            finish(data)
        work = Restoring(data, context, time, [], [])
        try:
            _prepare(work, places, source, tenant)
            _commit(work)
        except OSError as error:
            raise Fault("storage", f"Cannot restore: {error.strerror or error}") from None
        finally:
            if not is_interrupted(data):
                _clean(work)
        is_kept = any(os.path.lexists(data / step.final) for step in work.steps)
        finish(data)
        return Restored(work.report, is_kept)


def is_interrupted(data: Path) -> bool:
    return (data / JOURNAL).exists()


def finish(data: Path) -> None:
    """Make the changes of the journal that are not made yet."""
    try:
        for entry in json.loads(read_bytes(data / JOURNAL)):
            _apply(data, Step(*entry))
        (data / JOURNAL).unlink()
        fsync_folder(data)
        shutil.rmtree(data / _STAGING, ignore_errors=True)
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise Fault("storage", f"A restore was interrupted and cannot be finished: {error}") from None


def _apply(data: Path, step: Step) -> None:
    staged_path, final = data / step.staged, data / step.final
    if step.staged and not os.path.lexists(staged_path):
        return
    if os.path.lexists(final):
        final.rename(data / step.aside)
    if step.staged:
        staged_path.rename(final)
        fsync_folder(staged_path.parent)
    fsync_folder(final.parent)


def _prepare(work: Restoring, places: Mapping[str, Tenant], source: Path, tenant: str) -> None:
    _clean(work)
    work.staging.mkdir(mode=0o700)
    if source.is_dir():
        manifest = backup.read_manifest(source)
        backup.verify(source, manifest)
        for name in manifest.tenants:
            _stage_database(work, backup.place(source, name) / DATABASE, places[name])
        _stage_folders(work, places, source, manifest)
        _stage_keys(work, source)
        return
    _stage_database(work, source, places[tenant])
    work.report.append("Nothing else was in this backup: files of notes, keys and other tenants stay as they were.")


def _stage_database(work: Restoring, source: Path, place: Tenant) -> None:
    final = place.file
    if final.exists() and source.exists() and final.samefile(source):
        raise Fault("invalid", f"{source} is the database itself, not a backup of it.")
    copy = work.staging / f"{place.name}.db"
    try:
        _copy_database(source, copy)
        if log_of(source).exists():
            _copy(log_of(source), log_of(copy))
    except OSError as error:
        raise Fault("invalid", f"Cannot read {source}: {error.strerror}.") from None
    copy.chmod(0o600)
    try:
        check_log(source)
        documents, schema = _verified(work.context, copy, final)
    except DAMAGED as error:
        raise Fault("invalid", f"{source} is damaged: {error}") from None
    except Fault as fault:
        raise Fault(fault.code, f"{source} cannot be restored: {fault.message}") from None
    size = copy.stat().st_size
    for path in (log_of(final), final.with_name(f"{DATABASE}-shm"), final):
        aside = path.name.replace("quipu.db", f"quipu-before-restore-{work.time}.db")
        work.add(copy if path == final else None, path, aside)
    work.report.append(f"{place.name}: {counted(documents, 'document')}, schema {schema}, {size} bytes")


def _copy_database(source: Path, copy: Path) -> None:
    """Copy a file that begins as a database does, or is empty; nothing of another file, which may be large."""
    with open_ordinary(source) as file:
        start = file.read(len(_MAGIC))
        size = os.fstat(file.fileno()).st_size
    if start and start != _MAGIC:
        raise Fault("invalid", f"{source} is damaged: file is not a database")
    if size > shutil.disk_usage(copy.parent).free:
        raise Fault("storage", NO_SPACE)
    _copy(source, copy)


def _copy(source: Path, target: Path) -> None:
    with open_ordinary(source) as reading, target.open("xb") as writing:
        shutil.copyfileobj(reading, writing, _CHUNK_BYTES)


def _verified(context: StoreContext, copy: Path, current: Path) -> tuple[int, int]:
    """Return the number of documents and the schema of a sound copy, whose log is folded into it."""
    with closing(Connection(copy, context, readonly=False)) as db:
        if not schema_version(db):
            raise Fault("invalid", "it is empty")
        pending_migrations(db)
        db.load_vectors()
        errors = db.integrity_errors()
        if errors:
            raise Fault("invalid", f"it is damaged: {errors[0]}")
        with db.writing() as tx:
            for name, value in _settings_of(current, context):
                tx.run("kernel.setting.add_if_missing", name=name, value=value)
            documents = tx.one("kernel.consistency.count_docs", int) or 0
        db.checkpoint(truncate=True)
        db.pragma("journal_mode", "delete")
        return documents, schema_version(db)


def _settings_of(file: Path, context: StoreContext) -> list[tuple[str, str]]:
    """Return the settings of the database in use, which a backup must not undo, such as that it had keys."""
    try:
        with closing(Connection(file, context, readonly=True)) as db:
            return db.read(CallContext(), lambda tx: tx.rows("kernel.setting.all")) if db.has_table("setting") else []
    except SQLITE_ERRORS:  # absent, or too damaged to tell
        return []


def _stage_folders(work: Restoring, places: Mapping[str, Tenant], source: Path, manifest: Manifest) -> None:
    for item in manifest.folders:
        paths = {(folder.dialect, folder.name): folder.path for folder in places[item.tenant].folders}
        final = paths.get((item.dialect, item.name))
        what = f"{item.tenant}: {item.dialect} {item.name}"
        if final is None:
            work.report.append(f"{what}: not restored, as no such folder is configured; it is in {source / item.at}")
            continue
        make_private(final.parent)
        copy = final.with_name(f"{final.name}{_STAGING}")
        shutil.rmtree(copy, ignore_errors=True)
        files = backup.copy_tree(source / item.at, copy)
        for path in (*copy.rglob("*"), copy):
            fsync_path(path)
        work.add(copy, final, f"{final.name}-before-restore-{work.time}")
        work.report.append(f"{what}: {counted(len(files), 'file')}")


def _stage_keys(work: Restoring, source: Path) -> None:
    if not (source / api_keys.FILE).is_file():
        stay = ": those that are there stay" if (work.data / api_keys.FILE).is_file() else ""
        work.report.append(f"no keys in this backup{stay}")
        return
    keys = api_keys.read(source)
    copy = work.staging / api_keys.FILE
    shutil.copyfile(source / api_keys.FILE, copy)
    copy.chmod(0o600)
    work.add(copy, work.data / api_keys.FILE, f"keys-before-restore-{work.time}.json")
    work.report.append(counted(len(keys), "key"))


def _commit(work: Restoring) -> None:
    """Write the journal: from here on the restore is decided."""
    for path in (*work.staging.iterdir(), work.staging):
        fsync_path(path)
    journal = work.staging / JOURNAL
    journal.write_text(json.dumps(work.steps), encoding="utf-8")
    fsync_path(journal)
    journal.rename(work.data / JOURNAL)
    fsync_folder(work.data)


def _clean(work: Restoring) -> None:
    shutil.rmtree(work.staging, ignore_errors=True)
    for step in work.steps:
        if step.staged.endswith(_STAGING):
            shutil.rmtree(work.data / step.staged, ignore_errors=True)


def _relative(data: Path, path: Path) -> str:
    absolute = path.absolute()
    return str(absolute.relative_to(data.absolute()) if absolute.is_relative_to(data.absolute()) else absolute)


def tenants_of(source: Path, tenant: str) -> list[str]:
    """Return the tenants that are restored from a source: all in a folder, else `tenant`."""
    names = backup.read_manifest(source).tenants if source.is_dir() else [tenant]
    return [data_dir.tenant_name(name) for name in names]
