"""The remarks of `scopes` on a project at the start of a session: the guidelines of its chain, and decisions."""

from typing import NamedTuple

from handlers.scopes.entry_kinds import GUIDELINE, KNOWLEDGE
from handlers.scopes.field_types import normal_name
from handlers.scopes.inheritance import GLOBAL
from kernel.memories.briefing import Project, Remark, named
from kernel.store.transaction import Tx

_MOST_RULES = 12
_MOST_READ = 100  # rules that are compared by priority and name
_MOST_DECISIONS = 5
_WHOLE_ABOVE = 90  # priority


class _Found(NamedTuple):
    id: str
    org_id: str | None


class _Rule(NamedTuple):
    nearness: int  # 0 for global
    id: str
    name: str
    priority: int
    content: str


class _Decision(NamedTuple):
    id: str
    title: str
    content: str


def brief(tx: Tx, project: Project) -> list[Remark]:
    """Return the guidelines of highest priority, the widest scope first; a nearer one replaces others of its name."""
    roots = [project.root, f"{project.root}/"] if project.root else []
    own_project = tx.one("scopes.briefing.project", _Found, roots=roots, fold=normal_name(project.name).casefold())
    own = f"project:{own_project.id}" if own_project else ""
    scopes = [GLOBAL, f"org:{own_project.org_id}" if own_project and own_project.org_id else "", own]
    rules = tx.all("scopes.briefing.rules", _Rule, chain=[scope for scope in scopes if scope], limit=_MOST_READ)
    nearest = {rule.name: rule for rule in sorted(rules, key=lambda rule: rule.nearness)}
    first_rules = sorted(nearest.values(), key=lambda rule: -rule.priority)[:_MOST_RULES]
    decisions = tx.all("scopes.briefing.decisions", _Decision, scope=own, now=tx.now, limit=_MOST_DECISIONS)
    return [
        *(
            _rule(rule, whole=rule.priority > _WHOLE_ABOVE)
            for rule in sorted(first_rules, key=lambda rule: (rule.nearness, -rule.priority, rule.id))
        ),
        *(
            Remark("decision", KNOWLEDGE.space, decision.id, named(decision.title, decision.content))
            for decision in decisions
        ),
    ]


def _rule(rule: _Rule, *, whole: bool) -> Remark:
    return Remark("rule", GUIDELINE.space, rule.id, named(rule.name, rule.content, whole=whole), whole)
