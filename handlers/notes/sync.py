"""Lets the index follow the files: finds by a look at each what changed, was added or is gone, and takes that in."""

import errno
from collections.abc import Container, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from handlers.notes import note_file
from handlers.notes.files import File, read_all
from handlers.notes.projects import Project, picked, projects, space
from handlers.notes.safe_fs import FOLDER, Stamp
from handlers.notes.scan import Scan, scan, sweep
from kernel.errors import Fault
from kernel.search import index
from kernel.store import history
from kernel.store.progress import steps
from kernel.store.transaction import Tx
from kernel.tools import IndexSource

_BATCH = 1000
_BATCH_BYTES = 16 << 20
_AT_ONCE = 200
_BEARABLE = 64
# A file that changed twice within this time may look the same both times; no file system in use counts coarser.
_TICK = 2_000_000_000
_HOUR = 3_600_000_000_000
_FULL = {errno.ENOSPC, errno.EDQUOT}

Key = tuple[str, str]


class Row(NamedTuple):
    """What is known of one file; `doubtful` says that it was read so soon that its stamp alone proves nothing."""

    project: str
    path: str
    size: int
    modified: int
    changed: int
    doubtful: int
    content: str


class Change(NamedTuple):
    """A file that is not as its row says; `before` is the row's stamp when the file was looked at."""

    project: str
    path: str
    file: File
    before: Stamp | None


class Found(NamedTuple):
    """What has changed: files to take in, files that are gone with the stamp of their row, what killed writes left
    behind, and if there is more.
    """

    changes: list[Change]
    gone: list[tuple[Key, Stamp]]
    left: list[tuple[Project, str]]
    more: bool = False


def check(tx: Tx, request: object) -> Found | None:
    """What changed since it was last taken in, told by one look at every entry; None for nothing.

    It is of the project that the request names, if any; of several, one that cannot be looked at is left alone.
    """
    return _found(tx, picked(projects(tx), getattr(request, "project", "")))


def check_all(tx: Tx, request: object) -> Found | None:
    """`check` by reading every file; what belongs to no project is gone too."""
    known = projects(tx)
    found = _found(tx, known, every=True)
    unknown = tx.all("notes.sync.unknown_projects", _gone, projects=[project.name for project in known])
    if not unknown:
        return found
    return found._replace(gone=found.gone + unknown) if found else Found([], unknown, [])


def write(tx: Tx, request: object, found: Found) -> bool:
    """Takes in what was found, less what somebody took in meanwhile; whether there may be more to find."""
    held = rows(tx, [_key(change) for change in found.changes] + [key for key, _ in found.gone])
    changes = [change for change in found.changes if _taken_in(held, _key(change)) == change.before]
    gone = [held[key] for key, before in found.gone if _taken_in(held, key) == before]
    take(tx, [(change.project, change.path, change.file) for change in changes], held)
    drop(tx, [(row.project, row.path, row.content) for row in gone], "gone")
    for project, path in found.left:
        sweep(project.root, path)
    return found.more or len(changes) + len(gone) < len(found.changes) + len(found.gone)


def texts(found: Found) -> list[str]:
    """What `write` will embed."""
    return [note_file.indexed(note_file.read(change.path, change.file)) for change in found.changes]


def rows(tx: Tx, keys: Sequence[Key]) -> dict[Key, Row]:
    """The rows of some files, with their content."""
    return {_key(row): row for row in tx.all("notes.sync.by_keys", Row, keys=keys)}


def take(tx: Tx, files: Sequence[tuple[str, str, File]], held: Mapping[Key, Row]) -> None:
    """Makes rows, index and history say what these files say, each as edited or found by hand."""
    kept: list[tuple[Any, ...]] = []
    for project, path, file in steps(tx, files):
        row = held.get((project, path))
        if row is None or row.content != note_file.stored(file.data):
            _tell(tx, project, path, file, row and row.content, "edited" if row else "found")
        kept.append(_row(tx, project, path, file))
    if kept:
        tx.run("notes.sync.upsert", rows=kept)


def tell(tx: Tx, project: str, path: str, file: File, before: str | None, operation: str) -> None:
    """`take` of one file that was just written; `before` is the text it had."""
    _tell(tx, project, path, file, before, operation)
    tx.run("notes.sync.upsert", rows=[_row(tx, project, path, file)])


def _tell(tx: Tx, project: str, path: str, file: File, before: str | None, operation: str) -> None:
    said = note_file.read(path, file)
    index.put(tx, space(project), path, note_file.indexed(said), scope=said.memory_type)
    history.append(tx, space(project), path, operation, before=before, after=note_file.stored(file.data))


def _row(tx: Tx, project: str, path: str, file: File) -> tuple[Any, ...]:
    kind = note_file.read(path, file).memory_type
    return (project, path, *file.stamp, _doubtful(tx, file.stamp), kind, note_file.stored(file.data))


