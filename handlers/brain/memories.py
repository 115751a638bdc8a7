"""The memory tools of `brain` (seed 003, Memory Tools): save, get, update, supersede, bulk save, delete."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from handlers.brain import base, repository, scoring
from handlers.brain.index_text import ACTIVE
from handlers.brain.links import carry_entity_links, check_references, checked, delete_links_of
from handlers.brain.repository import Draft, Successor, check_not_replaced, free_predecessors, inherited_metadata
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
    ValidUntil,
)
from kernel.calls.tools import Hints, Hooks, Tool, read, write
from kernel.core.errors import Fault
from kernel.store.transaction import Tx

MAX_BULK_MEMORIES = 100  # from the contract
NewCategory = Annotated[
    Category,
    Meta(
        description="What kind of memory it is. hard_constraint, and value with subcategory core, lock it: no tool "
        "changes or deletes it again"
    ),
]
NewSubcategory = Annotated[ShortText | None, Meta(description="Refinement of the category; core locks a value")]


class NewMemory(Struct, forbid_unknown_fields=True):
    """What a new memory says and how it is sorted."""

    content: Annotated[Text, Meta(description="The memory: one fact, decision, learning or the like")]
    category: NewCategory
    subcategory: NewSubcategory = None
    tags: Annotated[Tags | None, Meta(description="Words to find it by")] = None
    project_id: Annotated[Id | None, Meta(description="Id of the entity it belongs to, or the name of a project")] = (
        None
    )
    importance: Annotated[Importance, Meta(description="1 is minor, 5 foundational")] = 3
    metadata: Annotated[JsonObject | None, Meta(description="Any JSON; `immutable: true` locks it")] = None
    valid_until: ValidUntil = None


class SaveMemory(NewMemory, forbid_unknown_fields=True, kw_only=True):
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
    fields: base.Fields = None


class UpdateMemory(Struct, forbid_unknown_fields=True):
    """Changes of a memory; omitted fields stay."""

    db: Database
    id: Annotated[Id, Meta(description="Id of the memory")]
    content: Annotated[Text | None, Meta(description="New content")] = None
    category: Annotated[
        ShortText | None, Meta(description="New category, one of those of save_memory; may lock it")
    ] = None
    subcategory: Annotated[ShortText | None, Meta(description="New subcategory; core locks a value")] = None
    tags: Annotated[Tags | None, Meta(description="All tags from now on")] = None
    status: Annotated[ShortText | None, Meta(description="active, superseded or archived")] = None
    importance: Annotated[Importance | None, Meta(description="New importance, 1 to 5")] = None
    metadata: Annotated[JsonObject | None, Meta(description="All metadata from now on; `immutable: true` locks it")] = (
        None
    )
    valid_until: Annotated[
        Annotated[str, Meta(max_length=64)] | None,
        Meta(description="When it stops being true, ISO 8601; a date counts to its end. Empty: it stays true"),
    ] = None


class SupersedeMemory(Struct, forbid_unknown_fields=True):
    """A memory, and what is true instead."""

    db: Database
    old_id: Annotated[Id, Meta(description="Id of the memory to replace")]
    new_content: Annotated[Text, Meta(description="What is true from now on")]
    reason: Annotated[Annotated[str, Meta(max_length=10_000)] | None, Meta(description="Why it changed")] = None


class BulkSaveMemories(Struct, forbid_unknown_fields=True):
    db: Database
    memories: Annotated[
        list[NewMemory], Meta(description="Up to 100 new memories", min_length=1, max_length=MAX_BULK_MEMORIES)
    ]


class DeleteMemory(Struct, forbid_unknown_fields=True):
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
    if it may be known already.
    """
    draft = _new_draft(tx, request.db, request)
    repository.add(tx, [draft])
    return draft.row


def save_memories(tx: Tx, requests: Sequence[SaveMemory]) -> list[Memory | Fault]:
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
    filters = {
        "status": request.status or ACTIVE,
        "created_after": base.parse_time("created_after", request.created_after),
        "created_before": base.parse_time("created_before", request.created_before),
    }
    rows = repository.read_page(tx, "brain.memories.page", Memory, request, "category", "status", **filters)
    return checked(tx, request, rows)


