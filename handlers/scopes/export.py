"""The document of an export: entries with their versions, tags and relations, their scopes, and custom tags."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from handlers.scopes import results
from handlers.scopes.entry_kinds import Kind
from handlers.scopes.field_types import normal_name
from handlers.scopes.import_document import RelationItem
from handlers.scopes.results import EntryRow, VersionRow, entry_and_version, grouped, to_entry, to_version
from kernel.store.transaction import Tx

FORMAT = "1.0"
Document = dict[str, Any]


class Selection(NamedTuple):
    """The entries to export: kinds, type of scope, scope, any of these tags; None means no filter."""

    kinds: Sequence[Kind]
    scope_type: str | None
    scope_id: str | None
    tags: Sequence[str] | None
    versions: bool
    inactive: bool


class _EntryWithVersion(NamedTuple):
    row: EntryRow
    current: VersionRow
    deactivated_at: str | None


def export_document(tx: Tx, selection: Selection, metadata: Mapping[str, Any]) -> Document:
    """Return everything an import needs to restore these entries; of equal data only `exportedAt` differs."""
    rows_by_kind = {kind.plural: _entries(tx, kind, selection) for kind in selection.kinds}
    entries = {
        kind.plural: _exported_entries(tx, kind, rows_by_kind[kind.plural], selection) for kind in selection.kinds
    }
    lists = {many: entries.get(many, []) for many in ("tools", "guidelines", "knowledge")}
    is_whole = selection.scope_type is None and selection.scope_id is None and selection.tags is None
    scopes = _scopes(tx, None if is_whole else [item.row for items in rows_by_kind.values() for item in items])
    tagged_items = [*(item for items in lists.values() for item in items), *scopes["projects"]]
    names = None if is_whole else sorted({name for item in tagged_items for name in item["tags"]})
    return {
        "version": FORMAT,
        "exportedAt": tx.now,
        "metadata": dict(metadata),
        "entries": lists,
        "scopes": scopes,
        "tags": msgspec.to_builtins(tx.all("scopes.export.definitions", results.tag_row, names=names)),
    }


def _entries(tx: Tx, kind: Kind, selection: Selection) -> list[_EntryWithVersion]:
    return tx.all(
        "scopes.export.entries",
        _entry_row,
        kind=kind.name,
        scope_type=selection.scope_type,
        scope_id=selection.scope_id,
        inactive=selection.inactive,
        tags=selection.tags and [normal_name(tag).casefold() for tag in selection.tags],
    )


def _entry_row(*columns: Any) -> _EntryWithVersion:
    return _EntryWithVersion(*entry_and_version(*columns[:-1]), columns[-1])


def _exported_entries(tx: Tx, kind: Kind, entries: Sequence[_EntryWithVersion], selection: Selection) -> list[Document]:
    ids = [item.row.id for item in entries]
    tags, relations = _tags(tx, kind.name, ids), _relations(tx, kind.name, ids)
    rows = tx.all("scopes.export.versions", VersionRow, ids=ids) if selection.versions else []
    versions = grouped((row.entry_id, to_version(kind.name, row)) for row in rows)
    documents: list[Document] = []
    for item in entries:
        document: Document = msgspec.to_builtins(to_entry(item.row, item.current))
        document["deactivatedAt"] = item.deactivated_at
        if selection.versions:
            document["versions"] = msgspec.to_builtins(versions.get(item.row.id, []))
        documents.append({**document, "tags": tags.get(item.row.id, []), "relations": relations.get(item.row.id, [])})
    return documents


def _tags(tx: Tx, kind: str, ids: Sequence[str]) -> dict[str, list[str]]:
    return grouped(tx.all("scopes.export.tags", results.pair, kind=kind, ids=ids))


def _relations(tx: Tx, kind: str, ids: Sequence[str]) -> dict[str, list[Document]]:
    return grouped(tx.all("scopes.export.relations", _relation, kind=kind, ids=ids))


def _relation(source_id: str, *columns: Any) -> tuple[str, Document]:
    return source_id, msgspec.to_builtins(RelationItem(*columns))


def _scopes(tx: Tx, rows: Sequence[EntryRow] | None) -> dict[str, list[Document]]:
    """Return the scopes of these entries and their parents; every scope for None."""

    def ids_of(scope_type: str, above: Iterable[str | None] = ()) -> list[str] | None:
        if rows is None:
            return None
        scope_ids = {row.scope_id for row in rows if row.scope_type == scope_type}
        return sorted(scope_id for scope_id in {*scope_ids, *above} if scope_id is not None)

    # Bottom up: sessions add their projects, and projects their organizations.
    sessions = tx.all("scopes.export.sessions", results.session_row, ids=ids_of("session"))
    projects = tx.all(
        "scopes.export.projects", results.project_row, ids=ids_of("project", [row.project_id for row in sessions])
    )
    orgs = tx.all("scopes.export.orgs", results.org_row, ids=ids_of("org", [row.org_id for row in projects]))
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
