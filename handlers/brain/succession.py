"""The succession of memories: the fields that pass over, and the return of the old memory after its deletion."""

from typing import NamedTuple

import msgspec

from handlers.brain import repository
from handlers.brain.base import json_text
from handlers.brain.index_text import ACTIVE
from handlers.brain.schemas import Memory
from kernel.core.errors import Fault
from kernel.store import history
from kernel.store.transaction import Tx

_REASON = "supersede_reason"  # the key of the original


class _Freed(NamedTuple):
    id: str
    content: str


def check_not_replaced(tx: Tx, db: str, row: Memory) -> None:
    """Raises Fault("conflict") for a memory with a successor, naming it: two successors would be two truths."""
    if row.status != ACTIVE and row.superseded_by and repository.exists(tx, db, row.superseded_by):
        raise Fault("conflict", f"Memory '{row.id}' is already superseded by '{row.superseded_by}'")


def inherited_metadata(row: Memory, reason: str | None = None) -> str | None:
    """Return the metadata of a successor: those of the memory, with the reason of this change instead of an earlier
    one.
    """
    try:
        metadata = msgspec.json.decode(row.metadata or "{}", type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return json_text({_REASON: reason}) if reason else row.metadata
    if reason is None and _REASON not in metadata:
        return row.metadata
    rest = {key: value for key, value in metadata.items() if key != _REASON}
    if reason is not None:
        rest[_REASON] = msgspec.Raw(msgspec.json.encode(reason))
    return json_text(rest) if rest else None


def free_predecessors(tx: Tx, db: str, key: str) -> None:
    """Takes a memory that is about to be deleted from those it replaced, which may then be replaced again."""
    for freed in tx.all("brain.succession.free_predecessors", _Freed, db=db, id=key, now=tx.now):
        history.append(tx, f"brain:{db}", freed.id, "updated", before=freed.content, reason=f"Deleted {key}")
