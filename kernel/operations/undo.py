"""Undo of one call, if nothing it changed has changed again since: in a running server, or by the command."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kernel.calls.dialect import Dialect, Restored
from kernel.calls.tools import Tool
from kernel.core.errors import Fault
from kernel.core.limits import BOUNDS
from kernel.core.text import one_word
from kernel.core.times import later
from kernel.engines.opening import open_writer
from kernel.engines.yielding import Turns
from kernel.operations.index_check import differing_keys, mending_steps, rebuild_documents
from kernel.search import index
from kernel.store import audit, history
from kernel.store.context import CallContext, StoreContext
from kernel.store.history import Event
from kernel.store.long_work import Steps
from kernel.store.transaction import Target, Tx

Key = tuple[str, str]
UNDO_HOURS = 168  # the default of QUIPU_UNDO_HOURS
IMPORT = "import "  # begins the name of the tool of an import
_STEP_TARGETS = 16  # memories that are indexed in one step: a slice is cut between steps
# These begin the outcomes of an undo in the audit: of all of it, and of the first of several slices.
_UNDID, _BEGAN = "undid ", "began to undo "
_MOST_PLACES = 1000  # of a call's targets, that are looked for among later calls
_MOST_BESIDE = 20  # calls that ended before a call in slices did
_MOST_NAMED = 3
_UNDONE = "undone"  # the operation of an undo in the history
_HALF = "What the last slices of the call had changed is undone; once nothing is in the way, `quipu undo {}` goes on."


def undo(
    file: Path,
    context: StoreContext,
    dialects: Sequence[Dialect],
    number: int,
    hours: int = UNDO_HOURS,
    *,
    alone: bool = True,
) -> audit.Entry:
    """Undo a call in a file that others may have open: in slices, as `undo_steps` says, with the index after them.

    Raises the Faults of `undo_steps`. Conflicts are looked for first, so that as a rule nothing is changed then.
    """
    limits = context.call_limits._replace(milliseconds=BOUNDS["store_milliseconds"].high)
    origin = CallContext("kernel", "undo")
    with open_writer(file, context._replace(call_limits=limits)) as db:
        conflict = db.read(origin, partial(changed_since, number=number))
        if conflict is not None:
            raise conflict
        turns = Turns(db, origin, alone=alone)
        undone = turns.run(undo_steps(dialects, number, hours))
        for dialect in undone.dialects:
            keys = db.read(origin, partial(differing_keys, dialect=dialect))
            turns.run(mending_steps(dialect, keys))
        if not undone.finished:
            turns.write(partial(_finish, undone=undone))
        return undone.entry


def whole_undo(dialects: Sequence[Dialect], number: int, hours: int) -> Steps[audit.Entry]:
    """Undo a call in steps, for a server; raises the Faults of `undo_steps`.

    The index is compared with the memories that the call touched, since other calls wait meanwhile: with all of its
    dialect, in one step, if not all that it touched are known.
    """
    undone = yield from undo_steps(dialects, number, hours)
    if not undone.finished:
        tx = yield
        for dialect in undone.dialects:
            rebuild_documents(tx, dialect, differing_keys(tx, dialect))
        _finish(tx, undone)
    return undone.entry


def changed_since(tx: Tx, number: int) -> Fault | None:
    """Return the Fault for a call of which something has been changed again; references to it are not looked at."""
    call = audit.undo_call(tx, number)
    if call is None:
        return None

    def changes(call: str = call) -> Iterator[bytes]:
        return (part.changes for part in audit.undo_parts(tx, call) if part.changes != audit.REVERTED)

    if tx.can_revert(changes):
        return None
    return _conflict_of(tx, number, next(audit.undo_parts(tx, call)).targets)


class _Undone(NamedTuple):
    """The entry of a call that is undone, its dialects, how many memories were restored and the first of them.

    It is not `finished` if not all that the call touched are known, before all of its dialects is compared with the
    index.
    """

    entry: audit.Entry
    dialects: list[Dialect]
    touched: int
    first: list[Target]
    finished: bool


def undo_steps(dialects: Sequence[Dialect], number: int, hours: int) -> Steps[_Undone]:
    """Restore the memories to their state before a call, in steps.

    Each slice of the call is restored at once, the last slice first, and its memories are indexed a few at a time. An
    undo that was cut off is a call that was cut off earlier: another undo goes on with it.

    Raises Fault: `not_found` for a number without an entry, `conflict` for a call without undo data and if something
    the call changed has been changed again, `storage` if a file cannot be restored. `hours` is how long undo data
    are kept, for the reason that is told.
    """
    tx = yield
    entry = called(tx, number)
    if (call := audit.undo_call(tx, number)) is None:
        raise _nothing_kept(tx, dialects, entry, hours)
    by_name = {dialect.name: dialect for dialect in dialects}
    of_call = _served(by_name, number, {entry.dialect})
    ongoing = is_resumed = audit.first_with_outcome(tx, f"{_BEGAN}{number}", after=number) is not None
    count = changes = 0
    first: list[Target] = []
    while (part := audit.last_part(tx, call)) is not None:
        before = tx.touched[0]
        of_call |= _served(by_name, number, {_dialect_of(space) for space, *_ in part.targets} - set(of_call))
        if part.changes != audit.REVERTED:
            _revert(tx, number, part, of_call, ongoing=ongoing)
        count += _index(tx, entry, call, part, of_call)
        changes += tx.touched[0] - before
        first = first or tx.touched[1]
        if not audit.has_parts(tx, call):
            break
        if not ongoing:
            audit.record(tx, f"{_BEGAN}{number}")
            ongoing = True
        tx = yield
    undone = _Undone(
        entry, [*of_call.values()], changes, first, not is_resumed and count == entry.touched and count > 0
    )
    if undone.finished:
        _finish(tx, undone)
    return undone


def _revert(tx: Tx, number: int, part: audit.UndoPart, of_call: Mapping[str, Dialect], *, ongoing: bool) -> None:
    if not tx.revert_changes(part.changes):
        fault = _conflict_of(tx, number, part.targets)
        raise Fault(fault.code, f"{fault.message} {_HALF.format(number)}") if ongoing else fault
    _restore_outside(tx, of_call, part.targets)


def _index(tx: Tx, entry: audit.Entry, call: str, part: audit.UndoPart, of_call: Mapping[str, Dialect]) -> int:
    """Index the memories of a part, or leave it to smaller parts; return the number of memories that are done."""
    if len(part.targets) > _STEP_TARGETS:
        audit.split_part(tx, call, part, _STEP_TARGETS)
        return 0
    for name, dialect in of_call.items():
        own_keys = dict.fromkeys((space, key) for space, key, _ in part.targets if _dialect_of(space) == name)
        rebuild_documents(tx, dialect, [*own_keys])
    _record(tx, entry.id, _events(tx, part.targets), keep=not entry.tool.startswith(IMPORT))
    audit.delete_part(tx, call, part)
    return len(part.targets)


def _finish(tx: Tx, undone: _Undone) -> None:
    audit.record(tx, f"{_UNDID}{undone.entry.id}", touched=(undone.touched, undone.first))
    audit.delete_undo(tx, undone.entry.id)


def _served(by_name: Mapping[str, Dialect], number: int, names: Iterable[str]) -> dict[str, Dialect]:
    for name in names:
        if name not in by_name:
            raise Fault("disabled", f"Call {number} is one of {name}, which this server does not serve.")
    return {name: by_name[name] for name in names}


def _dialect_of(space: str) -> str:
    return space.partition(":")[0]


def _restore_outside(tx: Tx, of_call: Mapping[str, Dialect], targets: Sequence[Target]) -> None:
    if any(dialect.files.after_undo for dialect in of_call.values()):
        rows = [Restored(*key, event.before, event.after) for key, (event, _) in _events(tx, targets).items()]
        for name, dialect in of_call.items():
            if dialect.files.after_undo is not None:
                dialect.files.after_undo(tx, [row for row in rows if _dialect_of(row.space) == name])


def called(tx: Tx, number: int) -> audit.Entry:
    entry = next(iter(audit.read(tx, 1, number + 1)), None)
    if entry is None or entry.id != number:
        newest = next(iter(audit.read(tx, 1)), None)
        reason = "no call has changed anything yet" if newest is None else f"the newest is call {newest.id}"
        raise Fault("not_found", f"There is no call {number} in the audit: {reason}.")
    return entry


def _events(tx: Tx, targets: Sequence[Target]) -> dict[Key, tuple[Event, list[Event]]]:
    """Return the effect of a call on each target, as one event with the id of its first, and the events before it that
    hold, oldest first.
    """
    by_key: dict[Key, tuple[Event, list[Event]]] = {}
    for space, key, operation in reversed(targets):
        last, events = by_key.get((space, key)) or (None, _standing(history.read(tx, space, key)))
        while events and events[-1].operation != operation:
            events.pop()
        if events:
            event = events.pop()
            by_key[space, key] = (last._replace(id=event.id, before=event.before) if last else event, events)
    return dict(reversed(by_key.items()))


def _standing(events: Sequence[Event]) -> list[Event]:
    """Return the events that hold: neither what an undo took back, nor the undo, which leaves a text of before."""
    standing: list[Event] = []
    for event in events:
        if event.operation != _UNDONE:
            standing.append(event)
            continue
        del standing[-1:]
        left = next((at for at in range(len(standing), 0, -1) if standing[at - 1].after == event.after), None)
        if left is not None or event.after is None:
            del standing[left or 0 :]
    return standing


def _record(tx: Tx, number: int, before: dict[Key, tuple[Event, list[Event]]], *, keep: bool) -> None:
    """Add an event for each restored memory, and restores author and times in the index.

    Memories that an import added, and nothing else has touched, lose their history unless `keep`: it is of another
    store.
    """
    tx.flush_deferred()
    for (space, key), (last, events) in before.items():
        if not keep and not events and history.read(tx, space, key)[0].id == last.id:
            history.forget(tx, space, key)
            continue
        # Not `last.before`: a new memory may begin with the text of the memory that it replaces.
        text = events[-1].after if events else None
        history.append(tx, space, key, _UNDONE, before=last.after, after=text, reason=f"call {number}")
        if events and text is not None:
            first = next((event for event in reversed(events) if event.before is None), events[0])
            *_, dialect, tool, actor, at = events[-1]
            index.set_provenance(tx, space, key, (dialect, tool, actor), first.at, at)


def _nothing_kept(tx: Tx, dialects: Sequence[Dialect], entry: audit.Entry, hours: int) -> Fault:
    """Return the Fault for a call of which nothing is kept; `hours` is how long that is done now, 0 for never."""
    tool = _tool(dialects, entry)
    reason = (
        _undone(tx, entry)
        or _went_on(tx, entry)
        or _never_kept(tx, tool, entry)
        or _not_kept_now(tx, tool, entry, hours)
    )
    return Fault("conflict", f"Call {entry.id} cannot be undone: {reason}.")


def _undone(tx: Tx, entry: audit.Entry) -> str:
    if undone := audit.first_with_outcome(tx, f"{_UNDID}{entry.id}", after=entry.id):
        return f"call {undone.id} of {one_word(undone.actor)} undid it at {undone.at}"
    undid = entry.outcome.removeprefix(_UNDID)
    return "" if undid == entry.outcome else f"it is itself the undo of call {undid}"


def _went_on(tx: Tx, entry: audit.Entry) -> str:
    """Return which row stands for a call in slices, if this row is its beginning; empty for others."""
    row = entry if entry.outcome == "begun" else None
    for _ in range(_MOST_BESIDE):
        if row is None or (row := audit.first_with_outcome(tx, "done", after=row.id)) is None:
            break
        if (row.tool, row.actor) == (entry.tool, entry.actor):
            return f"it went on, and call {row.id} is the whole of it"
    return ""


def _never_kept(tx: Tx, tool: Tool | None, entry: audit.Entry) -> str:
    """Return why nothing of such a call is ever kept; empty for a call that replaced something."""
    if tool is None:
        return f"{entry.tool} keeps nothing for it" if entry.dialect == "kernel" else ""
    if tool.hints.destructive:
        return ""
    ids = _added(tx, entry)
    if not ids:
        return "" if tool.kept_arms else f"{tool.name} replaces nothing, so nothing was kept"
    remedy = f"`quipu forget {shlex.quote(ids[0])}` deletes what it added"
    if entry.touched > 1:
        remedy = f"`quipu forget` deletes what it added, such as {', '.join(ids[:_MOST_NAMED])}"
    return f"it replaced nothing, so nothing was kept; {remedy}"


def _not_kept_now(tx: Tx, tool: Tool | None, entry: audit.Entry, hours: int) -> str:
    if not hours:
        return "nothing is kept for it, as QUIPU_UNDO_HOURS=0 asks"
    if entry.at < later(tx.now, -timedelta(hours=hours)):
        return f"it expired: what a call changed is kept for {hours} hours, and it was at {entry.at}"
    if tool is not None and not tool.hints.destructive:
        return "it replaced nothing, so nothing was kept"
    since = "by a redaction or `quipu compact --forget-undo`"
    return f"nothing of it is kept: it changed too much at once, or what was kept has been deleted since, {since}"


def _conflict_of(tx: Tx, number: int, targets: Sequence[Target]) -> Fault:
    """Return the Fault for a call of which something has changed again, with the later calls as far as they name it."""
    ids = list(dict.fromkeys(f"{space}/{key}" for space, key, _ in targets))[:_MOST_PLACES]
    later = audit.touching(tx, ids, after=number, limit=_MOST_NAMED)
    if not later:
        reason = f"Something that call {number} changed has been changed again since, or is needed by what came later"
        return Fault("conflict", f"{reason}.")
    touched_ids = {f"{space}/{key}" for space, key, _ in audit.targets(later[0])}
    place = next((id_ for id_ in ids if id_ in touched_ids), "what it changed")
    names = ", ".join(f"call {call.id} ({call.tool} at {call.at})" for call in later)
    reason = f"{place} has been changed again since, or is needed by what came later: {names}"
    return Fault("conflict", f"Call {number} cannot be undone: {reason}.")


def _tool(dialects: Sequence[Dialect], entry: audit.Entry) -> Tool | None:
    for dialect in dialects:
        if dialect.name == entry.dialect:
            tools = (*dialect.tools, *dialect.memories.curating, *(method.tool for method in dialect.rest))
            return next((tool for tool in tools if tool.name == entry.tool), None)
    return None


def _added(tx: Tx, entry: audit.Entry) -> list[str]:
    """Return the ids of the first memories that a call added; empty if it also touched older memories."""
    added_ids: list[str] = []
    for space, key, operation in audit.targets(entry):
        event = next(
            (past for past in history.read(tx, space, key) if (past.at, past.operation) == (entry.at, operation)), None
        )
        if event is None or event.before is not None or event.after is None:
            return []
        added_ids.append(f"{space}/{key}")
    return added_ids
