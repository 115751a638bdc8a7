"""The tools memory_tool, memory_guideline and memory_knowledge (seed 000): what each action of an entry answers."""

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from handlers.scopes import entries, entry_requests, errors
from handlers.scopes.entry_kinds import GUIDELINE, KNOWLEDGE, TOOL, Kind
from handlers.scopes.field_types import clean, moment, window
from handlers.scopes.inheritance import GLOBAL, chain, scope_of
from handlers.scopes.results import AnyVersion, Count, Done, Guideline, Knowledge, Tool, entry, version
from kernel.store.transaction import Tx


class Saved(Struct):
    """Answer of a write of an entry, under the name of its type."""

    success: bool
    tool: Tool | UnsetType = UNSET
    guideline: Guideline | UnsetType = UNSET
    knowledge: Knowledge | UnsetType = UNSET


class Found(Struct):
    """One entry, under the name of its type."""

    tool: Tool | UnsetType = UNSET
    guideline: Guideline | UnsetType = UNSET
    knowledge: Knowledge | UnsetType = UNSET


class Listed(Struct, kw_only=True):
    """Entries, under the plural of their type."""

    tools: list[Tool] | UnsetType = UNSET
    guidelines: list[Guideline] | UnsetType = UNSET
    knowledge: list[Knowledge] | UnsetType = UNSET
    meta: Count


class Versions(Struct):
    """Every version of an entry, newest first."""

    versions: list[AnyVersion]


Answer = Saved | Found | Listed | Versions | Done
Request = entry_requests.ToolRequest | entry_requests.GuidelineRequest | entry_requests.KnowledgeRequest


def memory_tool(tx: Tx, request: entry_requests.ToolRequest) -> Answer:
    """Manage tool definitions with versioning."""
    return _act(tx, TOOL, request)


def memory_guideline(tx: Tx, request: entry_requests.GuidelineRequest) -> Answer:
    """Manage behavioral guidelines with versioning."""
    return _act(tx, GUIDELINE, request)


def memory_knowledge(tx: Tx, request: entry_requests.KnowledgeRequest) -> Answer:
    """Manage knowledge entries (facts, decisions, context) with versioning."""
    return _act(tx, KNOWLEDGE, request)


def _act(tx: Tx, kind: Kind, request: Request) -> Answer:
    clean(request)
    if isinstance(request, entry_requests.Add):
        return Saved(True, **_under(kind.name, entries.add(tx, kind, request)))
    if isinstance(request, entry_requests.Update):
        return Saved(True, **_under(kind.name, entries.update(tx, kind, request)))
    if isinstance(request, entry_requests.Deactivate):
        entries.deactivate(tx, kind, request.id)
        return Done(True)
    if isinstance(request, entry_requests.Listing):
        return _list(tx, kind, request)
    if isinstance(request, entry_requests.History):
        return _history(tx, kind, request)
    return _get(tx, kind, request)


def _under(name: str, pair: entries.Pair) -> dict[str, Any]:
    return {name: entry(*pair)}


def _get(tx: Tx, kind: Kind, request: entry_requests.Get | entry_requests.GetKnowledge) -> Found:
    at = moment("asOf", request.as_of)
    if request.id is not None:
        found = entries.get(tx, kind, request.id, at)
    else:
        name = request.title if isinstance(request, entry_requests.GetKnowledge) else request.name
        found = _named(tx, kind, name, request, at)
    return Found(**_under(kind.name, found))


def _named(
    tx: Tx, kind: Kind, name: str | None, request: entry_requests.Get | entry_requests.GetKnowledge, at: str | None
) -> entries.Pair:
    if name is None:
        raise errors.invalid("id", f"either id or {kind.heading} is required")
    if request.scope_type is None:
        raise errors.invalid("scopeType", f"when using {kind.heading}, scopeType is required")
    scope_id = scope_of(request.scope_type, request.scope_id)
    scopes = chain(tx, request.scope_type, scope_id, inherit=request.inherit is not False)
    found = entries.find(tx, kind, name, scopes, at)
    if found is None:
        raise errors.not_found(kind.missing, name, kind.heading)
    return found


def _list(tx: Tx, kind: Kind, request: entry_requests.Listing) -> Listed:
    shown = {
        "category": request.category,
        "inactive": bool(request.include_inactive),
        **window(request.limit, request.offset),
    }
    if request.inherit:
        if request.scope_type is None:
            raise errors.required("scopeType", "to inherit")
        scope_id = scope_of(request.scope_type, request.scope_id)
        pairs = entries.of_chain(tx, kind, chain(tx, request.scope_type, scope_id), shown)
    else:
        scope_id = None if request.scope_type == GLOBAL else request.scope_id
        pairs = entries.of_scope(tx, kind, request.scope_type, scope_id, shown)
    listed: dict[str, Any] = {kind.many: [entry(*pair) for pair in pairs]}
    return Listed(**listed, meta=Count(len(pairs)))


def _history(tx: Tx, kind: Kind, request: entry_requests.History) -> Versions:
    rows = entries.versions(tx, kind, request.id, moment("asOf", request.as_of))
    return Versions([version(kind.name, row) for row in rows])
