"""MCP over HTTP as a bare ASGI callable: one POST in, one JSON answer out, or a stream where a handler speaks first."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec import UNSET

from kernel import admission
from kernel import limits as bounds
from kernel.envelope import Inbound, Refused, encoded_id, open_message
from kernel.eras import INVALID_REQUEST, MODERN
from kernel.limits import Header, Headers, Limits, Refusal
from kernel.rpc import Pace, Service
from kernel.streams import Stream, watched

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_JSON = (b"content-type", b"application/json")
_EMPTY: list[Header] = [(b"content-length", b"0")]
_REMEMBERED = 1024


def endpoint(service_for: Callable[[bytes], Service], limits: Limits) -> App:
    """The ASGI callable; `service_for` picks the profile by the query string."""
    gate = _gate(limits)
    most, depth = limits.body, limits.depth

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raw: Sequence[Header] = scope["headers"]
        headers = dict(raw)
        refusal = gate(scope["method"], raw, headers)
        if refusal is not None:
            await _refuse(send, refusal)
            return
        message = await receive()
        body = message.get("body", b"")
        if message.get("more_body", False) or len(body) > most:
            body = await bounds.read_on(receive, message, most)
        if body is None:
            await _refuse(send, Refusal(413, "Body too large or too slow"))
        else:
            deep = body.count(b"{") + body.count(b"[") > depth and bounds.too_deep(body, depth)
            service = service_for(scope["query_string"])
            await _respond(raw, headers, b"" if deep else body, service, receive, send)

    return app


async def _respond(
    raw: Sequence[Header], headers: Headers, body: bytes, service: Service, receive: Receive, send: Send
) -> None:
    version, era = admission.spoken(headers)
    id_, status = b"null", 200
    answer: bytes | None = b""
    try:
        envelope = open_message(body)
        if envelope.id is UNSET or envelope.method is UNSET:
            admission.check_notice(envelope, era, version)
            status = 202
        else:
            id_ = encoded_id(envelope.id)
            inbound = admission.over_http(envelope, id_, era, version, raw, headers, service.mirrors)
            pace = service.pace(inbound)
            answer = await (service.answer(inbound) if pace == "now" else _wait(service, pace, inbound, receive, send))
    except Refused as refused:
        status, answer = era.http.get(refused.code, 200), refused.reply(id_)
    if answer is not None:
        await send(_head(status, answer))
        await send({"type": "http.response.body", "body": answer})


async def _wait(service: Service, pace: Pace, inbound: Inbound, receive: Receive, send: Send) -> bytes | None:
    # In the legacy era a lost connection says nothing about the call: the client may ask again and expects it done.
    watching = receive if inbound.era is MODERN else None
    if pace == "talking":
        stream = Stream(send, inbound.id)
        inbound.emit = stream.emit
        return await stream.run(service.answer(inbound), watching)
    return await (service.answer(inbound) if watching is None else watched(service.answer(inbound), watching))


def _gate(limits: Limits) -> Callable[[str, Sequence[Header], Headers], Refusal | None]:
    """The checks on method and headers; what depends on nothing but their values is remembered once it has passed."""
    passed: set[tuple[bytes | None, ...]] = set()
    short, count, weight = len(str(limits.body)) - 1, limits.header_count, limits.header_bytes

    def gate(method: str, raw: Sequence[Header], headers: Headers) -> Refusal | None:
        if method != "POST":
            return Refusal(405, "Only POST is served here")
        get = headers.get
        key = (get(b"host"), get(b"origin"), get(b"content-type"), get(b"accept"), get(b"content-encoding"))
        if (
            key in passed
            and len(raw) == len(headers) <= count
            and len(get(b"content-length", b"")) <= short
            and len(b"".join([*headers, *headers.values()])) <= weight
        ):
            return None
        refusal = bounds.refuse(raw, headers, limits) or bounds.refuse_body(headers, limits) or _unacceptable(headers)
        if refusal is None and len(passed) < _REMEMBERED:
            passed.add(key)
        return refusal

    return gate


def _unacceptable(headers: Headers) -> Refusal | None:
    accept = headers.get(b"accept")
    return None if accept is None or bounds.accepts_json(accept) else Refusal(406, "Accept must allow application/json")


async def _refuse(send: Send, refusal: Refusal) -> None:
    # The body was not read, so the connection cannot carry another request; a plain GET has none.
    extra = (b"allow", b"POST") if refusal.status == 405 else (b"connection", b"close")
    body = Refused(INVALID_REQUEST, refusal.reason).reply()
    await send(_head(refusal.status, body, extra))
    await send({"type": "http.response.body", "body": body})


def _head(status: int, body: bytes, *extra: Header) -> dict[str, Any]:
    entity = [_JSON, (b"content-length", b"%d" % len(body)), *extra] if body else _EMPTY
    return {"type": "http.response.start", "status": status, "headers": entity}
