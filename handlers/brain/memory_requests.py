"""Requests and answers of the memory tools of `brain` (seed 003, Memory Tools)."""

from typing import Annotated

from msgspec import Meta, Struct

from handlers.brain.fields import Fields
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
    project_id: Annotated[Id | None, Meta(description="Id of the entity it belongs to")] = None
    importance: Annotated[Importance, Meta(description="1 is minor, 5 foundational")] = 3
    metadata: Annotated[JsonObject | None, Meta(description="Any JSON; `immutable: true` locks it")] = None
    valid_until: ValidUntil = None


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
    fields: Fields = None


class UpdateMemory(Struct, forbid_unknown_fields=True):
    """A memory, and what of it changes; what is left out stays."""

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
