"""The remarks of `brain` on a project at the start of a session: its decisions."""

from typing import NamedTuple

from handlers.brain.settings import DATABASES
from kernel.calls.settings import setting
from kernel.core.text import spellings
from kernel.memories.briefing import Project, Remark
from kernel.store.transaction import Tx

_MOST = 5


class _Decision(NamedTuple):
    id: str
    content: str


def brief(tx: Tx, project: Project) -> list[Remark]:
    """Return the newest active decisions of the project, in the first database: others may be private."""
    database: str = setting(tx, DATABASES)[0]
    names = spellings([name for name in project if name])
    decisions = tx.all("brain.briefing.decisions", _Decision, db=database, names=names, now=tx.now, limit=_MOST)
    return [Remark("decision", f"brain:{database}", decision.id, decision.content) for decision in decisions]
