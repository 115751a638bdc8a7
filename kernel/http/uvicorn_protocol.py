"""Uvicorn's HTTP protocol with limits on connections, request sizes, and the time a client may take to send or read."""

import asyncio
import logging
import socket
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, cast

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from kernel.core.ids import current_call
from kernel.core.limits import BYTES_PER_SECOND, Header, Limits, weight
from kernel.core.status_counts import STATUSES
from kernel.http.deadlines import DeadlineWheel
from kernel.http.read_flow import DiscardParser, ReceiveFlow, Trailers, UpgradeBody, fits_one_turn
from kernel.http.request_log import Report, begin_report, id_header, observed, request_id
from kernel.http.write_backpressure import Unsent
from kernel.security.rate_limit import forwarded_address

_log = logging.getLogger("quipu")
# The part that the parser is reading; plain integers, since they are compared for each segment.
BETWEEN_REQUESTS, HEAD, BODY = range(3)
FRAMING = (b"content-length", b"transfer-encoding")
_UNREADABLE = (httptools.HttpParserInvalidURLError, UnicodeDecodeError)
# Chunk headers and trailers may add the size of the body limit and this many bytes.
_CHUNKING_BYTES = 65536
_UNSENT_SECONDS = 0.5  # between two looks at a client that is behind with its answers
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER with 0 seconds: unsent data is dropped, the peer gets RST
# A close with unread input resets the connection, and the client may lose the response (RFC 9112 section 9.6).
_LINGER_SECONDS = 1.0

_REJECTIONS = {
    400: (b"invalid", b"Malformed HTTP request"),
    408: (b"timeout", b"Request timed out"),
    413: (b"too_large", b"Body too large"),
    429: (b"rate_limited", b"Too many requests, try again later."),
    431: (b"headers_too_large", b"Headers too large"),
    501: (b"not_implemented", b"Neither CONNECT nor a transfer coding but chunked is supported"),
    503: (b"busy", b"Too many connections, try again."),
}
_RETRIED = (429, 503)
# The client may still be sending when it is rejected with one of these.
_REJECTED_WHILE_SENDING = (400, 413, 431, 501)


class CycleTransport(NamedTuple):
    """The part of a transport that a request of uvicorn needs; `close` is the protocol's, which may linger."""

    write: Callable[[bytes], None]
    is_closing: Callable[[], bool]
    close: Callable[[], None]


class Rejected(Exception):
    """Ends the parsing of a request that was rejected."""


