"""What the tools of `sessions` give (seed 002)."""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType


class Remembered(Struct, omit_defaults=True):
    """Answer of remember: the memory as it is stored, or `status` skipped."""

    status: Literal["skipped"] | UnsetType = UNSET
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
    """One memory that was found: a lower score is better, `fts_hit` says whether its words matched."""

    score: float
    fts_hit: bool


class MemoryList(Struct):
    """Answer of list_recent."""

    result: list[MemoryResult]


class SearchResults(Struct):
    """Answer of search_memory, best first."""

    result: list[ScoredMemory]


class MentionedEntity(Struct):
    """One thing a memory mentions; `source` is what told it: regex or tree-sitter."""

    entity_type: str
    name: str
    source: str
    path: str | None


class MentionedEntities(Struct):
    """Answer of list_entities, in the order they were found."""

    result: list[MentionedEntity]


class EntityUpserted(Struct, omit_defaults=True):
    """Answer of upsert_entity; `skipped` for sensitive content, `disabled` where there is no graph."""

    status: Literal["ok", "skipped", "disabled"]
    entity_id: int | UnsetType = UNSET


class RelationAdded(Struct, omit_defaults=True):
    """Answer of add_relation; `disabled` where there is no graph."""

    status: Literal["ok", "skipped", "disabled"]
    relation_id: int | UnsetType = UNSET


class GraphRelation(Struct):
    """One relation, by the names of its ends."""

    type: str
    source: str
    target: str


class EntityDetails(Struct, omit_defaults=True):
    """Answer of get_entity, or only a `status`.

    `observations` are the newest 50, newest first; `memory_ids` says of each which memory it comes from.
    """

    status: Literal["not_found", "disabled"] | UnsetType = UNSET
    id: int | UnsetType = UNSET
    name: str | UnsetType = UNSET
    entity_type: str | UnsetType = UNSET
    created_at: str | UnsetType = UNSET
    observations: list[str] | UnsetType = UNSET
    memory_ids: list[int | None] | UnsetType = UNSET
    relations: list[GraphRelation] | UnsetType = UNSET


class GraphEntity(Struct, omit_defaults=True):
    """One entity of a graph; `score` is the distance of its meaning from the query, lower is better."""

    id: int
    name: str
    entity_type: str
    created_at: str
    score: float | UnsetType = UNSET


class ContextGraph(Struct, omit_defaults=True):
    """Answer of get_context_graph: entities, and the newest 1000 relations that touch them."""

    status: Literal["disabled"] | UnsetType = UNSET
    entities: list[GraphEntity] | UnsetType = UNSET
    relations: list[GraphRelation] | UnsetType = UNSET


class MaintenanceResult(Struct, omit_defaults=True):
    """Answer of maintenance; `deleted` counts memories."""

    status: Literal["ok"]
    action: Literal["vacuum"] | UnsetType = UNSET
    deleted: int | UnsetType = UNSET


class Flags(Struct):
    """What is switched on."""

    vec: bool
    fts: bool
    graph: bool
    session_scope: bool


class Defaults(Struct):
    """What a search assumes."""

    top_k: int
    top_p: float
    recency_weight: float
    priority_weight: float
    fts_bonus: float
    oversample_k: int


class SummaryState(Struct):
    """How summaries are made; `model` is null where no GGUF model is configured."""

    enabled: bool
    model: str | None
    ctx: int
    threads: int
    max_tokens: int
    temperature: float
    auto_install: bool


class RowCounts(Struct):
    """Rows of the dialect."""

    memories: int
    entities: int
    graph_entities: int
    graph_observations: int
    graph_relations: int


class DiagnosticsReport(Struct):
    """Answer of diagnostics."""

    cwd: str
    db_path: str
    model: str | None
    model_cache_dir: str
    flags: Flags
    defaults: Defaults
    summary: SummaryState
    tables: list[str]
    counts: RowCounts


class HealthReport(Struct):
    """Answer of health."""

    status: Literal["ok"]
    db_path: str
    embedding_dim: int | None
    model: str | None
    model_cache_dir: str
    tree_sitter: bool
    default_top_k: int
    default_top_p: float
    recency_weight: float
    priority_weight: float
    fts_bonus: float
    oversample_k: int
    flags: Flags
    summary: SummaryState
    log_level: str
    log_file: str | None
    workspace: str
