"""The tool memory_tag (seed 000): tags, and the entries they are attached to."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta, Struct

from handlers.scopes import errors
from handlers.scopes.entry_kinds import KINDS
from handlers.scopes.field_types import Id, Label, Limit, Name, Offset, Text, normal_name, page_bounds, validate
from handlers.scopes.results import Done, EntryTag, Tag, row_factory
from handlers.scopes.targets import TargetType, check_target
from handlers.scopes.totals import Count, count_rows
from kernel.calls.tools import Hints, Tool, write
from kernel.store import history
from kernel.store.transaction import Tx

TAG_SPACE = "scopes:tags"
TagCategory = Annotated[
    Label | None, Meta(description="language, domain, category, meta, custom or another word (create: default custom)")
]
EntryType = Annotated[TargetType, Meta(description="What the entry is")]
EntryId = Annotated[Id, Meta(description="Entry ID")]
TagId = Annotated[Id | None, Meta(description="Tag ID; attach and detach take this or tagName")]
TagName = Annotated[Name | None, Meta(description="Tag name in any case (attach creates it if it doesn't exist)")]
_tag_row = row_factory(Tag, "is_predefined", bool)


class CreateTag(Struct, tag="create", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    """A new tag, or the one that has the name."""

    name: Annotated[Name, Meta(description="Tag name (unique in any case)")]
    category: TagCategory = None
    description: Annotated[Text | None, Meta(description="Tag description")] = None


class ListTags(Struct, tag="list", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    """Tags in the order of creation."""

    category: TagCategory = None
    is_predefined: Annotated[bool | None, Meta(description="Only predefined tags, or only others")] = None
    limit: Limit = 20
    offset: Offset = 0


class Attach(Struct, tag="attach", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    """An entry and the tag to attach to it."""

    needs: ClassVar[str] = "entryType, entryId, tagId or tagName"

    entry_type: EntryType
    entry_id: EntryId
    tag_id: TagId = None
    tag_name: TagName = None


class Detach(Struct, tag="detach", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    """An entry and the tag to detach from it."""

    needs: ClassVar[str] = "entryType, entryId, tagId or tagName"

    entry_type: EntryType
    entry_id: EntryId
    tag_id: TagId = None
    tag_name: TagName = None


class ForEntry(Struct, tag="for_entry", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    """The entry to list the tags of."""

    entry_type: EntryType
    entry_id: EntryId


class TagCreated(Struct):
    """Result of create; if `existed`, the name was taken and this is the tag that has it."""

    success: bool
    tag: Tag
    existed: bool


class TagList(Struct):
    """Result of list."""

    tags: list[Tag]
    meta: Count


class TagsOfEntry(Struct):
    """Result of for_entry."""

    tags: list[Tag]


class Attached(Struct, rename="camel"):
    """Result of attach."""

    success: bool
    entry_tag: EntryTag


def memory_tag(
    tx: Tx, request: CreateTag | ListTags | Attach | Detach | ForEntry
) -> TagCreated | TagList | Attached | Done | TagsOfEntry:
    """Manage tags for categorizing entries."""
    validate(request)
    if isinstance(request, CreateTag):
        tag, existed = create(tx, request.name, request.category or "custom", request.description)
        return TagCreated(True, tag, existed)
    if isinstance(request, ListTags):
        page = page_bounds(request.limit, request.offset)
        filters = {"category": request.category, "predefined": request.is_predefined}
        tags = tx.all("scopes.tags.list", _tag_row, **filters, **page)
        return TagList(tags, count_rows(tx, "scopes.tags.count", len(tags), page, **filters))
    if isinstance(request, Detach):
        return Done(_detach(tx, request))
    check_target(tx, request.entry_type, request.entry_id, "entryId")
    if isinstance(request, Attach):
        return Attached(True, attach(tx, request.entry_type, request.entry_id, _tag_to_attach(tx, request)))
    return TagsOfEntry(tx.all("scopes.tags.of_entry", _tag_row, type=request.entry_type, id=request.entry_id))


def create(tx: Tx, name: str, category: str = "custom", description: str | None = None) -> tuple[Tag, bool]:
    """Return the tag of a name in any case, created if there is none, and whether it existed."""
    key = {"name": normal_name(name), "fold": normal_name(name).casefold()}
    existing = _by_name(tx, normal_name(name))
    if existing is not None:
        return existing, True
    added = {"category": category, "description": description, "now": tx.now}
    created = tx.one("scopes.tags.add", _tag_row, id=tx.new_id("tag"), **key, **added)
    if created is None:
        raise errors.not_found("Tag", name, "tagName")
    return created, False


def id_by_name(tx: Tx, name: str) -> str | None:
    """Return the id of the tag of a normal name in any case; None if there is none."""
    found = _by_name(tx, name)
    return found and found.id


def _by_name(tx: Tx, name: str) -> Tag | None:
    return tx.one("scopes.tags.by_name", _tag_row, name=name, fold=name.casefold())


def attach(tx: Tx, entry_type: str, entry_id: str, tag_id: str) -> EntryTag:
    """Attaches a tag to an entry; an existing attachment is returned unchanged."""
    key = {"type": entry_type, "entry_id": entry_id, "tag_id": tag_id}
    created = tx.one("scopes.tags.attach", EntryTag, id=tx.new_id("et"), now=tx.now, **key)
    found = created or tx.one("scopes.tags.attachment", EntryTag, **key)
    if found is None:
        raise errors.not_found("Tag", tag_id, "tagId")
    return found


def tagged(tx: Tx, names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the active entries with one of these tags."""

    def place(kind: str, key: str) -> tuple[str, str]:
        return (KINDS[kind].space, key)

    return tx.all("scopes.tags.tagged", place, tags=[normal_name(name).casefold() for name in names])


def _tag_to_attach(tx: Tx, request: Attach) -> str:
    """Return the id of the tag to attach; a name without a tag creates one."""
    if request.tag_id is not None:
        if tx.one("scopes.tags.get", _tag_row, id=request.tag_id) is None:
            raise errors.not_found("Tag", request.tag_id, "tagId")
        return request.tag_id
    if request.tag_name is None:
        raise errors.invalid("tagId", "either tagId or tagName is required")
    return create(tx, request.tag_name)[0].id


def _detach(tx: Tx, request: Detach) -> bool:
    if request.tag_id is None and request.tag_name is None:
        raise errors.invalid("tagId", "either tagId or tagName is required")
    detached = tx.one(
        "scopes.tags.detach",
        EntryTag,
        type=request.entry_type,
        entry_id=request.entry_id,
        tag_id=request.tag_id,
        name=request.tag_name and normal_name(request.tag_name),
        fold=request.tag_name and normal_name(request.tag_name).casefold(),
    )
    if detached is None:
        return False
    history.append(tx, TAG_SPACE, detached.id, "detached", before=msgspec.json.encode(detached).decode())
    return True


TOOLS: tuple[Tool, ...] = (
    write(
        memory_tag,
        Hints("Tags"),
        permission={"create": "write", "list": "read", "attach": "write", "detach": "write", "for_entry": "read"},
        read_arms=(ListTags, ForEntry),
        kept_arms=(Detach,),
    ),
)
