"""The history of a memory (seed 003, Smart Memory Tools)."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from handlers.brain.base import databases, parse_time, space
from handlers.brain.schemas import Id, Time
from kernel.calls.tools import Hints, Tool, read
from kernel.store import history
from kernel.store.history import Event
from kernel.store.transaction import Tx

# These rows have history too, but the contract is about memories.
_OTHER_ID_PREFIXES = ("ent_", "note_", "lnk_")


class GetMemoryHistory(Struct, forbid_unknown_fields=True):
    """A memory, and the moment to look back to."""

    memory_id: Annotated[Id, Meta(description="Id of the memory, deleted ones included")]
    as_of: Annotated[Time | None, Meta(description="Also show its content at this ISO 8601 date or time")] = None


class MemoryChange(Struct):
    """One event of a memory; content is null if it had none, or was no longer active."""

    id: str
    db: str
    memory_id: str
    operation: str
    content_before: str | None
    content_after: str | None
    reason: str | None
    changed_at: str


class MemoryHistory(Struct):
    """Answer of get_memory_history, oldest first. With `as_of`: what happened until then, and `content` at
    that time, null if the memory did not exist or was no longer active.
    """

    db: str
    history: list[MemoryChange]
    as_of: str | UnsetType = UNSET
    content: str | UnsetType | None = UNSET


def get_memory_history(tx: Tx, request: GetMemoryHistory) -> MemoryHistory | str:
    """Show everything that happened to a memory, in whichever database it is: its content before and after, why and
    when; with as_of also its content at that moment.
    """
    at = parse_time("as_of", request.as_of)
    if request.memory_id.startswith(_OTHER_ID_PREFIXES):
        return f"No history found for memory '{request.memory_id}'"
    # The contract takes no database here, and a deleted memory has no row that would name it.
    for db in databases(tx):
        events = history.read(tx, space(tx, db), request.memory_id)
        if events:
            return _memory_history(tx, db, request.memory_id, events, at)
    return f"No history found for memory '{request.memory_id}'"


def _memory_history(tx: Tx, db: str, key: str, events: Sequence[Event], at: str | None) -> MemoryHistory:
    changes = [
        MemoryChange(
            f"mhist_{event.id:021}", db, key, event.operation, event.before, event.after, event.reason, event.at
        )
        for event in events
        if at is None or event.at <= at
    ]
    if at is None:
        return MemoryHistory(db, changes)
    return MemoryHistory(db, changes, at, history.as_of(tx, space(tx, db), key, at))


TOOLS: tuple[Tool, ...] = (read(get_memory_history, Hints("Get memory history"), permission="read"),)
