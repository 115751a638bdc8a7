"""Request and result types of memory_query (seed 000).

A result holds each fact once, and nothing that is null or as it is by default.
"""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from handlers.scopes.field_types import AsOf, Id, Label, Text
from handlers.scopes.inheritance import ScopeType
from handlers.scopes.relations import RelationType, TargetType
from handlers.scopes.results import AnyVersion, EntryRow, VersionRow, loads, to_version

DEFAULT_LIMIT = 20  # results, the default of the contract
DEFAULT_THRESHOLD = 0.7  # (1 + cosine) / 2, the default of the contract
INITIAL_REASON = "Initial version"  # changeReason of every first version
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

IncludeExpired = Annotated[bool | None, Meta(description="Also knowledge whose validity has ended, after the rest")]


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
    include_expired: IncludeExpired = False
    compact: Compact = False
    semantic_search: Annotated[bool | None, Meta(description="Find by meaning besides words")] = True
    semantic_threshold: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None, Meta(description="Minimum similarity of what is found by meaning")
    ] = DEFAULT_THRESHOLD
    as_of: AsOf = None


class GetContext(Struct, tag="context", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    scope_type: Annotated[ScopeType, Meta(description="Scope to return the context of")]
    scope_id: Annotated[Id | None, Meta(description="Required for non-global scopes")] = None
    inherit: Annotated[bool | None, Meta(description="Include parent scopes")] = True
    compact: Compact = False
    limit: Annotated[Limit | None, Meta(description=f"Max results per type (default: {DEFAULT_LIMIT})")] = DEFAULT_LIMIT
    offset: QueryOffset = 0
    include_shadowed: IncludeShadowed = False
    include_expired: IncludeExpired = False
    as_of: AsOf = None


class TagRef(Struct):
    id: str
    name: str


class FoundEntry(Struct, rename="camel", kw_only=True, omit_defaults=True):
    """An entry: `title` for knowledge, `name` for the others; `is_active` is false or left out."""

    id: str | None = None
    name: str | None = None
    title: str | None = None
    category: str | None = None
    priority: int | None = None
    is_active: bool = True
    created_at: str | None = None
    created_by: str | None = None


class FoundVersion(Struct, rename="camel", kw_only=True, omit_defaults=True):
    """The version of an entry.

    Left out are time and author if they are those of the entry, a `confidence` of 1 and the reason of a first
    version; `conflict_flag` is true or left out.
    """

    id: str
    version_num: int
    description: str | None = None
    parameters: dict[str, Any] | None = None
    examples: Any = None
    constraints: str | None = None
    content: str | None = None
    rationale: str | None = None
    source: str | None = None
    confidence: float = 1.0
    valid_until: str | None = None
    created_at: str | None = None
    created_by: str | None = None
    change_reason: str | None = None
    conflict_flag: bool = False


class QueryResult(Struct, rename="camel", kw_only=True):
    """One entry under the name of its kind, with its version beside it; `expired` is true or left out.

    A compact result has the names of the tags, if there are any, and neither `scope_id` nor a version.
    """

    type: str
    id: str
    scope_type: str
    scope_id: str | UnsetType = UNSET
    score: float
    expired: bool | UnsetType = UNSET
    tags: list[TagRef] | list[str] | UnsetType = UNSET
    tool: FoundEntry | UnsetType = UNSET
    guideline: FoundEntry | UnsetType = UNSET
    knowledge: FoundEntry | UnsetType = UNSET
    version: FoundVersion | UnsetType = UNSET
    versions: list[AnyVersion] | UnsetType = UNSET


class Totals(Struct, rename="camel"):
    """How many entries match and how many are returned; if `truncated`, more are near in meaning than were counted."""

    total_count: int
    returned_count: int
    truncated: bool
    has_more: bool
    expired_count: Annotated[
        int | UnsetType,
        Meta(description="Knowledge that is left out since its validity has ended; includeExpired shows it"),
    ] = UNSET
    unknown_tags: Annotated[
        list[str] | UnsetType, Meta(description="Tags of the filter that do not exist, if there are any")
    ] = UNSET


class SearchResults(Struct):
    results: list[QueryResult]
    meta: Totals


class ContextScope(Struct):
    type: str
    id: str | None


class ScopeContext(Struct):
    scope: ContextScope
    tools: list[QueryResult]
    guidelines: list[QueryResult]
    knowledge: list[QueryResult]
    meta: Totals


def to_result(
    row: EntryRow,
    current: VersionRow,
    versions: list[VersionRow] | None,
    score: float,
    tags: list[TagRef],
    *,
    expired: bool,
    compact: bool,
) -> QueryResult:
    """Return an entry; of a compact result its name, category and priority, and the names of its tags."""
    priority = 50 if row.priority is None else row.priority
    entry = FoundEntry(category=row.category, priority=priority if row.kind == "guideline" else None)
    setattr(entry, "title" if row.kind == "knowledge" else "name", row.name)
    result = QueryResult(
        type=row.kind, id=row.id, scope_type=row.scope_type, score=score, expired=expired or UNSET, tags=tags
    )
    setattr(result, row.kind, entry)
    if compact:
        result.tags = [tag.name for tag in tags] or UNSET
        return result
    entry.id, entry.is_active = row.id, bool(row.is_active)
    entry.created_at, entry.created_by = row.created_at, row.created_by
    result.scope_id = UNSET if row.scope_id is None else row.scope_id
    result.version = _version(row, current)
    result.versions = UNSET if versions is None else [to_version(row.kind, version) for version in versions]
    return result


def _version(row: EntryRow, current: VersionRow) -> FoundVersion:
    version = FoundVersion(**{field: getattr(current, field) for field in FoundVersion.__struct_fields__})
    version.parameters, version.examples = loads(current.parameters), loads(current.examples)
    version.confidence = 1.0 if current.confidence is None else current.confidence
    version.conflict_flag = bool(current.conflict_flag)
    if current.created_at == row.created_at:
        version.created_at = None
    if current.created_by == row.created_by:
        version.created_by = None
    if current.version_num == 1 and current.change_reason == INITIAL_REASON:
        version.change_reason = None
    return version