def drop(tx: Tx, gone: Sequence[tuple[str, str, str]], operation: str) -> None:
    """Makes files unfindable that are not there any more, given as (project, path, content)."""
    for project, path, content in gone:
        index.drop(tx, space(project), path)
        history.append(tx, space(project), path, operation, before=content)
    if gone:
        tx.run("notes.sync.delete", keys=[item[:2] for item in gone])


def sources(tx: Tx) -> list[IndexSource]:
    """Every memory as the index must hold it."""

    def source(project: str, path: str, modified: int, content: str) -> IndexSource:
        said = note_file.said(path, content, modified)
        return IndexSource(space(project), path, said.memory_type, note_file.indexed(said))

    return tx.all("notes.sync.all_for_index", source)


def look(project: Project) -> Scan | None:
    """What stands in the folder of a project; None where the project is not there at all."""
    try:
        return scan(project.root)
    except OSError as error:
        raise refused(error, str(project.root / FOLDER)) from None


def refused(error: OSError, path: str) -> Fault:
    """Why the system would not do something with a file, in our words."""
    if error.errno in _FULL:
        return Fault("storage", "Cannot write to storage, insufficient disk space.")
    if error.errno in {errno.ELOOP, errno.ENOTDIR}:
        return Fault("blocked", f"{path} is a link, or leads through one, or is no file.")
    return Fault("storage", f"Cannot use {path}: {error.strerror}.")


def _found(tx: Tx, known: Sequence[Project], *, every: bool = False) -> Found | None:
    found, settled = Found([], [], []), list[Change]()
    for project in known:
        seen = _looked(project, alone=len(known) == 1)
        if seen is None:
            continue
        held = dict(tx.all("notes.sync.stamps", _stamped, project=project.name))
        doubtful = set(tx.all("notes.sync.unsettled", str, project=project.name))
        found.left.extend((project, path) for path, time in seen.left.items() if _abandoned(tx, time))
        if held == seen.stamps and not doubtful and not every:
            continue
        missing = [path for path in held.keys() - seen.stamps.keys() if not _within(path, seen.unseen)]
        found.gone.extend(_gone(project.name, path, *held[path]) for path in missing)
        doubted = [path for path, stamp in seen.stamps.items() if every or path in doubtful or held.get(path) != stamp]
        if not _compare(tx, project, doubted, held, found, settled):
            found = found._replace(more=True)
            break
    if not any(found) and len(settled) <= _BEARABLE:
        return None
    return found._replace(changes=found.changes + settled)


def _looked(project: Project, *, alone: bool) -> Scan | None:
    try:
        return look(project)
    except Fault:
        if alone:
            raise
        return None


def _within(path: str, folders: Sequence[str]) -> bool:
    return any(path.startswith(f"{folder}/") for folder in folders)


def _stamped(path: str, size: int, modified: int, changed: int) -> tuple[str, tuple[int, int, int]]:
    return path, (size, modified, changed)


def _gone(project: str, path: str, size: int, modified: int, changed: int) -> tuple[Key, Stamp]:
    return (project, path), Stamp(size, modified, changed)


def _compare(
    tx: Tx, project: Project, paths: Sequence[str], held: Container[str], found: Found, settled: list[Change]
) -> bool:
    """Reads files and notes those that are not as their rows say; False where there is enough for one transaction."""
    for start in range(0, len(paths), _AT_ONCE):
        part = paths[start : start + _AT_ONCE]
        contents = rows(tx, [(project.name, path) for path in part if path in held])
        for path, file in read_all(project.root, part):
            row = contents.get((project.name, path))
            if file is not None:
                change = Change(project.name, path, file, row and _stamp(row))
                if row is None or row[2:5] != file.stamp or row.content != note_file.stored(file.data):
                    found.changes.append(change)
                elif row.doubtful and not _doubtful(tx, file.stamp):
                    settled.append(change)
            elif row is not None:
                found.gone.append((_key(row), _stamp(row)))
        if len(found.changes) >= _BATCH or sum(len(change.file.data) for change in found.changes) > _BATCH_BYTES:
            return False
    return True


def _abandoned(tx: Tx, time: int) -> bool:
    """Whether no write that is still under way can have left this."""
    return time < nanoseconds(tx.now) - _HOUR


def _doubtful(tx: Tx, stamp: Stamp) -> int:
    """Whether a file may still change without a change of this stamp."""
    return int(max(stamp.modified, stamp.changed) > nanoseconds(tx.now) - _TICK)


def _key(row: Row | Change) -> Key:
    return row.project, row.path


def _stamp(row: Row) -> Stamp:
    return Stamp(row.size, row.modified, row.changed)


def _taken_in(held: Mapping[Key, Row], key: Key) -> Stamp | None:
    return _stamp(held[key]) if key in held else None


def nanoseconds(time: str) -> int:
    """An ISO 8601 time as nanoseconds since 1970."""
    return int(datetime.fromisoformat(time).timestamp() * 1000) * 1_000_000
