"""Follows the files: finds changed, added and deleted files by their stamps and updates rows, index and history."""

import time
from collections.abc import Container, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from handlers.notes import journal, note_file
from handlers.notes.files import File, file_fault, read_all
from handlers.notes.projects import SPACE, Project, projects, select_projects, space
from handlers.notes.safe_fs import FOLDER, Stamp
from handlers.notes.scan import Scan, delete_leftover, scan
from kernel.calls.dialect import Concept, IndexSource, Keys
from kernel.core.errors import Fault
from kernel.search import index
from kernel.store import history
from kernel.store.long_work import steps
from kernel.store.transaction import Tx

_WRITE_FILES = 1000  # bounds one transaction, because other writes wait for it
_WRITE_BYTES = 16 << 20
_ROWS_PER_QUERY = 200  # bounds the file contents in memory at once
_MAX_UNWRITTEN_SETTLED = 64  # rows that only lose their doubt wait for the next write, up to this many
# Two changes within this time may have the same timestamps: FAT, the coarsest file system in use, counts 2 seconds.
_TIMESTAMP_GRAIN_NS = 2_000_000_000
_LEFTOVER_AGE_NS = 3_600_000_000_000  # 1 hour, far longer than any write
# A large folder is not scanned again if the last scan is recent: recalls close together share it.
_SHARED_FROM = 0.02  # seconds a scan takes; a shorter one costs less than the recall around it
_SHARE = 10  # times as long as a scan took it is shared, so that scans take at most a tenth of the time
_SHARED_MOST = 1.0  # seconds after which an edit by hand is seen in any case

_clean_until: dict[tuple[str, Path], float] = {}  # by database and project folder
clock = time.monotonic

Key = tuple[str, str]
# A file that a person or another program wrote: the author is unknown.
BY_HAND = (SPACE, "file", "")


class FileRow(NamedTuple):
    """The stored state of one file; `doubtful` if it was read so soon after a change that its stamp proves nothing."""

    project: str
    path: str
    size: int
    modified: int
    changed: int
    doubtful: int
    content: str


class FileChange(NamedTuple):
    """A file that differs from its row; `before` is the stamp of the row at the comparison."""

    project: str
    path: str
    file: File
    before: Stamp | None


class FileChanges(NamedTuple):
    """The changes of a folder: files to take in, missing files with the stamp of their row, leftovers of killed writes,
    projects whose committed changes are still to be made, and whether there is more.
    """

    changes: list[FileChange]
    missing: list[tuple[Key, Stamp]]
    leftovers: list[tuple[Project, str]]
    waiting: list[Project]
    more: bool = False


def check(tx: Tx, request: object) -> FileChanges | None:
    """Return the changes since the last write, found by a `stat` of every file; None if there are none.

    Restricted to the project that the request names, if any. Of several projects, unreadable projects are skipped.
    """
    return _find_changes(tx, select_projects(projects(tx), getattr(request, "project", "")))


def check_for_common(tx: Tx, request: object) -> FileChanges | None:
    """Return `check` for a search over every dialect, unless it leaves notes out; skips unreadable projects."""
    dialects, spaces = getattr(request, "dialects", ()), getattr(request, "spaces", ())
    places = [name.partition(":")[0] for name in (*spaces, *getattr(request, "ids", ()))]
    if (dialects and SPACE not in dialects) or (places and SPACE not in places):
        return None
    owners = [project for project in projects(tx) if not _is_missing(project.root)]
    return _find_changes(tx, owners, skipping=True)


def check_all(tx: Tx, request: object) -> FileChanges | None:
    """Return `check` by reading every file; files of unknown projects count as missing."""
    owners = projects(tx)
    changes = _find_changes(tx, owners, every=True)
    orphans = tx.all("notes.sync.unknown_projects", _key_and_stamp, projects=[project.name for project in owners])
    if not orphans:
        return changes
    return changes._replace(missing=changes.missing + orphans) if changes else FileChanges([], orphans, [], [])


def write(tx: Tx, request: object, diff: FileChanges) -> bool:
    """Takes in the changes, except those that another call has taken in meanwhile; whether there may be more."""
    for project in diff.waiting:
        journal.settle(tx, project)
    # The check ran in an earlier snapshot: rows that have changed since are left to the next check.
    stored_rows = rows(tx, [_key(change) for change in diff.changes] + [key for key, _ in diff.missing])
    changes = [change for change in diff.changes if _stored_stamp(stored_rows, _key(change)) == change.before]
    missing = [stored_rows[key] for key, before in diff.missing if _stored_stamp(stored_rows, key) == before]
    take_in(tx, [(change.project, change.path, change.file) for change in changes], stored_rows)
    drop(tx, [(row.project, row.path, row.content) for row in missing], "gone")
    for project, path in diff.leftovers:
        delete_leftover(project.root, path)
    return diff.more or bool(diff.waiting) or len(changes) + len(missing) < len(diff.changes) + len(diff.missing)


