"""The rows that the tools of `brain` return (seed 003), and the types that several requests share."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

DATABASE_NAMES = ("core", "therapy", "dnd", "hlg")
MAX_TEXT_CHARACTERS = 1_000_000
MAX_ROWS = 1000

Category = Literal[
    "fact",
    "decision",
    "learning",
    "preference",
    "blocker",
    "observation",
    "personality",
    "value",
    "hard_constraint",
    "pattern",
    "action",
    "correction",
]
EntityType = Literal["project", "person", "organization", "system", "module", "concept", "ai_agent", "client"]
NoteType = Literal["note", "document", "gdd", "design", "retrospective", "spec", "meeting", "journal"]
LinkableKind = Literal["memory", "entity"]

Database = Annotated[
    str,
    Meta(
        description="Which database; the first if unsure", max_length=64, extra_json_schema={"enum": [*DATABASE_NAMES]}
    ),
]
WRITTEN = r"^\s*[^\0\s][^\0]*$"
Text = Annotated[str, Meta(pattern=WRITTEN, max_length=MAX_TEXT_CHARACTERS)]
Title = Annotated[str, Meta(pattern=WRITTEN, max_length=1000)]
LongText = Annotated[str, Meta(max_length=100_000)]
ShortText = Annotated[str, Meta(min_length=1, max_length=256)]
Id = Annotated[str, Meta(min_length=1, max_length=128)]
Time = Annotated[str, Meta(min_length=1, max_length=64)]
ValidUntil = Annotated[
    Time | None, Meta(description="When it stops being true, ISO 8601; a date counts to its end. Searches then skip it")
]
Tags = Annotated[list[ShortText], Meta(max_length=64)]
Points = Annotated[list[Annotated[str, Meta(max_length=10_000)]], Meta(max_length=256)]
Importance = Annotated[int, Meta(ge=1, le=5)]
Fraction = Annotated[float, Meta(ge=0, le=1)]
JsonObject = dict[str, Any]
Limit = Annotated[int, Meta(description="Most results", ge=1, le=MAX_ROWS)]
Offset = Annotated[int, Meta(description="Skip this many results", ge=0, le=1_000_000_000)]


class Memory(Struct):
    """One memory. `tags` and `metadata` are JSON as a string; times are ISO 8601 UTC; `has_embedding` is 0 or 1."""

    id: str
    content: str
    category: str
    subcategory: str | None
    tags: str | None
    source: str
    status: str
    superseded_by: str | None
    project_id: str | None
    importance: int
    memory_type: str
    last_accessed_at: str | None
    access_count: int
    valid_from: str | None
    valid_until: str | None
    decay_score: float
    confidence: float
    has_embedding: int
    embedding_model: str | None
    metadata: str | None
    created_at: str
    updated_at: str


class Entity(Struct):
    """One entity. `tags`, `aliases` and `metadata` are JSON as a string; times are ISO 8601 UTC."""

    id: str
    name: str
    type: str
    subtype: str | None
    description: str | None
    tags: str | None
    aliases: str | None
    status: str
    mention_count: int
    first_mentioned: str | None
    last_mentioned: str | None
    has_embedding: int
    embedding_model: str | None
    metadata: str | None
    created_at: str
    updated_at: str


class Link(Struct):
    """One relationship. `metadata` is JSON as a string; `bidirectional` is 0 or 1."""

    id: str
    source_type: str
    source_id: str
    target_type: str
    target_id: str
    relationship: str
    strength: float
    context: str | None
    bidirectional: int
    metadata: str | None
    created_at: str


class Note(Struct):
    """One note. `key_points` and `tags` are JSON as a string; times are ISO 8601 UTC."""

    id: str
    db: str
    title: str
    content: str
    note_type: str
    summary: str | None
    key_points: str | None
    tags: str | None
    category: str | None
    parent_note_id: str | None
    version: int
    previous_version_id: str | None
    project_id: str | None
    entity_id: str | None
    word_count: int
    has_embedding: int
    embedding_model: str | None
    created_at: str
    updated_at: str


class Resource(Struct):
    """One resource. `key_takeaways` and `tags` are JSON as a string; times are ISO 8601 UTC."""

    id: str
    db: str
    title: str
    url: str | None
    resource_type: str | None
    description: str | None
    notes: str | None
    key_takeaways: str | None
    tags: str | None
    category: str | None
    status: str
    quality_rating: int | None
    project_id: str | None
    source_memory_id: str | None
    domain: str | None
    created_at: str
    accessed_at: str | None
    access_count: int
    has_embedding: int
    embedding_model: str | None


class ConfigRow(Struct):
    """One configuration value; its time is ISO 8601 UTC."""

    key: str
    value: str
    description: str | None
    updated_at: str
