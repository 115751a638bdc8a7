"""The memories of `paths` about a project at the start of a session: the folder with the name of the project."""

import unicodedata
from typing import NamedTuple

from handlers.paths.memories import SPACE
from kernel.memories.briefing import Project, Remark
from kernel.store.transaction import Tx

_MOST = 5


class _Content(NamedTuple):
    path: str
    content: str


def brief(tx: Tx, project: Project) -> list[Remark]:
    """Return the memories below the name of the project that were changed last."""
    folder = f"{unicodedata.normalize('NFC', project.name)}/"
    bounds = {"low": folder, "high": folder[:-1] + chr(ord("/") + 1)}
    memories = tx.all("paths.memories.newest_in", _Content, limit=_MOST, **bounds)
    return [Remark("decision", SPACE, memory.path, f"{memory.path}: {memory.content}") for memory in memories]
