"""Result types that several tools share (seed 000), and the rows they are made from; absent values are null."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from handlers.scopes.entry_kinds import DEFAULT_PRIORITY, JSON_COLUMNS, KINDS, EntryType
from kernel.store.transaction import Tx

MAX_PAGE_ROWS = 100  # the cap of the contract
S = TypeVar("S", bound=Struct)
T = TypeVar("T")


class _Paged(Protocol):
    limit: int | None
    offset: int | None


class Count(Struct, rename="camel"):
    total_count: int
    returned_count: int
    has_more: bool


class Organization(Struct, rename="camel"):
    id: str
    name: str
    created_at: str
    metadata: dict[str, Any] | None


class Project(Struct, rename="camel"):
    id: str
    org_id: str | None
    name: str
    description: str | None
    root_path: str | None
    created_at: str
    updated_at: str
    metadata: dict[str, Any] | None


class Session(Struct, rename="camel"):
    id: str
    project_id: str | None
    name: str | None
    purpose: str | None
    agent_id: str | None
    status: str
    started_at: str
    ended_at: str | None
    metadata: dict[str, Any] | None


class Version(Struct, rename="camel", kw_only=True):
    """One version of an entry, with the fields of its kind; `confidence` in [0, 1].

    Category and priority are those of its time, left out if they were never changed.
    """

    id: str
    tool_id: str | UnsetType = UNSET
    guideline_id: str | UnsetType = UNSET
    knowledge_id: str | UnsetType = UNSET
    version_num: int
    content: str | UnsetType = UNSET
    rationale: str | UnsetType | None = UNSET
    description: str | UnsetType | None = UNSET
    parameters: dict[str, Any] | UnsetType | None = UNSET
    examples: dict[str, Any] | list[Any] | UnsetType | None = UNSET
    constraints: str | UnsetType | None = UNSET
    source: str | UnsetType | None = UNSET
    confidence: float | UnsetType = UNSET
    valid_until: str | UnsetType | None = UNSET
    created_at: str
    created_by: str | None
    change_reason: str | None
    conflict_flag: bool
    category: str | UnsetType | None = UNSET
    priority: int | UnsetType = UNSET


class Entry(Struct, rename="camel", kw_only=True):
    """An entry: `title` for knowledge, `name` for the others; `priority` of a guideline from 0 to 100."""

    id: str
    scope_type: str
    scope_id: str | None
    name: str | UnsetType = UNSET
    title: str | UnsetType = UNSET
    category: str | None
    priority: int | UnsetType = UNSET
    current_version_id: str
    is_active: bool
    created_at: str
    created_by: str | None
    current_version: Version
    expired: bool | UnsetType = UNSET


class Tag(Struct, rename="camel"):
    id: str
    name: str
    category: str
    is_predefined: bool
    description: str | None
    created_at: str


class EntryTag(Struct, rename="camel"):
    id: str
    entry_type: str
    entry_id: str
    tag_id: str
    created_at: str


class Relation(Struct, rename="camel"):
    id: str
    source_type: str
    source_id: str
    target_type: str
    target_id: str
    relation_type: str
    created_at: str
    created_by: str | None


class Conflict(Struct, rename="camel"):
    """Two versions of one entry that were written within five seconds."""

    id: str
    entry_type: str
    entry_id: str
    version_a_id: str
    version_b_id: str
    detected_at: str
    resolved: bool
    resolution: str | None
    resolved_at: str | None
    resolved_by: str | None


class Answer(Struct, rename="camel"):
    """Result of a tool that changes or shows one thing, under the name of its kind.

    If `existed`, the name was taken and the tag is that which has it.
    """

    success: bool | UnsetType = UNSET
    organization: Organization | UnsetType = UNSET
    project: Project | UnsetType = UNSET
    session: Session | UnsetType = UNSET
    tool: Entry | UnsetType = UNSET
    guideline: Entry | UnsetType = UNSET
    knowledge: Entry | UnsetType = UNSET
    tag: Tag | UnsetType = UNSET
    existed: bool | UnsetType = UNSET
    entry_tag: EntryTag | UnsetType = UNSET
    relation: Relation | UnsetType = UNSET
    conflict: Conflict | UnsetType = UNSET


class Page(Struct, kw_only=True):
    """Result of a tool that lists things, under the name of their kind; `meta` unless the list is always whole."""

    organizations: list[Organization] | UnsetType = UNSET
    projects: list[Project] | UnsetType = UNSET
    sessions: list[Session] | UnsetType = UNSET
    tools: list[Entry] | UnsetType = UNSET
    guidelines: list[Entry] | UnsetType = UNSET
    knowledge: list[Entry] | UnsetType = UNSET
    versions: list[Version] | UnsetType = UNSET
    tags: list[Tag] | UnsetType = UNSET
    relations: list[Relation] | UnsetType = UNSET
    conflicts: list[Conflict] | UnsetType = UNSET
    meta: Count | UnsetType = UNSET


class EntryRow(NamedTuple):
    """A row of `scopes_entry`, in the column order of every statement that selects entries."""

    id: str
    kind: EntryType
    scope_type: str
    scope_id: str | None
    name: str
    category: str | None
    priority: int | None
    current_version_id: str
    is_active: int
    created_at: str
    created_by: str | None


class VersionRow(NamedTuple):
    """A row of `scopes_version`, in the column order of every statement; parameters and examples are JSON text."""

    id: str
    entry_id: str
    version_num: int
    description: str | None
    parameters: str | None
    examples: str | None
    constraints: str | None
    content: str | None
    rationale: str | None
    source: str | None
    confidence: float | None
    valid_until: str | None
    created_at: str
    created_by: str | None
    change_reason: str | None
    conflict_flag: int


_ENTRY_COLUMNS = len(EntryRow._fields)


def loads(text: str | None) -> Any:
    """Return the value of a JSON column; the text itself of a row from elsewhere that holds none."""
    try:
        return None if text is None else msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return text


def dumps(value: Any) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


def grouped(rows: Iterable[tuple[str, T]]) -> dict[str, list[T]]:
    values: dict[str, list[T]] = {}
    for key, value in rows:
        values.setdefault(key, []).append(value)
    return values


def row_factory(shape: type[S], field: str, convert: Callable[[Any], Any]) -> Callable[..., S]:
    at = shape.__struct_fields__.index(field)
    make: Callable[..., S] = shape

    def row(*columns: Any) -> S:
        return make(*columns[:at], convert(columns[at]), *columns[at + 1 :])

    return row


org_row = row_factory(Organization, "metadata", loads)
project_row = row_factory(Project, "metadata", loads)
session_row = row_factory(Session, "metadata", loads)
tag_row = row_factory(Tag, "is_predefined", bool)


def to_version(kind: str, row: VersionRow) -> Version:
    own_fields: dict[str, Any] = {field: getattr(row, field) for field in KINDS[kind].version_fields}
    if "content" in own_fields:
        own_fields["content"] = row.content or ""
    if "confidence" in own_fields:
        own_fields["confidence"] = 1.0 if row.confidence is None else row.confidence
    own_fields |= {field: loads(own_fields[field]) for field in JSON_COLUMNS if field in own_fields}
    own_fields[f"{kind}_id"] = row.entry_id
    return Version(
        id=row.id,
        version_num=row.version_num,
        created_at=row.created_at,
        created_by=row.created_by,
        change_reason=row.change_reason,
        conflict_flag=bool(row.conflict_flag),
        **own_fields,
    )


class Standing(NamedTuple):
    """The category and priority of an entry until a time, when either was changed."""

    entry_id: str
    until: str
    category: str | None
    priority: int | None


def to_versions(row: EntryRow, versions: Sequence[VersionRow], standings: Sequence[Standing]) -> list[Version]:
    """Return versions of an entry, of which each has the category and priority of its time, if `standings` has any."""
    results = [to_version(row.kind, version) for version in versions]
    for version in results if standings else ():
        then = next((standing for standing in standings if standing.until > version.created_at), row)
        version.category = then.category
        if row.kind == "guideline":
            version.priority = priority_of(then.priority)
    return results


def priority_of(stored: int | None) -> int:
    return DEFAULT_PRIORITY if stored is None else stored


def to_entry(row: EntryRow, current: VersionRow) -> Entry:
    name: dict[str, Any] = {KINDS[row.kind].name_field: row.name}
    return Entry(
        id=row.id,
        scope_type=row.scope_type,
        scope_id=row.scope_id,
        category=row.category,
        priority=priority_of(row.priority) if row.kind == "guideline" else UNSET,
        current_version_id=row.current_version_id,
        is_active=bool(row.is_active),
        created_at=row.created_at,
        created_by=row.created_by,
        current_version=to_version(row.kind, current),
        **name,
    )


def entry_and_version(*columns: Any) -> tuple[EntryRow, VersionRow]:
    """Return a row factory for statements that select the columns of an entry, then those of a version."""
    return EntryRow(*columns[:_ENTRY_COLUMNS]), VersionRow(*columns[_ENTRY_COLUMNS:])


def read_page(
    tx: Tx, rows: str, count: str, row: Callable[..., T], request: _Paged, default: int = 20, /, **filters: Any
) -> tuple[list[T], Count]:
    """Return a page of the rows of a statement, `default` if the request has no limit, and its totals.

    The statement `count` counts the rows that match, and runs only if the page is full.
    """
    limit, offset = min(default if request.limit is None else request.limit, MAX_PAGE_ROWS), request.offset or 0
    page = tx.all(rows, row, limit=limit, offset=offset, **filters)
    end = offset + len(page)
    is_last = len(page) < limit and (page or offset == 0)
    total = end if is_last else tx.one(count, int, **filters) or 0
    return page, Count(total, len(page), end < total)