def texts(diff: FileChanges) -> list[str]:
    return [note_file.index_text(note_file.parse_file(change.path, change.file)) for change in diff.changes]


def rows(tx: Tx, keys: Sequence[Key]) -> dict[Key, FileRow]:
    return {_key(row): row for row in tx.all("notes.sync.by_keys", FileRow, keys=keys)}


def take_in(tx: Tx, files: Sequence[tuple[str, str, File]], stored_rows: Mapping[Key, FileRow]) -> None:
    """Updates rows, index and history from files that were changed or added by hand."""
    for project, path, file in steps(tx, files):
        row = stored_rows.get((project, path))
        if row is None or row.content != note_file.decode_lossy(file.data):
            _index_by_hand(tx, project, path, file, row.content if row else None)
        keep_row(tx, project, path, file)


def record(tx: Tx, project: str, path: str, file: File, before: str | None, operation: str) -> None:
    """Updates row, index and history for one file that was just written; `before` is its previous text."""
    memory = note_file.parse_file(path, file)
    _put(tx, space(project), path, memory, index.Origin(tx.writer, memory.created, tx.now))
    history.append(tx, space(project), path, operation, before=before, after=note_file.decode_lossy(file.data))
    keep_row(tx, project, path, file)


def keep_row(tx: Tx, project: str, path: str, file: File) -> None:
    kind, stamp = note_file.parse_file(path, file).memory_type, file.stamp
    tx.run(
        "notes.sync.upsert",
        project=project,
        path=path,
        **stamp._asdict(),
        doubtful=_doubtful(tx, stamp),
        memory_type=kind,
        content=note_file.decode_lossy(file.data),
    )


def _index_by_hand(tx: Tx, project: str, path: str, file: File, before: str | None) -> None:
    """Updates index and history from a file that no tool wrote, with the times of the file.

    An edited memory has changed when its file has: seldom does a person keep `modified` in the front matter.
    """
    memory = note_file.parse_file(path, file)
    updated_at = memory.modified if before is None else max(memory.modified, note_file.iso_time(file.stamp.modified))
    text, operation = note_file.decode_lossy(file.data), "found" if before is None else "edited"
    _put(tx, space(project), path, memory, index.Origin(BY_HAND, memory.created, updated_at))
    history.append(tx, space(project), path, operation, before=before, after=text, at=updated_at, by=BY_HAND)


def _put(tx: Tx, where: str, path: str, memory: note_file.ParsedMemory, origin: index.Origin) -> None:
    index.put(tx, where, path, note_file.index_text(memory), scope=memory.memory_type, origin=origin)


def drop(tx: Tx, deletions: Sequence[tuple[str, str, str]], operation: str) -> None:
    """Removes rows and index entries of deleted files, given as (project, path, content)."""
    by = BY_HAND if operation == "gone" else None
    for project, path, content in deletions:
        index.drop(tx, space(project), path)
        history.append(tx, space(project), path, operation, before=content, by=by)
    drop_rows(tx, [item[:2] for item in deletions])


def drop_rows(tx: Tx, keys: Sequence[Key]) -> None:
    if keys:
        tx.run("notes.sync.delete", keys=keys)


def sources(tx: Tx) -> Iterator[IndexSource]:
    return tx.each("notes.sync.all_for_index", _source)


def sources_of(tx: Tx, keys: Keys) -> Iterator[IndexSource]:
    by_key = rows(tx, [(where.partition(":")[2], path) for where, path in keys])
    return (_source(row.project, row.path, row.modified, row.content) for row in by_key.values())


def _source(project: str, path: str, mtime: int, content: str) -> IndexSource:
    memory = note_file.parse_memory(path, content, mtime)
    concept = Concept(memory.title, body=memory.content, tags=memory.tags)
    return IndexSource(space(project), path, memory.memory_type, note_file.index_text(memory), concept=concept)


def scan_project(project: Project) -> Scan | None:
    """Return the files of a project; None if its folder does not exist. Raises Fault if it cannot be read."""
    try:
        return scan(project.root)
    except OSError as error:
        raise file_fault(error, str(project.root / FOLDER)) from None


