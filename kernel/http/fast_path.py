"""Whole requests for hot addresses answered where they are read, without an ASGI task between socket and dispatch.

What does not come whole, or needs a stream, goes the ordinary way, so that nothing here has to know about either.
"""

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from kernel.calls import Pending
from kernel.errors import Fault
from kernel.http.deadlines import DeadlineWheel
from kernel.http.uvicorn_protocol import BETWEEN, BODY, HEAD, LimitedProtocol
from kernel.limits import Limits
from kernel.security.rate_limit import RateLimiter, client_address

Header = tuple[bytes, bytes]


class HttpResponse(NamedTuple):
    """A status, a body, and the headers that those two do not imply."""

    status: int
    body: bytes
    headers: tuple[Header, ...] = ()
    media: bytes = b"application/json"


Done = Callable[[HttpResponse], None]
# A Fault is a bug that was caught: nothing may be raised here.
FastRoute = Callable[[Sequence[Header], bytes, Done], HttpResponse | Pending | Fault | None]
_CLOSING = (b"connection", b"close")
_PROBES = (b"/healthz", b"/readyz")
_TOO_OFTEN = b'{"error":{"code":"too_often","message":"Too many requests, try again later."}}'
_CALM_SECONDS = 1.0
_BROKEN = HttpResponse(500, b"Internal Server Error", (_CLOSING,), b"text/plain")


class _Call:
    """A call that is waited for, in the place where uvicorn keeps its own."""

    message_event = asyncio.Event()  # uvicorn wakes who waits for a message; here nobody does

    def __init__(self) -> None:
        self.response_started = False
        self.response_complete = False
        self.disconnected = False
        self.keep_alive = True
        self.cancel: Callable[[], object] = lambda: None


class _CommonHeaders:
    """The headers every response has, joined once in a second."""

    def __init__(self) -> None:
        self._headers: Sequence[Header] = ()
        self._joined = b""

    def joined(self, headers: Sequence[Header]) -> bytes:
        if headers is not self._headers:
            self._headers = headers
            self._joined = _lines(headers)
        return self._joined


