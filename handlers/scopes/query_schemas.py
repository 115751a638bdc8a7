"""Request and result types of memory_query (seed 000)."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from handlers.scopes.field_types import AsOf, Id, Label, Text
from handlers.scopes.inheritance import ScopeType
from handlers.scopes.query_results import QueryResult
from handlers.scopes.relations import RelationType
from handlers.scopes.targets import TargetType

DEFAULT_LIMIT = 20  # results, the default of the contract
DEFAULT_THRESHOLD = 0.7  # (1 + cosine) / 2, the default of the contract
EntryTypes = Literal["tools", "guidelines", "knowledge"]
TagNames = Annotated[list[Label], Meta(max_length=100)]
Limit = Annotated[int, Meta(ge=1, le=10_000)]
QueryOffset = Annotated[
    Annotated[int, Meta(ge=0, le=10_000)] | None, Meta(description="Results to skip, of each type in a context")
]
Compact = Annotated[bool | None, Meta(description="Entries without versions and without most fields")]
IncludeShadowed = Annotated[
    bool | None, Meta(description="Also entries that a nearer scope has one of the same name for")
]


class ScopeFilter(Struct, forbid_unknown_fields=True):
    """A scope to search in."""

    type: Annotated[ScopeType | None, Meta(description="Scope type; global for none")] = None
    id: Annotated[Id | None, Meta(description="Scope ID (required for non-global)")] = None
    inherit: Annotated[bool | None, Meta(description="Include parent scopes")] = True


class TagFilter(Struct, forbid_unknown_fields=True):
    """Names of tags, in any case."""

    include: Annotated[TagNames | None, Meta(description="Entries should have ANY of these")] = None
    require: Annotated[TagNames | None, Meta(description="Entries must have ALL of these")] = None
    exclude: Annotated[TagNames | None, Meta(description="Entries must NOT have these")] = None


class RelationFilter(Struct, forbid_unknown_fields=True):
    """One end of the relations to follow, in either direction."""

    type: Annotated[TargetType | None, Meta(description="Related entry type")] = None
    id: Annotated[Id | None, Meta(description="Related entry ID")] = None
    relation: Annotated[RelationType | None, Meta(description="Relation type")] = None


class Search(Struct, tag="search", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    """The text to search for, and filters; an entry must match all that are given."""

    types: Annotated[list[EntryTypes] | None, Meta(description="Types of entries; all of them for none")] = None
    scope: Annotated[ScopeFilter | None, Meta(description="Where to look; global for none")] = None
    tags: Annotated[TagFilter | None, Meta(description="Tags to filter by, in any case")] = None
    search: Annotated[Text | None, Meta(description="Free-text search")] = None
    related_to: Annotated[RelationFilter | None, Meta(description="Only what has a relation with this")] = None
    limit: Annotated[
        Limit | None, Meta(description=f"Max results, of each type in a context (default: {DEFAULT_LIMIT})")
    ] = DEFAULT_LIMIT
    offset: QueryOffset = 0
    include_versions: Annotated[bool | None, Meta(description="Include version history")] = False
    include_inactive: Annotated[bool | None, Meta(description="Include deactivated entries")] = False
    include_shadowed: IncludeShadowed = False
    compact: Compact = False
    semantic_search: Annotated[bool | None, Meta(description="Find by meaning besides words")] = True
    semantic_threshold: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None, Meta(description="Minimum similarity of what is found by meaning")
    ] = DEFAULT_THRESHOLD
    as_of: AsOf = None


class GetContext(Struct, tag="context", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    """The scope to return the best entries of, by kind."""

    scope_type: Annotated[ScopeType, Meta(description="Scope to return the context of")]
    scope_id: Annotated[Id | None, Meta(description="Required for non-global scopes")] = None
    inherit: Annotated[bool | None, Meta(description="Include parent scopes")] = True
    compact: Compact = False
    limit: Annotated[Limit | None, Meta(description=f"Max results per type (default: {DEFAULT_LIMIT})")] = DEFAULT_LIMIT
    offset: QueryOffset = 0
    include_shadowed: IncludeShadowed = False
    as_of: AsOf = None


class Totals(Struct, rename="camel"):
    """How many entries match and how many are returned; if `truncated`, more are near in meaning than were counted."""

    total_count: int
    returned_count: int
    truncated: bool
    has_more: bool
    unknown_tags: Annotated[
        list[str] | UnsetType, Meta(description="Tags of the filter that do not exist, if there are any")
    ] = UNSET


class SearchResults(Struct):
    """Result of search, best first."""

    results: list[QueryResult]
    meta: Totals


class ContextScope(Struct):
    """The scope of a context."""

    type: str
    id: str | None


class ScopeContext(Struct):
    """Result of context, each type best first."""

    scope: ContextScope
    tools: list[QueryResult]
    guidelines: list[QueryResult]
    knowledge: list[QueryResult]
    meta: Totals