class LimitedProtocol(HttpToolsProtocol):
    """One connection; `limits`, `wheel` and `unsent` are shared by all connections of a server."""

    limits = Limits()
    wheel = DeadlineWheel()
    unsent = Unsent(0)
    logs_requests = False
    proxies: frozenset[str] = frozenset()  # whose word about the address of a client is taken
    peer = ""

    flow: ReceiveFlow

    # The initial state of one connection.
    reading = BETWEEN_REQUESTS
    upgrading = False  # the parser leaves the body of this request to another protocol
    rejected = False
    trailers: Trailers | None = None  # while the chunk being read has no body, as the last chunk
    slot = 0
    timed = BETWEEN_REQUESTS  # the part that has a deadline, which starts when it does not arrive whole
    _timed_since = 0.0
    _timed_bytes = 0
    _idle_since = 0.0
    _write_stall: tuple[float, int] | None = None  # since when, and bytes in the buffer then
    _largest_write = 0  # since all was taken
    _closing_since = 0.0
    _throttled_until = 0.0
    _linger_until = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.peer = self.client[0].removeprefix("::ffff:") if self.client else ""  # of IPv4 on a socket of IPv6
        flow = ReceiveFlow(transport, self.loop, self._parse_piece, self.pipeline)
        self.flow = flow  # pyright: ignore[reportIncompatibleVariableOverride]
        self._cycle_transport = CycleTransport(self.write, self.is_closing, self.close)
        now, silent, idle = self.loop.time(), self.limits.silent_seconds, self.limits.idle_seconds
        self._idle_since = now + silent - idle  # so that the idle time of a new connection ends after `silent`
        self.wheel.schedule(self, now + min(silent, idle))

    def _parse_piece(self, data: bytes | memoryview) -> None:
        """Parses; a client that has sent more than it may is not waited for."""
        self.parse(data)
        if self._throttled_until and self.flow.has_unparsed:
            self._linger()

    def data_received(self, data: bytes) -> None:
        if fits_one_turn(data):
            self.parse(data)
        elif self.rejected:
            self.parser.feed_data(data)
            self.flow.rest()
        else:
            self.flow.receive(data)

    def parse(self, data: bytes | memoryview) -> None:
        """Parses; a request that is incomplete then gets a deadline."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._read_upgrade_body(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            self._on_parser_error(error)
        if self.reading and not self.rejected:
            self.on_incomplete(len(data))

    def on_message_begin(self) -> None:
        self.reading = HEAD
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keeps a header; a trailer is counted, and is no header (RFC 9110 section 6.5.1)."""
        if self.trailers is not None:
            self.trailers.add(name, value)
            self._check_trailers(self.trailers)
            return
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_chunk_header(self) -> None:
        self.trailers = Trailers()

    def on_body(self, body: bytes) -> None:
        self.trailers = None
        super().on_body(body)

    def on_headers_complete(self) -> None:
        """Starts the application, which may write to the connection as long as its client reads."""
        self.reading = BODY
        self.upgrading = bool(self.parser.should_upgrade())
        super().on_headers_complete()
        self.cycle.transport = cast("asyncio.Transport", self._cycle_transport)

    def on_message_complete(self) -> None:
        """Ends the request, unless its body is left to another protocol."""
        if self.upgrading:
            return
        self.reading = self.timed = BETWEEN_REQUESTS
        self.trailers = None
        super().on_message_complete()

    def check_header_size(self) -> None:
        """Rejects headers over the limits, for applications that do not check them; raises Rejected."""
        count, size = self.limits.header_count, self.limits.header_bytes
        if len(self.headers) > count or len(self.url) + weight(self.headers) > size:
            self.reject(431)
            raise Rejected

    def check_framing(self) -> None:
        """Rejects requests that are framed as no client may; raises Rejected."""
        codings = [value.lower() for name, value in self.headers if name == b"transfer-encoding"]
        if self.parser.get_method() == b"CONNECT" or codings not in ([], [b"chunked"]):
            self.reject(501)
            raise Rejected
        if codings and self.parser.get_http_version() != "1.1":
            self.reject(400)  # RFC 9112 section 6.1
            raise Rejected

    def discard_input(self) -> None:
        self.rejected = True
        parser = DiscardParser(self.limits.body, self.transport.close)
        self.parser = cast("httptools.HttpRequestParser", parser)
        self.flow.discard()

    def _check_trailers(self, trailers: Trailers) -> None:
        if trailers.count > self.limits.header_count or trailers.bytes > self.limits.header_bytes:
            self.reject(431)
            raise Rejected

    def _read_upgrade_body(self, rest: bytes | memoryview) -> None:
        """Parses the body of a request with `Upgrade`, which is ignored: the response is HTTP/1.1, then it closes."""
        self.upgrading = False
        cycle = self.current_cycle()
        if cycle is None or self.rejected:
            return
        cycle.keep_alive = False
        framing = [b"%b: %b\r\n" % header for header in self.headers if header[0] in FRAMING]
        self.parser = httptools.HttpRequestParser(UpgradeBody(self.on_body, self.on_message_complete))
        try:
            self.parser.feed_data(b"POST / HTTP/1.1\r\n%b\r\n%b" % (b"".join(framing), rest))
        except httptools.HttpParserError as error:
            self._on_parser_error(error)

    def _on_parser_error(self, error: httptools.HttpParserError) -> None:
        if isinstance(error, httptools.HttpParserCallbackError) and not self.rejected:
            _log_callback_error(error)
        self.reject(400)

    def current_cycle(self) -> RequestResponseCycle | None:
        return self.cycle  # uvicorn's annotation leaves out the None before the first request

    def on_incomplete(self, received: int) -> None:
        """Starts or continues the deadline of an incomplete request after a piece of `received` bytes."""
        if self.timed != self.reading:
            self.timed = self.reading
            self._timed_since = self.loop.time()
            self._timed_bytes = 0
            self.wheel.schedule(self, self._read_deadline())
        else:
            self._timed_bytes += received
        if self.timed == HEAD and self._timed_bytes > self.limits.header_bytes:
            self.reject(431)
        elif self.timed == BODY and self._timed_bytes > 2 * self.limits.body + _CHUNKING_BYTES:
            self.reject(413)
        elif self.trailers is not None and self.trailers.received(received) > self.limits.header_bytes:
            self.reject(431)

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        self._idle_since = self.loop.time()
        if self.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())

    def pause_writing(self) -> None:
        """Start the deadline for the client to read the buffered bytes."""
        super().pause_writing()
        now = self.loop.time()
        self._write_stall = (now, self.unsent_bytes())
        self.unsent.add(self, now)
        self.wheel.schedule(self, now + min(_UNSENT_SECONDS, self.limits.stall_seconds))

    def resume_writing(self) -> None:
        super().resume_writing()
        self._write_stall = None
        self._largest_write = 0
        self.unsent.remove(self)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.wheel.cancel(self)
        self.unsent.remove(self)
        self.flow.discard()

    def unsent_bytes(self) -> int:
        return self.transport.get_write_buffer_size()

    def held_bytes(self) -> int:
        return max(self._largest_write, self.unsent_bytes())

    def drop(self) -> None:
        """Reset the connection, and forget unsent bytes."""
        self._write_stall = None
        sock = cast("socket.socket", self.transport.get_extra_info("socket"))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self.transport.abort()

    def shutdown(self) -> None:
        """Closes the connection, after a response that is due; an incomplete request gets none."""
        if self.reading and not self._response_due():
            self.transport.close()
        else:
            super().shutdown()

    def throttle(self, seconds: float) -> None:
        self._throttled_until = self.loop.time() + seconds
        self.flow.pause_reading()
        self.wheel.schedule(self, self._throttled_until)

    def on_deadline(self, now: float) -> float | None:
        """Ends the connection if its deadline has passed; the next time to check, or None."""
        if self._write_stall is not None:
            self.unsent.enforce(now)
        end = self._linger_until or self._deadline(now)
        if now < end:
            return end if self._write_stall is None else min(end, now + _UNSENT_SECONDS)
        if self._write_stall is not None or self.transport.is_closing():
            self.drop()
            return None
        if self.timed:
            self.reject(408)
        else:
            self.transport.close()
        return now + self.limits.stall_seconds

    def reject(self, status: int) -> None:
        """Rejects the request being read and closes, after a response to an earlier request that is due."""
        if self.rejected or self.transport.is_closing():
            return
        self.discard_input()
        if self._response_due():
            self.cycle.keep_alive = False
            self.flow.pause_reading()
            return
        cycle = self.current_cycle()
        if self.reading != BODY or cycle is None or not cycle.response_complete:
            self._write_rejection(status)
        self._linger() if status in _REJECTED_WHILE_SENDING else self.transport.close()

    def _write_rejection(self, status: int) -> None:
        url, headers = (b"", ()) if self.reading == BETWEEN_REQUESTS else (self.url, self.headers)
        id_ = request_id(headers)
        body = b'{"error":{"code":"%b","message":"%b"}}' % _REJECTIONS[status]
        STATUSES[status] += 1
        self.transport.write(_rejection(status, [*self.server_state.default_headers, id_header(id_)], body))
        report = self.begin_report(id_, "", url, headers)
        if report is not None:
            report(status, len(body))

    def begin_report(self, id_: str, method: str, url: bytes, headers: Sequence[Header]) -> Report | None:
        if not self.logs_requests:
            return None
        return begin_report(id_, forwarded_address(self.peer, self.proxies, headers), method, url, headers)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Starts the application on a request that has an id, which its response names however it comes about."""
        scope, headers = cycle.scope, list(cycle.scope["headers"])
        id_ = request_id(headers)
        current_call.set(id_)
        cycle.default_headers = [*cycle.default_headers, id_header(id_)]
        report = self.begin_report(id_, scope["method"], scope["raw_path"], headers)
        super()._start_asgi_task(cycle, cast("Any", observed(app, report)))

    def close(self) -> None:
        """Closes the connection; while the client is sending, lets it read the response first."""
        self._linger() if self.reading == BODY or self.flow.has_unparsed else self.transport.close()

    def _linger(self) -> None:
        """Closes the writing side and discards input for a moment."""
        if self.transport.is_closing() or self._linger_until:
            return
        if self._response_pending():
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.discard_input()
        self.reading = self.timed = BETWEEN_REQUESTS
        self._linger_until = self.loop.time() + _LINGER_SECONDS
        self.flow.resume_reading()
        self.transport.write_eof()
        self.wheel.schedule(self, self._linger_until)

    def is_closing(self) -> bool:
        return bool(self._linger_until) or self.transport.is_closing()

    def write(self, data: bytes) -> None:
        if not self.is_closing():
            self._largest_write = max(self._largest_write if self.unsent_bytes() else 0, len(data))
            self.transport.write(data)

    def _deadline(self, now: float) -> float:
        """Return when the connection ends unless the client acts; while the server has to act, when to check again."""
        limits = self.limits
        if self._write_stall is not None:
            since, size = self._write_stall
            size_taken = size - self.transport.get_write_buffer_size()
            return since + limits.stall_seconds + max(0, size_taken) / BYTES_PER_SECOND
        if self.transport.is_closing():
            self._closing_since = self._closing_since or now
            return self._closing_since + limits.stall_seconds
        if self._throttled_until and now < self._throttled_until:
            return self._throttled_until
        if self._throttled_until:
            self._throttled_until = 0.0
            self.flow.resume_reading()
        if self.flow.read_paused:
            self._timed_since = now
            return now + limits.stall_seconds
        if self.timed:
            return self._read_deadline()
        if self._response_pending():
            return now + limits.idle_seconds
        return self._idle_since + limits.idle_seconds

    def _read_deadline(self) -> float:
        if self.timed == HEAD:
            return self._timed_since + self.limits.header_seconds
        return self._timed_since + self.limits.body_seconds + self._timed_bytes / BYTES_PER_SECOND

    def _response_pending(self) -> bool:
        cycle = self.current_cycle()
        return cycle is not None and not cycle.response_complete

    def _response_due(self) -> bool:
        return self._response_pending() and (self.reading != BODY or bool(self.pipeline) or self.cycle.response_started)


def header_lines(headers: Iterable[Header]) -> bytes:
    return b"".join([b"%b: %b\r\n" % header for header in headers])


def _rejection(status: int, headers: Iterable[Header], body: bytes) -> bytes:
    retry = b"retry-after: 1\r\n" if status in _RETRIED else b""
    return b"%b%b%bcontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b" % (
        STATUS_LINE[status],
        header_lines(headers),
        retry,
        len(body),
        body,
    )


def _log_callback_error(error: Exception) -> None:
    if not isinstance(error.__context__, _UNREADABLE):
        _log.error("a request could not be accepted", exc_info=error.__context__ or error)
