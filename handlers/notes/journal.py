"""Changes of files that follow the commit: staged before it, recorded in it, made after it, and again after a crash.

A staged file and its row in `notes_change` are on disk when the transaction is. Only then files get their new content
or are deleted, under the write lock; the same transaction deletes the rows. The next start or the next
call does the rest after a crash, and doing it twice changes nothing. A call that fails deletes its staged files.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from typing import NamedTuple

from handlers.notes import files
from handlers.notes.files import File
from handlers.notes.projects import Project, projects
from handlers.notes.safe_fs import Stamp
from handlers.notes.scan import TEMPORARY_PREFIX, delete_leftover
from kernel.core.errors import Fault
from kernel.store.transaction import Tx


class Change(NamedTuple):
    """One change of a file: new content, staged under a temporary name, or its deletion.

    `before` and `after` are digests of the content; None if there is no file.
    """

    call: str
    project: str
    path: str
    temporary: str | None
    before: str | None
    after: str | None


class _Made(NamedTuple):
    """The changes of one call that were made: the files that got new content, with their stamps."""

    project: str
    call: str
    written: Sequence[tuple[str, Stamp]]


def write(
    tx: Tx, project: Project, path: str, data: bytes, before: File | None = None, *, moved_from: str = ""
) -> File | None:
    """Records new content of a file: a new file, the file that held `before`, or that file when it moves here.

    None, with nothing recorded, if `before` has changed since; raises OSError if the file cannot be written.
    """
    temporary, old = tx.new_id(TEMPORARY_PREFIX), moved_from or path
    folder, slash, _ = path.rpartition("/")
    discard = partial(delete_leftover, project.root, f"{folder}{slash}{temporary}")
    tx.on_rollback(discard)
    stamp = files.stage(project.root, path, temporary, data, before.mode if before else 0o600)
    if before is not None and files.read(project.root, old).stamp != before.stamp:
        discard()
        return None
    old_digest = files.digest(before.data) if before is not None and old == path else None
    _record(tx, project, Change("", project.name, path, temporary, old_digest, files.digest(data)))
    if before is not None and old != path:
        remove(tx, project, old, before)
    return File(data, stamp)


def remove(tx: Tx, project: Project, path: str, before: File) -> None:
    """Records that a file is deleted; raises OSError if its folder does not allow it."""
    files.require_writable(project.root, path)
    _record(tx, project, Change("", project.name, path, None, files.digest(before.data), None))


def is_waiting(tx: Tx, project: Project) -> bool:
    """Return whether committed changes of a project are still to be made."""
    return bool(tx.one("notes.journal.is_waiting", int, project=project.name))


def settle(tx: Tx, project: Project) -> None:
    """Makes the changes of a project that are to be made; raises Fault if one cannot be made now.

    If the folder of the project is missing, which may be an unmounted disk, they wait.
    """
    if tx.is_after_commit(settle, project) or not is_waiting(tx, project):
        return  # the changes that this transaction records are made after its commit
    waiting = tx.all("notes.journal.waiting", Change, project=project.name)
    try:
        for _, changes in groupby(waiting if project.root.is_dir() else (), lambda change: change.call):
            # Deferred, so that a call which reports files that could not be changed does not report these rows.
            tx.defer(_flush_made, _make(project, list(changes)))
    except OSError as error:
        raise files.file_fault(error, str(project.root)) from None


def recover(tx: Tx) -> Callable[[Tx], None] | None:
    """Return the work that makes all changes that an earlier process left, if that is possible now; None for none."""
    left = [project for project in projects(tx) if is_waiting(tx, project)]

    def make(tx: Tx) -> None:
        for project in left:
            with suppress(Fault):
                settle(tx, project)

    return make if left else None


def _record(tx: Tx, project: Project, change: Change) -> None:
    tx.after_commit(settle, project)
    tx.defer(_flush, (project, change))


def _flush(tx: Tx, items: Sequence[tuple[Project, Change]]) -> None:
    call = tx.new_id("call")
    for project in dict.fromkeys(project for project, _ in items):
        try:
            paths = [change.path for owner, change in items if owner == project and change.temporary]
            files.sync_folders(project.root, paths)
        except OSError as error:
            raise files.file_fault(error, str(project.root)) from None
    tx.run("notes.journal.add", rows=[change._replace(call=call) for _, change in items])


def _flush_made(tx: Tx, items: Sequence[_Made]) -> None:
    for result in items:
        for path, stamp in result.written:
            tx.run("notes.journal.set_stamp", project=result.project, path=path, **stamp._asdict())
        tx.run("notes.journal.done", project=result.project, call=result.call)


def _make(project: Project, changes: Sequence[Change]) -> _Made:
    """Makes the changes of one call.

    Staged content may be missing, such as in a restored backup: then that file stays as it is, and none is deleted,
    because the file to be deleted may have been moved.
    """
    root, whole, stamps = project.root, True, list[tuple[str, Stamp]]()
    for change in changes:
        if change.temporary is None or change.after is None:
            continue
        if not files.is_staged(root, change.path, change.temporary, change.after):
            whole = False
        elif stamp := files.put(root, change.path, change.temporary, change.before, change.after):
            stamps.append((change.path, stamp))
    for change in changes:
        if whole and change.temporary is None and change.before is not None:
            files.remove(root, change.path, change.before)
    files.sync_folders(root, [change.path for change in changes])
    return _Made(project.name, changes[0].call, stamps)
