"""The tools memory_tool, memory_guideline and memory_knowledge (seed 000), and their result types."""

from typing import Any

from msgspec import UNSET

from handlers.scopes import entries, entry_requests, errors
from handlers.scopes.entry_kinds import GUIDELINE, KNOWLEDGE, TOOL, Kind
from handlers.scopes.field_types import normal_name, timestamp, validate
from handlers.scopes.inheritance import GLOBAL, check_scope_filter, scope_chain, scope_key, scope_to_read
from handlers.scopes.results import Answer, Entry, Page, entry_and_version, read_page, to_entry
from kernel.calls.tools import Hints, Hooks, ToolOptions, write
from kernel.core.times import utc_time
from kernel.store.transaction import Tx

EntryRequest = entry_requests.ToolRequest | entry_requests.GuidelineRequest | entry_requests.KnowledgeRequest


def memory_tool(tx: Tx, request: entry_requests.ToolRequest) -> Answer | Page:
    """Manage tool definitions with versioning."""
    return _dispatch(tx, TOOL, request)


def memory_guideline(tx: Tx, request: entry_requests.GuidelineRequest) -> Answer | Page:
    """Manage behavioral guidelines with versioning."""
    return _dispatch(tx, GUIDELINE, request)


def memory_knowledge(tx: Tx, request: entry_requests.KnowledgeRequest) -> Answer | Page:
    """Manage knowledge entries (facts, decisions, context) with versioning."""
    return _dispatch(tx, KNOWLEDGE, request)


def _dispatch(tx: Tx, kind: Kind, request: EntryRequest) -> Answer | Page:
    validate(request)
    if isinstance(request, entry_requests.Add):
        answer_field: dict[str, Any] = {kind.name: to_entry(*entries.add(tx, kind, request))}
        return Answer(True, **answer_field)
    if isinstance(request, entry_requests.Update):
        answer_field = {kind.name: to_entry(*entries.update(tx, kind, request))}
        return Answer(True, **answer_field)
    if isinstance(request, entry_requests.DeactivateEntry):
        entries.deactivate(tx, kind, request.id)
        return Answer(True)
    if isinstance(request, entry_requests.ListEntries):
        return _list(tx, kind, request)
    if isinstance(request, entry_requests.ListVersions):
        return Page(versions=entries.versions(tx, kind, request.id, timestamp("asOf", request.as_of)))
    return _get(tx, kind, request)


def _get(tx: Tx, kind: Kind, request: entry_requests.GetEntry) -> Answer:
    at = timestamp("asOf", request.as_of)
    pair = _find_by_name(tx, kind, request, at) if request.id is None else entries.get(tx, kind, request.id, at)
    entry: dict[str, Any] = {kind.name: _with_expiry(to_entry(*pair), at or tx.now)}
    return Answer(**entry)


def _with_expiry(entry: Entry, now: str) -> Entry:
    end = entry.current_version.valid_until
    # An import keeps texts that are no time, and these never end.
    entry.expired = True if isinstance(end, str) and end <= now and utc_time(end) else UNSET
    return entry


def _find_by_name(tx: Tx, kind: Kind, request: entry_requests.GetEntry, at: str | None) -> entries.EntryPair:
    name = request.name
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


def _list(tx: Tx, kind: Kind, request: entry_requests.ListEntries) -> Page:
    filters: dict[str, Any] = {"kind": kind.name, "category": request.category}
    filters["inactive"] = bool(request.include_inactive)
    scope_type, scope_id = request.scope_type, request.scope_id
    if request.inherit:
        if scope_type is None:
            raise errors.required("scopeType", "to inherit")
        filters["scopes"] = scope_chain(tx, scope_type, scope_to_read(tx, scope_type, scope_id))
        rows, count = "scopes.entries.list_chain", "scopes.entries.count_chain"
    elif scope_type == GLOBAL or (scope_type and scope_id):
        check_scope_filter(tx, scope_type, scope_id)
        filters["scope"] = scope_key(scope_type, scope_id)
        rows, count = "scopes.entries.list_in", "scopes.entries.count_in"
    else:
        check_scope_filter(tx, scope_type, scope_id)
        filters |= {"scope_type": scope_type, "scope_id": scope_id}
        rows, count = "scopes.entries.list_all", "scopes.entries.count_all"
    pairs, totals = read_page(tx, rows, count, entry_and_version, request, **filters)
    answer_field: dict[str, Any] = {kind.plural: [_with_expiry(to_entry(*pair), tx.now) for pair in pairs]}
    return Page(**answer_field, meta=totals)


_OPTIONS: ToolOptions = {
    "hooks": Hooks(texts=entries.texts_to_embed),
    "read_arms": entry_requests.READ_ARMS,
    "kept_arms": entry_requests.KEPT_ARMS,
}

TOOLS = (
    write(memory_tool, Hints("Tools"), **_OPTIONS),
    write(memory_guideline, Hints("Guidelines"), **_OPTIONS),
    write(memory_knowledge, Hints("Knowledge"), **_OPTIONS),
)
