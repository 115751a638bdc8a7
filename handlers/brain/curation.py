"""Editing, tags and forgetting by a person: of notes, resources and immutable memories with tools beside the contract.

The decisions of a project, for the start of a session."""

from collections.abc import Callable
from functools import partial

from handlers.brain import repository
from handlers.brain.base import DATABASES, decode_words, lock_of, space
from handlers.brain.index_text import resource_source
from handlers.brain.links import delete_links_of
from handlers.brain.memories import DeleteMemory, delete_row
from handlers.brain.schemas import Entity, Link, Memory, Note, Resource
from kernel.calls.settings import setting
from kernel.calls.tools import Hints, Tool, write
from kernel.core.text import spellings
from kernel.memories.briefing import Project, Remark
from kernel.memories.curation import MOST_LINKS, Curation, Neighbour, ToolCall
from kernel.store import history
from kernel.store.transaction import Tx

_MOST = 5


def compose(text: str, _name: str) -> ToolCall:
    return ToolCall("save_memory", {"db": "core", "content": text, "category": "fact"}, until="valid_until")


def curate(tx: Tx, space: str, key: str) -> Curation | None:
    """Return the text of a memory, the description of an entity, the content of a note, a resource or a link; None
    without.

    The id of an imported row does not tell its type.
    """
    db = space.partition(":")[2]
    place = {"db": db, "id": key}
    if (memory := tx.one("brain.repository.get", Memory, **place)) is not None:
        lock = lock_of(memory)
        return Curation(
            memory.content,
            ToolCall("update_memory", place, "content", "valid_until"),
            ToolCall("delete_memory", place),
            _links(tx, db, key),
            lock=lock,
            forget_locked=ToolCall("forget_immutable_memory", place) if lock else None,
            until=memory.valid_until or "",
            tag=_tagging("update_memory", place, memory.tags),
        )
    if (entity := tx.one("brain.entities.get", Entity, **place)) is not None:
        edit, forget = ToolCall("update_entity", place, "description"), ToolCall("delete_entity", place)
        tag = _tagging("update_entity", place, entity.tags)
        return Curation(entity.description or "", edit, forget, _links(tx, db, key), tag=tag)
    if (note := tx.one("brain.notes.get", Note, **place)) is not None:
        edit, tag = ToolCall("update_note", place, "content"), _tagging("update_note", place, note.tags)
        return Curation(note.content, edit, ToolCall("forget_note", place), tag=tag)
    if (resource := tx.one("brain.resources.get", Resource, **place)) is not None:
        return Curation(resource_source(space, resource).text, None, ToolCall("forget_resource", place))
    if (link := tx.one("brain.links.get", Link, **place)) is not None:
        return Curation(f"{link.source_id} {link.relationship} {link.target_id}", None, ToolCall("delete_link", place))
    return None


def _tagging(tool: str, place: dict[str, str], column: str | None) -> Callable[[str], ToolCall | None]:
    tags = decode_words(column)
    return lambda tag: None if tag in tags else ToolCall(tool, {**place, "tags": [*tags, tag]})


def erase(tx: Tx, space: str, key: str) -> None:
    """Delete what a deleted memory leaves: the memories that it replaced and theirs, with their traces, and the queries
    that found it.
    """
    db, erased = space.partition(":")[2], [key]
    for id_ in erased:
        tx.run("brain.querylog.erase", id=id_)
        freed = history.keys_of_reason(tx, space, f"Deleted {id_}")
        for old in tx.all("brain.repository.replaced", Memory, db=db, id=id_, freed=freed):
            delete_links_of(tx, db, "memory", old.id)
            tx.run("brain.memories.delete", db=db, id=old.id)
            erased.append(old.id)
    for id_ in erased[1:]:
        history.drop_undo(tx, space, id_)
        history.forget(tx, space, id_)
        tx.add_target((space, id_, "erased"))


def _links(tx: Tx, db: str, key: str) -> list[Neighbour]:
    """Return the links of the same database; an end in another database is only named."""
    place = {"db": db, "target_id": None, "relationship": None}
    outgoing = tx.all("brain.links.from_source", Link, **{**place, "source_id": key})
    incoming = tx.all("brain.links.to_target", Link, **{**place, "target_id": key})
    links = [Neighbour(link.relationship, True, f"brain:{db}", link.target_id) for link in outgoing]
    links += [Neighbour(link.relationship, False, f"brain:{db}", link.source_id) for link in incoming]
    return links[:MOST_LINKS]


def forget_note(tx: Tx, request: DeleteMemory) -> str:
    """Delete a note; notes below it stay."""
    space(tx, request.db)
    repository.remove(tx, request.db, repository.get(tx, Note, request.db, request.id))
    return f"Deleted note '{request.id}'"


def forget_resource(tx: Tx, request: DeleteMemory) -> str:
    space(tx, request.db)
    repository.remove(tx, request.db, repository.get(tx, Resource, request.db, request.id))
    return f"Deleted resource '{request.id}'"


def forget_immutable_memory(tx: Tx, request: DeleteMemory) -> str:
    """Delete a memory and its links, even if it is protected."""
    space(tx, request.db)
    row = repository.get(tx, Memory, request.db, request.id)
    delete_row(tx, request.db, row, reason="its owner lifted the protection")
    return f"Deleted memory '{row.id}'"


def brief(tx: Tx, project: Project) -> list[Remark]:
    """Return the newest active decisions of the project, in the first database: others may be private."""
    database: str = setting(tx, DATABASES)[0]
    names = spellings([name for name in project if name])
    decision = partial(Remark, "decision", f"brain:{database}")
    return tx.all("brain.curation.decisions", decision, db=database, names=names, now=tx.now, limit=_MOST)


TOOLS: tuple[Tool, ...] = (
    write(forget_note, Hints("Forget note", destructive=True), permission="write"),
    write(forget_resource, Hints("Forget resource", destructive=True), permission="write"),
    write(forget_immutable_memory, Hints("Forget immutable memory", destructive=True), permission="admin"),
)
