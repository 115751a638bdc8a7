"""The document of an export: entries with their versions, tags and relations, their scopes, and custom tags, and
its form as a Markdown page, whose structure no text of an entry can change."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from handlers.scopes import results
from handlers.scopes.entry_kinds import KINDS, Kind
from handlers.scopes.field_types import normal_name
from handlers.scopes.import_document import RelationItem
from handlers.scopes.results import EntryRow, VersionRow, entry_and_version, grouped, to_entry, to_version
from kernel.core.lazy_regex import regex
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


_SPECIAL = regex(r"([\\`*\[\]<>#&~|]|(?<![^\W_])_|_(?![^\W_]))")
_LINE_END = regex(r"\r\n|\r|\n")
_CONTROLS = regex(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_BACKTICKS = regex(r"`+")
_TEXT_FIELDS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "tool": (("description", "Description"), ("constraints", "Constraints")),
    "guideline": (("content", "Content"), ("rationale", "Rationale")),
    "knowledge": (("content", "Content"), ("source", "Source")),
}
_JSON_FIELDS = (("parameters", "Parameters"), ("examples", "Examples"))


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
        lambda *columns: _EntryWithVersion(*entry_and_version(*columns[:-1]), columns[-1]),
        kind=kind.name,
        scope_type=selection.scope_type,
        scope_id=selection.scope_id,
        inactive=selection.inactive,
        tags=selection.tags and [normal_name(tag).casefold() for tag in selection.tags],
    )


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
    return grouped(tx.rows("scopes.export.tags", kind=kind, ids=ids))


def _relations(tx: Tx, kind: str, ids: Sequence[str]) -> dict[str, list[Document]]:
    rows = tx.rows("scopes.export.relations", kind=kind, ids=ids)
    return grouped((source, msgspec.to_builtins(RelationItem(*columns))) for source, *columns in rows)


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


def render_page(document: Mapping[str, Any]) -> str:
    entries: Mapping[str, list[dict[str, Any]]] = document["entries"]
    metadata: Mapping[str, Any] = document["metadata"]
    lines = [
        "# Agent Memory Export",
        "",
        f"**Exported:** {document['exportedAt']}",
        f"**Entries:** {sum(len(items) for items in entries.values())}",
    ]
    if "scopeType" in metadata or "scopeId" in metadata:
        lines.append(
            f"**Scope:** {_escaped(' / '.join(metadata[key] for key in ('scopeType', 'scopeId') if key in metadata))}"
        )
    for kind in KINDS.values():
        if items := entries[kind.plural]:
            lines += ["", f"## {kind.plural.capitalize()} ({len(items)})"]
            for item in items:
                lines += ["", *_entry(kind, item)]
    return "\n".join(lines) + "\n"


def _entry(kind: Kind, item: Mapping[str, Any]) -> Iterator[str]:
    current: Mapping[str, Any] = item["currentVersion"]
    yield f"### {_escaped(item[kind.name_field])}"
    yield ""
    yield from (f"- **{label}:** {value}" for label, value in _properties(item, current))
    for field, label in _TEXT_FIELDS[kind.name]:
        if current[field]:
            yield from ("", f"**{label}:**", "", *_quotation(current[field]))
    for field, label in _JSON_FIELDS:
        if current.get(field):
            yield from ("", f"**{label}:**", "", *_json_block(current[field]))
    if item.get("versions"):
        yield from ("", "**Versions:**", "", *(_version_line(version) for version in item["versions"]))


def _properties(item: Mapping[str, Any], current: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    scope = item["scopeType"] if item["scopeId"] is None else f"{item['scopeType']} / {item['scopeId']}"
    yield "ID", _code_span(item["id"])
    yield "Scope", _escaped(scope)
    if not item["isActive"]:
        yield "Inactive since", item["deactivatedAt"] or ""
    if "priority" in item:
        yield "Priority", str(item["priority"])
    if item["category"]:
        yield "Category", _escaped(item["category"])
    if item["tags"]:
        yield "Tags", ", ".join(_code_span(tag) for tag in item["tags"])
    if "confidence" in current:
        yield "Confidence", str(current["confidence"])
    if current.get("validUntil"):
        yield "Valid until", _escaped(current["validUntil"])
    for link in item["relations"]:
        yield (
            "Relation",
            f"{_escaped(link['relationType'])} {_escaped(link['targetType'])} {_code_span(link['targetId'])}",
        )


def _version_line(version: Mapping[str, Any]) -> str:
    parts = [f"{version['versionNum']}", version["createdAt"], version["createdBy"], version["changeReason"]]
    return "- " + ", ".join(_escaped(part) for part in parts if part)


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", _CONTROLS.sub(" ", text)).strip() or "\\_"


def _code_span(text: str) -> str:
    """Return text as a code span, with a fence longer than any run of backticks in it."""
    plain = _CONTROLS.sub(" ", text)
    fence = "`" * (max(map(len, _BACKTICKS.findall(plain)), default=0) + 1)
    # CommonMark strips one space from both ends of a code span that has them.
    pad = " " if plain[:1] in {"`", " ", ""} or plain[-1:] in {"`", " "} else ""
    return f"{fence}{pad}{plain}{pad}{fence}"


def _quotation(text: str) -> list[str]:
    return [f"> {line}" if line else ">" for line in _LINE_END.split(text)]


def _json_block(value: Any) -> list[str]:
    """Return data as fenced JSON; strings in it hold no line breaks, so no line can begin with a fence."""
    json_text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return ["```json", *json_text.split("\n"), "```"]
