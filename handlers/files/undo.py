"""The memories that an undo must leave out: a memory at a path that is taken by now, or in a store archived since."""

from collections.abc import Iterable

from handlers.files import records
from kernel.calls.dialect import Restored
from kernel.core.errors import Fault
from kernel.store import history
from kernel.store.transaction import Tx


def check_restored(tx: Tx, restored: Iterable[Restored]) -> None:
    """Raises Fault("conflict") for a restored memory that a call could not put where it is now."""
    for memory in restored:
        store = memory.space.removeprefix(records.space_of(""))
        record = records.by_id(tx, store, memory.key)
        if record is None:
            continue
        found = records.in_the_way(tx, store, record.path, record.id)
        if found is not None:
            raise Fault("conflict", f"{record.path} cannot be restored: the memory {found.id} is at {found.path}")
        if _archived_since(tx, store, memory):
            raise Fault("conflict", f"{record.path} cannot be restored: its memory store {store} was archived since")


def _archived_since(tx: Tx, store: str, memory: Restored) -> bool:
    """Return whether the store was archived after the call: memories deleted from an archived store belong there."""
    row = records.store_row(tx, store)
    if row is None or row.archived_at is None:
        return False
    *_, last = history.read(tx, memory.space, memory.key)
    return row.archived_at >= last.at
