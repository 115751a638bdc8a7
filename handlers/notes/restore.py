"""Restores files: those that a call changed, for an undo, and the file of a note from an export of everything.

An undo checks every file before it changes the first. A file that holds the text already needs no change.
"""

from collections.abc import Iterable
from typing import Any

from handlers.notes import files, journal, note_file, sync
from handlers.notes.files import File
from handlers.notes.projects import Project, absolute, projects, space
from handlers.notes.scan import is_memory
from kernel.calls.dialect import Restored
from kernel.core.errors import Fault
from kernel.search import index
from kernel.store.transaction import Tx

COLUMNS = ("project", "path", "content")
_OUT_OF_PLACE = frozenset("\\:\0")  # separators of other systems, and NUL, which no name may hold


def restore_files(tx: Tx, memories: Iterable[Restored]) -> None:
    """Restores files and their rows; raises Fault("conflict") for a file that has changed since the call."""
    by_space = {space(project.name): project for project in projects(tx)}
    for project in by_space.values():
        journal.settle(tx, project)
    for memory in memories:
        project = by_space.get(memory.space)
        if project is None:
            raise Fault("storage", f"The project of {memory.key} is not configured.")
        try:
            file = _found(project, memory.key)
            if memory.text is None:
                _delete(tx, project, memory, file)
            else:
                _write_again(tx, project, memory, memory.text, file)
        except OSError as error:
            raise files.file_fault(error, memory.key) from None


def _found(project: Project, path: str) -> File | None:
    try:
        return files.read(project.root, path)
    except FileNotFoundError:
        return None


def _delete(tx: Tx, project: Project, memory: Restored, file: File | None) -> None:
    if file is not None and memory.left is not None:
        if _text(file) != memory.left:
            raise _conflict(memory)
        journal.remove(tx, project, memory.key, file)
    sync.drop_rows(tx, [(project.name, memory.key)])
    index.drop(tx, memory.space, memory.key)


def _write_again(tx: Tx, project: Project, memory: Restored, text: str, file: File | None) -> None:
    current = file if _text(file) == text else None
    if current is None and _text(file) == memory.left:
        current = journal.write(tx, project, memory.key, text.encode(), file)
    if current is None:
        raise _conflict(memory)
    sync.keep_row(tx, project.name, memory.key, current)


def _text(file: File | None) -> str | None:
    return None if file is None else note_file.decode_lossy(file.data)


def _conflict(memory: Restored) -> Fault:
    return Fault("conflict", f"The file {memory.key} has been changed again since.")


def restore(tx: Tx, row: dict[str, Any]) -> bool:
    """Writes a file that is not there; whether it was not. Raises Fault for a file with other content."""
    name, path, content = (str(row.get(column) or "") for column in COLUMNS)
    project = next((project for project in projects(tx) if project.name == name), None)
    if project is None:
        raise Fault("invalid", f"There is no project {name} of notes here: name its folder in QUIPU_NOTES_ROOTS.")
    if not is_memory(path) or not _OUT_OF_PLACE.isdisjoint(path):
        raise Fault("invalid", f"{path} is not the path of a note.")
    try:
        if _is_there(project, path, content):
            return False
        if not tx.readonly:
            _write(tx, project, path, content)
    except OSError as error:
        raise files.file_fault(error, absolute(project, path)) from None
    return True


def _is_there(project: Project, path: str, content: str) -> bool:
    if not project.root.is_dir() or not files.exists(project.root, path):
        return False
    if note_file.decode_lossy(files.read(project.root, path).data) != content:
        raise Fault("conflict", f"{absolute(project, path)} is there with another content. Nothing was imported.")
    return True


def _write(tx: Tx, project: Project, path: str, content: str) -> None:
    if project.managed:
        project.root.mkdir(mode=0o700, exist_ok=True)
    journal.settle(tx, project)
    file = journal.write(tx, project, path, content.encode())
    if file is not None:
        sync.keep_row(tx, project.name, path, file)
