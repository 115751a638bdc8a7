"""Takes back what a call did to files: writes the text from before the call, or deletes the file it created."""

from collections.abc import Sequence

from handlers.notes import files, note_file, sync
from handlers.notes.files import File
from handlers.notes.projects import Project, projects, space
from handlers.notes.scan import TEMPORARY_PREFIX
from handlers.notes.sync import file_fault
from kernel.errors import Fault
from kernel.search import index
from kernel.store.transaction import Tx
from kernel.tools import Restored


def restore_files(tx: Tx, restored: Sequence[Restored]) -> None:
    """Restores files and their rows; raises Fault("conflict") for a file that has changed since the call."""
    known = {space(project.name): project for project in projects(tx)}
    for memory in restored:
        project = known.get(memory.space)
        if project is None:
            raise Fault("storage", f"The project of {memory.key} is not configured.")
        try:
            if memory.text is None:
                _delete(tx, project, memory)
            else:
                _write(tx, project, memory.key, memory.text, memory.left)
        except OSError as error:
            raise file_fault(error, memory.key) from None


def _delete(tx: Tx, project: Project, memory: Restored) -> None:
    if memory.left is not None and _unchanged(project, memory.key, memory.left) is not None:
        files.remove(project.root, memory.key)
    sync.drop_rows(tx, [(project.name, memory.key)])
    index.drop(tx, memory.space, memory.key)


def _write(tx: Tx, project: Project, path: str, text: str, left: str | None) -> None:
    data, temporary = text.encode(), tx.new_id(TEMPORARY_PREFIX)
    if left is None:
        stamp = files.create(project.root, path, data, temporary)
    else:
        before = _unchanged(project, path, left)
        stamp = before and files.replace(project.root, path, data, before, temporary)
    if stamp is None:
        raise Fault("conflict", f"The file {path} has been changed again since.")
    sync.keep_row(tx, project.name, path, File(data, stamp))


def _unchanged(project: Project, path: str, left: str) -> File | None:
    """The file as the call left it, or None if it was deleted; raises Fault("conflict") if its text is another."""
    try:
        file = files.read(project.root, path)
    except FileNotFoundError:
        return None
    if note_file.decode_lossy(file.data) != left:
        raise Fault("conflict", f"The file {path} has been changed again since.")
    return file
