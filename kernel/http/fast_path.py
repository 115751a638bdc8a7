"""Answers POSTs to known paths from the parser's callbacks, without an ASGI task between socket and dispatch.

A request that is chunked and in several segments, large, upgrading, pipelined behind a pending request, of a page in a
browser, or answered by a stream goes to the ASGI application, so that nothing here handles those.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar

from msgspec.structs import replace
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from kernel.calls.dispatch import NOT_CANCELLABLE, Pending
from kernel.core.errors import Fault
from kernel.core.ids import current_call
from kernel.core.limits import Header, Limits
from kernel.http import uvicorn_protocol
from kernel.http.edge import CLOSE, HttpResponse, error_response, send_response
from kernel.http.incoming_bodies import IncomingBodies
from kernel.security.rate_limit import Bucket, RateLimiter, client_address, forwarded_address

Done = Callable[[HttpResponse], None]
# The response to a POST, Pending if `done` gets it later, None if it takes the ASGI application. A body of None
# means that only the headers have arrived: the response then is the refusal they alone decide, or None. It must not
# raise; a Fault is a bug that was caught.
FastRoute = Callable[[Sequence[Header], bytes | None, Done], HttpResponse | Pending | Fault | None]

_SCHEMES = (b"http", b"https")
HEALTHY = b'{"status":"ok"}'
_HEALTHZ = b"/healthz"
# Counted for each connection by itself, so that a flood from one address does not hide that the server lives.
_PROBES = (_HEALTHZ, b"/readyz")
_RATE_LIMITED = b'{"error":{"code":"rate_limited","message":"Too many requests, try again later."}}'
_REST_RATE_LIMITED = (
    b'{"type":"error","error":{"type":"rate_limit_error","message":"Too many requests, try again later."}}'
)
# A client that ignores 429 is not read from for this long, so that it cannot keep the event loop busy.
_THROTTLE_SECONDS = 1.0
_INTERNAL_ERROR = error_response(500, "internal", "Internal error: the log of the server has it.", CLOSE)
# A connection without a key makes the server hold at most this much of a body, as uvicorn buffers.
MAX_COLLECTED_BYTES = 65536


class CommonHeaders:
    """The lines of the headers of every response; uvicorn makes a new list of them each second, for the date."""

    def __init__(self) -> None:
        self._headers: Sequence[Header] = ()
        self._lines = b""

    def lines(self, headers: Sequence[Header]) -> bytes:
        if headers is not self._headers:
            self._headers, self._lines = headers, uvicorn_protocol.header_lines(headers)
        return self._lines


class _PendingCall:
    """A call under way, with the attributes that uvicorn expects of `self.cycle`."""

    report: uvicorn_protocol.Report | None = None
    message_event = asyncio.Event()  # uvicorn sets it when the connection ends; nothing waits for it here
    response_started = response_complete = disconnected = False
    keep_alive = True
    cancel: Callable[[], object] = staticmethod(NOT_CANCELLABLE.cancel)

    def __init__(self, id_: str) -> None:
        self.id = id_


class FastPathProtocol(uvicorn_protocol.LimitedProtocol):
    """`LimitedProtocol` with a direct way for the paths in `fast_routes`.

    `_target` is the route of the request being read, or None once it belongs to the ASGI application.
    """

    fast_routes: Mapping[bytes, FastRoute] = {}
    common = CommonHeaders()
    rate_limiter = RateLimiter(0, 1)
    addresses: ClassVar[Counter[str]] = Counter()  # connections by address

    _target: FastRoute | None = None
    _body: bytes | bytearray = b""
    _call: _PendingCall | None = None
    _address, _local = "", True  # of the client, which a proxy tells with each request
    _connected_from = ""
    _retry_after = 0.0
    _probes: Bucket | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accepts the connection, or rejects it with 503 if there are too many, of all or of its address."""
        try:
            super().connection_made(transport)
            self._admit()
        except MemoryError:  # nothing would read what the client sends
            transport.abort()

    def on_incomplete(self, received: int) -> None:
        """Keeps a small body here and hands the rest to ASGI, when the first segment did not complete the request."""
        if self._target is not None and self.timed != self.reading and not self.transport.is_closing():
            self._collect_or_hand_over(self._target)
        super().on_incomplete(received)

    def reject(self, status: int) -> None:
        """Drop the collected part of the request being read, and reject it; a rejection counts as a request."""
        self._target, self._body = None, b""
        if self._is_counted() and self.rate_limiter.wait((), self._address, self.loop.time()):
            status = 429
        super().reject(status)

    def on_message_begin(self) -> None:
        """Starts a request without the ASGI scope, which only `_hand_over` needs."""
        self.reading = uvicorn_protocol.HEAD
        self.url = b""
        self.headers = []
        self.noted = {}
        self.expect_100_continue = False
        self.scope = None  # type: ignore[assignment]

    def on_headers_complete(self) -> None:
        """Keeps the request here if it can be answered here."""
        if self._linger_until or self.transport.is_closing():
            self.discard_input()
            raise uvicorn_protocol.Rejected  # after a response with `Connection: close` (RFC 9112 section 9.6)
        self._body = b""
        self._target = self.fast_routes.get(self.url)
        if self._target is None and not self.url.startswith(b"/"):
            self._take_target()
            self._target = self.fast_routes.get(self.url)
        if self._target is None:
            self.check_header_size()
            self._target = _healthy if self._asks_for_health() else None
        if self.peer in self.proxies:
            self._address, self._local = client_address((forwarded_address(self.peer, self.proxies, self.headers), 0))
        if self._is_counted():
            self._count()
        plain = self._target is not None and self._is_plain()
        if not plain:
            self.check_framing()
        self.reading = uvicorn_protocol.BODY
        if plain:
            self.cycle = None  # type: ignore[assignment]  # the response that it stood for is complete
        else:
            self._hand_over()

    def on_body(self, body: bytes) -> None:
        if self._target is None:
            super().on_body(body)
            return
        self.trailers = None
        if self._body:
            if isinstance(self._body, bytes):
                self._body = bytearray(self._body)  # grows in place, whatever the number of segments
            self._body += body
        else:
            self._body = body

    def on_message_complete(self) -> None:
        target = self._target
        if target is None:
            super().on_message_complete()
            return
        self.reading = self.timed = uvicorn_protocol.BETWEEN_REQUESTS
        self.trailers = None
        id_ = uvicorn_protocol.request_id(self.noted.get(uvicorn_protocol.REQUEST_ID))
        current_call.set(id_)
        call = _PendingCall(id_)
        if self.logs_requests:
            call.report = self.begin_report(id_, self.parser.get_method().decode(), self.url, self.headers)
        response = target(self.headers, bytes(self._body), partial(self._respond, call))
        if response is None:
            self._hand_over()
            super().on_message_complete()
            return
        self._target = None
        if isinstance(response, Pending):
            call.cancel = response.cancel
            self._call = self.cycle = call  # type: ignore[assignment]
        else:
            self._respond(call, _INTERNAL_ERROR if isinstance(response, Fault) else response)
        if self._retry_after:
            self._retry_after = 0.0
            if self.peer not in self.proxies:  # others come by the same connection
                self.throttle(_THROTTLE_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._target, self._body = None, b""
        self.addresses[self._connected_from] -= 1
        if self.addresses[self._connected_from] <= 0:
            del self.addresses[self._connected_from]
        call = self._call
        if call is not None:
            call.disconnected = True
            call.cancel()
            if call.report is not None:
                call.report(uvicorn_protocol.GONE, 0)

    def _admit(self) -> None:
        self._address, self._local = client_address(self.client)
        self._connected_from = self._address
        self.addresses[self._address] += 1
        too_many = self.addresses[self._address] > self.limits.connections_of_an_address
        is_limited = self._address and self.peer not in self.proxies and self._is_of_others()
        if len(self.connections) > self.limits.connections or (too_many and is_limited):
            self.reject(503)

    def _take_target(self) -> None:
        """Takes an absolute URL apart: its authority counts, whatever the Host header says (RFC 9112 section 3.2.2)."""
        scheme, mark, rest = self.url.partition(b"://")
        if not mark:
            return
        end = next((at for at, byte in enumerate(rest) if byte in b"/?#"), len(rest))
        host = rest[:end] if scheme.lower() in _SCHEMES else b""
        self.url = b"/" + rest[end:].removeprefix(b"/")
        self.headers = [(name, host if name == b"host" else value) for name, value in self.headers]

    def _is_counted(self) -> bool:
        limiter = self.rate_limiter  # as `_is_of_others`, without a call
        return limiter.rate > 0 and (not self._local or limiter.authenticator.required)

    def _is_of_others(self) -> bool:
        """Without keys, requests from this machine are not counted: they are all of one user."""
        return not self._local or self.rate_limiter.authenticator.required

    def _asks_for_health(self) -> bool:
        is_get = self.url == _HEALTHZ and self.parser.get_method() == b"GET"
        return is_get and not any(name in uvicorn_protocol.FRAMING for name, _ in self.headers)

    def _count(self) -> None:
        limiter, now = self.rate_limiter, self.loop.time()
        if self.url in _PROBES:
            self._probes, self._retry_after = limiter.take(self._probes, now)
        else:
            self._retry_after = limiter.wait(self.headers, self._address, now)
        self._target = self._rate_limited if self._retry_after else self._target

    def _rate_limited(self, _headers: Sequence[Header], _body: bytes | None, _done: Done) -> HttpResponse:
        body = _REST_RATE_LIMITED if self.url.startswith(b"/v1/") else _RATE_LIMITED
        return HttpResponse(429, body, ((b"retry-after", b"%d" % max(1, math.ceil(self._retry_after))),))

    def _is_plain(self) -> bool:
        parser = self.parser
        return (
            (parser.get_method() == b"POST" or self._is_plain_get())
            and not self._response_pending()
            and parser.should_keep_alive()
            and parser.get_http_version() == "1.1"
            and not parser.should_upgrade()
            and not self.expect_100_continue
            and not self.flow.write_paused
            and b"origin" not in self.noted  # of a browser, which wants CORS
            and (b"transfer-encoding" not in self.noted or self.transfer_codings() == [b"chunked"])
        )

    def _is_plain_get(self) -> bool:
        return self.parser.get_method() == b"GET" and (self._target is _healthy or bool(self._retry_after))

    def _collect_or_hand_over(self, target: FastRoute) -> None:
        """Most clients send head and body in two writes, so a small body is waited for unless the headers refuse it."""
        if not _declares_small_body(self.headers) or target(self.headers, None, _ignore) is not None:
            self._hand_over()

    def _hand_over(self) -> None:
        """Starts the ASGI application on the request, as uvicorn does when the headers are complete."""
        app, self._target = self.app, None
        if self._retry_after:
            self.app = _responding(self._rate_limited((), None, _ignore))
            self._retry_after = 0.0
        url, headers, expected = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.expect_100_continue = url, expected
        self.headers.extend(headers)
        super().on_headers_complete()
        self.app = app
        if self._body:
            body, self._body, trailers = self._body, b"", self.trailers
            super().on_body(bytes(body))
            self.trailers = trailers

    def _respond(self, call: _PendingCall, response: HttpResponse) -> None:
        call.response_complete = True
        if self._call is call:
            self._call = None
        try:
            self._write_response(call, response)
        except MemoryError:  # the client would wait for ever
            self.transport.abort()

    def _write_response(self, call: _PendingCall, response: HttpResponse) -> None:
        if call.disconnected or self.is_closing():
            return
        if call.report is not None:
            call.report(response.status, len(response.body))
        closing = not call.keep_alive or CLOSE in response.headers
        extra = (*response.headers, CLOSE) if closing and CLOSE not in response.headers else response.headers
        head = self._head(response, call.id, extra)
        uvicorn_protocol.STATUSES[response.status] += 1
        if len(response.body) <= MAX_COLLECTED_BYTES:
            self.transport.write(head + response.body)
        else:  # which is not copied
            self.transport.write(head)
            self.write(response.body)
        if closing:
            self.close()
        self.on_response_complete()

    def _head(self, response: HttpResponse, id_: str, extra: tuple[Header, ...]) -> bytes:
        common = self.common.lines(self.server_state.default_headers)
        status, id_line = STATUS_LINE[response.status], id_.encode()
        more = uvicorn_protocol.header_lines(extra) if extra else b""
        if not response.body:
            return b"%b%bcontent-length: 0\r\nx-request-id: %b\r\n%b\r\n" % (status, common, id_line, more)
        return b"%b%bcontent-type: %b\r\ncontent-length: %d\r\nx-request-id: %b\r\n%b\r\n" % (
            status,
            common,
            response.media,
            len(response.body),
            id_line,
            more,
        )


def _declares_small_body(headers: Sequence[Header]) -> bool:
    digits = len(str(MAX_COLLECTED_BYTES))
    for name, value in headers:
        if name == b"content-length":
            return len(value) <= digits and int(value) <= MAX_COLLECTED_BYTES
    return False


def _healthy(_headers: Sequence[Header], _body: bytes | None, _done: Done) -> HttpResponse:
    return HttpResponse(200, HEALTHY)


def _ignore(_response: HttpResponse) -> None:
    """For a route that answers at once."""


def _responding(response: HttpResponse) -> ASGIApp:
    """Return an application with one response; it closes the connection, since the rest of the body is not read."""

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send_response(send, replace(response, headers=(*response.headers, CLOSE)))

    return app


def protocol(
    fast_routes: Mapping[bytes, FastRoute],
    limits: Limits = Limits(),
    rate_limiter: RateLimiter | None = None,
    proxies: frozenset[str] = frozenset(),
    *,
    logs_requests: bool = False,
) -> type[FastPathProtocol]:
    """Return the protocol for `uvicorn.Config(http=...)` of one server, with its own routes, limits and deadlines."""
    shared = {
        "fast_routes": fast_routes,
        "limits": limits,
        "logs_requests": logs_requests,
        "proxies": proxies,
        "rate_limiter": rate_limiter or RateLimiter(limits.rate, limits.burst),
        "wheel": uvicorn_protocol.DeadlineWheel(),
        "unsent": uvicorn_protocol.Unsent(max(limits.unsent, 2 * limits.answer)),
        "incoming": IncomingBodies(max(limits.queued, 2 * limits.body)),
        "addresses": Counter[str](),
        "common": CommonHeaders(),
    }
    return type("ServerProtocol", (FastPathProtocol,), shared)
