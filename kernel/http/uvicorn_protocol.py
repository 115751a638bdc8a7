"""Uvicorn's HTTP protocol with limits on connections, request sizes, and the time a client may take to send or read."""

import asyncio
import logging
import socket
import struct
from collections.abc import Callable
from typing import NamedTuple, cast

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from kernel.http.deadlines import DeadlineWheel
from kernel.limits import BYTES_PER_SECOND, Limits, weight

_log = logging.getLogger("quipu")
# What the parser is reading; plain integers, since they are compared for each segment.
BETWEEN_REQUESTS, HEAD, BODY = range(3)
# Chunk headers and trailers may add the size of the body limit and this many bytes.
_CHUNKING_BYTES = 65536
_REJECTIONS = {
    400: (b"invalid", b"Malformed HTTP request"),
    408: (b"timeout", b"Request timed out"),
    413: (b"too_large", b"Body too large"),
    431: (b"headers_too_large", b"Headers too large"),
    503: (b"busy", b"Too many connections, try again."),
}
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER with 0 seconds: unsent data is dropped, the peer gets RST
# The client may still be sending when it is rejected with one of these.
_REJECTED_WHILE_SENDING = (400, 413, 431)
# A close with unread input resets the connection, and the client may lose the response (RFC 9112 section 9.6).
_LINGER_SECONDS = 1.0
_FRAMING = (b"content-length", b"transfer-encoding")
_UNREADABLE = (httptools.HttpParserInvalidURLError, UnicodeDecodeError)


class Rejected(Exception):
    """Ends the parsing of a request that was rejected."""


class CycleTransport(NamedTuple):
    """What a request of uvicorn needs of its transport; `close` is the protocol's, which may linger."""

    write: Callable[[bytes], None]
    is_closing: Callable[[], bool]
    close: Callable[[], None]


