"""MCP over HTTP: a POST is answered with JSON, or with a stream if notifications precede the answer."""

import os
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import NamedTuple

from starlette.types import Message, Receive, Scope, Send

from kernel.calls.dispatch import IDEMPOTENCY_KEY, NOT_CANCELLABLE, Dispatch, Pending, with_idempotency_key
from kernel.core import limits as bounds
from kernel.core.data_dir import MAIN
from kernel.core.errors import Fault
from kernel.core.limits import Header, Headers, Limits, Refusal
from kernel.http.edge import CLOSE, RETRY, AccessControl, HttpResponse, send_response
from kernel.http.fast_path import Done
from kernel.http.sse import Stream, cancel_on_disconnect
from kernel.http.update_streams import SESSION, UpdateStreams
from kernel.mcp import messages
from kernel.mcp.messages import Inbound, ProtocolError
from kernel.mcp.server import Response, Service
from kernel.security.auth import Unauthenticated
from kernel.security.permissions import ANONYMOUS_CALLER, Caller, Forbidden, Grant, with_client_name

Choose = Callable[[bytes, Grant], Service]
Gate = Callable[[Sequence[Header], Headers], None]
# A response that goes on until its client leaves; it is sent when the store is no longer held open for it.
Streaming = Callable[[Send, Receive], Coroutine[object, None, None]]

_clock = time.monotonic
_OF_SESSION = ("GET", "DELETE")
# Bounds of the memory that clients can fill with header values: half a megabyte.
_MAX_PASSED = 1024
_MAX_PASSED_BYTES = 512


class _Rejected(ProtocolError):
    """A rejection with an HTTP status and headers of its own."""

    def __init__(self, status: int, reason: str, *headers: Header, code: int = messages.INVALID_REQUEST) -> None:
        super().__init__(code, reason)
        self.status, self.headers = status, headers


class _Request(NamedTuple):
    raw: Sequence[Header]
    headers: Headers
    query: bytes
    body: bytes
    caller: Caller


