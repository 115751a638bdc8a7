"""Takes back the changes of a call to files: the text from before the call comes back, the file it created is deleted.

Every file is looked at before the first one changes. One that holds the text already needs no change.
"""

from collections.abc import Iterable

from handlers.notes import files, journal, note_file, sync
from handlers.notes.files import File
from handlers.notes.projects import Project, projects, space
from kernel.calls.dialect import Restored
from kernel.core.errors import Fault
from kernel.search import index
from kernel.store.transaction import Tx


def restore_files(tx: Tx, restored: Iterable[Restored]) -> None:
    """Restores files and their rows; raises Fault("conflict") for a file that has changed since the call."""
    known = {space(project.name): project for project in projects(tx)}
    for project in known.values():
        journal.settle(tx, project)
    for memory in restored:
        project = known.get(memory.space)
        if project is None:
            raise Fault("storage", f"The project of {memory.key} is not configured.")
        try:
            found = _found(project, memory.key)
            if memory.text is None:
                _delete(tx, project, memory, found)
            else:
                _write(tx, project, memory, memory.text, found)
        except OSError as error:
            raise files.file_fault(error, memory.key) from None


def _found(project: Project, path: str) -> File | None:
    try:
        return files.read(project.root, path)
    except FileNotFoundError:
        return None


def _delete(tx: Tx, project: Project, memory: Restored, found: File | None) -> None:
    if found is not None and memory.left is not None:
        if _text(found) != memory.left:
            raise _conflict(memory)
        journal.remove(tx, project, memory.key, found)
    sync.drop_rows(tx, [(project.name, memory.key)])
    index.drop(tx, memory.space, memory.key)


def _write(tx: Tx, project: Project, memory: Restored, text: str, found: File | None) -> None:
    kept = found if _text(found) == text else None
    if kept is None and _text(found) == memory.left:
        kept = journal.write(tx, project, memory.key, text.encode(), found)
    if kept is None:
        raise _conflict(memory)
    sync.keep_row(tx, project.name, memory.key, kept)


def _text(file: File | None) -> str | None:
    return None if file is None else note_file.decode_lossy(file.data)


def _conflict(memory: Restored) -> Fault:
    return Fault("conflict", f"The file {memory.key} has been changed again since.")
