"""MCP over HTTP: one POST in, one JSON answer out, or a stream where a handler speaks first."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from kernel import limits as bounds
from kernel.calls import Pending
from kernel.dispatch import Dispatch
from kernel.errors import Fault
from kernel.http.access import AccessControl, AccessRefusal
from kernel.http.fast_path import Done, HttpResponse
from kernel.http.sse import Stream, cancel_on_disconnect
from kernel.limits import Header, Headers, Limits, Refusal
from kernel.mcp.inbound import is_request, over_http, protocol_of
from kernel.mcp.messages import CallEnvelope, Inbound, ProtocolError, encoded_id, open_message
from kernel.mcp.protocol import INTERNAL_ERROR, INVALID_REQUEST, MODERN, Era
from kernel.mcp.server import Response, Service
from kernel.security.auth import Unauthenticated
from kernel.security.permissions import Caller, Forbidden, Grant, with_client_name

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Choose = Callable[[bytes, Grant], Service]
Gate = Callable[[Sequence[Header], Headers], None]

_JSON = (b"content-type", b"application/json")
_UNCANCELLED = Pending(lambda: None)
_REMEMBERED = 1024
_REMEMBERED_BYTES = 512


class _HttpRejected(ProtocolError):
    """A refusal by HTTP itself, with a status of its own."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(INVALID_REQUEST, refusal.reason)
        self.status = refusal.status
        # Where the body was not read the connection cannot carry another request; a plain GET has none.
        self.headers = ((b"allow", b"POST"),) if refusal.status == 405 else ((b"connection", b"close"),)


class _AccessRefused(ProtocolError):
    """A refusal of somebody unknown, or of what is out of reach."""

    def __init__(self, shut: AccessRefusal) -> None:
        super().__init__(INVALID_REQUEST, shut.reason)
        self.status = shut.status
        known = shut.status == 403
        self.headers = ((b"www-authenticate", shut.challenge), *(() if known else ((b"connection", b"close"),)))


