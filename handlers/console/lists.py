"""The pages that are lists: timeline, audit and quarantine."""

import csv
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from typing import Any

from msgspec import Struct

from handlers.console import records
from handlers.console.overview import Day, days_until_now
from handlers.console.reading import PAGE_ROWS, Site, allowed_dialects, ordered, read, require
from handlers.console.records import NEWEST, Call, SessionSummary, next_page
from handlers.console.requests import Visit, whole_number
from kernel.calls.dispatch import Dispatch
from kernel.core.errors import Fault
from kernel.core.text import harmless
from kernel.memories import witness
from kernel.search import index
from kernel.security.permissions import Forbidden, Permission
from kernel.store import audit
from kernel.store.transaction import Tx

_YEAR_DAYS = 371  # 53 weeks
_TIMELINE_FILTERS = ("dialect", "actor", "operation", "session", "by", "sort")
_CHECKED_ROWS = 1000
_CSV_ROWS = 10_000
_SESSION_COLUMNS: Mapping[str, Callable[[SessionSummary], Any]] = {
    "session": lambda row: row.session.casefold(),
    "memories": lambda row: row.memories,
    "first": lambda row: row.first,
    "last": lambda row: row.last,
}
_CALL_COLUMNS: Mapping[str, Callable[[Call], Any]] = {
    "memory": lambda call: call.targets[0].text.casefold() if call.targets else "",
    "tool": lambda call: call.tool,
    "actor": lambda call: call.actor,
    "number": lambda call: call.number,
}
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Timeline(Struct):
    """Events of all memories or of a session, newest first, or the sessions; `days` are those of a year.

    `next` is the `before` of the next page.
    """

    dialects: list[str]
    filters: dict[str, str]
    events: list[records.Event]
    sessions: list[SessionSummary]
    next: int | None
    days: list[Day]


class Audit(Struct):
    """Calls that changed something, newest first; `next` is the `before` of the next page.

    The chain of hashes was followed over `checked` of the newest rows, all of them for None; `broken` is the first call
    that does not follow from the one before.
    """

    dialects: list[str]
    filters: dict[str, str]
    calls: list[Call]
    next: int | None
    checked: int | None
    broken: int | None


class StaleMemory(Struct):
    """A memory that names a place in a project which has changed since."""

    project: str
    id: str
    text: str
    words: str


class Review(Struct):
    """Quarantined memories, newest first, and stale memories by project; `next` is the `before` of the next page."""

    memories: list[records.Held]
    next: int | None
    filters: dict[str, str]
    projects: list[str]
    stale: list[StaleMemory]


async def load_timeline(_site: Site, dispatch: Dispatch, visit: Visit) -> Timeline:
    """Return the events or the sessions that the caller may see."""
    choices = {name: visit.query[name] for name in _TIMELINE_FILTERS if visit.query.get(name)}
    filters: dict[str, Any] = {"actor": choices.get("actor"), "operation": choices.get("operation")}
    below, dialects = visit.number("before", NEWEST), _dialects(dispatch, visit)
    by_session = visit.query.get("by") == "session"
    space = _session_space(dispatch, visit) if by_session or "session" in choices else ""

    def load(tx: Tx) -> Timeline:
        rows, summaries = list[records.Event](), list[SessionSummary]()
        if "session" in choices:
            rows = records.session_events(tx, below, space, choices["session"], **filters)
        elif by_session:
            summaries = records.sessions(tx, below, space)
        else:
            rows = records.timeline(tx, dispatch, below, dialects=dialects, **filters)
        days = [] if space else days_until_now(tx, _YEAR_DAYS, dialects)
        further = next_page(summaries or rows)
        shown = ordered(summaries[:PAGE_ROWS], choices.get("sort", ""), _SESSION_COLUMNS)
        # An import has changes of days long past: a page has each day once.
        events = sorted(rows[:PAGE_ROWS], key=lambda event: (event.at, event.number), reverse=True)
        return Timeline(_names(dispatch), choices, events, shown, further, days)

    return await read(dispatch, visit, load)


def _session_space(dispatch: Dispatch, visit: Visit) -> str:
    """Return the space whose scopes are sessions; raises Fault, or Forbidden for a dialect that the caller may not
    call.
    """
    for dialect in dispatch.dialects:
        if dialect.memories.session_space is not None:
            if not visit.caller.grant.allows_dialect(dialect.name):
                raise Forbidden("session", None)
            return dialect.memories.session_space
    raise Fault("invalid", "session: no dialect that is served has sessions")


