"""The document that an export is: entries with all that belongs to them, the scopes they stand in, and their tags."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from handlers.scopes.entry_kinds import Kind
from handlers.scopes.results import (
    ENTRY_COLUMNS,
    EntryRow,
    Organization,
    Project,
    Session,
    Tag,
    VersionRow,
    entry,
    loads,
    rows_of,
    version,
)
from kernel.store.transaction import Tx

FORMAT = "1.0"
Document = dict[str, Any]
_org = rows_of(Organization, "metadata", loads)
_project = rows_of(Project, "metadata", loads)
_tag = rows_of(Tag, "is_predefined", bool)
_session = rows_of(Session, "metadata", loads)


class Wanted(NamedTuple):
    """Which entries: of these kinds, of a type of scope, of one scope, with any of these tags; None means any."""

    kinds: Sequence[Kind]
    scope_type: str | None
    scope_id: str | None
    tags: Sequence[str] | None
    versions: bool
    inactive: bool


class _Entry(NamedTuple):
    row: EntryRow
    current: VersionRow
    deactivated_at: str | None


class _Mark(NamedTuple):
    entry_id: str
    name: str


class _Link(NamedTuple):
    source_id: str
    target_type: str
    target_id: str
    relation_type: str
    id: str
    created_at: str
    created_by: str | None


def document(tx: Tx, wanted: Wanted, metadata: Mapping[str, Any]) -> Document:
    """Everything an import needs to bring these entries back as they are; only `exportedAt` depends on the moment."""
    found = {kind.many: _entries(tx, kind, wanted) for kind in wanted.kinds}
    exported = {kind.many: _told(tx, kind, found[kind.many], wanted) for kind in wanted.kinds}
    shown = {many: exported.get(many, []) for many in ("tools", "guidelines", "knowledge")}
    scopes = _scopes(tx, None if _unfiltered(wanted) else [item.row for items in found.values() for item in items])
    marked = [*(item for items in shown.values() for item in items), *scopes["projects"]]
    return {
        "version": FORMAT,
        "exportedAt": tx.now,
        "metadata": dict(metadata),
        "entries": shown,
        "scopes": scopes,
        "tags": _definitions(tx, None if _unfiltered(wanted) else {name for item in marked for name in item["tags"]}),
    }


def _unfiltered(wanted: Wanted) -> bool:
    return wanted.scope_type is None and wanted.scope_id is None and wanted.tags is None


def _entries(tx: Tx, kind: Kind, wanted: Wanted) -> list[_Entry]:
    return tx.all(
        "scopes.export.entries",
        _entry,
        kind=kind.name,
        scope_type=wanted.scope_type,
        scope_id=wanted.scope_id,
        inactive=wanted.inactive,
        tags=wanted.tags and [tag.casefold() for tag in wanted.tags],
    )


def _entry(*columns: Any) -> _Entry:
    return _Entry(EntryRow(*columns[:ENTRY_COLUMNS]), VersionRow(*columns[ENTRY_COLUMNS:-1]), columns[-1])


def _told(tx: Tx, kind: Kind, found: Sequence[_Entry], wanted: Wanted) -> list[Document]:
    ids = [item.row.id for item in found]
    tags, relations = _tags(tx, kind.name, ids), _relations(tx, kind.name, ids)
    versions: dict[str, list[Any]] = {}
    for row in tx.all("scopes.export.versions", VersionRow, ids=ids) if wanted.versions else ():
        versions.setdefault(row.entry_id, []).append(version(kind.name, row))
    told: list[Document] = []
    for item in found:
        shown: Document = msgspec.to_builtins(entry(item.row, item.current))
        shown["deactivatedAt"] = item.deactivated_at
        if wanted.versions:
            shown["versions"] = msgspec.to_builtins(versions.get(item.row.id, []))
        told.append({**shown, "tags": tags.get(item.row.id, []), "relations": relations.get(item.row.id, [])})
    return told


def _tags(tx: Tx, kind: str, ids: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for mark in tx.all("scopes.export.tags", _Mark, kind=kind, ids=ids):
        found.setdefault(mark.entry_id, []).append(mark.name)
    return found


def _relations(tx: Tx, kind: str, ids: Sequence[str]) -> dict[str, list[Document]]:
    found: dict[str, list[Document]] = {}
    for link in tx.all("scopes.export.relations", _Link, kind=kind, ids=ids):
        told = {
            "targetType": link.target_type,
            "targetId": link.target_id,
            "relationType": link.relation_type,
            "id": link.id,
            "createdAt": link.created_at,
            "createdBy": link.created_by,
        }
        found.setdefault(link.source_id, []).append(told)
    return found


def _scopes(tx: Tx, rows: Sequence[EntryRow] | None) -> dict[str, list[Document]]:
    """The scopes of these entries and those above them; every scope for None."""

    def named(scope_type: str, above: Iterable[str | None] = ()) -> list[str] | None:
        if rows is None:
            return None
        held = {row.scope_id for row in rows if row.scope_type == scope_type}
        return sorted(found for found in {*held, *above} if found is not None)

    sessions = tx.all("scopes.export.sessions", _session, ids=named("session"))
    projects = tx.all("scopes.export.projects", _project, ids=named("project", [row.project_id for row in sessions]))
    orgs = tx.all("scopes.export.orgs", _org, ids=named("org", [row.org_id for row in projects]))
    ids = [row.id for row in projects]
    tags, relations = _tags(tx, "project", ids), _relations(tx, "project", ids)
    return {
        "organizations": msgspec.to_builtins(orgs),
        "projects": [
            {**msgspec.to_builtins(row), "tags": tags.get(row.id, []), "relations": relations.get(row.id, [])}
            for row in projects
        ],
        "sessions": msgspec.to_builtins(sessions),
    }


def _definitions(tx: Tx, names: set[str] | None) -> list[Document]:
    """The tags of these names that no store has from the start, by name; all of them for None."""
    return msgspec.to_builtins(
        tx.all("scopes.export.definitions", _tag, names=None if names is None else sorted(names))
    )