class FastPathProtocol(LimitedProtocol):
    """Uvicorn's HTTP protocol with a shorter way for the addresses in `hot`."""

    fast_routes: Mapping[bytes, FastRoute] = {}
    common = _CommonHeaders()
    rate_limiter = RateLimiter(0, 1)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._target: FastRoute | None = None
        self._received: bytes | bytearray = b""
        self._call: _Call | None = None
        self._address, self._local = "", True
        self._wait = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Notes where from."""
        super().connection_made(transport)
        self._address, self._local = client_address(self.client)

    def on_incomplete(self, received: int) -> None:
        """Lets a request whose end has not come go the ordinary way."""
        if self._target is not None and not self.whole.is_closing():
            self._hand_over()
        super().on_incomplete(received)

    def reject(self, status: int) -> None:
        """Refuses what was kept back here as any other."""
        if self._target is not None:
            self._hand_over()
        super().reject(status)

    def on_message_begin(self) -> None:
        """Makes no scope before it is needed."""
        self.reading = HEAD
        self.url = b""
        self.headers = []
        self.expect_100_continue = False
        self.scope = None  # type: ignore[assignment]

    def on_headers_complete(self) -> None:
        """Keeps the request back if it may be answered here."""
        self._received = b""
        self._target = self.fast_routes.get(self.url)
        if self._target is None:
            self.check_header_size()
        if self.rate_limiter.counts(local=self._local):
            self._count()
        self.reading = BODY
        if self._target is None or not self._is_plain():
            self._hand_over()

    def on_body(self, body: bytes) -> None:
        """Collects the body."""
        if self._target is None:
            super().on_body(body)
        elif self._received:
            if isinstance(self._received, bytes):
                self._received = bytearray(self._received)  # in many pieces it grows in place
            self._received += body
        else:
            self._received = body

    def on_message_complete(self) -> None:
        """Answers, begins to, or hands the request over."""
        target = self._target
        if target is None:
            super().on_message_complete()
            return
        self.reading = self.watched = BETWEEN
        call = _Call()
        found = target(self.headers, bytes(self._received), partial(self._finish, call))
        if found is None:
            self._hand_over()
            super().on_message_complete()
            return
        self._target = None
        if isinstance(found, Fault):
            found = _BROKEN
        if isinstance(found, Pending):
            call.cancel = found.cancel
            self._call = self.cycle = call  # type: ignore[assignment]
        else:
            self._finish(call, found)
        if self._wait:
            self._wait = 0.0
            self.throttle(_CALM_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Gives up what nobody will hear."""
        super().connection_lost(exc)
        self._target = None
        if self._call is not None:
            self._call.disconnected = True
            self._call.cancel()

    def _count(self) -> None:
        """Turns to a refusal what comes too often; whether the server lives may be asked as often as one likes."""
        if self.url not in _PROBES:
            self._wait = self.rate_limiter.wait(self.headers, self._address, self.loop.time())
            self._target = self._rate_limited if self._wait else self._target

    def _rate_limited(self, _raw: Sequence[Header], _body: bytes, _done: Done) -> HttpResponse:
        return HttpResponse(429, _TOO_OFTEN, ((b"retry-after", b"%d" % max(1, math.ceil(self._wait))),))

    def _is_plain(self) -> bool:
        parser: Any = self.parser
        cycle: Any = self.cycle
        return (
            parser.get_method() == b"POST"
            and (cycle is None or cycle.response_complete)
            and parser.should_keep_alive()
            and parser.get_http_version() == "1.1"
            and not parser.should_upgrade()
            and not self.expect_100_continue
            and not self.flow.write_paused
        )

    def _hand_over(self) -> None:
        """Lets uvicorn have the request as if it had come to it first."""
        served, self._target = self.app, None
        if self._wait:
            self.app = _refusing(self._rate_limited((), b"", _unheard))
            self._wait = 0.0
        url, headers, expected = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.expect_100_continue = url, expected
        self.headers.extend(headers)
        super().on_headers_complete()
        self.app = served
        if self._received:
            received, self._received = self._received, b""
            super().on_body(bytes(received))

    def _finish(self, call: _Call, answer: HttpResponse) -> None:
        call.response_complete = True
        if self._call is call:
            self._call = None
        if call.disconnected or self.whole.is_closing():
            return
        closing = not call.keep_alive or _CLOSING in answer.headers
        extra = (*answer.headers, _CLOSING) if closing and _CLOSING not in answer.headers else answer.headers
        self.whole.write(self._head(answer, extra) + answer.body)
        if closing:
            self.whole.close()
        self.on_response_complete()

    def _head(self, answer: HttpResponse, extra: tuple[Header, ...]) -> bytes:
        common = self.common.joined(self.server_state.default_headers)
        more = _lines(extra) if extra else b""
        if not answer.body:
            return b"%b%bcontent-length: 0\r\n%b\r\n" % (STATUS_LINE[answer.status], common, more)
        return b"%b%bcontent-type: %b\r\ncontent-length: %d\r\n%b\r\n" % (
            STATUS_LINE[answer.status],
            common,
            answer.media,
            len(answer.body),
            more,
        )


def _lines(headers: Sequence[Header]) -> bytes:
    return b"".join([b"%b: %b\r\n" % header for header in headers])


def _unheard(_answer: HttpResponse) -> None:
    """For an answer that is given at once."""


def _refusing(answer: HttpResponse) -> Any:
    """An application that says one thing, and closes, since nobody will read the rest."""
    head = [(b"content-type", answer.media), (b"content-length", b"%d" % len(answer.body)), *answer.headers, _CLOSING]

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": answer.status, "headers": head})
        await send({"type": "http.response.body", "body": answer.body})

    return app


def protocol(
    fast_routes: Mapping[bytes, FastRoute], limits: Limits = Limits(), rate_limiter: RateLimiter | None = None
) -> type[FastPathProtocol]:
    """The protocol for `uvicorn.Config(http=...)` of one server, with its routes, limits, deadlines and rate limiter."""
    shared = {
        "fast_routes": fast_routes,
        "limits": limits,
        "rate_limiter": rate_limiter or RateLimiter(limits.rate, limits.burst),
        "wheel": DeadlineWheel(),
        "common": _CommonHeaders(),
    }
    return type("ServerProtocol", (FastPathProtocol,), shared)
