"""Result types that several tools share (seed 000), and the rows they are made from; absent values are null."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from handlers.scopes.entry_kinds import EntryType

S = TypeVar("S", bound=Struct)
T = TypeVar("T")


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


class ToolVersion(Struct, rename="camel"):
    """One version of a tool; `category` is that of its time, left out if it was never changed."""

    id: str
    tool_id: str
    version_num: int
    description: str | None
    parameters: dict[str, Any] | None
    examples: list[Any] | None
    constraints: str | None
    created_at: str
    created_by: str | None
    change_reason: str | None
    conflict_flag: bool
    category: str | UnsetType | None = UNSET


class GuidelineVersion(Struct, rename="camel"):
    """One version of a guideline; category and priority are those of its time, left out if neither was changed."""

    id: str
    guideline_id: str
    version_num: int
    content: str
    rationale: str | None
    examples: dict[str, Any] | None
    created_at: str
    created_by: str | None
    change_reason: str | None
    conflict_flag: bool
    category: str | UnsetType | None = UNSET
    priority: int | UnsetType = UNSET


class KnowledgeVersion(Struct, rename="camel"):
    """One version of a knowledge entry; `confidence` in [0, 1].

    `category` is that of its time, left out if it was never changed.
    """

    id: str
    knowledge_id: str
    version_num: int
    content: str
    source: str | None
    confidence: float
    valid_until: str | None
    created_at: str
    created_by: str | None
    change_reason: str | None
    conflict_flag: bool
    category: str | UnsetType | None = UNSET


AnyVersion = ToolVersion | GuidelineVersion | KnowledgeVersion


class Tool(Struct, rename="camel"):
    """A tool; `current_version` is left out if the result holds the version beside it."""

    id: str
    scope_type: str
    scope_id: str | None
    name: str
    category: str | None
    current_version_id: str
    is_active: bool
    created_at: str
    created_by: str | None
    current_version: ToolVersion | UnsetType = UNSET


class Guideline(Struct, rename="camel"):
    """A guideline; `priority` from 0 to 100, higher is more important."""

    id: str
    scope_type: str
    scope_id: str | None
    name: str
    category: str | None
    priority: int
    current_version_id: str
    is_active: bool
    created_at: str
    created_by: str | None
    current_version: GuidelineVersion | UnsetType = UNSET


class Knowledge(Struct, rename="camel"):
    id: str
    scope_type: str
    scope_id: str | None
    title: str
    category: str | None
    current_version_id: str
    is_active: bool
    created_at: str
    created_by: str | None
    current_version: KnowledgeVersion | UnsetType = UNSET
    expired: bool | UnsetType = UNSET


AnyEntry = Tool | Guideline | Knowledge


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


class Done(Struct):
    """Whether something was changed; false if the row did not exist."""

    success: bool


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


ENTRY_COLUMNS = len(EntryRow._fields)


def loads(text: str | None) -> Any:
    """Return a JSON column as data; None if it is NULL."""
    return None if text is None else msgspec.json.decode(text)


def dumps(value: Any) -> str | None:
    """Return data as the text of a JSON column; None for None."""
    return None if value is None else msgspec.json.encode(value).decode()


def grouped(rows: Iterable[tuple[str, T]]) -> dict[str, list[T]]:
    """Return the values of each key, in their order."""
    values: dict[str, list[T]] = {}
    for key, value in rows:
        values.setdefault(key, []).append(value)
    return values


def row_factory(shape: type[S], field: str, convert: Callable[[Any], Any]) -> Callable[..., S]:
    """Return a row factory for `shape` that applies `convert` to the column `field`."""
    at = shape.__struct_fields__.index(field)
    make: Callable[..., S] = shape

    def row(*columns: Any) -> S:
        return make(*columns[:at], convert(columns[at]), *columns[at + 1 :])

    return row


def to_version(kind: str, row: VersionRow) -> AnyVersion:
    head = (row.id, row.entry_id, row.version_num)
    tail = (row.created_at, row.created_by, row.change_reason, bool(row.conflict_flag))
    if kind == "tool":
        return ToolVersion(*head, row.description, loads(row.parameters), loads(row.examples), row.constraints, *tail)
    if kind == "guideline":
        return GuidelineVersion(*head, row.content or "", row.rationale, loads(row.examples), *tail)
    confidence = 1.0 if row.confidence is None else row.confidence
    return KnowledgeVersion(*head, row.content or "", row.source, confidence, row.valid_until, *tail)


class Standing(NamedTuple):
    """The category and priority of an entry until a time, when either was changed."""

    entry_id: str
    until: str
    category: str | None
    priority: int | None


def to_versions(row: EntryRow, versions: Sequence[VersionRow], standings: Sequence[Standing]) -> list[AnyVersion]:
    """Return versions of an entry, of which each has the category and priority of its time, if `standings` has any."""
    results = [to_version(row.kind, version) for version in versions]
    for version in results if standings else ():
        then = next((standing for standing in standings if standing.until > version.created_at), row)
        version.category = then.category
        if isinstance(version, GuidelineVersion):
            version.priority = _priority(then.priority)
    return results


def _priority(priority: int | None) -> int:
    return 50 if priority is None else priority


def to_entry(row: EntryRow, current: VersionRow | None = None) -> AnyEntry:
    """Return the result type of an entry, including its version if a version is given."""
    head = (row.id, row.scope_type, row.scope_id, row.name, row.category)
    tail = (row.current_version_id, bool(row.is_active), row.created_at, row.created_by)
    inside: Any = UNSET if current is None else to_version(row.kind, current)
    if row.kind == "tool":
        return Tool(*head, *tail, inside)
    if row.kind == "guideline":
        return Guideline(*head, _priority(row.priority), *tail, inside)
    return Knowledge(*head, *tail, inside)


def entry_and_version(*columns: Any) -> tuple[EntryRow, VersionRow]:
    """Return a row factory for statements that select the columns of an entry, then those of a version."""
    return EntryRow(*columns[:ENTRY_COLUMNS]), VersionRow(*columns[ENTRY_COLUMNS:])