class Endpoint:
    """MCP at one path: an ASGI application, and a fast route for requests that need no stream.

    `choose` picks the service by the query string and the caller's grant.
    """

    def __init__(
        self,
        choose: Choose,
        limits: Limits,
        access: AccessControl,
        path: str = "/mcp",
        streams: UpdateStreams | None = None,
    ) -> None:
        self._choose = choose
        self._gate = _gate(limits, access.auth.caller)
        self._limits = limits
        self._access = access
        self._auth, self._tenants = access.auth, access.tenants
        self._path = path
        self._streams = streams or UpdateStreams(os.urandom(32))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw: Sequence[Header] = scope["headers"]
        headers = dict(raw)
        try:
            if scope["method"] != "POST":
                answer = self._on_session(scope, raw, headers)
            else:
                self._gate(raw, headers)
                caller = self._auth.caller(headers)
                message = await receive()
                body: bytes = message.get("body", b"")
                if message.get("more_body", False) or len(body) > self._limits.body:
                    body = await _rest(receive, message, self._limits.body)
                request = _Request(raw, headers, scope["query_string"], body, caller)
                answer = await self._answer(request, receive, send)
        except (ProtocolError, Unauthenticated) as error:
            answer = self._refusal(error, b"null", headers)
        if callable(answer):
            await answer(send, receive)
            return
        if answer is not None:
            await send_response(send, answer)

    def direct(self, raw: Sequence[Header], body: bytes | None, on_done: Done) -> HttpResponse | Pending | None:
        """Return a `FastRoute`; None if a stream may answer, and if the tenant has to be opened first."""
        headers = dict(raw)
        try:
            self._gate(raw, headers)
            caller = self._caller(headers)
        except (ProtocolError, Unauthenticated) as error:
            return self._refusal(error, b"null", headers)
        if body is None:
            return None
        tenants = self._tenants
        dispatch = tenants.main if caller.tenant == MAIN else tenants.open_dispatch(caller.tenant)
        if dispatch is None or len(body) > self._limits.body:
            return None
        request = self._open(raw, headers, b"", body, caller, dispatch)
        if isinstance(request, HttpResponse):
            return request
        service, inbound = request
        if service.is_interactive(inbound):
            return None
        try:
            response = service.submit(inbound, partial(self._on_response, inbound, headers, on_done))
        except (ProtocolError, Forbidden) as error:
            return self._refusal(error, inbound.id, headers)
        if isinstance(response, bytes):
            return HttpResponse(200, response, self._streams.note(service, inbound, headers))
        # A lost connection does not cancel a legacy call: that era cancels by a notification only.
        return response if inbound.era is messages.MODERN else NOT_CANCELLABLE

    def _caller(self, headers: Headers) -> Caller:
        """Return the caller; raises Unauthenticated. Without keys, as most servers are, it costs no call."""
        auth = self._auth
        if b"authorization" in headers or auth.required or _clock() >= auth.checked_until:
            return auth.caller(headers)
        return ANONYMOUS_CALLER

    async def _answer(self, request: _Request, receive: Receive, send: Send) -> HttpResponse | Streaming | None:
        try:
            async with self._tenants.use(request.caller.tenant) as dispatch:
                opened = self._open(*request, dispatch)
                if isinstance(opened, HttpResponse):
                    return opened
                return await self._wait(*opened, request.headers, receive, send)
        except Fault as fault:
            unavailable = _Rejected(503, fault.message, RETRY, code=messages.INTERNAL_ERROR)
            return self._refusal(unavailable, b"null", request.headers)

    def _open(
        self, raw: Sequence[Header], headers: Headers, query: bytes, body: bytes, caller: Caller, dispatch: Dispatch
    ) -> HttpResponse | tuple[Service, Inbound]:
        """Return the decoded request and the service that answers it, or the response if there is nothing to call."""
        version, era = messages.version_and_era(headers.get(messages.VERSION))
        id_ = b"null"
        try:
            envelope = messages.open_message(body, self._limits)
            if not isinstance(envelope, messages.CallEnvelope) and not messages.is_request(envelope, era, version):
                return HttpResponse(202, b"")
            service = self._choose(query, caller.grant)
            id_ = messages.encoded_id(envelope.id)  # pyrefly: ignore[bad-argument-type]
            inbound = messages.over_http(envelope, id_, era, version, raw, headers, service.routes)
        except ProtocolError as error:
            return self._refusal(error, id_, headers)
        caller = with_client_name(caller, inbound.actor)
        if IDEMPOTENCY_KEY in headers:
            caller = with_idempotency_key(caller, headers[IDEMPOTENCY_KEY])
        inbound.caller, inbound.dispatch = caller, dispatch
        return service, inbound

    async def _wait(
        self, service: Service, inbound: Inbound, headers: Headers, receive: Receive, send: Send
    ) -> HttpResponse | Streaming | None:
        watched = receive if inbound.era is messages.MODERN else None
        if service.listens(inbound):
            return self._stream(partial(self._streams.run_listen, service, inbound), headers, inbound.caller)
        try:
            if service.is_interactive(inbound):
                stream = Stream(send, inbound.id)
                inbound.emit = stream.emit if bounds.accepts(headers, b"text/event-stream") else None
                answer = await stream.run(service.answer(inbound), watched)
            elif watched is None:
                answer = await service.answer(inbound)
            else:
                answer = await cancel_on_disconnect(service.answer(inbound), watched)
        except (ProtocolError, Forbidden) as error:
            return self._refusal(error, inbound.id, headers)
        return None if answer is None else HttpResponse(200, answer, self._streams.note(service, inbound, headers))

    def _on_session(self, scope: Scope, raw: Sequence[Header], headers: Headers) -> HttpResponse | Streaming:
        """Return the stream of a session, or the response to its end; raises ProtocolError and Unauthenticated."""
        if scope["method"] not in _OF_SESSION or SESSION not in headers:
            raise self._wrong_method(raw, headers)
        refusal = bounds.refuse(raw, headers, self._limits)
        if refusal is not None:
            raise _Rejected(*refusal, CLOSE)  # the body is not read
        caller = self._access.auth.caller(headers)
        if not self._choose(scope["query_string"], caller.grant).subscribable:
            raise self._wrong_method(raw, headers)
        id_ = self._streams.session_id(headers, caller)
        if id_ is None:
            raise _Rejected(404, "Unknown session, initialize again", CLOSE)
        if scope["method"] == "DELETE":
            self._streams.end_session(id_)
            return HttpResponse(200, b"")
        return self._stream(partial(self._streams.run_session, id_, caller), headers, caller)

    def _stream(self, run: Callable[..., Coroutine[object, None, None]], headers: Headers, caller: Caller) -> Streaming:
        """Return a stream as long as the caller's key stays valid; raises ProtocolError if the client does not take
        one.
        """
        if not bounds.accepts(headers, b"text/event-stream"):
            raise _Rejected(406, "Accept must allow text/event-stream", CLOSE)
        if not self._streams.has_room(caller):
            raise _Rejected(503, "Too many streams of this caller", CLOSE)

        def allowed() -> bool:
            try:
                return self._auth.caller(headers).key == caller.key
            except Unauthenticated:
                return False

        return partial(run, allowed=allowed)

    def _on_response(self, inbound: Inbound, headers: Headers, on_done: Done, response: Response) -> None:
        failed = isinstance(response, ProtocolError)
        on_done(self._refusal(response, inbound.id, headers) if failed else HttpResponse(200, response))

    def _wrong_method(self, raw: Sequence[Header], headers: Headers) -> ProtocolError:
        if (refusal := bounds.refuse(raw, headers, self._limits)) is not None:
            return _Rejected(*refusal, CLOSE)
        self._access.auth.caller(headers)
        return _Rejected(405, "Method not allowed, use POST", (b"allow", b"POST"))  # a plain GET has no body to read

    def _refusal(
        self, error: ProtocolError | Unauthenticated | Forbidden, id_: bytes, headers: Headers
    ) -> HttpResponse:
        if not isinstance(error, ProtocolError):
            refusal = self._access.refusal(error, self._path, headers)
            error = _Rejected(refusal.status, refusal.reason, *refusal.headers)
        era: messages.Era = messages.version_and_era(headers.get(messages.VERSION))[1]
        return HttpResponse(error.status or era.http.get(error.code, 200), error.reply(id_), error.headers)


