"""MCP over HTTP as a bare ASGI callable: one POST in, one JSON answer out, or a stream where a handler speaks first."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from kernel import admission
from kernel import limits as bounds
from kernel.envelope import Called, Inbound, Refused, encoded_id, open_message
from kernel.eras import INVALID_REQUEST, MODERN
from kernel.limits import Header, Headers, Limits, Refusal
from kernel.rpc import Service
from kernel.streams import Stream, watched

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

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


def endpoint(service_for: Callable[[bytes], Service], limits: Limits) -> App:
    """The ASGI callable; `service_for` picks the profile by the query string."""
    gate = _gate(limits)
    most, depth = limits.body, limits.depth

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raw: Sequence[Header] = scope["headers"]
        headers = dict(raw)
        id_, status, answer, closing = b"null", 200, b"", ()
        version, era = admission.spoken(headers)
        try:
            gate(scope["method"], raw, headers)
            message = await receive()
            body: bytes = message.get("body", b"")
            if message.get("more_body", False) or len(body) > most:
                body = await _rest(receive, message, most)
            envelope = open_message(body, depth)
            if isinstance(envelope, Called) or admission.is_request(envelope, era, version):
                service = service_for(scope["query_string"])
                id_ = encoded_id(envelope.id)  # pyright: ignore[reportArgumentType]
                inbound = admission.over_http(envelope, id_, era, version, raw, headers, service.plans)
                if service.pace(inbound) == "now":
                    answer = service.now(inbound)
                else:
                    answer = await _wait(service, inbound, headers, receive, send)
            else:
                status = 202
        except Refused as refused:
            answer, closing = refused.reply(id_), refused.closing
            status = refused.status or era.http.get(refused.code, 200)
        if answer is not None:
            await send({"type": "http.response.start", "status": status, "headers": _entity(len(answer)) + closing})
            await send({"type": "http.response.body", "body": answer})

    return app


async def _rest(receive: Receive, message: Mapping[str, Any], most: int) -> bytes:
    body = await bounds.read_on(receive, message, most)
    if body is None:
        raise _TurnedAway(Refusal(413, "Body too large or too slow"))
    return body


async def _wait(service: Service, inbound: Inbound, headers: Headers, receive: Receive, send: Send) -> bytes | None:
    # In the legacy era a lost connection says nothing about the call: the client may ask again and expects it done.
    watching = receive if inbound.era is MODERN else None
    if service.pace(inbound) == "talking":
        stream = Stream(send, inbound.id)
        inbound.emit = stream.emit if bounds.accepts(headers, b"text/event-stream") else None
        return await stream.run(service.answer(inbound), watching)
    return await (service.answer(inbound) if watching is None else watched(service.answer(inbound), watching))


def _gate(limits: Limits) -> Callable[[str, Sequence[Header], Headers], None]:
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


@lru_cache(maxsize=4096)
def _entity(length: int) -> tuple[Header, ...]:
    size = (b"content-length", b"%d" % length)
    return (_JSON, size) if length else (size,)
