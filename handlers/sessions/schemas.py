"""Request and result types of the memory and graph tools of `sessions` (seed 002)."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from kernel.calls.tools import Schema

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
            description="Recency filter in (0, 1]: only this newest share of the candidates is kept; another value "
            "keeps all. If left out, 0.6 unless configured, and older ones that rank above some of these"
        ),
    ] = None


class ListRecent(Struct, forbid_unknown_fields=True):
    """The number of memories to list."""

    limit: Annotated[int, Meta(description="Most memories to list, of all sessions", ge=0, le=MAX_RESULTS)] = 20


class ListEntities(Struct, forbid_unknown_fields=True):
    """The memory to list the entities of."""

    memory_id: Annotated[int, Meta(description="Id of the memory", ge=1, le=_BIG)]


class UpsertEntity(Struct, forbid_unknown_fields=True):
    """An entity, and observations of it."""

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
    """Two entities, and the relation from the first to the second."""

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
    """The part of the graph to return."""

    query: Annotated[
        Annotated[str, Meta(max_length=4096)] | None,
        Meta(description="What to look for among the entities, by meaning; the newest ones if omitted"),
    ] = None
    limit: Annotated[int, Meta(description="Most entities", ge=0, le=MAX_RESULTS)] = 10


class Remembered(Struct, omit_defaults=True):
    """Result of remember: the memory as it is stored, or `status` skipped with the `reason`, such as `duplicate of 12`
    or `sensitive: content`.
    """

    status: Literal["skipped"] | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    id: int | UnsetType = UNSET
    summary: str | UnsetType = UNSET
    session_id: str | UnsetType = UNSET
    kind: str | UnsetType | None = UNSET
    tags: str | UnsetType = UNSET
    priority: int | UnsetType = UNSET


class MemoryResult(Struct):
    """One memory; `created_at` is `YYYY-MM-DD HH:MM:SS` in UTC."""

    id: int
    session_id: str
    kind: str | None
    content: str
    summary: str
    tags: str
    priority: int
    metadata: dict[str, Any]
    created_at: str


class ScoredMemory(MemoryResult):
    """One search result: a lower score is better; `fts_hit` if it matched by words."""

    score: float
    fts_hit: bool


class MemoryList(Struct):
    """Result of list_recent."""

    result: list[MemoryResult]


class SearchResults(Struct):
    """Result of search_memory, best first."""

    result: list[ScoredMemory]


class MentionedEntity(Struct):
    """One thing that a memory mentions; `source` is regex or tree-sitter."""

    entity_type: str
    name: str
    source: str
    path: str | None


class MentionedEntities(Struct):
    """Result of list_entities, in the order they were found."""

    result: list[MentionedEntity]


class EntityUpserted(Struct, omit_defaults=True):
    """Result of upsert_entity: `skipped` with a `reason`, or `disabled` with the `setting` that enables the graph."""

    status: Literal["ok", "skipped", "disabled"]
    entity_id: int | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    setting: str | UnsetType = UNSET


class RelationAdded(Struct, omit_defaults=True):
    """Result of add_relation: `skipped` with a `reason`, or `disabled` with the `setting` that enables the graph."""

    status: Literal["ok", "skipped", "disabled"]
    relation_id: int | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    setting: str | UnsetType = UNSET


class GraphRelation(Struct):
    """One relation, by the names of its ends."""

    type: str
    source: str
    target: str


class EntityDetails(Struct, omit_defaults=True):
    """Result of get_entity, or only a `status`; `setting` is what enables the graph.

    `observations` are the newest 50, newest first; `memory_ids` are the memories they come from, in the same order.
    """

    status: Literal["not_found", "disabled"] | UnsetType = UNSET
    id: int | UnsetType = UNSET
    name: str | UnsetType = UNSET
    entity_type: str | UnsetType = UNSET
    created_at: str | UnsetType = UNSET
    observations: list[str] | UnsetType = UNSET
    memory_ids: list[int | None] | UnsetType = UNSET
    relations: list[GraphRelation] | UnsetType = UNSET
    setting: str | UnsetType = UNSET


class GraphEntity(Struct, omit_defaults=True):
    """One entity of a graph; `score` is the distance of its meaning from the query, lower is better."""

    id: int
    name: str
    entity_type: str
    created_at: str
    score: float | UnsetType = UNSET


class ContextGraph(Struct, omit_defaults=True):
    """Result of get_context_graph: entities, and the newest 1000 relations that touch them; or `disabled` with the
    `setting` that enables the graph.
    """

    status: Literal["disabled"] | UnsetType = UNSET
    entities: list[GraphEntity] | UnsetType = UNSET
    relations: list[GraphRelation] | UnsetType = UNSET
    setting: str | UnsetType = UNSET


def with_session(request: type[Remember] | type[SearchMemory]) -> Schema:
    """Return the input schema with `session_id` required and not nullable, as in the contract.

    The request type leaves it optional, because `CODE_MEMORY_SESSION_ID` may supply it.
    """
    schema = msgspec.json.schema(request)["$defs"][request.__name__]
    session_id = schema["properties"]["session_id"]
    schema["properties"]["session_id"] = {**session_id["anyOf"][0], "description": session_id["description"]}
    return {
        "type": "object",
        "properties": schema["properties"],
        "required": [*schema["required"], "session_id"],
        "additionalProperties": False,
    }
