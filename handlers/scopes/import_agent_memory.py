"""`quipu import agent-memory`: imports the database of agent-memory 0.2 to 0.9, by its column names."""

import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from handlers.scopes import entries
from handlers.scopes.entry_kinds import DEFAULT_PRIORITY, GUIDELINE, JSON_COLUMNS, KINDS, KNOWLEDGE, TOOL, Kind
from handlers.scopes.field_types import MAX_DEPTH, name_key, normal_name
from handlers.scopes.import_document import end_time
from handlers.scopes.import_merge import add_tag
from handlers.scopes.inheritance import GLOBAL, scope_exists, scope_key
from handlers.scopes.locks import Lock, accepts, normal_path
from handlers.scopes.results import Conflict, EntryTag, Organization, Project, Relation, Session, Tag, VersionRow, dumps
from handlers.scopes.tags import id_by_name
from kernel.core.errors import Fault
from kernel.core.text import nested_deeper
from kernel.core.times import utc_time
from kernel.engines.foreign_file import ExternalDatabase, open_external, text_of
from kernel.memories.import_records import Imported, Source
from kernel.store.long_work import Steps, begin_steps, count_step
from kernel.store.transaction import Tx

Row = Mapping[str, Any]
_MAX_SCOPES_NAMED = 10
_MAX_INT64 = 2**63 - 1
_COUNTED_TABLES = (
    "organizations",
    "projects",
    "sessions",
    *(kind.plural for kind in KINDS.values()),
    "entry_tags",
    "entry_relations",
    "conflict_log",
    "file_locks",
)
_READ_TABLES = {*_COUNTED_TABLES, "tags", *(f"{kind.name}_versions" for kind in KINDS.values())}
# Derived from the other tables, or not written by users.
_DERIVED_TABLES = {"entry_embeddings", "_migrations", "__drizzle_migrations"}
_JSON = {"metadata", *JSON_COLUMNS}
_FLAGS = {"is_predefined", "resolved"}
_REQUIRED_TIMES = {"created_at", "started_at", "detected_at", "checked_out_at"}
IMPORTED = "imported"
_UNRELEASABLE = "no agent could release them by their path and holder"
_EXPIRED = "their time is over"


def import_database(file: Source) -> Steps[Imported]:
    """Imports every row that is not here yet, under its own id; existing rows are not changed.

    An entry that was not changed here since an earlier import gets its new versions, and is deactivated if it was
    deactivated there. Raises Fault("invalid") for a file of another program.
    """
    with open_external(file.path, file.copies) as source:
        tables = source.tables()
        if not {kind.plural for kind in KINDS.values()} <= set(tables):
            raise Fault("invalid", f"{file.path.name} is no database of agent-memory: its tables are not there.")
        source.check(dict.fromkeys(_READ_TABLES, ()))
        for kind in KINDS.values():
            source.index(f"{kind.name}_versions", f"{kind.name}_id")
        tx = yield
        begin_steps(tx, sum(source.count(table) for table in _COUNTED_TABLES))
        counts: dict[str, int] = {}
        for table, add in (("organizations", _add_org), ("projects", _add_project), ("sessions", _add_session)):
            counts[table] = yield from _sum_rows(source.rows(table), add)
        missing_counts = Counter[str]()
        remarks: list[str] = []
        older_ids: set[str] = set()
        for kind in KINDS.values():
            counts[kind.plural] = yield from _import_entries(kind, source, remarks, missing_counts, older_ids)
        counts |= yield from _import_tags_and_relations(source, remarks, older_ids)
        add_conflict = partial(_add_row, Conflict, "scopes.import_agent_memory.add_conflict")
        counts["conflicts"] = yield from _sum_rows(source.rows("conflict_log"), add_conflict)
        counts["locks"] = yield from _import_locks(source, remarks)
        unread = (name for name in tables if name not in _READ_TABLES | _DERIVED_TABLES and "_fts" not in name)
        left = sorted(name for name in unread if source.count(name))
    if missing_counts:
        names = ", ".join(sorted(missing_counts)[:_MAX_SCOPES_NAMED])
        count = f"{missing_counts.total()} entries stand in scopes that are not in the file ({names})"
        remarks.append(f"{count}: they are kept, and an import of their export leaves them out.")
    if left:
        remarks.append(f"Left out, since there is nothing like them here: {', '.join(left)}.")
    return Imported(counts, remarks)


def _sum_rows(rows: Iterable[Row], add: Callable[[Tx, Row], int]) -> Steps[int]:
    """Adds rows, each in a step of its own. How many of them are new."""
    new = 0
    for row in rows:
        tx = yield
        count_step(tx)
        new += add(tx, row)
    return new


def _add_row(shape: type[Struct], statement: str, tx: Tx, row: Row) -> int:
    return tx.run(statement, **_columns(tx, row, shape))


def _add_org(tx: Tx, row: Row) -> int:
    columns = _columns(tx, row, Organization)
    return tx.run("scopes.hierarchy.add_org", **columns | {"name": normal_name(columns["name"] or "")})


