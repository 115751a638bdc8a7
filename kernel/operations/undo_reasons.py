"""Why a call cannot be undone, in words for the person who asks."""

from collections.abc import Sequence
from datetime import timedelta

from kernel.calls.dialect import Dialect
from kernel.calls.tools import Tool
from kernel.core.errors import Fault
from kernel.core.text import one_word
from kernel.core.times import later
from kernel.store import audit, history
from kernel.store.transaction import Target, Tx

_UNDID = "undid "  # begins the outcome of an undo
_MOST_PLACES = 1000  # of a call's targets, that are looked for among later calls
_MOST_NAMED = 3


def outcome_of(number: int) -> str:
    return f"{_UNDID}{number}"


def begun(number: int) -> str:
    """Return the outcome in the audit of the first of several slices of the undo of a call."""
    return f"began to undo {number}"


def no_call(tx: Tx, number: int) -> Fault:
    newest = next(iter(audit.read(tx, 1)), None)
    said = "no call has changed anything yet" if newest is None else f"the newest is call {newest.id}"
    return Fault("not_found", f"There is no call {number} in the audit: {said}.")


def nothing_kept(tx: Tx, dialects: Sequence[Dialect], entry: audit.Entry, hours: int) -> Fault:
    """Return the Fault for a call of which nothing is kept; `hours` is how long that is done now, 0 for never."""
    tool = _tool(dialects, entry)
    said = _undone(tx, entry) or _never_kept(tx, tool, entry) or _not_kept_now(tx, tool, entry, hours)
    return Fault("conflict", f"Call {entry.id} cannot be undone: {said}.")


def _undone(tx: Tx, entry: audit.Entry) -> str:
    if undone := audit.first_with_outcome(tx, outcome_of(entry.id), after=entry.id):
        return f"call {undone.id} of {one_word(undone.actor)} undid it at {undone.at}"
    undid = entry.outcome.removeprefix(_UNDID)
    return "" if undid == entry.outcome else f"it is itself the undo of call {undid}"


def _never_kept(tx: Tx, tool: Tool | None, entry: audit.Entry) -> str:
    """Return why nothing of such a call is ever kept; empty for a call that replaced something."""
    if tool is None:
        return f"{entry.tool} keeps nothing for it" if entry.dialect == "kernel" else ""
    if tool.hints.destructive:
        return ""
    added = _added(tx, entry)
    if not added:
        return "" if tool.kept_arms else f"{tool.name} replaces nothing, so nothing was kept"
    told = f"`quipu forget {added[0]}` deletes what it added"
    if entry.touched > 1:
        told = f"`quipu forget` deletes what it added, such as {', '.join(added[:_MOST_NAMED])}"
    return f"it replaced nothing, so nothing was kept; {told}"


def _not_kept_now(tx: Tx, tool: Tool | None, entry: audit.Entry, hours: int) -> str:
    if not hours:
        return "nothing is kept for it, as QUIPU_UNDO_HOURS=0 asks"
    if entry.at < later(tx.now, -timedelta(hours=hours)):
        return f"it expired: what a call changed is kept for {hours} hours, and it was at {entry.at}"
    if tool is not None and not tool.hints.destructive:
        return "it replaced nothing, so nothing was kept"
    since = "by a redaction or `quipu compact --forget-undo`"
    return f"nothing of it is kept: it changed too much at once, or what was kept has been deleted since, {since}"


def changed_since(tx: Tx, number: int, targets: Sequence[Target]) -> Fault:
    """Return the Fault for a call of which something has changed again, with the later calls as far as they name it."""
    ids = list(dict.fromkeys(f"{space}/{key}" for space, key, _ in targets))[:_MOST_PLACES]
    later = audit.touching(tx, ids, after=number, limit=_MOST_NAMED)
    if not later:
        said = f"Something that call {number} changed has been changed again since, or is needed by what came later"
        return Fault("conflict", f"{said}.")
    touched = {f"{space}/{key}" for space, key, _ in audit.targets(later[0])}
    place = next((id_ for id_ in ids if id_ in touched), "what it changed")
    named = ", ".join(f"call {one.id} ({one.tool} at {one.at})" for one in later)
    said = f"{place} has been changed again since, or is needed by what came later: {named}"
    return Fault("conflict", f"Call {number} cannot be undone: {said}.")


def _tool(dialects: Sequence[Dialect], entry: audit.Entry) -> Tool | None:
    dialect = next((one for one in dialects if one.name == entry.dialect), None)
    tools = (
        ()
        if dialect is None
        else (*dialect.tools, *dialect.memories.curating, *(method.tool for method in dialect.rest))
    )
    return next((tool for tool in tools if tool.name == entry.tool), None)


def _added(tx: Tx, entry: audit.Entry) -> list[str]:
    """Return the ids of the first memories that a call added; empty if it also touched older memories."""
    added: list[str] = []
    for space, key, operation in audit.targets(entry):
        event = next(
            (one for one in history.read(tx, space, key) if (one.at, one.operation) == (entry.at, operation)), None
        )
        if event is None or event.before is not None or event.after is None:
            return []
        added.append(f"{space}/{key}")
    return added
