"""Parses the document of an import into scopes, tags and entries; each is checked before anything is written."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, cast

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from handlers.scopes.entry_kinds import KINDS, KNOWLEDGE, TOOL, Kind
from handlers.scopes.field_types import Id, Label, Name, Text, normal_name
from kernel.calls.arguments import error_place, json_terms
from kernel.core.text import nested_deeper
from kernel.core.times import end_of_day, utc_time

# Levels of objects and lists; an entry adds some to the fields of its versions.
_MAX_FIELD_DEPTH = 64
_MAX_ENTRY_DEPTH = 80
_MAX_EXACT_INT = 2**53  # JSON readers that use doubles keep whole numbers up to this
_VersionNumber = Annotated[int, Meta(ge=1, le=_MAX_EXACT_INT)]


class RelationItem(Struct, rename="camel"):
    target_type: Label
    target_id: Id
    relation_type: Label
    id: Id | None = None
    created_at: str | None = None
    created_by: Label | None = None


class VersionItem(Struct, rename="camel"):
    id: Id | None = None
    version_num: _VersionNumber | None = None
    description: Text | None = None
    parameters: Any = None
    examples: Any = None
    constraints: Text | None = None
    content: Text | None = None
    rationale: Text | None = None
    source: Text | None = None
    confidence: Annotated[float, Meta(ge=-_MAX_EXACT_INT, le=_MAX_EXACT_INT)] | None = None
    valid_until: str | None = None
    created_at: str | None = None
    created_by: Label | None = None
    change_reason: Text | None = None
    conflict_flag: bool = False


class EntryItem(VersionItem, rename="camel"):
    """An entry; without `current_version` and `versions`, its own fields are its only version."""

    scope_type: Label = "global"
    scope_id: Id | None = None
    name: Name | None = None
    title: Name | None = None
    category: Label | None = None
    priority: Annotated[int, Meta(ge=-(2**31), le=2**31)] | None = None
    is_active: bool | None = None
    deactivated_at: str | None = None
    current_version_id: str | None = None
    current_version: VersionItem | None = None
    versions: list[VersionItem] | None = None
    tags: list[Name] | UnsetType | None = UNSET
    relations: list[RelationItem] | UnsetType | None = UNSET


class ParsedEntry(NamedTuple):
    """An entry ready to be written: `versions` oldest first, `current` among them; times as stored."""

    kind: Kind
    item: EntryItem
    label: str
    name: str
    scope_type: str
    scope_id: str | None
    versions: Sequence[VersionItem]
    current: VersionItem
    created_at: str | None
    deactivated_at: str | None


class TagItem(Struct, rename="camel"):
    name: Name
    id: Id | None = None
    category: Label = "custom"
    is_predefined: bool = False
    description: Text | None = None
    created_at: str | None = None


class OrgItem(Struct, rename="camel"):
    id: Id
    name: Name
    created_at: str | None = None
    metadata: Any = None


class ProjectItem(Struct, rename="camel"):
    id: Id
    name: Name
    org_id: Id | None = None
    description: Text | None = None
    root_path: Text | None = None
    created_at: str | None = None
    updated_at: str | None = None
    metadata: Any = None
    tags: list[Name] | None = None
    relations: list[RelationItem] | None = None


class SessionItem(Struct, rename="camel"):
    id: Id
    project_id: Id | None = None
    name: Label | None = None
    purpose: Text | None = None
    agent_id: Label | None = None
    status: Label = "active"
    started_at: str | None = None
    ended_at: str | None = None
    metadata: Any = None


SCOPES: Mapping[str, tuple[str, Any]] = {
    "organizations": ("org", OrgItem),
    "projects": ("project", ProjectItem),
    "sessions": ("session", SessionItem),
}


class LeftOut(Struct):
    """An item that was left out, and the reason."""

    entry: str
    error: str


class DocumentScopes(NamedTuple):
    """The scopes of a document; `problems` are the invalid scopes."""

    orgs: list[OrgItem]
    projects: list[ProjectItem]
    sessions: list[SessionItem]
    problems: list[LeftOut]


def plain(raw: Any) -> Any:
    """Return an item of a document as data: items of JSON are decoded when they are used."""
    return msgspec.json.decode(raw) if isinstance(raw, msgspec.Raw) else raw


def parse_entry(kind: Kind, raw: Any, label: str, scope_mapping: Mapping[str, tuple[str, str | None]]) -> ParsedEntry:
    """Return one entry of a document, in its target scope; raises ValueError naming the invalid field.

    `scope_mapping` maps `type:id` of a scope in the document to the type and id of the target scope.
    """
    item = convert(raw, EntryItem)
    name = item.title if kind is KNOWLEDGE else item.name
    if name is None or not (name := normal_name(name)):
        raise ValueError(f"{kind.label} {kind.name_field} is required")
    if not all(normal_name(tag) for tag in item.tags or ()):
        raise ValueError("Validation error: tags - must not be blank")
    scope_type, scope_id = item.scope_type, None if item.scope_type == "global" else item.scope_id
    scope_type, scope_id = scope_mapping.get(f"{scope_type}:{scope_id or ''}", (scope_type, scope_id))
    current, versions = _versions(kind, item)
    if kind is not TOOL and not current.content:
        raise ValueError(f"{kind.label} content is required")
    deactivated_at = timestamp("deactivatedAt", item.deactivated_at) if item.is_active is False else None
    created_at = timestamp("createdAt", item.created_at)
    return ParsedEntry(kind, item, label, name, scope_type, scope_id, versions, current, created_at, deactivated_at)


def entry_label(kind: Kind, raw: Any, number: int) -> str:
    name = as_object(raw).get(kind.name_field)
    return name if isinstance(name, str) and name.strip() else f"{kind.plural}[{number}]"


def convert(raw: Any, shape: Any) -> Any:
    """Return data as an instance of `shape`; raises ValueError naming the invalid field."""
    if nested_deeper(raw, _MAX_ENTRY_DEPTH):
        raise ValueError(f"nested deeper than {_MAX_ENTRY_DEPTH} levels")
    try:
        item = msgspec.convert(raw, shape)
    except msgspec.ValidationError as error:
        field, message = error_place(error)
        problem = json_terms(message).replace("`", "")
        raise ValueError(f"Validation error: {field or 'entry'} - {problem[:1].lower()}{problem[1:]}") from None
    for field, wire in zip(item.__struct_fields__, item.__struct_encode_fields__, strict=True):
        if any("\0" in text for text in _texts(getattr(item, field))):
            raise ValueError(f"Validation error: {wire} - must not hold NUL characters")
    return item


def scope_keys(document: Mapping[str, Any]) -> set[str]:
    """Return the keys of `scopeMapping` that fit a document: `type:id` of its entries, its scopes and the projects they
    name.

    Items that are not valid count too, since each of them is reported on its own.
    """
    lists = as_object(document.get("entries"))
    keys: set[str] = set()
    for kind in KINDS.values():
        for entry in (as_object(plain(raw)) for raw in as_list(lists.get(kind.plural))):
            scope_type = entry.get("scopeType", "global")
            scope_id = "" if scope_type == "global" else entry.get("scopeId") or ""
            keys |= {f"{scope_type}:{scope_id}", *_related_projects(entry)}
    scopes = as_object(document.get("scopes"))
    for many, (scope_type, _) in SCOPES.items():
        for item in map(as_object, as_list(scopes.get(many))):
            keys |= {f"{scope_type}:{item.get('id')}", *_related_projects(item)}
    return keys


def _related_projects(item: Mapping[str, Any]) -> set[str]:
    links = [as_object(link) for link in as_list(item.get("relations"))]
    return {f"project:{link.get('targetId')}" for link in links if link.get("targetType") == "project"}


def parse_scopes(raw: Any) -> DocumentScopes:
    scopes = DocumentScopes([], [], [], [])
    for at, (many, (_, shape)) in enumerate(SCOPES.items()):
        for number, item in enumerate(as_list(as_object(raw).get(many))):
            try:
                scopes[at].append(_as_stored(convert(item, shape)))
            except ValueError as error:
                scopes.problems.append(LeftOut(f"{many}[{number}]", str(error)))
    return scopes


def parse_tags(raw: Any) -> tuple[dict[str, TagItem], list[LeftOut]]:
    """Return the tags that a document defines by their names, and the invalid tags."""
    tags: dict[str, TagItem] = {}
    problems: list[LeftOut] = []
    for number, item in enumerate(as_list(raw)):
        try:
            tag: TagItem = _as_stored(convert(item, TagItem))
            if not tag.name:
                raise ValueError("Validation error: name - must not be blank")
            tags[tag.name] = tag
        except ValueError as error:
            problems.append(LeftOut(f"tags[{number}]", str(error)))
    return tags, problems


def _as_stored(item: Any) -> Any:
    if item.name is not None:
        item.name = normal_name(item.name)
    for field, wire in zip(item.__struct_fields__, item.__struct_encode_fields__, strict=True):
        if field.endswith("_at"):
            setattr(item, field, timestamp(wire, getattr(item, field)))
    return item


def as_object(raw: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", raw) if isinstance(raw, dict) else {}


def as_list(raw: Any) -> list[Any]:
    return cast("list[Any]", raw) if isinstance(raw, list) else []


def timestamp(field: str, value: str | None) -> str | None:
    """Return a time as stored; None for None; raises ValueError for any other text."""
    time = None if value is None else utc_time(value)
    if value is not None and time is None:
        raise ValueError(f"Validation error: {field} - is not an ISO 8601 time")
    return time


def _versions(kind: Kind, item: EntryItem) -> tuple[VersionItem, list[VersionItem]]:
    """Return the current version, and all versions oldest first, each with a number and with times as stored."""
    versions = [*(item.versions or ())]
    current_version = next(
        (version for version in versions if version.id is not None and version.id == item.current_version_id), None
    )
    current = item.current_version or current_version or (versions[-1] if versions else _version_of_flat_entry(item))
    place = next((at for at, version in enumerate(versions) if _is_same_version(version, current)), len(versions))
    if place == len(versions):
        versions.append(current)
    versions[place] = _same_twice(kind, versions[place], current)
    for field in ("parameters", "examples"):
        if any(nested_deeper(getattr(version, field), _MAX_FIELD_DEPTH) for version in versions):
            raise ValueError(f"Validation error: {field} - must not be nested deeper than {_MAX_FIELD_DEPTH} levels")
    numbers = [version.version_num for version in versions if version.version_num is not None]
    if len(set(numbers)) < len(numbers):
        raise ValueError("Validation error: versions - two have the same versionNum")
    later = itertools.count(max(numbers, default=0) + 1)
    numbered_versions = [
        msgspec.structs.replace(
            version,
            version_num=next(later) if version.version_num is None else version.version_num,
            valid_until=version.valid_until and end_time(version.valid_until),
            created_at=timestamp("createdAt", version.created_at),
            content=version.content if kind is TOOL else version.content or "",
        )
        for version in versions
    ]
    return numbered_versions[place], sorted(numbered_versions, key=lambda version: version.version_num or 0)


def end_time(text: str) -> str:
    """Return an expiry as stored: a date stands for the end of that day; any other text stays as it is."""
    time = utc_time(text)
    return end_of_day(text, time) if time else text


def _is_same_version(left: VersionItem, right: VersionItem) -> bool:
    if left.id is not None and right.id is not None:
        return left.id == right.id
    return left is right or (left.version_num is not None and left.version_num == right.version_num)


def _same_twice(kind: Kind, version: VersionItem, current: VersionItem) -> VersionItem:
    """Return a version that the document holds twice; raises ValueError for a field that differs."""
    fields: dict[str, Any] = {}
    for field, wire in zip(version.__struct_fields__, version.__struct_encode_fields__, strict=True):
        listed_value, current_value = getattr(version, field), getattr(current, field)
        if (
            field in kind.version_fields
            and listed_value is not None
            and current_value is not None
            and listed_value != current_value
        ):
            raise ValueError(f"Validation error: currentVersion.{wire} - differs from this version in versions")
        fields[field] = current_value if listed_value is None else listed_value
    return msgspec.structs.replace(version, **fields)


def _version_of_flat_entry(item: EntryItem) -> VersionItem:
    fields: dict[str, Any] = {field: getattr(item, field) for field in VersionItem.__struct_fields__}
    fields |= {"id": None, "version_num": 1}
    return VersionItem(**fields)


def _texts(value: Any) -> Iterator[str]:
    """Yield every text of an item, except within its JSON fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Struct):
        for field in value.__struct_fields__:
            yield from _texts(getattr(value, field))
    else:
        for part in as_list(value):
            yield from _texts(part)
