"""The page of calls: which client calls which tool, as it happens; a stream of server-sent events keeps it fresh."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct
from starlette.types import Receive, Send

from handlers.console.reading import PAGE_ROWS, Site, allowed_dialects, ordered
from handlers.console.requests import SECURITY, Visit
from kernel.calls.dispatch import Dispatch
from kernel.core.config import KeptCalls
from kernel.core.errors import Fault
from kernel.core.text import one_line
from kernel.http.edge import begin_response, left
from kernel.observe.call_log import Count, SeenCall
from kernel.security.auth import Unauthenticated
from kernel.security.permissions import Caller, Permission

_MOST_STREAMS = 64
_MOST_OF_CALLER = 8
_HEARTBEAT_SECONDS = 15.0  # proxies close a connection that is silent for longer
_GAP_SECONDS = 0.25  # between two events, however many calls there are
_WAIT_SECONDS = 0.4  # with the gap less than a second, after which a revoked key must see nothing more
_HEADERS = {**SECURITY, "content-type": "text/event-stream", "x-accel-buffering": "no"}
_LISTED_CHARS = 40  # of a User-Agent
_BROWSER = "Mozilla/"  # as every browser begins its User-Agent
_PING = b": ping\n\n"
_CALL_COLUMNS: Mapping[str, Callable[[SeenCall], Any]] = {
    "number": lambda call: call.number,
    "tool": lambda call: call.tool,
    "client": lambda call: call.client,
    "outcome": lambda call: call.outcome,
    "milliseconds": lambda call: call.milliseconds,
    "in": lambda call: call.bytes_in,
    "out": lambda call: call.bytes_out,
}
_COUNT_COLUMNS: Mapping[str, Callable[[Count], Any]] = {
    "client": lambda count: count.client,
    "tool": lambda count: count.tool,
    "calls": lambda count: count.calls,
    "failed": lambda count: count.failed,
    "each": lambda count: count.milliseconds / count.calls,
}


class Live(Struct):
    """The newest calls the caller may see, the place that keeps them, and the counts since the first of them.

    `call` is the requested call, by its number, with its texts if they are kept and the caller is an admin.
    """

    keeps: KeptCalls
    since: str
    counts: list[Count]
    calls: list[SeenCall]
    call: SeenCall | None = None
    filters: dict[str, str] = {}


async def load(site: Site, _dispatch: Dispatch, visit: Visit) -> Live:
    """Return the newest calls; raises Fault("not_found") for the number of a call that is not kept."""
    return live(site, visit)


def live(site: Site, visit: Visit) -> Live:
    tenant, dialects, log = visit.caller.tenant, allowed_dialects(visit), site.log
    calls = log.newest(tenant, dialects)
    number = visit.number("number", 0)
    call = next((call for call in calls if call.number == number), None)
    if number and call is None:
        raise Fault("not_found", f"Call {number} is not kept.")
    if call is not None and visit.caller.grant.permission < Permission.admin:
        call = _without_texts(call)
    filters = {name: visit.query[name] for name in ("sort", "order") if visit.query.get(name)}
    rows = ordered([_row(call) for call in calls[:PAGE_ROWS]], filters.get("sort", ""), _CALL_COLUMNS)
    counts = ordered(log.counts(tenant, dialects)[:PAGE_ROWS], filters.get("order", ""), _COUNT_COLUMNS)
    return Live(log.keeps, log.since, counts, rows, call, filters)


def _row(call: SeenCall) -> SeenCall:
    """Return a call for the list; of a browser the list does not show the long name."""
    agent = "browser" if call.agent.startswith(_BROWSER) else one_line(call.agent, _LISTED_CHARS)
    return msgspec.structs.replace(_without_texts(call), agent=agent)


def _without_texts(call: SeenCall) -> SeenCall:
    return msgspec.structs.replace(call, arguments=None, answer=None)


class Streams:
    def __init__(self, site: Site) -> None:
        self._site = site
        self._open = Counter[tuple[str, str]]()  # by tenant and key; all callers without a key together

    def require_room(self, caller: Caller) -> None:
        """Raises Fault if too many are open, of the caller or of all."""
        mine = self._open[caller.tenant, caller.key]
        for most, count in ((_MOST_OF_CALLER, mine), (_MOST_STREAMS, self._open.total())):
            if count >= most:
                raise Fault("busy", f"{most} pages follow the calls already.")

    async def serve(self, caller: Caller, visit: Callable[[], Visit], receive: Receive, send: Send) -> None:
        """Send the state of the page after every call, until the client leaves or may not see it any more."""
        owner = caller.tenant, caller.key
        self._open[owner] += 1
        leaving = asyncio.ensure_future(left(receive))
        try:
            head: Any = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in _HEADERS.items()]
            await begin_response(send, 200, head)
            await self._follow(visit, leaving, send)
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._open -= Counter([owner])  # keeps none at zero
            leaving.cancel()

    async def _follow(self, visit: Callable[[], Visit], leaving: "asyncio.Future[None]", send: Send) -> None:
        log, number, last = self._site.log, -1, time.monotonic()
        while not leaving.done() and not self._site.stopping():
            has_changed = await log.changed(number, _WAIT_SECONDS)
            try:
                visitor = visit()  # now: the key may have been revoked while nothing changed
            except Unauthenticated:
                return
            if has_changed:
                number, last = log.number, time.monotonic()
                await _send(send, b"data: %b\n\n" % msgspec.json.encode(live(self._site, visitor)))
                await asyncio.sleep(_GAP_SECONDS)
            elif time.monotonic() - last > _HEARTBEAT_SECONDS:
                last = time.monotonic()
                await _send(send, _PING)


async def _send(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})
