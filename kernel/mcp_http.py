"""MCP over HTTP as a bare ASGI callable: one POST in, one JSON answer out, or a stream where a handler speaks first."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from kernel import admission
from kernel import limits as bounds
from kernel.envelope import Inbound, Refused, encoded_id, open_envelope
from kernel.eras import INVALID_REQUEST, MODERN, PARSE_ERROR
from kernel.limits import Header, Headers, Limits, Refusal
from kernel.rpc import Service
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

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raw: Sequence[Header] = scope["headers"]
        headers = dict(raw)
        refusal = gate(scope["method"], raw, headers)
        if refusal is not None:
            return await _refuse(send, refusal)
        body = await bounds.read_body(receive, limits.body)
        if body is None:
            return await _refuse(send, Refusal(413, "Body too large or too slow"))
        id_ = b"null"
        version = admission.version_of(headers)
        era = admission.era_of(version)
        try:
            if bounds.too_deep(body, limits.depth):
                raise Refused(PARSE_ERROR, "Nested too deeply")
            envelope = open_envelope(body)
            if not admission.is_request(envelope, era, version):
                return await _send(send, 202, b"")
            id_ = encoded_id(envelope.id)  # pyright: ignore[reportArgumentType]
            service = service_for(scope["query_string"])
            inbound = admission.over_http(envelope, id_, era, version, raw, headers, service.mirrors)
            answer = await _answer(service, inbound, receive, send)
        except Refused as refused:
            return await _send(send, era.http.get(refused.code, 200), refused.reply(id_))
        if answer is not None:
            await _send(send, 200, answer)
        return None

    return app


async def _answer(service: Service, inbound: Inbound, receive: Receive, send: Send) -> bytes | None:
    pace = service.pace(inbound)
    if pace == "now":
        return await service.answer(inbound)
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
    short = len(str(limits.body)) - 1

    def gate(method: str, raw: Sequence[Header], headers: Headers) -> Refusal | None:
        if method != "POST":
            return Refusal(405, "Only POST is served here")
        get = headers.get
        key = (get(b"host"), get(b"origin"), get(b"content-type"), get(b"accept"), get(b"content-encoding"))
        if (
            key in passed
            and len(raw) == len(headers) <= limits.header_count
            and len(get(b"content-length", b"")) <= short
            and bounds.weight(raw) <= limits.header_bytes
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
    await _send(send, refusal.status, Refused(INVALID_REQUEST, refusal.reason).reply(), extra)


async def _send(send: Send, status: int, body: bytes, *extra: Header) -> None:
    entity = (_JSON, (b"content-length", b"%d" % len(body)), *extra) if body else _EMPTY
    await send({"type": "http.response.start", "status": status, "headers": entity})
    await send({"type": "http.response.body", "body": body})
