"""Forgetting by a person, beside the contract: notes, resources, and immutable memories, which an admin may."""

from handlers.brain import repository
from handlers.brain.base import not_found, space
from handlers.brain.index_text import note_source, resource_source, update_index
from handlers.brain.memories import delete_row
from handlers.brain.memory_requests import DeleteMemory
from handlers.brain.schemas import Note, Resource
from kernel.calls.tools import Hints, Tool, write
from kernel.store import history
from kernel.store.transaction import Tx


def forget_note(tx: Tx, request: DeleteMemory) -> str:
    """Delete a note; notes below it stay."""
    here = space(tx, request.db)
    row = tx.one("brain.notes.delete", Note, db=request.db, id=request.id)
    if row is None:
        raise not_found("Note", request.id)
    history.append(tx, here, row.id, "deleted", before=row.content)
    update_index(tx, note_source(here, row), active=False)
    return f"Deleted note '{row.id}'"


def forget_resource(tx: Tx, request: DeleteMemory) -> str:
    """Delete a resource."""
    here = space(tx, request.db)
    row = tx.one("brain.resources.delete", Resource, db=request.db, id=request.id)
    if row is None:
        raise not_found("Resource", request.id)
    source = resource_source(here, row)
    history.append(tx, here, row.id, "deleted", before=source.text)
    update_index(tx, source, active=False)
    return f"Deleted resource '{row.id}'"


def forget_immutable_memory(tx: Tx, request: DeleteMemory) -> str:
    """Delete a memory and its links, whatever protects it."""
    space(tx, request.db)
    row = repository.get(tx, request.db, request.id)
    delete_row(tx, request.db, row, reason="its owner lifted the protection")
    return f"Deleted memory '{row.id}'"


TOOLS: tuple[Tool, ...] = (
    write(forget_note, Hints("Forget note", destructive=True), permission="write"),
    write(forget_resource, Hints("Forget resource", destructive=True), permission="write"),
    write(forget_immutable_memory, Hints("Forget immutable memory", destructive=True), permission="admin"),
)
