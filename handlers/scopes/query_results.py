"""The entries in the results of memory_query: each fact once, and nothing that is null or as it is by default."""

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from handlers.scopes.results import AnyVersion, EntryRow, VersionRow, loads, to_version

INITIAL_REASON = "Initial version"  # changeReason of every first version


class TagRef(Struct):
    """A tag of an entry; memory_tag has the rest."""

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


def compact_result(row: EntryRow, score: float, tags: list[TagRef], *, expired: bool) -> QueryResult:
    """Return an entry by its name, category and priority."""
    inside: dict[str, Any] = {row.kind: FoundEntry(**_naming(row))}
    return QueryResult(
        type=row.kind,
        id=row.id,
        scope_type=row.scope_type,
        score=score,
        expired=expired or UNSET,
        tags=[tag.name for tag in tags] or UNSET,
        **inside,
    )


def full_result(
    row: EntryRow,
    current: VersionRow,
    versions: list[VersionRow] | None,
    score: float,
    tags: list[TagRef],
    *,
    expired: bool,
) -> QueryResult:
    inside: dict[str, Any] = {row.kind: _entry(row)}
    return QueryResult(
        type=row.kind,
        id=row.id,
        scope_type=row.scope_type,
        scope_id=UNSET if row.scope_id is None else row.scope_id,
        score=score,
        expired=expired or UNSET,
        tags=tags,
        version=_version(row, current),
        versions=UNSET if versions is None else [to_version(row.kind, known) for known in versions],
        **inside,
    )


def _naming(row: EntryRow) -> dict[str, Any]:
    priority = 50 if row.priority is None else row.priority
    field = "title" if row.kind == "knowledge" else "name"
    return {
        field: row.name,
        "category": row.category,
        "priority": priority if row.kind == "guideline" else None,
    }


def _entry(row: EntryRow) -> FoundEntry:
    return FoundEntry(
        id=row.id,
        is_active=bool(row.is_active),
        created_at=row.created_at,
        created_by=row.created_by,
        **_naming(row),
    )


def _version(row: EntryRow, current: VersionRow) -> FoundVersion:
    first = current.version_num == 1 and current.change_reason == INITIAL_REASON
    return FoundVersion(
        id=current.id,
        version_num=current.version_num,
        description=current.description,
        parameters=loads(current.parameters),
        examples=loads(current.examples),
        constraints=current.constraints,
        content=current.content,
        rationale=current.rationale,
        source=current.source,
        confidence=1.0 if current.confidence is None else current.confidence,
        valid_until=current.valid_until,
        created_at=None if current.created_at == row.created_at else current.created_at,
        created_by=None if current.created_by == row.created_by else current.created_by,
        change_reason=None if first else current.change_reason,
        conflict_flag=bool(current.conflict_flag),
    )