class _TenantUnavailable(ProtocolError):
    """A tenant whose store cannot be opened now."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(INTERNAL_ERROR, fault.message)
        self.status = 503
        self.headers = ((b"retry-after", b"1"),)


class _Request(NamedTuple):
    """A whole request and who sent it."""

    raw: Sequence[Header]
    headers: Headers
    query: bytes
    body: bytes
    caller: Caller


class _Opened(NamedTuple):
    """A decoded request and the service that answers it."""

    service: Service
    inbound: Inbound


class Endpoint:
    """MCP at one address: an ASGI callable, and a way around ASGI for what is answered without a stream.

    `choose` picks the profile by the query string and the caller's grant; `path` is the address.
    """

    def __init__(self, choose: Choose, limits: Limits, access: AccessControl, path: str = "/mcp") -> None:
        self._choose = choose
        self._gate = _gate(limits)
        self._most, self._limits = limits.body, limits
        self._access = access
        self._caller, self._open_dispatch = access.auth.caller, access.tenants.open_dispatch
        self._path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        raw: Sequence[Header] = scope["headers"]
        headers = dict(raw)
        try:
            if scope["method"] != "POST":
                raise self._wrong_method(raw, headers)
            self._gate(raw, headers)
            caller = self._caller(headers)
            message = await receive()
            body: bytes = message.get("body", b"")
            if message.get("more_body", False) or len(body) > self._most:
                body = await _rest(receive, message, self._most)
        except (ProtocolError, Unauthenticated) as error:
            answer = self._refusal(error, b"null", headers)
        else:
            answer = await self._answer(_Request(raw, headers, scope["query_string"], body, caller), receive, send)
        if answer is not None:
            for event in _events(answer):
                await send(event)

    def direct(self, raw: Sequence[Header], body: bytes | None, done: Done) -> HttpResponse | Pending | None:
        """A `FastRoute`; None for what may be answered by a stream, and where the tenant has to be opened first."""
        headers = dict(raw)
        try:
            self._gate(raw, headers)
            caller = self._caller(headers)
        except (ProtocolError, Unauthenticated) as error:
            return self._refusal(error, b"null", headers)
        if body is None:
            return None
        dispatch = self._open_dispatch(caller.tenant)
        if dispatch is None or len(body) > self._most:
            return None
        opened = self._open(_Request(raw, headers, b"", body, caller), dispatch)
        if isinstance(opened, HttpResponse):
            return opened
        service, inbound = opened
        if service.is_interactive(inbound):
            return None
        try:
            response = service.submit(inbound, lambda response: done(self._respond(response, inbound, headers)))
        except (ProtocolError, Forbidden) as error:
            return self._refusal(error, inbound.id, headers)
        if isinstance(response, bytes):
            return HttpResponse(200, response)
        # In the legacy era a lost connection does not cancel: the client may ask again and expects the call done.
        return response if inbound.era is MODERN else _UNCANCELLED

    async def _answer(self, request: _Request, receive: Receive, send: Send) -> HttpResponse | None:
        try:
            async with self._access.dispatch_of(request.caller) as dispatch:
                opened = self._open(request, dispatch)
                return opened if isinstance(opened, HttpResponse) else await self._wait(opened, request, receive, send)
        except Fault as fault:
            return self._refusal(_TenantUnavailable(fault), b"null", request.headers)

    def _open(self, request: _Request, dispatch: Dispatch) -> HttpResponse | _Opened:
        raw, headers, query, body, caller = request
        version, era = protocol_of(headers)
        id_ = b"null"
        try:
            envelope = open_message(body, self._limits)
            if not isinstance(envelope, CallEnvelope) and not is_request(envelope, era, version):
                return HttpResponse(202, b"")
            service = self._choose(query, caller.grant)
            id_ = encoded_id(envelope.id)  # pyright: ignore[reportArgumentType]
            inbound = over_http(envelope, id_, era, version, raw, headers, service.routes)
        except ProtocolError as error:
            return self._refusal(error, id_, headers)
        inbound.caller, inbound.dispatch = with_client_name(caller, inbound.actor), dispatch
        return _Opened(service, inbound)

    async def _wait(self, opened: _Opened, request: _Request, receive: Receive, send: Send) -> HttpResponse | None:
        service, inbound = opened
        watching = receive if inbound.era is MODERN else None
        try:
            if service.is_interactive(inbound):
                stream = Stream(send, inbound.id)
                inbound.emit = stream.emit if bounds.accepts(request.headers, b"text/event-stream") else None
                answer = await stream.run(service.answer(inbound), watching)
            else:
                answering = service.answer(inbound)
                answer = await (answering if watching is None else cancel_on_disconnect(answering, watching))
        except (ProtocolError, Forbidden) as error:
            return self._refusal(error, inbound.id, request.headers)
        return None if answer is None else HttpResponse(200, answer)

    def _respond(self, response: Response, inbound: Inbound, headers: Headers) -> HttpResponse:
        if isinstance(response, ProtocolError):
            return self._refusal(response, inbound.id, headers)
        return HttpResponse(200, response)

    def _wrong_method(self, raw: Sequence[Header], headers: Headers) -> ProtocolError:
        refusal = bounds.refuse(raw, headers, self._limits)
        if refusal is None:
            self._access.caller(headers)
        return _HttpRejected(refusal or Refusal(405, "Only POST is served here"))

    def _refusal(self, why: ProtocolError | Unauthenticated | Forbidden, id_: bytes, headers: Headers) -> HttpResponse:
        refused = (
            why if isinstance(why, ProtocolError) else _AccessRefused(self._access.refusal(why, self._path, headers))
        )
        era: Era = protocol_of(headers)[1]
        return HttpResponse(refused.status or era.http.get(refused.code, 200), refused.reply(id_), refused.headers)


async def _rest(receive: Receive, message: Mapping[str, Any], most: int) -> bytes:
    body = await bounds.read_on(receive, message, most)
    if body is None:
        raise _HttpRejected(Refusal(413, "Body too large or too slow"))
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
            raise _HttpRejected(refusal)
        if len(passed) < _REMEMBERED and sum(len(value or b"") for value in key) <= _REMEMBERED_BYTES:
            passed.add(key)

    return gate


def _unacceptable(headers: Headers) -> Refusal | None:
    accepted = bounds.accepts(headers, b"application/json")
    return None if accepted else Refusal(406, "Accept must allow application/json")


def _events(answer: HttpResponse) -> tuple[dict[str, Any], dict[str, Any]]:
    head = _entity(len(answer.body)) + answer.headers
    start = {"type": "http.response.start", "status": answer.status, "headers": head}
    return start, {"type": "http.response.body", "body": answer.body}


@lru_cache(maxsize=4096)
def _entity(length: int) -> tuple[Header, ...]:
    size = (b"content-length", b"%d" % length)
    return (_JSON, size) if length else (size,)