async def _rest(receive: Receive, message: Message, limit: int) -> bytes:
    body = await bounds.read_on(receive, message, limit)
    if body is None:
        raise _Rejected(413, "Body too large or too slow", CLOSE)
    return body


def _gate(limits: Limits, authenticate: Callable[[Headers], object]) -> Gate:
    """Return the checks on headers, in the order of those of plain JSON: who has no key does not learn how a body must
    be.

    The values that passed are kept, so that the next check is a lookup.
    """
    checked_headers: set[tuple[bytes | None, ...]] = set()
    # A Content-Length with fewer digits than the limit is below it.
    digits, count, weight = len(str(limits.body)) - 1, limits.header_count, limits.header_bytes

    def gate(raw: Sequence[Header], headers: Headers) -> None:
        get = headers.get
        key = (get(b"host"), get(b"content-type"), get(b"accept"), get(b"origin"), get(b"content-encoding"))
        if (
            key in checked_headers
            and len(raw) == len(headers) <= count
            and len(get(b"content-length", b"")) <= digits
            and len(b"".join([*headers, *headers.values()])) <= weight
        ):
            return
        refusal = bounds.refuse(raw, headers, limits)
        if refusal is None:
            authenticate(headers)
            refusal = bounds.refuse_body(headers, limits)
            if refusal is None and not bounds.accepts(headers, b"application/json"):
                refusal = Refusal(406, "Accept must allow application/json")
        if refusal is not None:
            raise _Rejected(*refusal, CLOSE)  # the body is not read
        if len(checked_headers) < _MAX_PASSED and sum(len(value or b"") for value in key) <= _MAX_PASSED_BYTES:
            checked_headers.add(key)

    return gate
