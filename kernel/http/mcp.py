"""MCP over HTTP: one POST in, one JSON answer out, or a stream where a handler speaks first."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from kernel import limits as bounds
from kernel.dispatch import Dispatch
from kernel.errors import Fault
from kernel.http.access import Doors, Shut
from kernel.http.fast_path import Answer, Begun, Done
from kernel.http.sse import Stream, watched
from kernel.limits import Header, Headers, Limits, Refusal
from kernel.mcp import inbound as admission
from kernel.mcp.messages import Called, Inbound, Refused, encoded_id, open_message
from kernel.mcp.protocol import INTERNAL_ERROR, INVALID_REQUEST, MODERN, Era
from kernel.mcp.server import Service
from kernel.security.auth import Stranger
from kernel.security.permissions import Caller, Denied, Grant, speaking

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Choose = Callable[[bytes, Grant], Service]
Gate = Callable[[Sequence[Header], Headers], None]

_JSON = (b"content-type", b"application/json")
_REMEMBERED = 1024
_REMEMBERED_BYTES = 512


class _TurnedAway(Refused):
    """A refusal by HTTP itself, with a status of its own."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(INVALID_REQUEST, refusal.reason)
        self.status = refusal.status
        # Where the body was not read the connection cannot carry another request; a plain GET has none.
        self.closing = ((b"allow", b"POST"),) if refusal.status == 405 else ((b"connection", b"close"),)


class _Outside(Refused):
    """A refusal of somebody unknown, or of what is out of reach."""

    def __init__(self, shut: Shut) -> None:
        super().__init__(INVALID_REQUEST, shut.reason)
        self.status = shut.status
        known = shut.status == 403
        self.closing = ((b"www-authenticate", shut.challenge), *(() if known else ((b"connection", b"close"),)))


