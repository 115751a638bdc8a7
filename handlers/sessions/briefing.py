"""The remarks of `sessions` on a project at the start of a session, and the handoff of a session that was compacted."""

from typing import NamedTuple

import msgspec

from handlers.sessions import graph, memories, summary
from kernel.core.text import spellings
from kernel.memories.briefing import Handoff, Part, Project, Remark
from kernel.search import index
from kernel.store import history
from kernel.store.transaction import Tx

# The kinds of memories for each part, and how many of them are shown.
_KINDS: tuple[tuple[Part, tuple[str, ...], int], ...] = (
    ("handoff", ("handoff", "summary"), 1),
    ("decision", ("decision",), 5),
)
_NEWEST = 20_000  # memories that are looked at: there is no index of projects
_PRIORITY = 3


class _Told(NamedTuple):
    id: int
    content: str


class _Replaced(NamedTuple):
    id: int
    session_id: str
    content: str


def brief(tx: Tx, project: Project) -> list[Remark]:
    """Return the newest handoff or summary and the newest decisions whose metadata names the project or its folder."""
    names = spellings([name for name in project if name])
    return [
        Remark(part, memories.SPACE, str(row.id), row.content)
        for part, kinds, most in _KINDS
        for row in tx.all("sessions.briefing.of_project", _Told, kinds=kinds, names=names, newest=_NEWEST, limit=most)
    ]


def keep_handoff(tx: Tx, handoff: Handoff) -> str:
    """Stores a handoff in place of the last handoff that a hook has stored of the same session."""
    handoffs = tx.all("sessions.briefing.drop_handoffs", _Replaced, session_id=handoff.session, newest=_NEWEST)
    for old in handoffs:
        index.drop(tx, memories.SPACE, str(old.id))
        reason = memories.deletion_reason(old.session_id)
        history.append(tx, memories.SPACE, str(old.id), "replaced", before=old.content, reason=reason)
    if handoffs:
        numbers = [old.id for old in handoffs]
        tx.run("sessions.removal.delete_mentions", memories=numbers)
        graph.delete_of_memories(tx, numbers)
    about = {"hook": True, "project": handoff.project.root or handoff.project.name}
    row = memories.MemoryRow(
        0,
        handoff.session,
        "handoff",
        handoff.text,
        summary.first_line(handoff.text),
        "handoff",
        _PRIORITY,
        msgspec.json.encode(about).decode(),
        tx.now,
    )
    return f"{memories.SPACE}/{memories.add(tx, row, tx.now)}"
