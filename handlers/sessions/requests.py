"""What the tools of `sessions` take (seed 002)."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

MAX_CONTENT_LENGTH = 1_048_576
MAX_RESULTS = 1000
_BIG = 2**63 - 1

Session = Annotated[
    Annotated[str, Meta(max_length=256)] | None,
    Meta(description="Session scope key, for example opencode:2026-01-04; what one session stores no other finds"),
]
MemoryId = Annotated[
    Annotated[int, Meta(ge=1, le=_BIG)] | None, Meta(description="Memory this comes from; it goes with that memory")
]
Name = Annotated[str, Meta(description="Name of the entity, case matters", max_length=512)]


class Remember(Struct, forbid_unknown_fields=True):
    """What to remember."""

    content: Annotated[str, Meta(description="The raw text to store, at most 1 MB", max_length=MAX_CONTENT_LENGTH)]
    session_id: Session = None
    kind: Annotated[
        Annotated[str, Meta(max_length=256)] | None, Meta(description="Category, for example decision, bugfix or note")
    ] = None
    summary: Annotated[
        Annotated[str, Meta(max_length=10_000)] | None,
        Meta(description="Short summary; made from the content if omitted"),
    ] = None
    tags: Annotated[
        Annotated[str, Meta(max_length=2000)] | None,
        Meta(description="Tags separated by commas, for example auth,jwt,bugfix; made from the content if omitted"),
    ] = None
    priority: Annotated[int | None, Meta(description="1 (most important) to 5 (least); 3 if omitted")] = None
    metadata_json: Annotated[
        Annotated[str, Meta(max_length=65_536)] | None, Meta(description="JSON object encoded as a string")
    ] = None


class SearchMemory(Struct, forbid_unknown_fields=True):
    """What to look for, and where."""

    query: Annotated[
        str, Meta(description="Plain words, any punctuation; empty for the newest memories", max_length=65_536)
    ]
    session_id: Session = None
    limit: Annotated[
        Annotated[int, Meta(le=MAX_RESULTS)] | None, Meta(description="Most results, up to 1000; 12 unless configured")
    ] = None
    top_p: Annotated[
        float | None,
        Meta(
            description="Recency filter in (0, 1]: this newest share of the candidates is kept, and of the older ones "
            "only what ranks above some of these; 0.6 unless configured"
        ),
    ] = None


class ListRecent(Struct, forbid_unknown_fields=True):
    """How many to list."""

    limit: Annotated[int, Meta(description="Most memories to list, of all sessions", ge=0, le=MAX_RESULTS)] = 20


class ListEntities(Struct, forbid_unknown_fields=True):
    """The memory whose entities to list."""

    memory_id: Annotated[int, Meta(description="Id of the memory", ge=1, le=_BIG)]


class UpsertEntity(Struct, forbid_unknown_fields=True):
    """An entity, and what was observed of it."""

    name: Name
    entity_type: Annotated[
        str, Meta(description="Type; `entity` never replaces a type that is more telling", max_length=128)
    ] = "entity"
    observations_json: Annotated[
        Annotated[str, Meta(max_length=262_144)] | None,
        Meta(description="JSON array of strings, added to what is there"),
    ] = None
    memory_id: MemoryId = None


class AddRelation(Struct, forbid_unknown_fields=True):
    """Two entities, and how the first relates to the second."""

    source: Annotated[str, Meta(description="Name of the entity the relation starts from", max_length=512)]
    target: Annotated[str, Meta(description="Name of the entity it leads to", max_length=512)]
    relation_type: Annotated[
        str, Meta(description="Relation name in active voice, for example depends_on, implements", max_length=128)
    ]
    memory_id: MemoryId = None


class GetEntity(Struct, forbid_unknown_fields=True):
    """The entity to fetch."""

    name: Name


class GetContextGraph(Struct, forbid_unknown_fields=True):
    """What part of the graph to show."""

    query: Annotated[
        Annotated[str, Meta(max_length=4096)] | None,
        Meta(description="What to look for among the entities, by meaning; the newest ones if omitted"),
    ] = None
    limit: Annotated[int, Meta(description="Most entities", ge=0, le=MAX_RESULTS)] = 10


class Maintenance(Struct, forbid_unknown_fields=True):
    """What to do, and what it needs."""

    action: Annotated[
        Literal["vacuum", "purge_all", "purge_session", "prune_older_than"],
        Meta(
            description="vacuum: give free space back. purge_all: delete every memory and the graph. purge_session: "
            "delete the memories of session_id. prune_older_than: delete memories older than older_than_days"
        ),
    ]
    confirm: Annotated[bool | None, Meta(description="Must be true for everything but vacuum")] = None
    session_id: Annotated[Annotated[str, Meta(max_length=256)] | None, Meta(description="For purge_session")] = None
    older_than_days: Annotated[
        Annotated[int, Meta(ge=0, le=100_000)] | None, Meta(description="For prune_older_than; 0 is everything")
    ] = None


class Diagnostics(Struct, forbid_unknown_fields=True):
    """Nothing is needed."""


class Health(Struct, forbid_unknown_fields=True):
    """Nothing is needed."""
