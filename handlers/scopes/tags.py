"""The tool memory_tag (seed 000): tags, and the entries they are attached to."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from msgspec import Meta, Struct
from msgspec.structs import asdict

from handlers.scopes import entries, errors
from handlers.scopes.entry_kinds import KINDS
from handlers.scopes.field_types import Id, Label, Limit, Name, Offset, Text, name_key, normal_name, validate
from handlers.scopes.relations import TargetType, check_target
from handlers.scopes.results import Answer, EntryTag, Page, Tag, dumps, read_page, tag_row
from kernel.calls.tools import Hints, Tool, write
from kernel.store import history
from kernel.store.transaction import Tx

TagCategory = Annotated[
    Label | None, Meta(description="language, domain, category, meta, custom or another word (create: default custom)")
]
EntryType = Annotated[TargetType, Meta(description="What the entry is")]
EntryId = Annotated[Id, Meta(description="Entry ID")]
TagId = Annotated[Id | None, Meta(description="Tag ID; attach and detach take this or tagName")]
TagName = Annotated[Name | None, Meta(description="Tag name in any case (attach creates it if it doesn't exist)")]


class CreateTag(Struct, tag="create", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    name: Annotated[Name, Meta(description="Tag name (unique in any case)")]
    category: TagCategory = None
    description: Annotated[Text | None, Meta(description="Tag description")] = None


class ListTags(Struct, tag="list", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    category: TagCategory = None
    is_predefined: Annotated[bool | None, Meta(description="Only predefined tags, or only others")] = None
    limit: Limit = 20
    offset: Offset = 0


class Attach(Struct, tag="attach", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    needs: ClassVar[str] = "entryType, entryId, tagId or tagName"

    entry_type: EntryType
    entry_id: EntryId
    tag_id: TagId = None
    tag_name: TagName = None


class Detach(Attach, tag="detach"):
    """An entry and the tag to detach from it."""


class ForEntry(Struct, tag="for_entry", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    entry_type: EntryType
    entry_id: EntryId


def memory_tag(tx: Tx, request: CreateTag | ListTags | Attach | Detach | ForEntry) -> Answer | Page:
    """Manage tags for categorizing entries."""
    validate(request)
    if isinstance(request, CreateTag):
        tag, is_old = create(tx, request.name, request.category or "custom", request.description)
        return Answer(True, tag=tag, existed=is_old)
    if isinstance(request, ListTags):
        filters = {"category": request.category, "is_predefined": request.is_predefined}
        tags, totals = read_page(tx, "scopes.tags.list", "scopes.tags.count", tag_row, request, **filters)
        return Page(tags=tags, meta=totals)
    if isinstance(request, Detach):
        _detach(tx, request)
        return Answer(True)
    check_target(tx, request.entry_type, request.entry_id, "entryId")
    if isinstance(request, Attach):
        _check_tag(tx, request)
        tag_id = request.tag_id or create(tx, request.tag_name or "")[0].id
        return Answer(True, entry_tag=attach(tx, request.entry_type, request.entry_id, tag_id))
    return Page(tags=tx.all("scopes.tags.of_entry", tag_row, **asdict(request)))


def create(tx: Tx, name: str, category: str = "custom", description: str | None = None) -> tuple[Tag, bool]:
    """Return the tag of a name in any case, created if there is none, and whether it existed."""
    existing = _by_name(tx, normal_name(name))
    if existing is not None:
        return existing, True
    columns = {"category": category, "description": description, "is_predefined": False, "created_at": tx.now}
    new_tag = tx.one("scopes.tags.add", tag_row, id=tx.new_id("tag"), **name_key(name), **columns)
    if new_tag is None:
        raise errors.not_found("Tag", name, "tagName")
    return new_tag, False


def id_by_name(tx: Tx, name: str) -> str | None:
    """Return the id of the tag of a normal name in any case; None if there is none."""
    tag = _by_name(tx, name)
    return tag.id if tag else None


def _by_name(tx: Tx, name: str) -> Tag | None:
    return tx.one("scopes.tags.by_name", tag_row, name=name, fold=name.casefold())


def attach(tx: Tx, entry_type: str, entry_id: str, tag_id: str) -> EntryTag:
    """Attaches a tag to an entry; an existing attachment is returned unchanged."""
    key = {"entry_type": entry_type, "entry_id": entry_id, "tag_id": tag_id}
    new_entry_tag = tx.one("scopes.tags.attach", EntryTag, id=tx.new_id("et"), created_at=tx.now, **key)
    entry_tag = new_entry_tag or tx.one("scopes.tags.attachment", EntryTag, **key)
    if entry_tag is None:
        raise errors.not_found("Tag", tag_id, "tagId")
    if new_entry_tag is not None and entry_type in KINDS:
        entries.renew_words(tx, [(KINDS[entry_type].space, entry_id)])
    return entry_tag


def tagged(tx: Tx, names: Sequence[str]) -> list[tuple[str, str]]:
    def place(kind: str, key: str) -> tuple[str, str]:
        return (KINDS[kind].space, key)

    return tx.all("scopes.tags.tagged", place, tags=[normal_name(name).casefold() for name in names])


def _check_tag(tx: Tx, request: Attach | Detach) -> None:
    if request.tag_id is None:
        if request.tag_name is None:
            raise errors.invalid("tagId", "either tagId or tagName is required")
        return
    tag = tx.one("scopes.tags.get", tag_row, id=request.tag_id)
    if tag is None:
        fault = errors.not_found("Tag", request.tag_id, "tagId")
        named = id_by_name(tx, normal_name(request.tag_id))
        raise errors.with_suggestion(fault, f"the tagId of {request.tag_id} is {named}") if named else fault
    if request.tag_name is not None and name_key(request.tag_name)["fold"] != tag.name.casefold():
        raise errors.invalid("tagName", f"is not the name of {tag.id}, which is {tag.name}", "give tagId or tagName")


def _detach(tx: Tx, request: Detach) -> None:
    _check_tag(tx, request)
    entry_tag = tx.one("scopes.tags.detach", EntryTag, **asdict(request), **name_key(request.tag_name or ""))
    if entry_tag is None:
        check_target(tx, request.entry_type, request.entry_id, "entryId")
        resource, field = f"Tag of {request.entry_type} {request.entry_id}", "tagId" if request.tag_id else "tagName"
        raise errors.not_found(resource, request.tag_id or request.tag_name or "", field)
    history.append(tx, entries.TAG_SPACE, entry_tag.id, "detached", before=dumps(entry_tag))
    if request.entry_type in KINDS:
        entries.renew_words(tx, [(KINDS[request.entry_type].space, request.entry_id)])


TOOLS: tuple[Tool, ...] = (write(memory_tag, Hints("Tags"), read_arms=(ListTags, ForEntry), kept_arms=(Detach,)),)