class LimitedProtocol(HttpToolsProtocol):
    """One connection; `limits` and `wheel` are shared by all connections of a server."""

    limits = Limits()
    wheel = DeadlineWheel()

    # The initial state of one connection.
    slot = 0
    reading = BETWEEN_REQUESTS
    upgrading = False  # the parser leaves the body of this request to another protocol
    timed = BETWEEN_REQUESTS  # the part that has a deadline, which starts when it does not arrive whole
    _timed_since = 0.0
    _timed_bytes = 0
    _idle_since = 0.0
    _write_stall: tuple[float, int] | None = None  # since when, and bytes in the buffer then
    _closing_since = 0.0
    _throttled_until = 0.0
    _rejected = False
    _linger_until = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accepts the connection, or rejects it with 503 where there are too many."""
        super().connection_made(transport)
        self._cycle_transport = CycleTransport(transport.write, transport.is_closing, self.close)
        now, silent, idle = self.loop.time(), self.limits.silent_seconds, self.limits.idle_seconds
        self._idle_since = now + silent - idle  # so that the idle time of a new connection ends after `silent`
        self.wheel.schedule(self, now + min(silent, idle))
        if len(self.connections) > self.limits.connections:
            self.reject(503)

    def data_received(self, data: bytes) -> None:
        """Parses; a request that is incomplete then gets a deadline."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._read_upgrade_body(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            self._on_parser_error(error)
        if self.reading and not self._rejected:
            self.on_incomplete(len(data))

    def on_message_begin(self) -> None:
        """Starts a request."""
        self.reading = HEAD
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Starts the application; the body may follow."""
        self.reading = BODY
        self.upgrading = bool(self.parser.should_upgrade())
        super().on_headers_complete()
        self.cycle.transport = cast("asyncio.Transport", self._cycle_transport)

    def on_message_complete(self) -> None:
        """Ends the request, unless its body is left to another protocol."""
        if self.upgrading:
            return
        self.reading = self.timed = BETWEEN_REQUESTS
        super().on_message_complete()

    def check_header_size(self) -> None:
        """Rejects headers over the limits, for applications that do not check them; raises Rejected."""
        count, size = self.limits.header_count, self.limits.header_bytes
        if len(self.headers) > count or len(self.url) + weight(self.headers) > size:
            self.reject(431)
            raise Rejected

    def on_incomplete(self, received: int) -> None:
        """Starts or continues the deadline of an incomplete request after a segment of `received` bytes."""
        if self.timed != self.reading:
            self.timed = self.reading
            self._timed_since = self.loop.time()
            self._timed_bytes = 0
            self.wheel.schedule(self, self._read_deadline())
            return
        self._timed_bytes += received
        if self.timed == HEAD and self._timed_bytes > self.limits.header_bytes:
            self.reject(431)
        elif self.timed == BODY and self._timed_bytes > 2 * self.limits.body + _CHUNKING_BYTES:
            self.reject(413)

    def on_response_complete(self) -> None:
        """Continues with the next request, if it has arrived."""
        self.server_state.total_requests += 1
        self._idle_since = self.loop.time()
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())

    def pause_writing(self) -> None:
        """Starts the deadline for the client to read what is buffered."""
        super().pause_writing()
        now = self.loop.time()
        self._write_stall = (now, self.transport.get_write_buffer_size())
        self.wheel.schedule(self, now + self.limits.stall_seconds)

    def resume_writing(self) -> None:
        """Ends that deadline."""
        super().resume_writing()
        self._write_stall = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancels the deadline."""
        super().connection_lost(exc)
        self.wheel.cancel(self)

    def shutdown(self) -> None:
        """Closes the connection, after the response if one is due; an incomplete request gets none."""
        if self.reading and not self._response_due():
            self.transport.close()
        else:
            super().shutdown()

    def throttle(self, seconds: float) -> None:
        """Reads nothing from the client for a while."""
        self._throttled_until = self.loop.time() + seconds
        self.flow.pause_reading()
        self.wheel.schedule(self, self._throttled_until)

    def on_deadline(self, now: float) -> float | None:
        """Ends the connection if its deadline has passed; the next time to check, or None."""
        end = self._linger_until or self._deadline(now)
        if now < end:
            return end
        if self._write_stall is not None or self.transport.is_closing():
            sock = cast("socket.socket", self.transport.get_extra_info("socket"))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            self.transport.abort()
            return None
        if self.timed:
            self.reject(408)
        else:
            self.transport.close()
        return now + self.limits.stall_seconds

    def reject(self, status: int) -> None:
        """Rejects the request being read and closes, after the response to an earlier request if one is due."""
        if self._rejected:
            return
        self._discard_input()
        if self._response_due():
            self.cycle.keep_alive = False
            self.flow.pause_reading()
            return
        cycle = self._current_cycle()
        if self.reading != BODY or cycle is None or not cycle.response_complete:
            self.transport.write(_rejection(status, self.server_state.default_headers))
        self._linger() if status in _REJECTED_WHILE_SENDING else self.transport.close()

    def close(self) -> None:
        """Closes the connection; while a body is arriving, lets the client read the response first."""
        self._linger() if self.reading == BODY else self.transport.close()

    def _linger(self) -> None:
        """Closes the writing side and discards input for a moment."""
        if self.transport.is_closing() or self._linger_until:
            return
        if self._response_pending():
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self._discard_input()
        self.reading = self.timed = BETWEEN_REQUESTS
        self._linger_until = self.loop.time() + _LINGER_SECONDS
        self.flow.resume_reading()
        self.transport.write_eof()
        self.wheel.schedule(self, self._linger_until)

    def _discard_input(self) -> None:
        self._rejected = True
        parser = DiscardParser(self.limits.body, self.transport.close)
        self.parser = cast("httptools.HttpRequestParser", parser)

    def _read_upgrade_body(self, rest: bytes) -> None:
        """Parses the body of a request with `Upgrade`, which is ignored: the response is HTTP/1.1, then it closes."""
        self.upgrading = False
        cycle = self._current_cycle()
        if cycle is None or self._rejected:
            return
        cycle.keep_alive = False
        framing = [b"%b: %b\r\n" % header for header in self.headers if header[0] in _FRAMING]
        self.parser = httptools.HttpRequestParser(_UpgradeBody(self))
        try:
            self.parser.feed_data(b"POST / HTTP/1.1\r\n%b\r\n%b" % (b"".join(framing), rest))
        except httptools.HttpParserError as error:
            self._on_parser_error(error)

    def _on_parser_error(self, error: httptools.HttpParserError) -> None:
        if isinstance(error, httptools.HttpParserCallbackError) and not self._rejected:
            _log_callback_error(error)
        self.reject(400)

    def _deadline(self, now: float) -> float:
        """When the connection ends unless the client acts; while the server has to act, when to check again."""
        limits = self.limits
        if self._write_stall is not None:
            since, size = self._write_stall
            taken = size - self.transport.get_write_buffer_size()
            return since + limits.stall_seconds + max(0, taken) / BYTES_PER_SECOND
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

    def _current_cycle(self) -> RequestResponseCycle | None:
        return self.cycle  # uvicorn's annotation leaves out the None before the first request

    def _response_pending(self) -> bool:
        cycle = self._current_cycle()
        return cycle is not None and not cycle.response_complete

    def _response_due(self) -> bool:
        """Whether a response to an earlier request is pending, or one to this request has started."""
        return self._response_pending() and (self.reading != BODY or bool(self.pipeline) or self.cycle.response_started)


class _UpgradeBody:
    """Callbacks of the second parser, for the body of one request."""

    def __init__(self, protocol: LimitedProtocol) -> None:
        self._protocol: LimitedProtocol | None = protocol

    def on_body(self, body: bytes) -> None:
        if self._protocol is not None:
            self._protocol.on_body(body)

    def on_message_complete(self) -> None:
        """Ends the request; data after it is ignored, since the connection closes with the response."""
        protocol, self._protocol = self._protocol, None
        if protocol is not None:
            protocol.on_message_complete()


class DiscardParser:
    """Discards the input of a rejected request; calls `on_excess` after `limit` bytes."""

    def __init__(self, limit: int, on_excess: Callable[[], None]) -> None:
        self._left = limit
        self._on_excess = on_excess

    def feed_data(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0:
            self._on_excess()


def _log_callback_error(error: Exception) -> None:
    """Logs an exception of our callbacks; an unreadable URL is the client's error."""
    if not isinstance(error.__context__, _UNREADABLE):
        _log.error("a request could not be accepted", exc_info=error.__context__ or error)


def _rejection(status: int, headers: list[tuple[bytes, bytes]]) -> bytes:
    body = b'{"error":{"code":"%b","message":"%b"}}' % _REJECTIONS[status]
    retry = b"retry-after: 1\r\n" if status == 503 else b""
    common = b"".join([b"%b: %b\r\n" % header for header in headers])
    return b"%b%b%bcontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b" % (
        STATUS_LINE[status],
        common,
        retry,
        len(body),
        body,
    )
