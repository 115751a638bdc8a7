"""Restores the file of a note from an export of everything."""

from typing import Any

from handlers.notes import files, journal, sync
from handlers.notes.note_file import decode_lossy
from handlers.notes.projects import Project, absolute, projects
from handlers.notes.scan import is_memory
from kernel.core.errors import Fault
from kernel.store.transaction import Tx

COLUMNS = ("project", "path", "content")
_OUT_OF_PLACE = frozenset("\\:\0")  # separators of other systems, and NUL, which no name may hold


def restore(tx: Tx, row: dict[str, Any]) -> bool:
    """Writes a file that is not there; whether it was not. Raises Fault for one that is there with other content."""
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
    if decode_lossy(files.read(project.root, path).data) != content:
        raise Fault("conflict", f"{absolute(project, path)} is there with another content. Nothing was imported.")
    return True


def _write(tx: Tx, project: Project, path: str, content: str) -> None:
    if project.managed:
        project.root.mkdir(mode=0o700, exist_ok=True)
    journal.settle(tx, project)
    file = journal.write(tx, project, path, content.encode())
    if file is not None:
        sync.keep_row(tx, project.name, path, file)
