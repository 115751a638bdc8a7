"""The memory tools of `brain` (seed 003, Memory Tools): save, get, update, supersede, bulk save, delete."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from handlers.brain import decay, repository
from handlers.brain.base import embedding_columns, json_text, nothing_to_update, parse_time, space
from handlers.brain.deviations import AS_ORIGINAL
from handlers.brain.immutability import check_mutable, check_not_superseded
from handlers.brain.index_text import ACTIVE, memory_source, update_index
from handlers.brain.links import delete_links_of
from handlers.brain.repository import Draft, Successor
from handlers.brain.schemas import (
    Category,
    Database,
    Id,
    Importance,
    JsonObject,
    Limit,
    Memory,
    Offset,
    ShortText,
    Tags,
    Text,
    Time,
)
from kernel.errors import Fault
from kernel.store import history
from kernel.store.transaction import Tx
from kernel.tools import Deviation, Hints, Hooks, Tool, read, write

MAX_BULK_MEMORIES = 100  # from the contract


class NewMemory(Struct, forbid_unknown_fields=True):
    """What a new memory says and how it is sorted."""

    content: Annotated[Text, Meta(description="The memory: one fact, decision, learning or the like")]
    category: Annotated[Category, Meta(description="What kind of memory it is")]
    subcategory: Annotated[ShortText | None, Meta(description="Refinement of the category")] = None
    tags: Annotated[Tags | None, Meta(description="Words to find it by")] = None
    project_id: Annotated[Id | None, Meta(description="Id of the entity it belongs to")] = None
    importance: Annotated[Importance, Meta(description="1 is minor, 5 foundational")] = 3
    metadata: Annotated[JsonObject | None, Meta(description="Any JSON; `immutable: true` protects it for good")] = None


class SaveMemory(NewMemory, forbid_unknown_fields=True, kw_only=True):
    """A new memory and its database."""

    db: Database


class GetMemories(Struct, forbid_unknown_fields=True):
    """Which memories to get."""

    db: Database
    category: Annotated[ShortText | None, Meta(description="Only this category")] = None
    tags: Annotated[Tags | None, Meta(description="With any of these tags, in whatever case")] = None
    project_id: Annotated[Id | None, Meta(description="Only of this project")] = None
    status: Annotated[ShortText | None, Meta(description="active (if left out), superseded or archived")] = None
    created_after: Annotated[Time | None, Meta(description="Created at or after this ISO 8601 date or time")] = None
    created_before: Annotated[Time | None, Meta(description="Created at or before this ISO 8601 date or time")] = None
    min_importance: Annotated[Annotated[int, Meta(ge=0, le=5)] | None, Meta(description="Least importance")] = None
    limit: Limit = 50
    offset: Offset = 0


class UpdateMemory(Struct, forbid_unknown_fields=True):
    """A memory, and what of it changes; what is left out stays."""

    db: Database
    id: Annotated[Id, Meta(description="Id of the memory")]
    content: Annotated[Text | None, Meta(description="New content")] = None
    category: Annotated[ShortText | None, Meta(description="New category")] = None
    subcategory: Annotated[ShortText | None, Meta(description="New subcategory")] = None
    tags: Annotated[Tags | None, Meta(description="All tags from now on")] = None
    status: Annotated[ShortText | None, Meta(description="active, superseded or archived")] = None
    importance: Annotated[Importance | None, Meta(description="New importance, 1 to 5")] = None
    metadata: Annotated[JsonObject | None, Meta(description="All metadata from now on")] = None


class SupersedeMemory(Struct, forbid_unknown_fields=True):
    """A memory, and what is true instead."""

    db: Database
    old_id: Annotated[Id, Meta(description="Id of the memory to replace")]
    new_content: Annotated[Text, Meta(description="What is true from now on")]
    reason: Annotated[Annotated[str, Meta(max_length=10_000)] | None, Meta(description="Why it changed")] = None


class BulkSaveMemories(Struct, forbid_unknown_fields=True):
    """Several new memories of one database."""

    db: Database
    memories: Annotated[
        list[NewMemory], Meta(description="Up to 100 new memories", min_length=1, max_length=MAX_BULK_MEMORIES)
    ]


class DeleteMemory(Struct, forbid_unknown_fields=True):
    """The memory to delete."""

    db: Database
    id: Annotated[Id, Meta(description="Id of the memory")]


class Superseded(Struct):
    """Answer of supersede_memory: both memories as they are now, and the link from the new one to the old."""

    old_memory: Memory
    new_memory: Memory
    link_id: str


class Saved(Struct):
    """Answer of bulk_save_memories; ids in the order given."""

    saved: int
    ids: list[str]


def save_memory(tx: Tx, request: SaveMemory) -> Memory:
    """Save a new memory: one fact, decision, learning or the like. It is searchable at once. Prefer smart_save_memory
    where it may be known already.
    """
    draft = _new_draft(tx, request.db, request)
    repository.add(tx, [draft])
    return draft.row


def save_memories(tx: Tx, requests: Sequence[SaveMemory]) -> list[Memory | Fault]:
    """`save_memory` for several calls at once."""
    drafts = [_draft_or_fault(tx, request) for request in requests]
    repository.add(tx, [draft for draft in drafts if isinstance(draft, Draft)])
    return [draft.row if isinstance(draft, Draft) else draft for draft in drafts]


def bulk_save_memories(tx: Tx, request: BulkSaveMemories) -> Saved:
    """Save up to 100 memories at once: all of them or, if one is not right, none."""
    drafts = [_new_draft(tx, request.db, item) for item in request.memories]
    repository.add(tx, drafts)
    return Saved(len(drafts), [draft.row.id for draft in drafts])


def get_memories(tx: Tx, request: GetMemories) -> list[Memory]:
    """Get memories by category, tags, project, status, date or importance; the most important first, then the most
    recently updated.
    """
    space(tx, request.db)
    return tx.all(
        "brain.memories.page",
        Memory,
        db=request.db,
        status=request.status or ACTIVE,
        category=request.category,
        project_id=request.project_id,
        tags=request.tags or None,
        created_after=parse_time("created_after", request.created_after),
        created_before=parse_time("created_before", request.created_before),
        min_importance=request.min_importance,
        limit=request.limit,
        offset=request.offset,
    )


def update_memory(tx: Tx, request: UpdateMemory) -> Memory:
    """Change an existing memory in place; what is left out stays. To keep the old text as a memory of its own, use
    supersede_memory. Immutable memories cannot be changed.
    """
    here = space(tx, request.db)
    before = repository.get(tx, request.db, request.id)
    check_mutable(before, "modify")
    changes = {
        "content": request.content,
        "category": request.category,
        "subcategory": request.subcategory,
        "tags": json_text(request.tags),
        "status": request.status,
        "importance": request.importance,
        "metadata": json_text(request.metadata),
    }
    named = [name for name, value in changes.items() if value is not None]
    if not named:
        raise nothing_to_update()
    after = replace(before, **{name: changes[name] for name in named})
    # The index is touched only if its content changes, because embedding is the expensive part of a write.
    changed = (after.status, memory_source(here, after)) != (before.status, memory_source(here, before))
    embedded, model = embedding_columns(tx) if changed and after.status == ACTIVE else (None, None)
    more = {"has_embedding": embedded, "embedding_model": model, "now": tx.now}
    row = tx.one("brain.memories.update", Memory, db=request.db, id=request.id, **changes, **more) or before
    reason = f"Changed {', '.join(named)}"
    history.append(tx, here, row.id, "updated", before=before.content, after=row.content, reason=reason)
    if changed:
        update_index(tx, memory_source(here, row), active=row.status == ACTIVE)
    return row


def supersede_memory(tx: Tx, request: SupersedeMemory) -> Superseded:
    """Replace a memory by a new one that inherits its category, tags, project and importance. The old one stays
    readable as superseded, and a link leads from the new to the old. Immutable memories cannot be superseded.
    """
    space(tx, request.db)
    old = repository.get(tx, request.db, request.old_id)
    check_mutable(old, "supersede")
    check_not_superseded(old)
    reason = request.reason or None
    new = repository.new_memory(
        tx,
        request.new_content,
        old.category,
        subcategory=old.subcategory,
        tags=old.tags,
        project_id=old.project_id,
        importance=old.importance,
        metadata=json_text({"supersede_reason": reason}) if reason else old.metadata,
    )
    repository.add(tx, [Draft(request.db, new, old.content, reason or f"Supersedes {old.id}")])
    successor = Successor("superseded", "superseded", new.id, reason or f"Superseded by {new.id}")
    retired = repository.retire(tx, request.db, old, successor)
    noted = json_text({"reason": reason}) if reason else None
    return Superseded(
        retired, new, repository.link_successor(tx, request.db, new.id, old.id, "supersedes", metadata=noted)
    )


def delete_memory(tx: Tx, request: DeleteMemory) -> str:
    """Delete a memory and its links for good; only its history stays. Immutable memories cannot be deleted."""
    here = space(tx, request.db)
    row = repository.get(tx, request.db, request.id)
    check_mutable(row, "delete")
    delete_links_of(tx, request.db, "memory", row.id)
    tx.run("brain.memories.delete", db=request.db, id=row.id)
    history.append(tx, here, row.id, "deleted", before=row.content)
    update_index(tx, memory_source(here, row), active=False)
    return f"Deleted memory '{row.id}'"


def _new_draft(tx: Tx, db: str, item: NewMemory) -> Draft:
    space(tx, db)
    row = repository.new_memory(
        tx,
        item.content,
        item.category,
        subcategory=item.subcategory,
        tags=json_text(item.tags),
        project_id=item.project_id,
        importance=item.importance,
        metadata=json_text(item.metadata),
    )
    return Draft(db, row)


def _draft_or_fault(tx: Tx, request: SaveMemory) -> Draft | Fault:
    try:
        return _new_draft(tx, request.db, request)
    except Fault as fault:
        return fault


def _record_access(tx: Tx, request: GetMemories, result: list[Memory]) -> None:
    decay.record_access(tx, request.db, result)


def _saved_text(request: SaveMemory) -> list[str]:
    return [request.content]


def _bulk_texts(request: BulkSaveMemories) -> list[str]:
    return [item.content for item in request.memories]


def _updated_text(request: UpdateMemory) -> list[str]:
    return [request.content] if request.content else []


def _superseding_text(request: SupersedeMemory) -> list[str]:
    return [request.new_content]


TOOLS: tuple[Tool, ...] = (
    write(save_memory, Hints("Save memory"), permission="write", hooks=Hooks(texts=_saved_text, batch=save_memories)),
    read(
        get_memories,
        Hints("Get memories"),
        permission="read",
        hooks=Hooks(after_read=_record_access),
        deviations=(
            Deviation("behaviour: status", "no default stated", "active", AS_ORIGINAL),
            Deviation(
                "behaviour: created_after, created_before",
                "not mentioned",
                "both bounds are inclusive; a date alone means 00:00 UTC",
                "A range that ends at the start of its last day must be documented",
            ),
        ),
    ),
    write(
        update_memory,
        Hints("Update memory", destructive=True, idempotent=True),
        permission="write",
        hooks=Hooks(texts=_updated_text),
    ),
    write(
        supersede_memory,
        Hints("Supersede memory", destructive=True),
        permission="write",
        hooks=Hooks(texts=_superseding_text),
        deviations=(
            Deviation(
                "behaviour: already superseded",
                "not mentioned",
                "refused as a conflict that names the successor, until update_memory makes the memory active again",
                "The original overwrites `superseded_by`, so the first successor is lost",
            ),
        ),
    ),
    write(bulk_save_memories, Hints("Save several memories"), permission="write", hooks=Hooks(texts=_bulk_texts)),
    write(delete_memory, Hints("Delete memory", destructive=True), permission="write"),
)