def _find_changes(
    tx: Tx, owners: Sequence[Project], *, every: bool = False, skipping: bool = False
) -> FileChanges | None:
    diff, certain = FileChanges([], [], [], []), list[FileChange]()
    for project in owners:
        start = clock()
        # Takes the snapshot before the scan: a file that a call adds between them would be missing otherwise.
        waiting = journal.is_waiting(tx, project)
        if not (every or waiting) and is_recent(tx.file, project.root):
            continue
        disk = _scan_or_skip(project, alone=len(owners) == 1 and not skipping)
        if disk is None:
            continue
        if waiting:
            diff.waiting.append(project)
            continue
        stamps = {path: tuple(stamp) for path, *stamp in tx.rows("notes.sync.stamps", project=project.name)}
        doubtful = set(tx.all("notes.sync.unsettled", str, project=project.name))
        diff.leftovers.extend((project, path) for path, time in disk.leftovers.items() if _abandoned(tx, time))
        if stamps == disk.stamps and not doubtful and not every:
            found_no_change(tx.file, project.root, start)
            continue
        unlisted = tuple(f"{folder}/" for folder in disk.unlisted)
        missing = [path for path in stamps.keys() - disk.stamps.keys() if not path.startswith(unlisted)]
        part = next(_parts(sorted(missing), stamps, _WRITE_FILES), list[str]())
        diff.missing.extend(_key_and_stamp(project.name, path, *stamps[path]) for path in part)
        to_read = [
            path for path, stamp in disk.stamps.items() if every or path in doubtful or stamps.get(path) != stamp
        ]
        parts = _parts(to_read, disk.stamps, _ROWS_PER_QUERY)
        if len(part) < len(missing) or not _compare(tx, project, parts, stamps, diff, certain):
            diff = diff._replace(more=True)
            break
    if not any(diff) and len(certain) <= _MAX_UNWRITTEN_SETTLED:
        return None
    return diff._replace(changes=diff.changes + certain)


def is_recent(database: str, root: Path) -> bool:
    """Return whether a scan of this folder that found no change may stand for another scan."""
    return clock() < _clean_until.get((database, root), 0.0)


def found_no_change(database: str, root: Path, start: float) -> None:
    """Lets a scan that began at this time of `clock` stand for the next scans."""
    seconds = clock() - start
    if seconds >= _SHARED_FROM:
        _clean_until[database, root] = start + min(_SHARED_MOST, _SHARE * seconds)


def _is_missing(root: Path) -> bool:
    """Return whether a folder does not exist, as that in the data directory before the first note."""
    try:
        root.stat()
    except FileNotFoundError:
        return True
    except OSError:  # the scan reports it
        pass
    return False


def _scan_or_skip(project: Project, *, alone: bool) -> Scan | None:
    try:
        return scan_project(project)
    except Fault:
        if alone:
            raise
        return None


def _key_and_stamp(project: str, path: str, size: int, mtime: int, ctime: int) -> tuple[Key, Stamp]:
    return (project, path), Stamp(size, mtime, ctime)


def _compare(
    tx: Tx,
    project: Project,
    parts: Iterator[list[str]],
    stored_paths: Container[str],
    diff: FileChanges,
    certain: list[FileChange],
) -> bool:
    """Reads files and collects those that differ from their rows; False when one transaction has enough."""
    for part in parts:
        contents = rows(tx, [(project.name, path) for path in part if path in stored_paths])
        for path, file in read_all(project.root, part):
            row = contents.get((project.name, path))
            if file is not None:
                change = FileChange(project.name, path, file, _stamp(row) if row else None)
                if row is None or row[2:5] != file.stamp or row.content != note_file.decode_lossy(file.data):
                    diff.changes.append(change)
                elif row.doubtful and not _doubtful(tx, file.stamp):
                    certain.append(change)
            elif row is not None:
                diff.missing.append((_key(row), _stamp(row)))
        if len(diff.changes) >= _WRITE_FILES or sum(len(change.file.data) for change in diff.changes) > _WRITE_BYTES:
            return False
    return True


def _parts(paths: Sequence[str], sizes: Mapping[str, tuple[int, int, int]], most: int) -> Iterator[list[str]]:
    """Yield the paths in parts whose files are few and small enough to be in memory together."""
    part, size = list[str](), 0
    for path in paths:
        if part and (len(part) == most or size + sizes[path][0] > _WRITE_BYTES):
            yield part
            part, size = [], 0
        part.append(path)
        size += sizes[path][0]
    if part:
        yield part


def _abandoned(tx: Tx, time: int) -> bool:
    """Return whether a temporary file is too old to belong to a running write."""
    return time < nanoseconds(tx.now) - _LEFTOVER_AGE_NS


def _doubtful(tx: Tx, stamp: Stamp) -> int:
    """Return whether a file may still change without changing this stamp."""
    return int(max(stamp.modified, stamp.changed) > nanoseconds(tx.now) - _TIMESTAMP_GRAIN_NS)


def _key(row: FileRow | FileChange) -> Key:
    return row.project, row.path


def _stamp(row: FileRow) -> Stamp:
    return Stamp(row.size, row.modified, row.changed)


def _stored_stamp(stored_rows: Mapping[Key, FileRow], key: Key) -> Stamp | None:
    return _stamp(stored_rows[key]) if key in stored_rows else None


def nanoseconds(time: str) -> int:
    return int(datetime.fromisoformat(time).timestamp() * 1000) * 1_000_000
