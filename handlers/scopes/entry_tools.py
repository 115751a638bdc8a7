"""The tools memory_tool, memory_guideline and memory_knowledge (seed 000), and their result types."""

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from handlers.scopes import entries, entry_requests, errors
from handlers.scopes.entry_kinds import GUIDELINE, KNOWLEDGE, TOOL, Kind
from handlers.scopes.field_types import page_bounds, timestamp, validate
from handlers.scopes.inheritance import GLOBAL, required_scope_id, scope_chain
from handlers.scopes.results import AnyVersion, Count, Done, Guideline, Knowledge, Tool, to_entry, to_version
from kernel.store.transaction import Tx
from kernel.tools import Access, Hints, Hooks, write


class EntrySaved(Struct):
    """Result of add and update, under the name of the kind."""

    success: bool
    tool: Tool | UnsetType = UNSET
    guideline: Guideline | UnsetType = UNSET
    knowledge: Knowledge | UnsetType = UNSET


class EntryFound(Struct):
    """Result of get, under the name of the kind."""

    tool: Tool | UnsetType = UNSET
    guideline: Guideline | UnsetType = UNSET
    knowledge: Knowledge | UnsetType = UNSET


class EntryList(Struct, kw_only=True):
    """Result of list, under the plural of the kind."""

    tools: list[Tool] | UnsetType = UNSET
    guidelines: list[Guideline] | UnsetType = UNSET
    knowledge: list[Knowledge] | UnsetType = UNSET
    meta: Count


class VersionList(Struct):
    """Result of history, newest version first."""

    versions: list[AnyVersion]


EntryResult = EntrySaved | EntryFound | EntryList | VersionList | Done
EntryRequest = entry_requests.ToolRequest | entry_requests.GuidelineRequest | entry_requests.KnowledgeRequest


def memory_tool(tx: Tx, request: entry_requests.ToolRequest) -> EntryResult:
    """Manage tool definitions with versioning."""
    return _dispatch(tx, TOOL, request)


def memory_guideline(tx: Tx, request: entry_requests.GuidelineRequest) -> EntryResult:
    """Manage behavioral guidelines with versioning."""
    return _dispatch(tx, GUIDELINE, request)


def memory_knowledge(tx: Tx, request: entry_requests.KnowledgeRequest) -> EntryResult:
    """Manage knowledge entries (facts, decisions, context) with versioning."""
    return _dispatch(tx, KNOWLEDGE, request)


def _dispatch(tx: Tx, kind: Kind, request: EntryRequest) -> EntryResult:
    validate(request)
    if isinstance(request, entry_requests.Add):
        return EntrySaved(True, **_keyed(kind.name, entries.add(tx, kind, request)))
    if isinstance(request, entry_requests.Update):
        return EntrySaved(True, **_keyed(kind.name, entries.update(tx, kind, request)))
    if isinstance(request, entry_requests.DeactivateEntry):
        entries.deactivate(tx, kind, request.id)
        return Done(True)
    if isinstance(request, entry_requests.ListEntries):
        return _list(tx, kind, request)
    if isinstance(request, entry_requests.ListVersions):
        return _history(tx, kind, request)
    return _get(tx, kind, request)


def _keyed(name: str, pair: entries.EntryPair) -> dict[str, Any]:
    return {name: to_entry(*pair)}


def _get(tx: Tx, kind: Kind, request: entry_requests.GetEntry | entry_requests.GetKnowledge) -> EntryFound:
    at = timestamp("asOf", request.as_of)
    if request.id is not None:
        found = entries.get(tx, kind, request.id, at)
    else:
        name = request.title if isinstance(request, entry_requests.GetKnowledge) else request.name
        found = _find_by_name(tx, kind, name, request, at)
    return EntryFound(**_keyed(kind.name, found))


def _find_by_name(
    tx: Tx, kind: Kind, name: str | None, request: entry_requests.GetEntry | entry_requests.GetKnowledge, at: str | None
) -> entries.EntryPair:
    if name is None:
        raise errors.invalid("id", f"either id or {kind.name_field} is required")
    if request.scope_type is None:
        raise errors.invalid("scopeType", f"when using {kind.name_field}, scopeType is required")
    scope_id = required_scope_id(request.scope_type, request.scope_id)
    scopes = scope_chain(tx, request.scope_type, scope_id, inherit=request.inherit is not False)
    found = entries.find(tx, kind, name, scopes, at)
    if found is None:
        raise errors.not_found(kind.full_label, name, kind.name_field)
    return found


def _list(tx: Tx, kind: Kind, request: entry_requests.ListEntries) -> EntryList:
    filters = {
        "category": request.category,
        "inactive": bool(request.include_inactive),
        **page_bounds(request.limit, request.offset),
    }
    if request.inherit:
        if request.scope_type is None:
            raise errors.required("scopeType", "to inherit")
        scope_id = required_scope_id(request.scope_type, request.scope_id)
        pairs = entries.list_chain(tx, kind, scope_chain(tx, request.scope_type, scope_id), filters)
    else:
        # An id given with global is ignored, as in the other actions.
        scope_id = None if request.scope_type == GLOBAL else request.scope_id
        pairs = entries.list_scope(tx, kind, request.scope_type, scope_id, filters)
    listed: dict[str, Any] = {kind.plural: [to_entry(*pair) for pair in pairs]}
    return EntryList(**listed, meta=Count(len(pairs)))


def _history(tx: Tx, kind: Kind, request: entry_requests.ListVersions) -> VersionList:
    rows = entries.versions(tx, kind, request.id, timestamp("asOf", request.as_of))
    return VersionList([to_version(kind.name, row) for row in rows])


_PERMISSIONS: Mapping[str, Access] = {
    "add": "write",
    "update": "write",
    "get": "read",
    "list": "read",
    "history": "read",
    "deactivate": "write",
}
_HOOKS = Hooks(texts=entries.texts_to_embed)

TOOLS = (
    write(memory_tool, Hints("Tools"), permission=_PERMISSIONS, hooks=_HOOKS, read_arms=entry_requests.READ_ARMS),
    write(
        memory_guideline, Hints("Guidelines"), permission=_PERMISSIONS, hooks=_HOOKS, read_arms=entry_requests.READ_ARMS
    ),
    write(
        memory_knowledge, Hints("Knowledge"), permission=_PERMISSIONS, hooks=_HOOKS, read_arms=entry_requests.READ_ARMS
    ),
)