async def load_audit(_site: Site, dispatch: Dispatch, visit: Visit) -> Audit:
    """Return the calls of the dialects the caller may call."""
    choices = {name: visit.query[name] for name in ("dialect", "actor", "sort") if visit.query.get(name)}
    below, dialects, actor = visit.number("before", NEWEST), _dialects(dispatch, visit), choices.get("actor")
    depth = None if visit.query.get("chain") == "all" else _CHECKED_ROWS
    call_numbers = {whole_number(text, 0) for text in visit.query.get("calls", "").split()[:PAGE_ROWS]} - {0}
    if call_numbers:
        choices["calls"], below = " ".join(map(str, sorted(call_numbers))), max(call_numbers) + 1
    if depth is None:
        require(visit, "A check of the whole chain", Permission.admin)

    def load(tx: Tx) -> tuple[list[Call], int | None]:
        rows = records.calls(tx, below, PAGE_ROWS + 1, dialects=dialects, actor=actor)
        rows = [call for call in rows if call.number in call_numbers] if call_numbers else rows
        return records.with_texts(tx, dispatch, rows, dialects), audit.first_broken(tx, depth)

    rows, first_broken = await read(dispatch, visit, load)
    shown = ordered(rows[:PAGE_ROWS], choices.get("sort", ""), _CALL_COLUMNS)
    return Audit(_names(dispatch), choices, shown, next_page(rows), depth, first_broken)


async def audit_csv(dispatch: Dispatch, visit: Visit) -> bytes:
    """Return the newest calls that pass the filters of the page, as comma-separated values."""
    below, dialects, actor = visit.number("before", NEWEST), _dialects(dispatch, visit), visit.query.get("actor")
    return await read(
        dispatch, visit, lambda tx: _csv(records.calls(tx, below, _CSV_ROWS, dialects=dialects, actor=actor or None))
    )


def _csv(entries: Sequence[Call]) -> bytes:
    text = StringIO()
    rows = csv.writer(text)
    rows.writerow(("call", "at", "dialect", "tool", "actor", "outcome", "touched", "memories"))
    for call in entries:
        memories = " ".join(f"{target.id} {target.operation}" for target in call.targets)
        row = (call.number, call.at, call.dialect, call.tool, call.actor, call.outcome, call.touched, memories)
        rows.writerow([_cell(value) for value in row])
    return text.getvalue().encode("utf-8", "replace")


def _cell(value: object) -> object:
    """Return a value that a spreadsheet does not take for a formula, and that gives a terminal no orders."""
    return harmless(f"'{value}" if value[:1] in _FORMULA else value) if isinstance(value, str) else value


async def load_review(_site: Site, dispatch: Dispatch, visit: Visit) -> Review:
    """Return the quarantined and the stale memories, in the dialects the caller may call."""
    below, dialects = visit.number("before", NEWEST), allowed_dialects(visit)
    filters = {"project": project} if (project := visit.query.get("project")) else {}
    rows, stale = await read(dispatch, visit, lambda tx: (records.held(tx, below, dialects), _stale(tx, dialects)))
    projects = [*dict.fromkeys(memory.project for memory in stale)]
    shown = [memory for memory in stale if not project or memory.project == project][:PAGE_ROWS]
    return Review(rows[:PAGE_ROWS], next_page(rows), filters, projects, shown)


def _stale(tx: Tx, dialects: list[str] | None) -> list[StaleMemory]:
    places = {(row.project, row.doc): row.words for row in witness.stale_in(tx, None)}
    memories = index.documents(tx, [doc for _, doc in places]) if places else {}
    return [
        StaleMemory(project, f"{memory.space}/{memory.key}", memory.text, words)
        for (project, doc), words in places.items()
        if (memory := memories.get(doc)) and (dialects is None or memory.space.partition(":")[0] in dialects)
    ]


def _names(dispatch: Dispatch) -> list[str]:
    return [dialect.name for dialect in dispatch.dialects if not dialect.reads_all_dialects]


def _dialects(dispatch: Dispatch, visit: Visit) -> list[str] | None:
    """Return the dialects to show: the requested dialect, or all the caller may call."""
    name = visit.query.get("dialect", "")
    if not name:
        return allowed_dialects(visit)
    if name not in _names(dispatch):
        raise Fault("invalid", f"dialect: choose from {', '.join(_names(dispatch))}")
    if not visit.caller.grant.allows_dialect(name):
        raise Forbidden(name, None)
    return [name]
