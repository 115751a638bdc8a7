"""Reads pages of rows, and writes rows: row, index and history together."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, astuple, replace

from handlers.brain import base
from handlers.brain.index_text import ACTIVE, KIND_OF, is_indexed, memory_source, update_index
from handlers.brain.schemas import Entity, Link, Memory, Note, Resource
from kernel.calls.dialect import Concept, IndexSource
from kernel.core.errors import Fault
from kernel.core.text import spellings
from kernel.store import history
from kernel.store.transaction import Tx

R = TypeVar("R", bound=Struct)
Row = TypeVar("Row", Memory, Entity, Note, Resource, Link)
SOURCE = "claude_code"
MEMORY_TYPE = "permanent"


class _Writes(NamedTuple):
    """The statements that insert and delete a row of a kind, note that it is embedded, and update it."""

    insert: str
    delete: str = ""
    flag_embedded: str = ""
    update: str = ""


WRITES: Mapping[type[Any], _Writes] = {
    Memory: _Writes(
        "brain.repository.insert", "brain.memories.delete", "brain.vectors.flag_memories", "brain.memories.update"
    ),
    Entity: _Writes(
        "brain.entities.insert", "brain.entities.delete", "brain.vectors.flag_entities", "brain.entities.update"
    ),
    Note: _Writes("brain.notes.insert", "brain.notes.delete", "brain.vectors.flag_notes"),
    Resource: _Writes("brain.resources.insert", "brain.resources.delete", "brain.vectors.flag_resources"),
    Link: _Writes("brain.links.insert"),
}


class Draft(NamedTuple):
    """A memory to write; `before` and `reason` go into its first history event."""

    db: str
    row: Memory
    before: str | None = None
    reason: str | None = None


class Successor(NamedTuple):
    """The replacement of a memory: the old memory's status, the history operation, and the new memory's id."""

    status: str
    operation: str
    id: str | None
    reason: str


def read_page(tx: Tx, statement: str, kind: type[R], request: Any, *words: str, **filters: Any) -> list[R]:
    """Return a page of rows that pass the filters of a request; raises Fault for an unknown database, field or word."""
    base.space(tx, request.db)
    base.check_fields(request.fields, kind)
    forms = {"tags": spellings(request.tags or ()) or None}
    for name, names in (("category", "categories"), ("project_id", "projects")):
        word: str | None = getattr(request, name, None)
        forms[names] = None if word is None else spellings([word])
    rows = tx.all(statement, kind, **{**asdict(request), **forms, **filters})
    for word in () if rows or request.offset else words:  # imported rows may have others
        base.check_word(word, getattr(request, word))
    base.keep_fields(request.fields, rows)
    return rows


def with_changes(before: Row, changes: Mapping[str, Any]) -> tuple[dict[str, Any], Row, str]:
    """Return the changes as columns, the row with them and the reason that names them; raises Fault if there are none,
    or if the row has these values. None leaves a value as it is.
    """
    columns = {name: base.stored(value) for name, value in changes.items()}
    fields = {name: value for name, value in columns.items() if value is not None}
    if not fields:
        raise Fault("invalid", "No fields to update", base.NO_PREFIX)
    after = replace(before, **fields)
    if after == before:
        raise Fault("invalid", "No fields to update: these values are stored already", base.NO_PREFIX)
    return columns, after, f"Changed {', '.join(fields)}"


def update(tx: Tx, db: str, before: Row, changes: Mapping[str, Any]) -> Row:
    """Changes a memory or an entity: row, index and history; None leaves a value as it is. Return the row."""
    kind, here = KIND_OF[type(before)], f"brain:{db}"
    columns, after, reason = with_changes(before, changes)
    # The index is touched only if its content changes, because embedding is the expensive part of a write.
    is_active = is_indexed(after)
    new, old = (kind.source(here, row)._replace(concept=Concept()) for row in (after, before))
    is_reindexed = (is_active, new) != (is_indexed(before), old)
    has_embedding, model = base.embedding_columns(tx) if is_reindexed and is_active else (None, None)
    more = {"has_embedding": has_embedding, "embedding_model": model, "now": tx.now}
    row = tx.one(WRITES[kind.row].update, kind.row, db=db, id=before.id, **columns, **more) or before
    source = kind.source(here, row)
    text = source.text if is_active else None  # as for a memory that is superseded or corrected
    history.append(tx, here, row.id, "updated", before=old.text, after=text, reason=reason)
    if is_reindexed:
        update_index(tx, source, active=is_active)
    return row


def new_memory(tx: Tx, request: Struct | None = None, **values: Any) -> Memory:
    """Return a new active memory of the values, else of the fields of the request, not written yet."""
    usage = {"access_count": 0, "decay_score": 1.0, "confidence": 1.0}
    origin = {
        "id": values.get("id") or base.new_id(tx, "mem"),
        "source": SOURCE,
        "status": ACTIVE,
        "memory_type": MEMORY_TYPE,
    }
    times = {"created_at": tx.now, "updated_at": tx.now}
    return base.new_row(Memory, request, **{**origin, **usage, **base.embedding(tx), **times, **values})


def add(tx: Tx, drafts: Sequence[Draft]) -> None:
    """Inserts memories with one statement, indexes each and appends its first history event."""
    if not drafts:
        return
    tx.run("brain.repository.insert", rows=[(draft.db, *astuple(draft.row)) for draft in drafts])
    for db, row, before, reason in drafts:
        here = f"brain:{db}"
        history.append(tx, here, row.id, "created", before=before, after=row.content, reason=reason)
        update_index(tx, memory_source(here, row))


def insert_new(tx: Tx, db: str, rows: Sequence[Row]) -> list[Row]:
    """Inserts rows of one kind without history and index; return those with an id, and with an id that was free."""
    rows = [row for row in rows if row.id]
    if not rows:
        return []
    place = () if isinstance(rows[0], Note | Resource) else (db,)  # these have their database in the row
    values = [(*place, *astuple(row)) for row in rows]
    new_ids = set(tx.all(WRITES[type(rows[0])].insert, str, rows=values))
    return [row for row in rows if row.id in new_ids]


def create(tx: Tx, db: str, row: Row) -> Row:
    """Writes a new row, its history and its index document."""
    here = f"brain:{db}"
    source = KIND_OF[type(row)].source(here, row)
    insert_new(tx, db, [row])
    history.append(tx, here, row.id, "created", after=_history_text(row, source))
    update_index(tx, source)
    return row


def remove(tx: Tx, db: str, row: Row, reason: str | None = None) -> None:
    """Deletes a row and takes it out of the index; its history stays."""
    here = f"brain:{db}"
    source = KIND_OF[type(row)].source(here, row)
    tx.run(WRITES[type(row)].delete, db=db, id=row.id)
    history.append(tx, here, row.id, "deleted", before=_history_text(row, source), reason=reason)
    update_index(tx, source, active=False)


def _history_text(row: Row, source: IndexSource) -> str:
    return row.content if isinstance(row, Note) else source.text


def get(tx: Tx, kind: type[Row], db: str, key: str) -> Row:
    row = tx.one(KIND_OF[kind].get, kind, db=db, id=key)
    if row is None:
        raise base.not_found(kind.__name__, key, base.databases_with(tx, KIND_OF[kind].get, key))
    return row


def get_many(tx: Tx, db: str, ids: Sequence[str]) -> list[Memory]:
    return tx.all("brain.repository.get_many", Memory, db=db, ids=ids)


def retire(tx: Tx, db: str, row: Memory, successor: Successor) -> Memory:
    status, operation, by, reason = successor
    here = f"brain:{db}"
    tx.run("brain.repository.set_status", db=db, id=row.id, status=status, superseded_by=by, now=tx.now)
    history.append(tx, here, row.id, operation, before=row.content, reason=reason)
    retired_row = replace(row, status=status, superseded_by=by, updated_at=tx.now)
    update_index(tx, memory_source(here, retired_row), active=False)
    return retired_row


def link_successor(
    tx: Tx, db: str, new: str, old: str, relationship: str, *, context: str | None = None, metadata: str | None = None
) -> str:
    key = base.new_id(tx, "lnk")
    tx.run(
        "brain.repository.link",
        id=key,
        db=db,
        new=new,
        old=old,
        relationship=relationship,
        context=context,
        metadata=metadata,
        now=tx.now,
    )
    history.append(tx, f"brain:{db}", key, "created", after=f"{new} {relationship} {old}", reason=context)
    return key


_REASON = "supersede_reason"  # the key of the original


def check_not_replaced(tx: Tx, db: str, row: Memory) -> None:
    """Raises Fault("conflict") for a memory with a successor, naming it: two successors would be two truths."""
    successor = row.superseded_by if row.status != ACTIVE else None
    if successor and tx.one("brain.repository.get", Memory, db=db, id=successor):
        raise Fault("conflict", f"Memory '{row.id}' is already superseded by '{row.superseded_by}'")


def inherited_metadata(row: Memory, reason: str | None = None) -> str | None:
    """Return the metadata of a successor: those of the memory, with the reason of this change instead of an earlier
    one.
    """
    try:
        metadata = msgspec.json.decode(row.metadata or "{}", type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return base.json_text({_REASON: reason}) if reason else row.metadata
    if reason is None and _REASON not in metadata:
        return row.metadata
    rest = {key: value for key, value in metadata.items() if key != _REASON}
    if reason is not None:
        rest[_REASON] = msgspec.Raw(msgspec.json.encode(reason))
    return base.json_text(rest) if rest else None


def free_predecessors(tx: Tx, db: str, key: str) -> None:
    """Takes a memory that is about to be deleted from those it replaced, which may then be replaced again."""
    for old in tx.all("brain.repository.free_predecessors", Memory, db=db, id=key, now=tx.now):
        history.append(tx, f"brain:{db}", old.id, "updated", before=old.content, reason=f"Deleted {key}")
