"""Undo of one call, if nothing it changed has changed again since: in a running server, or by the command."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kernel.errors import Fault
from kernel.maintenance import undo_reasons
from kernel.maintenance.index_check import rebuild_documents, rebuild_index
from kernel.search import index
from kernel.store import audit, history
from kernel.store.context import CallContext, StoreContext
from kernel.store.history import Event
from kernel.store.opening import open_writer
from kernel.store.transaction import Target, Tx
from kernel.tools import Dialect, Restored

Key = tuple[str, str]
UNDO_HOURS = 168  # the default of QUIPU_UNDO_HOURS
IMPORT = "import "  # what the name of the tool of an import begins with


def undo(
    file: Path, context: StoreContext, dialects: Sequence[Dialect], number: int, hours: int = UNDO_HOURS
) -> audit.Entry:
    """`undo_call` in a file that no server needs to have open; raises its Fault, with nothing changed."""
    with open_writer(file, context) as db, db.writing(CallContext("kernel", "undo")) as tx:
        return undo_call(tx, dialects, number, hours=hours, whole_index=True)


def undo_call(
    tx: Tx, dialects: Sequence[Dialect], number: int, *, hours: int = UNDO_HOURS, whole_index: bool = False
) -> audit.Entry:
    """Restores the memories to what they were before a call; returns the audit entry of that call.

    The index is compared with the memories that the call touched, since other calls wait meanwhile: with all of its
    dialect for `whole_index`, and where not all that it touched are known.

    Raises Fault, and the transaction must then be rolled back: `not_found` for a number without an entry, `conflict`
    for a call without undo data and if something the call changed has been changed again, `storage` where a file cannot
    be restored. `hours` is how long undo data are kept, for the reason that is told.
    """
    entry, call = undoable(tx, dialects, number, hours)
    known = {dialect.name: dialect for dialect in dialects}
    touched = _served(known, number, {entry.dialect})
    targets: list[Target] = []
    for part in audit.undo_parts(tx, call):
        targets += part.targets
        touched |= _served(known, number, {_dialect_of(space) for space, *_ in part.targets} - set(touched))
        if not tx.revert_changes(part.changes):
            raise undo_reasons.changed_since(tx, number, part.targets)
        _restore_outside(tx, touched, part.targets)
    for name, dialect in touched.items():
        own = [] if whole_index or len(targets) != entry.touched else targets
        _update_index(tx, dialect, [target for target in own if _dialect_of(target[0]) == name])
    for part in audit.undo_parts(tx, call):
        _record(tx, number, _events(tx, part.targets), keep=not entry.tool.startswith(IMPORT))
    audit.record(tx, undo_reasons.outcome_of(number))
    audit.delete_undo(tx, number)
    return entry


def _served(known: Mapping[str, Dialect], number: int, names: Iterable[str]) -> dict[str, Dialect]:
    """The dialects of these names; raises Fault for one that is not served."""
    for name in names:
        if name not in known:
            raise Fault("disabled", f"Call {number} is one of {name}, which this server does not serve.")
    return {name: known[name] for name in names}


def _dialect_of(space: str) -> str:
    return space.partition(":")[0]


def _restore_outside(tx: Tx, touched: Mapping[str, Dialect], targets: Sequence[Target]) -> None:
    """Lets the dialects restore what lies outside the database."""
    if any(dialect.after_undo for dialect in touched.values()):
        events = _events(tx, targets).items()
        for name, dialect in touched.items():
            if dialect.after_undo is not None:
                own = [Restored(*key, one.before, one.after) for key, (one, _) in events if _dialect_of(key[0]) == name]
                dialect.after_undo(tx, own)


def called(tx: Tx, number: int) -> audit.Entry:
    """Return the entry of a call; raises Fault("not_found")."""
    entry = next(iter(audit.read(tx, 1, number + 1)), None)
    if entry is None or entry.id != number:
        raise undo_reasons.no_call(tx, number)
    return entry


def undoable(tx: Tx, dialects: Sequence[Dialect], number: int, hours: int) -> tuple[audit.Entry, str]:
    """The entry of a call that can be undone, and the name under which what it changed is kept; raises Fault."""
    entry = called(tx, number)
    call = audit.undo_call(tx, number)
    if call is None:
        raise undo_reasons.nothing_kept(tx, dialects, entry, hours)
    return entry, call


def _update_index(tx: Tx, dialect: Dialect, targets: Sequence[Target]) -> None:
    """Without targets all of the dialect is compared: a call that empties it names none."""
    if targets and dialect.sources_of is not None:
        rebuild_documents(tx, dialect.sources_of, list(dict.fromkeys((space, key) for space, key, _ in targets)))
    else:
        rebuild_index(tx, dialect)


def _events(tx: Tx, targets: Sequence[Target]) -> dict[Key, tuple[Event, list[Event]]]:
    """What a call did to each target, as one event, and the events before it, oldest first."""
    found: dict[Key, tuple[Event, list[Event]]] = {}
    for space, key, operation in reversed(targets):
        last, events = found.get((space, key)) or (None, history.read(tx, space, key))
        while events and events[-1].operation != operation:
            events.pop()
        if events:
            event = events.pop()
            found[space, key] = (last._replace(before=event.before) if last else event, events)
    return dict(reversed(found.items()))


def _record(tx: Tx, number: int, before: dict[Key, tuple[Event, list[Event]]], *, keep: bool) -> None:
    """Adds an event for each restored memory, and restores author and times in the index.

    Of what an import added, and nothing else has touched, no history is kept unless `keep`: it was never of this store.
    """
    tx.flush_deferred()
    for (space, key), (last, events) in before.items():
        if not keep and not events:
            history.forget(tx, space, key)
            continue
        # Not `last.before`: a new memory may begin with the text of the one that it replaces.
        text = events[-1].after if events else None
        history.append(tx, space, key, "undone", before=last.after, after=text, reason=f"call {number}")
        if events and text is not None:
            created = next((event for event in reversed(events) if event.before is None), events[0])
            *_, dialect, tool, actor, at = events[-1]
            index.set_provenance(tx, space, key, (dialect, tool, actor), created.at, at)
