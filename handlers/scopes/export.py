"""The document of an export: entries with their versions, tags and relations, their scopes, and custom tags."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from handlers.scopes.entry_kinds import Kind
from handlers.scopes.field_types import normal_name
from handlers.scopes.import_document import RelationItem
from handlers.scopes.results import (
    ENTRY_COLUMNS,
    EntryRow,
    Organization,
    Project,
    Session,
    Tag,
    VersionRow,
    grouped,
    loads,
    row_factory,
    to_entry,
    to_version,
)
from kernel.store.transaction import Tx

FORMAT = "1.0"
Document = dict[str, Any]
_org_row = row_factory(Organization, "metadata", loads)
_project_row = row_factory(Project, "metadata", loads)
_tag_row = row_factory(Tag, "is_predefined", bool)
_session_row = row_factory(Session, "metadata", loads)


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
    scopes = _scopes(
        tx, None if _is_unfiltered(selection) else [item.row for items in rows_by_kind.values() for item in items]
    )
    tagged_items = [*(item for items in lists.values() for item in items), *scopes["projects"]]
    return {
        "version": FORMAT,
        "exportedAt": tx.now,
        "metadata": dict(metadata),
        "entries": lists,
        "scopes": scopes,
        "tags": _custom_tags(
            tx, None if _is_unfiltered(selection) else {name for item in tagged_items for name in item["tags"]}
        ),
    }


def _is_unfiltered(selection: Selection) -> bool:
    return selection.scope_type is None and selection.scope_id is None and selection.tags is None


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
    return _EntryWithVersion(EntryRow(*columns[:ENTRY_COLUMNS]), VersionRow(*columns[ENTRY_COLUMNS:-1]), columns[-1])


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
    return grouped(tx.all("scopes.export.tags", _tag_name, kind=kind, ids=ids))


def _tag_name(entry_id: str, name: str) -> tuple[str, str]:
    return entry_id, name


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
    sessions = tx.all("scopes.export.sessions", _session_row, ids=ids_of("session"))
    projects = tx.all(
        "scopes.export.projects", _project_row, ids=ids_of("project", [row.project_id for row in sessions])
    )
    orgs = tx.all("scopes.export.orgs", _org_row, ids=ids_of("org", [row.org_id for row in projects]))
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


def _custom_tags(tx: Tx, names: set[str] | None) -> list[Document]:
    """Return the tags of these names that are not predefined, by name; all of them for None."""
    return msgspec.to_builtins(
        tx.all("scopes.export.definitions", _tag_row, names=None if names is None else sorted(names))
    )
