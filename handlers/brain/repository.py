"""Reads pages of rows, and writes memories: row, index and history together."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, astuple, replace

from handlers.brain.base import (
    NO_PREFIX,
    check_fields,
    check_filters,
    embedding_columns,
    json_text,
    keep_fields,
    new_id,
    not_found,
    space,
    stored,
)
from handlers.brain.index_text import ACTIVE, KINDS, Indexed, memory_source, update_index
from handlers.brain.schemas import Memory
from kernel.core.errors import Fault
from kernel.core.text import spellings
from kernel.store import history
from kernel.store.transaction import Tx

R = TypeVar("R", bound=Struct)
SOURCE = "claude_code"
MEMORY_TYPE = "permanent"


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
    space(tx, request.db)
    check_fields(request.fields, kind)
    forms = {"tags": spellings(request.tags or ()) or None}
    for name, names in (("category", "categories"), ("project_id", "projects")):
        word: str | None = getattr(request, name, None)
        forms[names] = None if word is None else spellings([word])
    rows = tx.all(statement, kind, **{**asdict(request), **forms, **filters})
    if not request.offset:
        check_filters(rows, **{word: getattr(request, word) for word in words})
    keep_fields(request.fields, rows)
    return rows


def given_changes(changes: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the changes as columns and the reason that names them; raises Fault if there are none."""
    fields = [name for name, value in changes.items() if value is not None]
    if not fields:
        raise Fault("invalid", "No fields to update", NO_PREFIX)
    return {name: stored(value) for name, value in changes.items()}, f"Changed {', '.join(fields)}"


def update(tx: Tx, name: Indexed, db: str, before: Any, changes: Mapping[str, Any]) -> Any:
    """Changes a memory or an entity: row, index and history; None leaves a value as it is. Return the row."""
    kind, here = KINDS[name], f"brain:{db}"
    columns, reason = given_changes(changes)
    after = replace(before, **{name: value for name, value in columns.items() if value is not None})
    if after == before:
        raise Fault("invalid", "No fields to update: these values are stored already", NO_PREFIX)
    # The index is touched only if its content changes, because embedding is the expensive part of a write.
    is_reindexed = (after.status, kind.source(here, after)) != (before.status, kind.source(here, before))
    has_embedding, model = embedding_columns(tx) if is_reindexed and after.status == ACTIVE else (None, None)
    more = {"has_embedding": has_embedding, "embedding_model": model, "now": tx.now}
    row = tx.one(kind.update, kind.row, db=db, id=before.id, **columns, **more) or before
    source = kind.source(here, row)
    text = source.text if row.status == ACTIVE else None  # as for a memory that is superseded or corrected
    old = kind.source(here, before).text
    history.append(tx, here, row.id, "updated", before=old, after=text, reason=reason)
    if is_reindexed:
        update_index(tx, source, active=row.status == ACTIVE)
    return row


def new_memory(
    tx: Tx,
    content: str,
    category: str,
    *,
    subcategory: str | None = None,
    tags: str | None = None,
    project_id: str | None = None,
    importance: int = 3,
    confidence: float = 1.0,
    metadata: str | None = None,
    valid_until: str | None = None,
) -> Memory:
    """Return a new active memory with the contract's defaults, not written yet; `tags` and `metadata` are JSON text."""
    usage = (None, 0, None, valid_until, 1.0)  # last access, access count, validity, decay score
    return Memory(
        new_id(tx, "mem"),
        content,
        category,
        subcategory,
        tags,
        SOURCE,
        "active",
        None,
        project_id,
        importance,
        MEMORY_TYPE,
        *usage,
        confidence,
        *embedding_columns(tx),
        metadata,
        tx.now,
        tx.now,
    )


def add(tx: Tx, drafts: Sequence[Draft]) -> None:
    """Inserts memories with one statement, indexes each and appends its first history event."""
    if not drafts:
        return
    tx.run("brain.repository.insert", rows=[(draft.db, *astuple(draft.row)) for draft in drafts])
    for db, row, before, reason in drafts:
        here = f"brain:{db}"
        history.append(tx, here, row.id, "created", before=before, after=row.content, reason=reason)
        update_index(tx, memory_source(here, row))


def get(tx: Tx, db: str, key: str) -> Memory:
    row = tx.one("brain.repository.get", Memory, db=db, id=key)
    if row is None:
        raise not_found("Memory", key)
    return row


def exists(tx: Tx, db: str, key: str) -> bool:
    return tx.one("brain.repository.get", Memory, db=db, id=key) is not None


def get_many(tx: Tx, db: str, ids: Sequence[str]) -> list[Memory]:
    return tx.all("brain.repository.get_many", Memory, db=db, ids=ids)


def retire(tx: Tx, db: str, row: Memory, successor: Successor) -> Memory:
    """Replaces an active memory by its successor; returns the updated row."""
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
    """Links a memory to its predecessor; returns the id of the link."""
    key = new_id(tx, "lnk")
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


class _Freed(NamedTuple):
    id: str
    content: str


def check_not_replaced(tx: Tx, db: str, row: Memory) -> None:
    """Raises Fault("conflict") for a memory with a successor, naming it: two successors would be two truths."""
    if row.status != ACTIVE and row.superseded_by and exists(tx, db, row.superseded_by):
        raise Fault("conflict", f"Memory '{row.id}' is already superseded by '{row.superseded_by}'")


def inherited_metadata(row: Memory, reason: str | None = None) -> str | None:
    """Return the metadata of a successor: those of the memory, with the reason of this change instead of an earlier
    one.
    """
    try:
        metadata = msgspec.json.decode(row.metadata or "{}", type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return json_text({_REASON: reason}) if reason else row.metadata
    if reason is None and _REASON not in metadata:
        return row.metadata
    rest = {key: value for key, value in metadata.items() if key != _REASON}
    if reason is not None:
        rest[_REASON] = msgspec.Raw(msgspec.json.encode(reason))
    return json_text(rest) if rest else None


def free_predecessors(tx: Tx, db: str, key: str) -> None:
    """Takes a memory that is about to be deleted from those it replaced, which may then be replaced again."""
    for old in tx.all("brain.repository.free_predecessors", _Freed, db=db, id=key, now=tx.now):
        history.append(tx, f"brain:{db}", old.id, "updated", before=old.content, reason=f"Deleted {key}")
