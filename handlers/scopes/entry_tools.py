"""The tools memory_tool, memory_guideline and memory_knowledge (seed 000), and their result types."""

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from handlers.scopes import entries, entry_requests, errors
from handlers.scopes.entry_kinds import GUIDELINE, KNOWLEDGE, TOOL, Kind
from handlers.scopes.field_types import normal_name, timestamp, validate
from handlers.scopes.inheritance import check_scope_filter, scope_chain, scope_to_read
from handlers.scopes.results import AnyEntry, AnyVersion, Done, Guideline, Knowledge, Tool, to_entry
from handlers.scopes.totals import Count
from kernel.calls.tools import Access, Hints, Hooks, ToolOptions, write
from kernel.store.transaction import Tx


class EntryAnswer(Struct):
    """Result of add and update, with `success`, and of get: an entry under the name of its kind."""

    success: bool | UnsetType = UNSET
    tool: Tool | UnsetType = UNSET
    guideline: Guideline | UnsetType = UNSET
    knowledge: Knowledge | UnsetType = UNSET


class EntryList(Struct, kw_only=True):
    tools: list[Tool] | UnsetType = UNSET
    guidelines: list[Guideline] | UnsetType = UNSET
    knowledge: list[Knowledge] | UnsetType = UNSET
    meta: Count


class VersionList(Struct):
    versions: list[AnyVersion]


EntryResult = EntryAnswer | EntryList | VersionList | Done
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
        answer_field: dict[str, Any] = {kind.name: to_entry(*entries.add(tx, kind, request))}
        return EntryAnswer(True, **answer_field)
    if isinstance(request, entry_requests.Update):
        answer_field = {kind.name: to_entry(*entries.update(tx, kind, request))}
        return EntryAnswer(True, **answer_field)
    if isinstance(request, entry_requests.DeactivateEntry):
        entries.deactivate(tx, kind, request.id)
        return Done(True)
    if isinstance(request, entry_requests.ListEntries):
        return _list(tx, kind, request)
    if isinstance(request, entry_requests.ListVersions):
        return VersionList(entries.versions(tx, kind, request.id, timestamp("asOf", request.as_of)))
    return _get(tx, kind, request)


def _get(tx: Tx, kind: Kind, request: entry_requests.GetEntry | entry_requests.GetKnowledge) -> EntryAnswer:
    at = timestamp("asOf", request.as_of)
    if request.id is not None:
        pair = entries.get(tx, kind, request.id, at)
    else:
        name = request.title if isinstance(request, entry_requests.GetKnowledge) else request.name
        pair = _find_by_name(tx, kind, name, request, at)
    entry: dict[str, Any] = {kind.name: _with_expiry(to_entry(*pair), at or tx.now)}
    return EntryAnswer(**entry)


def _with_expiry(entry: AnyEntry, now: str) -> AnyEntry:
    """Return the entry, marked as expired if it is knowledge whose time is over."""
    if isinstance(entry, Knowledge) and entry.current_version is not UNSET:
        end = entry.current_version.valid_until
        entry.expired = True if end is not None and end <= now else UNSET
    return entry


def _find_by_name(
    tx: Tx, kind: Kind, name: str | None, request: entry_requests.GetEntry | entry_requests.GetKnowledge, at: str | None
) -> entries.EntryPair:
    if name is None:
        raise errors.invalid("id", f"either id or {kind.name_field} is required")
    if request.scope_type is None:
        raise errors.invalid("scopeType", f"when using {kind.name_field}, scopeType is required")
    scope_id = scope_to_read(tx, request.scope_type, request.scope_id)
    scopes = scope_chain(tx, request.scope_type, scope_id, inherit=request.inherit is not False)
    # As given too: an imported name is stored as it is.
    pair = entries.find(tx, kind, normal_name(name), scopes, at) or entries.find(tx, kind, name, scopes, at)
    if pair is None:
        raise errors.not_found(kind.full_label, name, kind.name_field)
    return pair


def _list(tx: Tx, kind: Kind, request: entry_requests.ListEntries) -> EntryList:
    filters: dict[str, Any] = {"category": request.category, "inactive": bool(request.include_inactive)}
    if request.inherit:
        if request.scope_type is None:
            raise errors.required("scopeType", "to inherit")
        scope_id = scope_to_read(tx, request.scope_type, request.scope_id)
        which = "chain"
        filters["scopes"] = scope_chain(tx, request.scope_type, scope_id)
    else:
        check_scope_filter(tx, request.scope_type, request.scope_id)
        which, where = entries.listed_scope(request.scope_type, request.scope_id)
        filters |= where
    pairs, totals = entries.list_page(tx, kind, which, filters, request)
    answer_field: dict[str, Any] = {kind.plural: [_with_expiry(to_entry(*pair), tx.now) for pair in pairs]}
    return EntryList(**answer_field, meta=totals)


_PERMISSIONS: Mapping[str, Access] = {
    "add": "write",
    "update": "write",
    "get": "read",
    "list": "read",
    "history": "read",
    "deactivate": "write",
}
_OPTIONS: ToolOptions = {
    "permission": _PERMISSIONS,
    "hooks": Hooks(texts=entries.texts_to_embed),
    "read_arms": entry_requests.READ_ARMS,
    "kept_arms": entry_requests.KEPT_ARMS,
}

TOOLS = (
    write(memory_tool, Hints("Tools"), **_OPTIONS),
    write(memory_guideline, Hints("Guidelines"), **_OPTIONS),
    write(memory_knowledge, Hints("Knowledge"), **_OPTIONS),
)
