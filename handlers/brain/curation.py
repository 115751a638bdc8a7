"""How a person edits and forgets what `brain` holds: memories, entities and notes."""

from handlers.brain import repository
from handlers.brain.schemas import Entity, Note
from kernel.store.curation import Curation, ToolCall
from kernel.store.transaction import Tx


def curate(tx: Tx, space: str, key: str) -> Curation | None:
    """The text of a memory, the description of an entity, the content of a note; None for other rows."""
    db = space.partition(":")[2]
    place = {"db": db, "id": key}
    match key.partition("_")[0]:
        case "mem":
            row = repository.get(tx, db, key)
            return Curation(row.content, ToolCall("update_memory", place, "content"), ToolCall("delete_memory", place))
        case "ent":
            entity = tx.one("brain.entities.get", Entity, db=db, id=key)
            edit, forget = ToolCall("update_entity", place, "description"), ToolCall("delete_entity", place)
            return entity and Curation(entity.description or "", edit, forget)
        case "note":
            note = tx.one("brain.notes.get", Note, db=db, id=key)
            return note and Curation(note.content, ToolCall("update_note", place, "content"))
        case _:
            return None