def _add_project(tx: Tx, row: Row) -> int:
    columns = _columns(tx, row, Project)
    columns |= {**name_key(columns["name"] or ""), "updated_at": _time(row, "updated_at") or columns["created_at"]}
    return tx.run("scopes.import_merge.add_project", **columns)


def _add_session(tx: Tx, row: Row) -> int:
    columns = _columns(tx, row, Session)
    return tx.run("scopes.hierarchy.add_session", **columns | {"status": columns["status"] or "active"})


def _import_entries(
    kind: Kind, source: ExternalDatabase, remarks: list[str], missing_counts: Counter[str], older_ids: set[str]
) -> Steps[int]:
    """Imports the entries of a kind, and notes the ids of those that were here. The number of new entries."""
    new = 0
    for row in source.rows(kind.plural):
        tx = yield
        count_step(tx)
        scope_type, scope_id = text_of(row, "scope_type") or GLOBAL, text_of(row, "scope_id")
        if scope_type != GLOBAL and not scope_exists(tx, scope_type, scope_id):
            missing_counts[scope_key(scope_type, scope_id)] += 1
        number = text_of(row, "id") or ""
        rows = source.rows_with(f"{kind.name}_versions", f"{kind.name}_id", number)
        versions = sorted(rows, key=lambda version: _integer(version, "version_num", 0))
        current = tx.one("scopes.import_agent_memory.current_version", str, id=number)
        if current is None:
            _add_entry(tx, kind, row, versions)
            new += 1
            continue
        older_ids.add(number)
        if not _fast_forward(tx, kind, row, versions, current):
            remarks.append(f"{kind.label} {text_of(row, kind.name_field)} ({number}) was changed here, and is left so.")
    return new


def _add_entry(tx: Tx, kind: Kind, row: Row, versions: Sequence[Row]) -> None:
    number, created_at = text_of(row, "id") or "", _required_time(tx, row, "created_at")
    creator, scope_type = text_of(row, "created_by"), text_of(row, "scope_type") or GLOBAL
    # Every entry needs a current version; without versions it gets an empty version.
    versions = versions or [{"id": tx.new_id(kind.version_id_prefix), "version_num": 1, "created_by": creator}]
    for version in versions:
        _add_version(tx, kind, number, version, created_at)
    entries.add_imported(
        tx,
        kind,
        number,
        normal_name(text_of(row, kind.name_field) or ""),
        scope_type=scope_type,
        scope_id=None if scope_type == GLOBAL else text_of(row, "scope_id"),
        category=text_of(row, "category"),
        version_id=_current_version_id(row, versions),
        now=created_at,
        created_by=creator,
        priority=_priority(kind, row),
        # The time of deactivation is not in the file; the last version is the earliest possible time.
        gone=None if _integer(row, "is_active", 1) else _required_time(tx, versions[-1], "created_at", created_at),
    )


def _fast_forward(tx: Tx, kind: Kind, row: Row, versions: Sequence[Row], current: str) -> bool:
    """Adds the new versions of an entry, or deactivates it if it was there; false if it was changed here."""
    number = text_of(row, "id") or ""
    stored_ids = {version.id for version in tx.all("scopes.entries.versions", VersionRow, id=number, at=None)}
    imported_ids = {text_of(version, "id") for version in versions}
    later = [version for version in versions if text_of(version, "id") not in stored_ids]
    is_deleted = not _integer(row, "is_active", 1) and bool(entries.get(tx, kind, number)[0].is_active)
    # An entry without versions in the file got one here when it was imported.
    if stored_ids - imported_ids if imported_ids else len(stored_ids) > 1:
        return not later and not is_deleted
    for version in later:
        _add_version(tx, kind, number, version, tx.now)
    version_id = _current_version_id(row, versions) if later else current
    if version_id != current:
        changes = {"category": text_of(row, "category"), "priority": _priority(kind, row)}
        tx.run("scopes.entries.set_current_version", id=number, version_id=version_id, **changes)
        entries.record(tx, kind, number, "imported")
    if is_deleted:
        entries.deactivate(tx, kind, number)
    return True


def _priority(kind: Kind, row: Row) -> int | None:
    return _integer(row, "priority", DEFAULT_PRIORITY) if kind is GUIDELINE else None


def _current_version_id(row: Row, versions: Sequence[Row]) -> str | None:
    current_id, ids = text_of(row, "current_version_id"), [text_of(version, "id") for version in versions]
    return current_id if current_id in ids else ids[-1]


def _add_version(tx: Tx, kind: Kind, number: str, row: Row, entry_created_at: str) -> None:
    columns = {field: _column(tx, row, field) for field in kind.version_fields}
    if kind is KNOWLEDGE:
        columns |= {"confidence": _real_number(row, "confidence", 1.0), "valid_until": _end(row)}
    if kind is not TOOL:
        columns["content"] = columns["content"] or ""
    entries.add_version(
        tx,
        number,
        text_of(row, "id"),
        _integer(row, "version_num", 1),
        columns,
        text_of(row, "created_by"),
        text_of(row, "change_reason"),
        at=_required_time(tx, row, "created_at", entry_created_at),
        conflicting=_integer(row, "conflict_flag", 0) != 0,
    )


