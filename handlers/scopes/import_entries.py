"""Writes the entries of an import: creates new ones, and merges the others into existing entries."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from handlers.scopes import entries
from handlers.scopes.entry_kinds import GUIDELINE, Kind
from handlers.scopes.import_document import ParsedEntry, VersionItem
from handlers.scopes.import_scopes import Problem
from handlers.scopes.import_tags import Tagging
from handlers.scopes.inheritance import scope_key
from handlers.scopes.results import VersionRow, dumps
from kernel.search import index
from kernel.store import history
from kernel.store.transaction import Tx

Strategy = Literal["skip", "update", "replace", "error"]
UPDATE_REASON = "Imported update"  # changeReason of the original
DEFAULT_PRIORITY = 50
_JSON_COLUMNS = {"parameters", "examples"}
VERSION_COLUMNS = {field for field in VersionRow._fields if field in VersionItem.__struct_fields__} - {
    "id",
    "version_num",
    "created_at",
    "created_by",
    "change_reason",
    "conflict_flag",
}


class ExistingEntry(NamedTuple):
    """An entry of this store."""

    id: str
    kind: str
    scope: str
    name: str
    active: int
    created_at: str


class _Latest(NamedTuple):
    id: str
    version_num: int
    created_at: str


class ImportState(Struct):
    """The options of an import, and its progress.

    `kept_ids` are the entry ids of the document that are to be kept, `existing_entries` the entries that have them
    here, `matched_ids` the entries that an entry of the document was matched with, `new_ids` maps kind and id in the
    document to the id here, `used_version_ids` are the version ids that are taken, and `unchanged` are plural and id of
    the entries that were the same already.
    """

    strategy: Strategy
    imported_by: str | None
    generate_ids: bool
    kept_ids: set[str]
    existing_entries: dict[str, ExistingEntry]
    used_version_ids: set[str]
    counts: dict[str, dict[str, int]]
    conflicts: list[Problem]
    problems: list[Problem]
    matched_ids: set[str]
    new_ids: dict[tuple[str, str], str]
    taggings: list[Tagging]
    unchanged: list[tuple[str, str]]


def create_entry(tx: Tx, state: ImportState, one: ParsedEntry) -> str:
    """Creates an entry with all its versions. Its id: that of the document if it is free."""
    kind, item = one.kind, one.item
    kept = item.id if item.id in state.kept_ids and item.id not in state.existing_entries else None
    number = kept or tx.new_id(kind.id_prefix)
    created_at = one.created_at or tx.now
    # Versions first: the row of the entry refers to its current version.
    current = ""
    for version in one.versions:
        columns = _version_columns(kind, version)
        added = _add_version(
            tx, state, one, number, version, columns, version.created_at or created_at, _author(state, version)
        )
        current = added if version is one.current else current
    deactivated_at = None if item.is_active is not False else one.deactivated_at or tx.now
    tx.run(
        "scopes.import_entries.add",
        id=number,
        kind=kind.name,
        scope_type=one.scope_type,
        scope_id=one.scope_id,
        name=one.name,
        category=item.category,
        priority=_priority(kind, item.priority),
        version_id=current,
        gone=deactivated_at,
        now=created_at,
        created_by=_author(state, item),
    )
    entries.mark_imported(tx, kind, number, one.name)
    state.existing_entries[number] = ExistingEntry(
        number, kind.name, scope_key(one.scope_type, one.scope_id), one.name, deactivated_at is None, created_at
    )
    _record(tx, kind, None, entries.get(tx, kind, number))
    return number


def merge_entry(tx: Tx, state: ImportState, one: ParsedEntry, number: str) -> bool:
    """Merges an entry of the document into an existing one, in a new version if a field differs. Whether it changed.

    If the document holds the newest version of this store and later ones, the later ones are added unchanged.
    `replace` also clears the fields that the document leaves out.
    """
    kind, item = one.kind, one.item
    before = entries.get(tx, kind, number)
    version_id = _fast_forward(tx, state, one, number)
    if version_id is None:
        stored = {field: getattr(before[1], field) for field in kind.version_fields}
        columns = _version_columns(kind, one.current)
        if state.strategy == "update":
            columns |= {field: stored[field] for field in kind.version_fields if getattr(one.current, field) is None}
        version_id = before[1].id
        if any(columns[field] != stored[field] for field in kind.version_fields):
            later = VersionItem(version_num=_latest(tx, number).version_num + 1, change_reason=UPDATE_REASON)
            version_id = _add_version(tx, state, one, number, later, columns, tx.now, state.imported_by)
    replace = state.strategy == "replace"
    tx.run(
        "scopes.import_entries.set_current_version",
        id=number,
        version_id=version_id,
        whole=replace,
        category=item.category,
        priority=_priority(kind, item.priority) if replace else item.priority if kind is GUIDELINE else None,
        stays=item.is_active is None,
        gone=None if item.is_active is not False else one.deactivated_at or tx.now,
    )
    after = entries.get(tx, kind, number)
    entries.keep_replaced(tx, before[0], after[0])
    if after != before:
        _record(tx, kind, before, after)
    return after != before


def _fast_forward(tx: Tx, state: ImportState, one: ParsedEntry, number: str) -> str | None:
    """Adds the later versions if the document continues the history of this store. The id of the current version."""
    latest = _latest(tx, number)
    if one.item.id != number or all(version.id != latest.id for version in one.versions):
        return None
    current = None
    for version in one.versions:
        if (version.version_num or 0) > latest.version_num:
            columns = _version_columns(one.kind, version)
            added = _add_version(
                tx, state, one, number, version, columns, version.created_at or tx.now, version.created_by
            )
            current = added if version is one.current else current
    return current


def _author(state: ImportState, item: VersionItem) -> str | None:
    return state.imported_by if item.created_by is None else item.created_by


def _latest(tx: Tx, number: str) -> _Latest:
    return tx.one("scopes.entries.latest", _Latest, id=number) or _Latest("", 0, "")


def _add_version(
    tx: Tx,
    state: ImportState,
    one: ParsedEntry,
    number: str,
    item: VersionItem,
    columns: Mapping[str, Any],
    at: str,
    creator: str | None,
) -> str:
    """Adds a version. Its id: that of the document if it is free."""
    kept = item.id if item.id is not None and not state.generate_ids and item.id not in state.used_version_ids else None
    version_id = kept or tx.new_id(one.kind.version_id_prefix)
    state.used_version_ids.add(version_id)
    tx.run(
        "scopes.entries.add_version",
        id=version_id,
        entry_id=number,
        version_num=item.version_num,
        now=at,
        created_by=creator,
        change_reason=item.change_reason,
        conflict_flag=item.conflict_flag,
        **columns,
    )
    return version_id


def _version_columns(kind: Kind, item: VersionItem) -> dict[str, Any]:
    own = {field: getattr(item, field) for field in kind.version_fields}
    if "confidence" in own and own["confidence"] is None:
        own["confidence"] = 1.0
    columns = {field: dumps(value) if field in _JSON_COLUMNS else value for field, value in own.items()}
    return {**dict.fromkeys(VERSION_COLUMNS), **columns}


def _priority(kind: Kind, given: int | None) -> int | None:
    return None if kind is not GUIDELINE else DEFAULT_PRIORITY if given is None else given


def _record(tx: Tx, kind: Kind, before: entries.EntryPair | None, after: entries.EntryPair) -> None:
    """Records the change in the history and the index, which holds active entries only."""
    row, text = after[0], entries.entry_text(*after)
    old = None if before is None else entries.entry_text(*before)
    history.append(tx, kind.space, row.id, "imported", before=old, after=text if row.is_active else None)
    if row.is_active:
        index.put(tx, kind.space, row.id, text, scope=entries.entry_scope_key(row))
    elif before is not None:
        index.drop(tx, kind.space, row.id)
