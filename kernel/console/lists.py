"""The pages that are lists: timeline, audit and quarantine."""

from msgspec import Struct

from kernel.console.reading import PAGE_ROWS, Site, allowed_dialects, read
from kernel.console.records import NEWEST, Call, Event, Held, calls, held, next_page, timeline
from kernel.console.requests import Visit
from kernel.dispatch import Dispatch
from kernel.errors import Fault
from kernel.security.permissions import Forbidden


class Timeline(Struct):
    """Events of all memories, newest first; `next` is the `before` of the next page."""

    dialects: list[str]
    filters: dict[str, str]
    events: list[Event]
    next: int | None


class Audit(Struct):
    """Calls that changed something, newest first; `next` is the `before` of the next page."""

    dialects: list[str]
    filters: dict[str, str]
    calls: list[Call]
    next: int | None


class Review(Struct):
    """Quarantined memories, newest first; `next` is the `before` of the next page."""

    memories: list[Held]
    next: int | None


async def load_timeline(_site: Site, dispatch: Dispatch, visit: Visit) -> Timeline:
    """The events the caller may see."""
    asked = {name: visit.query[name] for name in ("dialect", "actor", "operation") if visit.query.get(name)}
    filters = {
        "dialects": _dialects(dispatch, visit),
        "actor": asked.get("actor"),
        "operation": asked.get("operation"),
    }
    below = visit.number("before", NEWEST)
    found = await read(dispatch, visit, lambda tx: timeline(tx, below, **filters))
    return Timeline(_names(dispatch), asked, found[:PAGE_ROWS], next_page(found))


async def load_audit(_site: Site, dispatch: Dispatch, visit: Visit) -> Audit:
    """The calls of the dialects the caller may call."""
    asked = {name: visit.query[name] for name in ("dialect", "actor") if visit.query.get(name)}
    below, seen, actor = visit.number("before", NEWEST), _dialects(dispatch, visit), asked.get("actor")
    found = await read(dispatch, visit, lambda tx: calls(tx, below, PAGE_ROWS + 1, dialects=seen, actor=actor))
    return Audit(_names(dispatch), asked, found[:PAGE_ROWS], next_page(found))


async def load_review(_site: Site, dispatch: Dispatch, visit: Visit) -> Review:
    """What is kept apart as poison, in the dialects the caller may call."""
    below, seen = visit.number("before", NEWEST), allowed_dialects(visit)
    found = await read(dispatch, visit, lambda tx: held(tx, below, seen))
    return Review(found[:PAGE_ROWS], next_page(found))


def _names(dispatch: Dispatch) -> list[str]:
    return [dialect.name for dialect in dispatch.dialects if not dialect.reads_all_dialects]


def _dialects(dispatch: Dispatch, visit: Visit) -> list[str] | None:
    """The dialects to show: the one that is asked for, or all the caller may call."""
    asked = visit.query.get("dialect", "")
    if not asked:
        return allowed_dialects(visit)
    if asked not in _names(dispatch):
        raise Fault("invalid", f"dialect: choose from {', '.join(_names(dispatch))}")
    if not visit.caller.grant.allows_dialect(asked):
        raise Forbidden(asked, None)
    return [asked]