def update_memory(tx: Tx, request: UpdateMemory) -> Memory:
    """Change an existing memory in place; what is left out stays. To keep the old text as a memory of its own, use
    supersede_memory. Immutable memories cannot be changed.
    """
    base.space(tx, request.db)
    before = repository.get(tx, Memory, request.db, request.id)
    base.check_mutable(before, "modify")
    base.check_word("category", request.category, before.category)
    base.check_word("status", request.status, before.status)
    base.check_metadata(request.metadata)
    changes = {name: getattr(request, name) for name in UpdateMemory.__struct_fields__[2:]}
    if request.valid_until:
        changes["valid_until"] = base.parse_end("valid_until", request.valid_until)
    elif before.valid_until is None:
        changes["valid_until"] = None  # an empty text takes an end away, and there is none
    return repository.update(tx, request.db, before, changes)


def supersede_memory(tx: Tx, request: SupersedeMemory) -> Superseded:
    """Replace a memory by a new one that inherits its category, tags, project, importance, metadata and links to
    entities. The old one stays readable as superseded, and a link leads from the new to the old. Immutable memories
    cannot be superseded.
    """
    base.space(tx, request.db)
    old = repository.get(tx, Memory, request.db, request.old_id)
    base.check_mutable(old, "supersede")
    check_not_replaced(tx, request.db, old)
    reason = request.reason or None
    names = ("category", "subcategory", "tags", "project_id", "importance")
    columns = {"content": request.new_content, "metadata": inherited_metadata(old, reason)}
    new = repository.new_memory(tx, **columns, **{name: getattr(old, name) for name in names})
    repository.add(tx, [Draft(request.db, new, old.content, reason or f"Supersedes {old.id}")])
    successor = Successor("superseded", "superseded", new.id, reason or f"Superseded by {new.id}")
    old_memory = repository.retire(tx, request.db, old, successor)
    link_metadata = base.json_text({"reason": reason}) if reason else None
    link = repository.link_successor(tx, request.db, new.id, old.id, "supersedes", metadata=link_metadata)
    carry_entity_links(tx, request.db, old.id, new.id)
    return Superseded(old_memory, new, link)


def delete_memory(tx: Tx, request: DeleteMemory) -> str:
    """Delete a memory and its links for good; only its history stays. Immutable memories cannot be deleted."""
    base.space(tx, request.db)
    row = repository.get(tx, Memory, request.db, request.id)
    base.check_mutable(row, "delete")
    delete_row(tx, request.db, row)
    return f"Deleted memory '{row.id}'"


def delete_row(tx: Tx, db: str, row: Memory, reason: str | None = None) -> None:
    """Delete a memory and its links, and let those that it replaced be replaced again."""
    free_predecessors(tx, db, row.id)
    delete_links_of(tx, db, "memory", row.id)
    repository.remove(tx, db, row, reason)


def _new_draft(tx: Tx, db: str, item: NewMemory) -> Draft:
    base.space(tx, db)
    base.check_metadata(item.metadata)
    check_references(tx, item)
    return Draft(db, repository.new_memory(tx, item, valid_until=base.parse_end("valid_until", item.valid_until)))


def _draft_or_fault(tx: Tx, request: SaveMemory) -> Draft | Fault:
    try:
        return _new_draft(tx, request.db, request)
    except Fault as fault:
        return fault


def _record_access(tx: Tx, request: GetMemories, result: list[Memory]) -> None:
    scoring.record_access(tx, request.db, [row.id for row in result])


def _bulk_texts(request: BulkSaveMemories) -> list[str]:
    return [item.content for item in request.memories]


TOOLS: tuple[Tool, ...] = (
    write(
        save_memory,
        Hints("Save memory"),
        permission="write",
        hooks=Hooks(texts=base.texts_of("content"), batch=save_memories),
    ),
    read(get_memories, Hints("Get memories"), permission="read", hooks=Hooks(after_read=_record_access)),
    write(
        update_memory,
        Hints("Update memory", destructive=True, idempotent=True),
        permission="write",
        hooks=Hooks(texts=base.texts_of("content")),
    ),
    write(
        supersede_memory,
        Hints("Supersede memory", destructive=True),
        permission="write",
        hooks=Hooks(texts=base.texts_of("new_content")),
    ),
    write(bulk_save_memories, Hints("Save several memories"), permission="write", hooks=Hooks(texts=_bulk_texts)),
    write(delete_memory, Hints("Delete memory", destructive=True), permission="write"),
)
