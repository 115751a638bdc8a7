"""The remarks of `notes` on a project at the start of a session: its architectural decisions."""

from typing import NamedTuple

from handlers.notes import note_file
from handlers.notes.projects import projects, space
from kernel.memories.briefing import Project, Remark
from kernel.store.transaction import Tx

_MOST = 5


class _Note(NamedTuple):
    path: str
    modified: int
    content: str


def brief(tx: Tx, project: Project) -> list[Remark]:
    """Return the newest architectural decisions of the project with this folder."""
    matches = [match for match in projects(tx) if str(match.root.resolve()) == project.root]
    return [
        Remark("decision", space(match.name), note.path, _line(note))
        for match in matches[:1]
        for note in tx.all("notes.briefing.decisions", _Note, project=match.name, limit=_MOST)
    ]


def _line(note: _Note) -> str:
    memory = note_file.parse_memory(note.path, note.content, note.modified)
    return f"{memory.title}: {memory.content}"
