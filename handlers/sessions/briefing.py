"""The remarks of `sessions` on a project at the start of a session, and the handoff of a session that was compacted."""

from collections.abc import Callable

from handlers.sessions import graph, memories, removal, summary
from kernel.core.text import json_text, spellings
from kernel.memories.briefing import Handoff, Part, Project, Remark
from kernel.store.transaction import Tx

# The kinds of memories for each part, and how many of them are shown.
_KINDS: tuple[tuple[Part, tuple[str, ...], int], ...] = (
    ("handoff", ("handoff", "summary"), 1),
    ("decision", ("decision",), 5),
)
_NEWEST = 20_000  # memories that are looked at: there is no index of projects


def brief(tx: Tx, project: Project) -> list[Remark]:
    """Return the newest handoff or summary and the newest decisions whose metadata names the project or its folder."""
    names = spellings([name for name in project if name])
    return [
        remark
        for part, kinds, most in _KINDS
        for remark in tx.all(
            "sessions.briefing.of_project", _remark(part), kinds=kinds, names=names, newest=_NEWEST, limit=most
        )
    ]


def _remark(part: Part) -> Callable[[int, str], Remark]:
    return lambda number, content: Remark(part, memories.SPACE, str(number), content)


def keep_handoff(tx: Tx, handoff: Handoff) -> str:
    """Stores a handoff in place of the last handoff that a hook has stored of the same session."""
    handoffs = tx.all("sessions.briefing.drop_handoffs", memories.Deleted, session_id=handoff.session, newest=_NEWEST)
    if handoffs:
        graph.delete_of_memories(tx, removal.record_deleted(tx, handoffs, "replaced"))
    about = json_text({"hook": True, "project": handoff.project.root or handoff.project.name})
    first_line = summary.first_line(handoff.text)
    row = memories.MemoryRow(
        0, handoff.session, "handoff", handoff.text, first_line, "handoff", memories.PRIORITY, about, tx.now
    )
    return f"{memories.SPACE}/{memories.add(tx, row, tx.now)}"