class _Closed(Refused):
    """A tenant whose store cannot be opened now."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(INTERNAL_ERROR, fault.message)
        self.status = 503
        self.closing = ((b"retry-after", b"1"),)


class _Posted(NamedTuple):
    """A whole request and who sent it."""

    raw: Sequence[Header]
    headers: Headers
    query: bytes
    body: bytes
    caller: Caller


class _Waiting(NamedTuple):
    """A request that cannot be answered at once."""

    service: Service
    inbound: Inbound


class Endpoint:
    """MCP at one address: an ASGI callable, and a way around ASGI for what is answered without a stream.

    `choose` picks the profile by the query string and the caller's reach; `path` is the address.
    """

    def __init__(self, choose: Choose, limits: Limits, doors: Doors, path: str = "/mcp") -> None:
        self._choose = choose
        self._gate = _gate(limits)
        self._most, self._limits = limits.body, limits
        self._doors = doors
        self._caller, self._at_hand = doors.auth.caller, doors.tenants.at_hand
        self._path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        raw: Sequence[Header] = scope["headers"]
        headers = dict(raw)
        try:
            if scope["method"] != "POST":
                raise self._misdirected(raw, headers)
            self._gate(raw, headers)
            caller = self._caller(headers)
            message = await receive()
            body: bytes = message.get("body", b"")
            if message.get("more_body", False) or len(body) > self._most:
                body = await _rest(receive, message, self._most)
        except (Refused, Stranger) as refused:
            answer = self._refusal(refused, b"null", headers)
        else:
            answer = await self._serve(_Posted(raw, headers, scope["query_string"], body, caller), receive, send)
        if answer is not None:
            for event in _events(answer):
                await send(event)

    def direct(self, raw: Sequence[Header], body: bytes, done: Done) -> Answer | Begun | None:
        """The answer to a whole POST, or the call that `done` will get the answer of; None where it takes a task."""
        headers = dict(raw)
        try:
            self._gate(raw, headers)
            caller = self._caller(headers)
        except (Refused, Stranger) as refused:
            return self._refusal(refused, b"null", headers)
        dispatch = self._at_hand(caller.tenant)
        if dispatch is None or len(body) > self._most:
            return None
        found = self._open(raw, headers, b"", body, caller, dispatch)
        if not isinstance(found, _Waiting):
            return found
        service, inbound = found
        if inbound.plan is None or inbound.plan.pace == "talking" or inbound.plan.bound.stepwise:
            return None
        try:
            begun = service.start(inbound, lambda answer: done(Answer(200, answer)))
        except (Refused, Denied) as refused:
            return self._refusal(refused, inbound.id, headers)
        if isinstance(begun, bytes):
            return Answer(200, begun)
        # In the legacy era a lost connection says nothing about the call: the client may ask again and expects it done.
        return Begun(begun.cancel if inbound.era is MODERN else None)

    async def _serve(self, posted: "_Posted", receive: Receive, send: Send) -> Answer | None:
        try:
            async with self._doors.use(posted.caller) as dispatch:
                found = self._open(*posted, dispatch)
                return await self._wait(found, posted, receive, send) if isinstance(found, _Waiting) else found
        except Fault as fault:
            return self._refusal(_Closed(fault), b"null", posted.headers)

    def _open(
        self, raw: Sequence[Header], headers: Headers, query: bytes, body: bytes, caller: Caller, dispatch: Dispatch
    ) -> Answer | _Waiting:
        version, era = admission.spoken(headers)
        id_ = b"null"
        try:
            envelope = open_message(body, self._limits)
            if not isinstance(envelope, Called) and not admission.is_request(envelope, era, version):
                return Answer(202, b"")
            service = self._choose(query, caller.reach)
            id_ = encoded_id(envelope.id)  # pyright: ignore[reportArgumentType]
            inbound = admission.over_http(envelope, id_, era, version, raw, headers, service.plans)
            inbound.caller, inbound.dispatch = speaking(caller, inbound.actor), dispatch
            return Answer(200, service.now(inbound)) if service.pace(inbound) == "now" else _Waiting(service, inbound)
        except (Refused, Denied) as refused:
            return self._refusal(refused, id_, headers)

    async def _wait(self, waiting: _Waiting, posted: "_Posted", receive: Receive, send: Send) -> Answer | None:
        service, inbound = waiting
        watching = receive if inbound.era is MODERN else None
        try:
            if service.pace(inbound) == "talking":
                stream = Stream(send, inbound.id)
                inbound.emit = stream.emit if bounds.accepts(posted.headers, b"text/event-stream") else None
                answer = await stream.run(service.answer(inbound), watching)
            else:
                waited = service.answer(inbound)
                answer = await (waited if watching is None else watched(waited, watching))
        except (Refused, Denied) as refused:
            return self._refusal(refused, inbound.id, posted.headers)
        return None if answer is None else Answer(200, answer)

    def _misdirected(self, raw: Sequence[Header], headers: Headers) -> Refused:
        refusal = bounds.refuse(raw, headers, self._limits)
        if refusal is None:
            self._doors.caller(headers)
        return _TurnedAway(refusal or Refusal(405, "Only POST is served here"))

    def _refusal(self, why: Refused | Stranger | Denied, id_: bytes, headers: Headers) -> Answer:
        refused = why if isinstance(why, Refused) else _Outside(self._doors.shut(why, self._path, headers))
        era: Era = admission.spoken(headers)[1]
        return Answer(refused.status or era.http.get(refused.code, 200), refused.reply(id_), refused.closing)


async def _rest(receive: Receive, message: Mapping[str, Any], most: int) -> bytes:
    body = await bounds.read_on(receive, message, most)
    if body is None:
        raise _TurnedAway(Refusal(413, "Body too large or too slow"))
    return body


def _gate(limits: Limits) -> Gate:
    """The checks on headers; names and media types are remembered once they have passed."""
    passed: set[tuple[bytes | None, ...]] = set()
    short, count, weight = len(str(limits.body)) - 1, limits.header_count, limits.header_bytes

    def gate(raw: Sequence[Header], headers: Headers) -> None:
        get = headers.get
        key = (get(b"host"), get(b"content-type"), get(b"accept"), get(b"origin"), get(b"content-encoding"))
        if (
            key in passed
            and len(raw) == len(headers) <= count
            and len(get(b"content-length", b"")) <= short
            and len(b"".join([*headers, *headers.values()])) <= weight
        ):
            return
        refusal = bounds.refuse(raw, headers, limits) or bounds.refuse_body(headers, limits) or _unacceptable(headers)
        if refusal is not None:
            raise _TurnedAway(refusal)
        if len(passed) < _REMEMBERED and sum(len(value or b"") for value in key) <= _REMEMBERED_BYTES:
            passed.add(key)

    return gate


def _unacceptable(headers: Headers) -> Refusal | None:
    accepted = bounds.accepts(headers, b"application/json")
    return None if accepted else Refusal(406, "Accept must allow application/json")


def _events(answer: Answer) -> tuple[dict[str, Any], dict[str, Any]]:
    head = _entity(len(answer.body)) + answer.extra
    start = {"type": "http.response.start", "status": answer.status, "headers": head}
    return start, {"type": "http.response.body", "body": answer.body}


@lru_cache(maxsize=4096)
def _entity(length: int) -> tuple[Header, ...]:
    size = (b"content-length", b"%d" % length)
    return (_JSON, size) if length else (size,)
