"""Imports the tags, relations, conflicts and file locks of an agent-memory database."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from handlers.scopes.field_types import normal_name
from handlers.scopes.import_coercion import Row, integer, json_column, required_time, text, time_or_text
from handlers.scopes.lock_paths import accepts, normal_path
from handlers.scopes.tags import id_by_name
from kernel.engines.foreign_file import ExternalDatabase
from kernel.store.long_work import Steps
from kernel.store.progress import count_step
from kernel.store.transaction import Tx

IMPORTED = "imported"
_UNRELEASABLE = "no agent could release them by their path and holder"
_EXPIRED = "their time is over"


def sum_rows(rows: Iterable[Row], add: Callable[[Tx, Row], int]) -> Steps[int]:
    """Adds rows, each in a step of its own. How many of them are new."""
    new = 0
    for row in rows:
        tx = yield
        count_step(tx)
        new += add(tx, row)
    return new


def import_tags_and_relations(source: ExternalDatabase, remarks: list[str]) -> Steps[dict[str, int]]:
    """Imports tags, their attachments, and relations. The number of new rows of each.

    A tag is identified by its name in any case.
    """
    ids: dict[str | None, str] = {}
    tags = yield from sum_rows(source.rows("tags"), partial(_import_tag, ids))
    lost: Counter[str] = Counter()
    marks = yield from sum_rows(source.rows("entry_tags"), partial(_import_mark, ids, lost))
    if lost:
        remarks.append(f"{lost.total()} marks were left out: their tags are not in the file.")
    relations = yield from sum_rows(source.rows("entry_relations"), _add_relation)
    return {"tags": tags, "marks": marks, "relations": relations}


def _import_tag(ids: dict[str | None, str], tx: Tx, row: Row) -> int:
    """Adds a tag and notes its id here."""
    name = normal_name(text(row, "name") or "")
    known = id_by_name(tx, name)
    ids[text(row, "id")] = known or _add_tag(tx, row, name)
    return known is None


def _import_mark(ids: Mapping[str | None, str], lost: Counter[str], tx: Tx, row: Row) -> int:
    tag = ids.get(text(row, "tag_id"))
    if tag is None:
        lost["tags"] += 1
        return 0
    return _attach_tag(tx, row, tag)


def _add_tag(tx: Tx, row: Row, name: str) -> str:
    columns = {
        "name": name,
        "fold": name.casefold(),
        "category": text(row, "category") or "custom",
        "predefined": int(integer(row, "is_predefined", 0) != 0),
        "description": text(row, "description"),
        "now": required_time(tx, row, "created_at"),
    }
    number, fresh = text(row, "id"), tx.new_id("tag")
    kept = number and tx.one("scopes.import_tags.add_tag", str, id=number, **columns)
    return kept or tx.one("scopes.import_tags.add_tag", str, id=fresh, **columns) or fresh


def _attach_tag(tx: Tx, row: Row, tag_id: str) -> int:
    return tx.run(
        "scopes.import_agent_memory_tags.add_tag",
        id=text(row, "id"),
        type=text(row, "entry_type"),
        entry_id=text(row, "entry_id"),
        tag_id=tag_id,
        now=required_time(tx, row, "created_at"),
    )


def _add_relation(tx: Tx, row: Row) -> int:
    return tx.run(
        "scopes.import_agent_memory_tags.add_relation",
        id=text(row, "id"),
        source_type=text(row, "source_type"),
        source_id=text(row, "source_id"),
        target_type=text(row, "target_type"),
        target_id=text(row, "target_id"),
        relation_type=text(row, "relation_type"),
        now=required_time(tx, row, "created_at"),
        created_by=text(row, "created_by"),
    )


def add_conflict(tx: Tx, row: Row) -> int:
    """Adds an entry of the log of conflicts."""
    return tx.run(
        "scopes.import_agent_memory_tags.add_conflict",
        id=text(row, "id"),
        entry_type=text(row, "entry_type"),
        entry_id=text(row, "entry_id"),
        version_a_id=text(row, "version_a_id"),
        version_b_id=text(row, "version_b_id"),
        now=required_time(tx, row, "detected_at"),
        resolved=int(integer(row, "resolved", 0) != 0),
        resolution=text(row, "resolution"),
        resolved_at=time_or_text(row, "resolved_at"),
        resolved_by=text(row, "resolved_by"),
    )


def import_locks(source: ExternalDatabase, remarks: list[str]) -> Steps[int]:
    """Imports the locks that have not expired, unless the file is locked here. The number of new locks.

    A lock is imported only once, so that a second import does not lock a file that was released since.
    """
    tx = yield
    tx.run("scopes.locks.add_expiry_events", now=tx.now)
    tx.run("scopes.locks.delete_expired", now=tx.now)
    left: Counter[str] = Counter()
    new = yield from sum_rows(source.rows("file_locks"), partial(_import_lock, left))
    remarks += [f"{left[why]} file locks were left out: {why}." for why in (_UNRELEASABLE, _EXPIRED) if left[why]]
    return new


def _import_lock(left: Counter[str], tx: Tx, row: Row) -> int:
    expires_at = time_or_text(row, "expires_at")
    if expires_at is not None and expires_at <= tx.now:
        left[_EXPIRED] += 1
    elif not accepts(text(row, "file_path") or "", text(row, "checked_out_by") or ""):
        left[_UNRELEASABLE] += 1
    else:
        return _add_lock(tx, row, expires_at)
    return 0


def _add_lock(tx: Tx, row: Row, expires_at: str | None) -> int:
    path, holder, since = (
        normal_path(text(row, "file_path") or ""),
        text(row, "checked_out_by"),
        required_time(tx, row, "checked_out_at"),
    )
    event = tx.one(
        "scopes.import_agent_memory_tags.add_checkout_event",
        int,
        path=path,
        holder=holder,
        now=since,
        reason=IMPORTED,
    )
    if event is None:
        return 0
    return tx.run(
        "scopes.import_agent_memory_tags.add_lock",
        id=text(row, "id"),
        path=path,
        holder=holder,
        session_id=text(row, "session_id"),
        project_id=text(row, "project_id"),
        now=since,
        expires_at=expires_at,
        metadata=json_column(row, "metadata"),
        fence=event,
    )
