"""MCP over HTTP: one POST in, one JSON answer out, or a stream where a handler speaks first."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from kernel import admission
from kernel import limits as bounds
from kernel.direct import Answer, Begun, Done
from kernel.envelope import Called, Inbound, Refused, encoded_id, open_message
from kernel.eras import INVALID_REQUEST, MODERN, Era
from kernel.limits import Header, Headers, Limits, Refusal
from kernel.rpc import Service
from kernel.streams import Stream, watched

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Choose = Callable[[bytes], Service]
Gate = Callable[[str, Sequence[Header], Headers], None]

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


class _Waiting(NamedTuple):
    """A request that cannot be answered at once."""

    service: Service
    inbound: Inbound


class Endpoint:
    """MCP at one address: an ASGI callable, and a way around ASGI for what is answered without a stream.

    `choose` picks the profile by the query string.
    """

    def __init__(self, choose: Choose, limits: Limits) -> None:
        self._choose = choose
        self._gate = _gate(limits)
        self._most, self._limits = limits.body, limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        raw: Sequence[Header] = scope["headers"]
        headers = dict(raw)
        era = admission.spoken(headers)[1]
        try:
            self._gate(scope["method"], raw, headers)
            message = await receive()
            body: bytes = message.get("body", b"")
            if message.get("more_body", False) or len(body) > self._most:
                body = await _rest(receive, message, self._most)
        except Refused as refused:
            answer = _refusal(refused, b"null", era)
        else:
            found = self._open(raw, headers, scope["query_string"], body)
            answer = await _wait(found, headers, receive, send) if isinstance(found, _Waiting) else found
        if answer is not None:
            for event in _events(answer):
                await send(event)

    def direct(self, raw: Sequence[Header], body: bytes, done: Done) -> Answer | Begun | None:
        """The answer to a whole POST, or the call that `done` will get the answer of; None where it takes a task."""
        headers = dict(raw)
        try:
            self._gate("POST", raw, headers)
        except Refused as refused:
            return _refusal(refused, b"null", admission.spoken(headers)[1])
        if len(body) > self._most:
            return None
        found = self._open(raw, headers, b"", body)
        if not isinstance(found, _Waiting):
            return found
        service, inbound = found
        if inbound.plan is None or inbound.plan.pace == "talking" or inbound.plan.bound.stepwise:
            return None
        try:
            begun = service.start(inbound, lambda answer: done(Answer(200, answer)))
        except Refused as refused:
            return _refusal(refused, inbound.id, inbound.era)
        if isinstance(begun, bytes):
            return Answer(200, begun)
        # In the legacy era a lost connection says nothing about the call: the client may ask again and expects it done.
        return Begun(begun.cancel if inbound.era is MODERN else None)

    def _open(self, raw: Sequence[Header], headers: Headers, query: bytes, body: bytes) -> Answer | _Waiting:
        version, era = admission.spoken(headers)
        id_ = b"null"
        try:
            envelope = open_message(body, self._limits)
            if not isinstance(envelope, Called) and not admission.is_request(envelope, era, version):
                return Answer(202, b"")
            service = self._choose(query)
            id_ = encoded_id(envelope.id)  # pyright: ignore[reportArgumentType]
            inbound = admission.over_http(envelope, id_, era, version, raw, headers, service.plans)
            return Answer(200, service.now(inbound)) if service.pace(inbound) == "now" else _Waiting(service, inbound)
        except Refused as refused:
            return _refusal(refused, id_, era)


def _refusal(refused: Refused, id_: bytes, era: Era) -> Answer:
    return Answer(refused.status or era.http.get(refused.code, 200), refused.reply(id_), refused.closing)


async def _rest(receive: Receive, message: Mapping[str, Any], most: int) -> bytes:
    body = await bounds.read_on(receive, message, most)
    if body is None:
        raise _TurnedAway(Refusal(413, "Body too large or too slow"))
    return body


async def _wait(waiting: _Waiting, headers: Headers, receive: Receive, send: Send) -> Answer | None:
    service, inbound = waiting
    watching = receive if inbound.era is MODERN else None
    try:
        if service.pace(inbound) == "talking":
            stream = Stream(send, inbound.id)
            inbound.emit = stream.emit if bounds.accepts(headers, b"text/event-stream") else None
            answer = await stream.run(service.answer(inbound), watching)
        else:
            answer = await (service.answer(inbound) if watching is None else watched(service.answer(inbound), watching))
    except Refused as refused:
        return _refusal(refused, inbound.id, inbound.era)
    return None if answer is None else Answer(200, answer)


def _gate(limits: Limits) -> Gate:
    """The checks on method and headers; names and media types are remembered once they have passed."""
    passed: set[tuple[bytes | None, ...]] = set()
    short, count, weight = len(str(limits.body)) - 1, limits.header_count, limits.header_bytes

    def gate(method: str, raw: Sequence[Header], headers: Headers) -> None:
        if method != "POST":
            raise _TurnedAway(Refusal(405, "Only POST is served here"))
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