def _import_tags_and_relations(
    source: ExternalDatabase, remarks: list[str], older_ids: Container[str]
) -> Steps[dict[str, int]]:
    """Imports tags, which are the same by name in any case, attachments, and relations; counts the new rows."""
    ids: dict[str | None, str] = {}
    tags = yield from _sum_rows(source.rows("tags"), partial(_import_tag, ids))
    missing_counts: Counter[str] = Counter()
    marks = yield from _sum_rows(source.rows("entry_tags"), partial(_import_mark, ids, missing_counts, older_ids))
    if missing_counts:
        remarks.append(f"{missing_counts.total()} marks were left out: their tags are not in the file.")
    add_relation = partial(_add_row, Relation, "scopes.relations.add")
    relations = yield from _sum_rows(source.rows("entry_relations"), add_relation)
    return {"tags": tags, "marks": marks, "relations": relations}


def _import_tag(ids: dict[str | None, str], tx: Tx, row: Row) -> int:
    """Adds a tag and notes its id here."""
    columns = _columns(tx, row, Tag)
    name = normal_name(columns["name"] or "")
    tag_id = id_by_name(tx, name)
    category = columns["category"] or "custom"
    ids[columns["id"]] = tag_id or add_tag(tx, {**columns, "name": name, "category": category})
    return tag_id is None


def _import_mark(
    ids: Mapping[str | None, str], missing_counts: Counter[str], older_ids: Container[str], tx: Tx, row: Row
) -> int:
    tag = ids.get(text_of(row, "tag_id"))
    if tag is None:
        missing_counts["tags"] += 1
        return 0
    entry_tag = tx.one("scopes.tags.attach", EntryTag, **_columns(tx, row, EntryTag) | {"tag_id": tag})
    if entry_tag is None:
        return 0
    if entry_tag.entry_type in KINDS:
        if entry_tag.entry_id in older_ids:
            entries.record_attached(tx, entry_tag)
        entries.renew_words(tx, [(KINDS[entry_tag.entry_type].space, entry_tag.entry_id)])
    return 1


def _import_locks(source: ExternalDatabase, remarks: list[str]) -> Steps[int]:
    """Imports the locks that have not expired, unless the file is locked here. The number of new locks.

    A lock is imported only once, so that a second import does not lock a file that was released since.
    """
    tx = yield
    tx.run("scopes.locks.add_expiry_events", now=tx.now)
    tx.run("scopes.locks.delete_expired", now=tx.now)
    left: Counter[str] = Counter()
    new = yield from _sum_rows(source.rows("file_locks"), partial(_import_lock, left))
    remarks += [f"{left[why]} file locks were left out: {why}." for why in (_UNRELEASABLE, _EXPIRED) if left[why]]
    return new


def _import_lock(left: Counter[str], tx: Tx, row: Row) -> int:
    columns = _columns(tx, row, Lock)
    path, expires_at = columns["file_path"] or "", columns["expires_at"]
    if expires_at is not None and expires_at <= tx.now:
        left[_EXPIRED] += 1
        return 0
    if not accepts(path, columns["checked_out_by"] or ""):
        left[_UNRELEASABLE] += 1
        return 0
    columns["file_path"] = normal_path(path)
    fence = tx.one("scopes.import_agent_memory.add_checkout_event", int, **columns, reason=IMPORTED)
    if fence is None:
        return 0
    return tx.run("scopes.import_agent_memory.add_lock", **columns | {"fencing_token": fence})


def _columns(tx: Tx, row: Row, shape: type[Struct]) -> dict[str, Any]:
    return {name: _column(tx, row, name) for name in shape.__struct_fields__}


def _column(tx: Tx, row: Row, name: str) -> Any:
    if name in _REQUIRED_TIMES:
        return _required_time(tx, row, name)
    if name.endswith("_at"):
        return _time(row, name)
    if name in _FLAGS:
        return int(_integer(row, name, 0) != 0)
    return _json(row, name) if name in _JSON else text_of(row, name)


def _integer(row: Row, column: str, default: int) -> int:
    number = _real_number(row, column, default)
    return int(number) if -_MAX_INT64 <= number <= _MAX_INT64 else default


def _real_number(row: Row, column: str, default: float) -> float:
    value = row.get(column)
    return value if isinstance(value, int | float) and math.isfinite(value) else default


def _json(row: Row, column: str) -> str | None:
    """Return a JSON column as compact JSON text; invalid or too deeply nested JSON becomes a string."""
    value = text_of(row, column)
    if value is None:
        return None
    try:
        data = msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return dumps(value)
    return dumps(value if nested_deeper(data, MAX_DEPTH) else data)


def _time(row: Row, column: str) -> str | None:
    """Return a time, in any form of ISO 8601, as stored here; any other text unchanged."""
    value = text_of(row, column)
    return value and (utc_time(value) or value)


def _end(row: Row) -> str | None:
    text = text_of(row, "valid_until")
    return text and end_time(text)


def _required_time(tx: Tx, row: Row, column: str, default: str | None = None) -> str:
    return utc_time(text_of(row, column) or "") or default or tx.now
