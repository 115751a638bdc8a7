"""How a person edits, tags and forgets an entry of `scopes`: a new version, and its deactivation; and the guidelines
and decisions of a project, for the start of a session."""

from typing import NamedTuple

from handlers.scopes import entries
from handlers.scopes.entry_kinds import GUIDELINE, KINDS, KNOWLEDGE
from handlers.scopes.field_types import normal_name
from handlers.scopes.inheritance import GLOBAL
from handlers.scopes.results import Relation
from kernel.memories.briefing import Project, Remark, named
from kernel.memories.curation import MOST_LINKS, Curation, Neighbour, ToolCall
from kernel.store.transaction import Tx

_MOST_RULES = 12
_MOST_READ = 100  # rules that are compared by priority and name
_MOST_DECISIONS = 5
_WHOLE_ABOVE = 90  # priority


class _Rule(NamedTuple):
    nearness: int  # 0 for global
    id: str
    name: str
    priority: int
    content: str


def compose(text: str, name: str) -> ToolCall:
    arguments = {"action": "add", "scopeType": "global", "title": name, "content": text}
    return ToolCall("memory_knowledge", arguments, until="validUntil")


def curate(tx: Tx, space: str, key: str) -> Curation | None:
    """Return the content of an active entry, or the description of a tool."""
    kind = next((kind for kind in KINDS.values() if kind.space == space), None)
    if kind is None:
        return None
    row, current = entries.get(tx, kind, key)
    if not row.is_active:
        return None
    field = kind.indexed_fields[0]
    text: str | None = getattr(current, field)
    attach = {"action": "attach", "entryType": kind.name, "entryId": key}
    update = {"action": "update", "id": key, "expectedVersion": current.version_num}

    def tag(name: str) -> ToolCall:
        return ToolCall("memory_tag", {**attach, "tagName": name})

    return Curation(
        text or "",
        ToolCall(f"memory_{kind.name}", update, field, "validUntil" if "valid_until" in kind.version_fields else ""),
        ToolCall(f"memory_{kind.name}", {"action": "deactivate", "id": key}),
        _links(tx, kind.name, key),
        until=current.valid_until or "",
        tag=tag,
    )


def erase(tx: Tx, _space: str, key: str) -> None:
    """Delete an entry with its versions, which a deactivation keeps."""
    tx.run("scopes.entries.erase_was", id=key)
    tx.run("scopes.entries.erase_conflicts", id=key)
    tx.run("scopes.entries.erase_tags", id=key)
    tx.run("scopes.entries.erase_relations", id=key)
    tx.run("scopes.entries.erase_versions", id=key)
    tx.run("scopes.entries.erase", id=key)


def _links(tx: Tx, kind: str, key: str) -> list[Neighbour]:
    end = {"source_type": None, "source_id": None, "target_type": None, "target_id": None, "relation_type": None}
    page = {**end, "limit": MOST_LINKS, "offset": 0}
    outgoing = tx.all("scopes.relations.from_source", Relation, **page | {"source_type": kind, "source_id": key})
    incoming = tx.all("scopes.relations.to_target", Relation, **page | {"target_type": kind, "target_id": key})
    # A project has no space, since it is no memory.
    spaces = {name: kind.space for name, kind in KINDS.items()}
    ends = [(link.relation_type, True, link.target_type, link.target_id) for link in outgoing]
    ends += [(link.relation_type, False, link.source_type, link.source_id) for link in incoming]
    return [Neighbour(relation, is_outgoing, spaces.get(kind, ""), id_) for relation, is_outgoing, kind, id_ in ends]


def brief(tx: Tx, project: Project) -> list[Remark]:
    """Return the guidelines of highest priority, the widest scope first; a nearer one replaces others of its name."""
    roots = [project.root, f"{project.root}/"] if project.root else []
    fold = normal_name(project.name).casefold()
    projects = tx.rows("scopes.curation.project", roots=roots, fold=fold)
    own_id, org_id = projects[0] if projects else ("", "")
    own = f"project:{own_id}" if own_id else ""
    scopes = [GLOBAL, *([f"org:{org_id}"] if org_id else []), *([own] if own else [])]
    rules = tx.all("scopes.curation.rules", _Rule, chain=scopes, limit=_MOST_READ)
    nearest = {rule.name: rule for rule in sorted(rules, key=lambda rule: rule.nearness)}
    first_rules = sorted(nearest.values(), key=lambda rule: -rule.priority)[:_MOST_RULES]
    remarks: list[Remark] = []
    for rule in sorted(first_rules, key=lambda rule: (rule.nearness, -rule.priority, rule.id)):
        whole = rule.priority > _WHOLE_ABOVE
        remarks.append(Remark("rule", GUIDELINE.space, rule.id, named(rule.name, rule.content, whole=whole), whole))
    decisions = tx.rows("scopes.curation.decisions", scope=own, now=tx.now, limit=_MOST_DECISIONS)
    return remarks + [Remark("decision", KNOWLEDGE.space, id_, named(title, text)) for id_, title, text in decisions]
