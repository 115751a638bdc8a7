"""Takes back what one call changed, if nothing of it has changed again since."""

from collections.abc import Sequence
from pathlib import Path

from kernel.errors import Fault
from kernel.maintenance.consistency import agree
from kernel.search import index
from kernel.store import audit, history
from kernel.store.context import CallContext, StoreContext
from kernel.store.history import Event
from kernel.store.sqlite.changesets import reverse
from kernel.store.sqlite.connection import Connection
from kernel.store.transaction import Tx
from kernel.tools import Dialect

Key = tuple[str, str]


def undo(file: Path, world: StoreContext, dialects: Sequence[Dialect], number: int) -> audit.Entry:
    """Makes the memories what they were before a call of the audit; the row of that call.

    Raises Fault: `not_found` for a number without a row or whose changes are not kept, `conflict` where something it
    changed has been changed again, `storage` where a file cannot be put back. Then nothing has changed.
    """
    db = Connection(file, world, readonly=False)
    db.load_vectors()
    try:
        with db.writing(CallContext("kernel", "undo")) as tx:
            entry, kept = _found(tx, number)
            if not reverse(db, kept.changes):
                raise Fault("conflict", f"Something that call {number} changed has been changed again since.")
            dialect = next(dialect for dialect in dialects if dialect.name == entry.dialect)
            before = _told(tx, kept.targets)
            if dialect.undone is not None:
                gone = [(*key, event.before) for key, (event, _) in before.items() if event.after is None]
                dialect.undone(tx, [(space, key, text) for space, key, text in gone if text is not None])
            agree(tx, [dialect], repair=True)
            _remember(tx, number, before)
            audit.note(tx, f"undid {number}")
            audit.forget(tx, number)
        return entry
    finally:
        db.close()


def _found(tx: Tx, number: int) -> tuple[audit.Entry, audit.Kept]:
    entry = next(iter(audit.read(tx, 1, number + 1)), None)
    if entry is None or entry.id != number:
        raise Fault("not_found", f"There is no call {number} in the audit.")
    kept = audit.kept(tx, number)
    if kept is None:
        raise Fault("not_found", f"What call {number} changed is not kept, or no more.")
    return entry, kept


def _told(tx: Tx, targets: Sequence[tuple[str, str, str]]) -> dict[Key, tuple[Event, list[Event]]]:
    """The event of each target, and those before it, oldest first."""
    found: dict[Key, tuple[Event, list[Event]]] = {}
    for space, key, operation in targets:
        events = history.read(tx, space, key)
        while events and events[-1].operation != operation:
            events.pop()
        if events:
            found[space, key] = (events.pop(), events)
    return found


def _remember(tx: Tx, number: int, before: dict[Key, tuple[Event, list[Event]]]) -> None:
    """Tells the history what is again as it was, and of whom the index has it."""
    tx.flush_deferred()
    for (space, key), (last, events) in before.items():
        history.append(tx, space, key, "undone", before=last.after, after=last.before, reason=f"call {number}")
        if events and last.before is not None:
            born = next((event for event in reversed(events) if event.before is None), events[0])
            *_, dialect, tool, actor, at = events[-1]
            index.set_provenance(tx, space, key, (dialect, tool, actor), born.at, at)
