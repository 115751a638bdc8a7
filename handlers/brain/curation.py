"""How a person edits and forgets what `brain` holds: memories, entities and notes."""

from handlers.brain import repository
from handlers.brain.schemas import Entity, Link, Note
from kernel.store.curation import MOST_LINKS, Curation, Neighbour, ToolCall
from kernel.store.transaction import Tx


def compose(text: str, _name: str) -> ToolCall:
    """A new memory of the first database, as a fact; an id names it."""
    return ToolCall("save_memory", {"db": "core", "content": text, "category": "fact"})


def curate(tx: Tx, space: str, key: str) -> Curation | None:
    """The text of a memory, the description of an entity, the content of a note; None for other rows."""
    db = space.partition(":")[2]
    place = {"db": db, "id": key}
    match key.partition("_")[0]:
        case "mem":
            row = repository.get(tx, db, key)
            edit, forget = ToolCall("update_memory", place, "content"), ToolCall("delete_memory", place)
            return Curation(row.content, edit, forget, _links(tx, db, key))
        case "ent":
            entity = tx.one("brain.entities.get", Entity, db=db, id=key)
            edit, forget = ToolCall("update_entity", place, "description"), ToolCall("delete_entity", place)
            return entity and Curation(entity.description or "", edit, forget, _links(tx, db, key))
        case "note":
            note = tx.one("brain.notes.get", Note, db=db, id=key)
            return note and Curation(note.content, ToolCall("update_note", place, "content"))
        case _:
            return None


def _links(tx: Tx, db: str, key: str) -> list[Neighbour]:
    """The links of the same database; the other end may lie in another one, and then it is only named."""
    one = {"db": db, "target_id": None, "relationship": None}
    outgoing = tx.all("brain.links.from_source", Link, **{**one, "source_id": key})
    incoming = tx.all("brain.links.to_target", Link, **{**one, "target_id": key})
    found = [Neighbour(link.relationship, True, f"brain:{db}", link.target_id) for link in outgoing]
    found += [Neighbour(link.relationship, False, f"brain:{db}", link.source_id) for link in incoming]
    return found[:MOST_LINKS]
