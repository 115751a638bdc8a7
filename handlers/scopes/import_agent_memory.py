"""`quipu import agent-memory`: imports the database of agent-memory 0.2 to 0.9, by its column names."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from handlers.scopes import entries
from handlers.scopes.entry_kinds import GUIDELINE, KNOWLEDGE, TOOL, Kind
from handlers.scopes.field_types import normal_name
from handlers.scopes.import_agent_memory_tags import add_conflict, import_locks, import_tags_and_relations, sum_rows
from handlers.scopes.import_coercion import Row, integer, json_column, real_number, required_time, text, time_or_text
from handlers.scopes.import_entries import DEFAULT_PRIORITY, VERSION_COLUMNS
from handlers.scopes.inheritance import GLOBAL, scope_key
from handlers.scopes.results import VersionRow
from kernel.core.errors import Fault
from kernel.engines.foreign_file import ExternalDatabase, open_external
from kernel.memories.import_records import Imported, Source
from kernel.search import index
from kernel.store import history
from kernel.store.long_work import Steps
from kernel.store.progress import begin_steps, count_step
from kernel.store.transaction import Tx

_MAX_SCOPES_NAMED = 10
KINDS = (TOOL, GUIDELINE, KNOWLEDGE)
_JSON_COLUMNS = {"parameters", "examples"}
_COUNTED_TABLES = (
    "organizations",
    "projects",
    "sessions",
    *(kind.plural for kind in KINDS),
    "entry_tags",
    "entry_relations",
    "conflict_log",
    "file_locks",
)
_READ_TABLES = {*_COUNTED_TABLES, "tags", *(f"{kind.name}_versions" for kind in KINDS)}
# Derived from the other tables, or not written by users.
_DERIVED_TABLES = {"entry_embeddings", "_migrations", "__drizzle_migrations"}


def import_database(given: Source) -> Steps[Imported]:
    """Imports every row that is not here yet, under its own id; existing rows are not changed.

    An entry that was not changed here since an earlier import gets its new versions, and is deactivated if it was
    deactivated there. Raises Fault("invalid") for a file of another program.
    """
    with open_external(given.path, given.copies) as source:
        tables = source.tables()
        if not {kind.plural for kind in KINDS} <= set(tables):
            raise Fault("invalid", f"{given.path.name} is no database of agent-memory: its tables are not there.")
        source.check(dict.fromkeys(_READ_TABLES, ()))
        for kind in KINDS:
            source.index(f"{kind.name}_versions", f"{kind.name}_id")
        tx = yield
        begin_steps(tx, sum(source.count(table) for table in _COUNTED_TABLES))
        counts: dict[str, int] = {}
        for table, add in _SCOPES.items():
            counts[table] = yield from sum_rows(source.rows(table), add)
        lost = Counter[str]()
        remarks: list[str] = []
        for kind in KINDS:
            counts[kind.plural] = yield from _import_entries(kind, source, remarks, lost)
        counts |= yield from import_tags_and_relations(source, remarks)
        counts["conflicts"] = yield from sum_rows(source.rows("conflict_log"), add_conflict)
        counts["locks"] = yield from import_locks(source, remarks)
        left = sorted(name for name in tables if _is_unread(name) and source.count(name))
    remarks += _lost_remarks(lost)
    if left:
        remarks.append(f"Left out, since there is nothing like them here: {', '.join(left)}.")
    return Imported(counts, remarks)


def _lost_scope(tx: Tx, row: Row) -> str | None:
    """Return the scope of an entry if it does not exist."""
    name, number = text(row, "scope_type") or GLOBAL, text(row, "scope_id")
    exists = name == GLOBAL or tx.one("scopes.inheritance.exists", int, type=name, id=number)
    return None if exists else scope_key(name, number)


def _lost_remarks(lost: Counter[str]) -> list[str]:
    """Return a remark if the scopes of some entries do not exist."""
    names = ", ".join(sorted(lost)[:_MAX_SCOPES_NAMED])
    count = f"{lost.total()} entries stand in scopes that are not in the file ({names})"
    return [f"{count}: they are kept, and an import of their export leaves them out."] if lost else []


def _is_unread(table: str) -> bool:
    return table not in _READ_TABLES and table not in _DERIVED_TABLES and "_fts" not in table


def _add_org(tx: Tx, row: Row) -> int:
    return tx.run(
        "scopes.import_scopes.add_org",
        id=text(row, "id"),
        name=normal_name(text(row, "name") or ""),
        now=required_time(tx, row, "created_at"),
        metadata=json_column(row, "metadata"),
    )


def _add_project(tx: Tx, row: Row) -> int:
    name, created = normal_name(text(row, "name") or ""), required_time(tx, row, "created_at")
    return tx.run(
        "scopes.import_scopes.add_project",
        id=text(row, "id"),
        org_id=text(row, "org_id"),
        name=name,
        fold=name.casefold(),
        description=text(row, "description"),
        root_path=text(row, "root_path"),
        now=created,
        updated_at=required_time(tx, row, "updated_at", created),
        metadata=json_column(row, "metadata"),
    )


def _add_session(tx: Tx, row: Row) -> int:
    return tx.run(
        "scopes.import_scopes.add_session",
        id=text(row, "id"),
        project_id=text(row, "project_id"),
        name=text(row, "name"),
        purpose=text(row, "purpose"),
        agent_id=text(row, "agent_id"),
        status=text(row, "status") or "active",
        now=required_time(tx, row, "started_at"),
        ended_at=time_or_text(row, "ended_at"),
        metadata=json_column(row, "metadata"),
    )


_SCOPES: Mapping[str, Callable[[Tx, Row], int]] = MappingProxyType(
    {"organizations": _add_org, "projects": _add_project, "sessions": _add_session}
)


def _import_entries(kind: Kind, source: ExternalDatabase, remarks: list[str], lost: Counter[str]) -> Steps[int]:
    new = 0
    for row in source.rows(kind.plural):
        tx = yield
        count_step(tx)
        if scope := _lost_scope(tx, row):
            lost[scope] += 1
        number = text(row, "id") or ""
        rows = source.rows_with(f"{kind.name}_versions", f"{kind.name}_id", number)
        versions = sorted(rows, key=lambda one: integer(one, "version_num", 0))
        here = tx.one("scopes.import_agent_memory.current_version", str, id=number)
        if here is None:
            _add_entry(tx, kind, row, versions)
            new += 1
        elif not _fast_forward(tx, kind, row, versions, here):
            remarks.append(f"{kind.label} {text(row, kind.name_field)} ({number}) was changed here, and is left so.")
    return new


def _add_entry(tx: Tx, kind: Kind, row: Row, versions: Sequence[Row]) -> None:
    number, created_at = text(row, "id") or "", required_time(tx, row, "created_at")
    name = normal_name(text(row, kind.name_field) or "")
    creator, scope_type = text(row, "created_by"), text(row, "scope_type") or "global"
    # Every entry needs a current version; one without versions gets an empty one.
    kept = versions or [{"id": tx.new_id(kind.version_id_prefix), "version_num": 1, "created_by": creator}]
    for version in kept:
        _add_version(tx, kind, number, version, created_at)
    tx.run(
        "scopes.import_entries.add",
        id=number,
        kind=kind.name,
        scope_type=scope_type,
        scope_id=None if scope_type == "global" else text(row, "scope_id"),
        name=name,
        category=text(row, "category"),
        version_id=_current_version_id(row, kept),
        now=created_at,
        created_by=creator,
        priority=integer(row, "priority", DEFAULT_PRIORITY) if kind is GUIDELINE else None,
        # The time of deactivation is not in the file; the last version is the earliest possible time.
        gone=None if integer(row, "is_active", 1) else required_time(tx, kept[-1], "created_at", created_at),
    )
    entries.mark_imported(tx, kind, number, name)
    _record(tx, kind, number)


def _fast_forward(tx: Tx, kind: Kind, row: Row, versions: Sequence[Row], current: str) -> bool:
    """Adds the new versions of an entry, or deactivates it if it was there; false if it was changed here."""
    number = text(row, "id") or ""
    stored_ids = {version.id for version in tx.all("scopes.entries.versions", VersionRow, id=number, at=None)}
    imported_ids = {text(version, "id") for version in versions}
    later = [version for version in versions if text(version, "id") not in stored_ids]
    gone = not integer(row, "is_active", 1) and bool(entries.get(tx, kind, number)[0].is_active)
    # An entry without versions in the file got one here when it was imported.
    if stored_ids - imported_ids if imported_ids else len(stored_ids) > 1:
        return not later and not gone
    for version in later:
        _add_version(tx, kind, number, version, tx.now)
    moved = _current_version_id(row, versions) if later else current
    if moved != current:
        tx.run(
            "scopes.entries.set_current_version",
            id=number,
            version_id=moved,
            category=text(row, "category"),
            priority=integer(row, "priority", DEFAULT_PRIORITY) if kind is GUIDELINE else None,
        )
        _record(tx, kind, number)
    if gone:
        entries.deactivate(tx, kind, number)
    return True


def _current_version_id(row: Row, versions: Sequence[Row]) -> str | None:
    named = text(row, "current_version_id")
    return named if any(text(one, "id") == named for one in versions) else text(versions[-1], "id")


def _add_version(tx: Tx, kind: Kind, number: str, row: Row, entry_created_at: str) -> None:
    columns: dict[str, Any] = {
        field: json_column(row, field) if field in _JSON_COLUMNS else text(row, field) for field in kind.version_fields
    }
    if kind is KNOWLEDGE:
        columns |= {"confidence": real_number(row, "confidence", 1.0), "valid_until": time_or_text(row, "valid_until")}
    if kind is not TOOL:
        columns["content"] = columns["content"] or ""
    tx.run(
        "scopes.entries.add_version",
        id=text(row, "id"),
        entry_id=number,
        version_num=integer(row, "version_num", 1),
        now=required_time(tx, row, "created_at", entry_created_at),
        created_by=text(row, "created_by"),
        change_reason=text(row, "change_reason"),
        conflict_flag=int(integer(row, "conflict_flag", 0) != 0),
        **{**dict.fromkeys(VERSION_COLUMNS), **columns},
    )


def _record(tx: Tx, kind: Kind, number: str) -> None:
    row, current = entries.get(tx, kind, number)
    indexed = entries.entry_text(row, current)
    history.append(tx, kind.space, number, "imported", after=indexed if row.is_active else None)
    if row.is_active:
        index.put(tx, kind.space, number, indexed, scope=entries.entry_scope_key(row))
