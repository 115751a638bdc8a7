"""Uvicorn's HTTP protocol with bounds: on connections, on what a request may hold, on how long each side may take."""

import asyncio
import logging
import socket
import struct
from collections.abc import Callable
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from kernel.http.deadlines import DeadlineWheel
from kernel.http.joined import JoinedProtocol
from kernel.limits import BYTES_PER_SECOND, Limits, weight

_log = logging.getLogger("quipu")
BETWEEN, HEAD, BODY = range(3)
_SLACK = 65536  # what chunks and trailers may add to a body that is within its limit, besides as much again
_WORDS = {
    400: (b"invalid", b"This is no HTTP request"),
    408: (b"timeout", b"The request took too long to come"),
    413: (b"too_large", b"Body too large"),
    431: (b"headers_too_large", b"Headers too large"),
    503: (b"busy", b"Too many connections, try again."),
}
_AT_ONCE = struct.pack("ii", 1, 0)
_MIDWAY = (400, 413, 431)  # what is refused while more of it is on its way
_LINGER_SECONDS = 1.0
_FRAMING = (b"content-length", b"transfer-encoding")
_UNREADABLE = (httptools.HttpParserInvalidURLError, UnicodeDecodeError)


class Rejected(Exception):
    """Ends the parsing of what has been refused."""


class LimitedProtocol(JoinedProtocol):
    """One connection; `limits` and `wheel` are shared by all connections of a server."""

    limits = Limits()
    wheel = DeadlineWheel()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.slot = 0
        self.reading = BETWEEN  # what the parser is in the midst of
        self.upgrading = False  # whether the parser will leave the body to another protocol
        self.watched = BETWEEN  # what of it has a deadline, which begins when it does not come whole
        self._since = 0.0
        self._wire = 0
        self._last = 0.0
        self._stalled: tuple[float, int] | None = None
        self._closed = 0.0
        self._calm = 0.0
        self._over = False
        self._lingers = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Takes the connection, or says that there are too many."""
        super().connection_made(transport)
        now, silent, idle = self.loop.time(), self.limits.silent_seconds, self.limits.idle_seconds
        self._last = now + silent - idle  # its idle time is over when its silent time is
        self.wheel.schedule(self, now + min(silent, idle))
        if len(self.connections) > self.limits.connections:
            self.reject(503)

    def data_received(self, data: bytes) -> None:
        """Parses; what does not come whole gets a deadline."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as left:
            self._read_upgrade_body(data[left.args[0] :])
        except httptools.HttpParserError as error:
            self._unreadable(error)
        if self.reading and not self._over:
            self.on_incomplete(len(data))

    def on_message_begin(self) -> None:
        """A request begins."""
        self.reading = HEAD
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Its body, if any, follows."""
        self.reading = BODY
        parser: Any = self.parser
        self.upgrading = bool(parser.should_upgrade())
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """It has come whole, or up to where the parser leaves it to another protocol."""
        if self.upgrading:
            return
        self.reading = self.watched = BETWEEN
        super().on_message_complete()

    def check_header_size(self) -> None:
        """Refuses more headers than may be, for those who look at none; ends the parsing then."""
        count, most = self.limits.header_count, self.limits.header_bytes
        if len(self.headers) > count or len(self.url) + weight(self.headers) > most:
            self.reject(431)
            raise Rejected

    def on_incomplete(self, received: int) -> None:
        """Watches a request of which more is to come; `received` bytes of it, or of one before it, just have."""
        if self.watched != self.reading:
            self.watched = self.reading
            self._since = self.loop.time()
            self._wire = 0
            self.wheel.schedule(self, self._deadline())
            return
        self._wire += received
        if self.watched == HEAD and self._wire > self.limits.header_bytes:
            self.reject(431)
        elif self.watched == BODY and self._wire > 2 * self.limits.body + _SLACK:
            self.reject(413)

    def on_response_complete(self) -> None:
        """Goes on with the next request, if it is here already."""
        self.server_state.total_requests += 1
        self._last = self.loop.time()
        if self.whole.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())

    def pause_writing(self) -> None:
        """From now on the client has to take what it asked for."""
        super().pause_writing()
        now = self.loop.time()
        self._stalled = (now, self.whole.get_write_buffer_size())
        self.wheel.schedule(self, now + self.limits.stall_seconds)

    def resume_writing(self) -> None:
        """It has."""
        super().resume_writing()
        self._stalled = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is late any more."""
        super().connection_lost(exc)
        self.wheel.cancel(self)

    def shutdown(self) -> None:
        """Ends the connection, after the answer if there is to be one: half a request gets none."""
        if self.reading and not self._response_owed():
            self.whole.close()
        else:
            super().shutdown()

    def throttle(self, seconds: float) -> None:
        """Reads nothing more for a while: a caller who does not wait is made to."""
        self._calm = self.loop.time() + seconds
        self.flow.pause_reading()
        self.wheel.schedule(self, self._calm)

    def on_deadline(self, now: float) -> float | None:
        """Ends what takes too long; when to look again."""
        end = self._lingers or self._end(now)
        if now < end:
            return end
        if self._stalled is not None or self.whole.is_closing():
            sock: Any = self.whole.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)  # the system keeps nothing for it either
            self.whole.abort()
            return None
        if self.watched:
            self.reject(408)
        else:
            self.whole.close()
        return now + self.limits.stall_seconds

    def reject(self, status: int) -> None:
        """Refuses what is being read and closes; where an earlier request waits for its answer, after that."""
        if self._over:
            return
        self._over = True
        self.parser = DiscardParser(self.limits.body, self.whole.close)  # type: ignore[assignment]
        if self._response_owed():
            self.cycle.keep_alive = False
            self.flow.pause_reading()
            return
        if self.reading != BODY or not self.cycle.response_complete:  # nobody is answered twice
            self.whole.write(_refusal(status, self.server_state.default_headers))
        self._linger() if status in _MIDWAY else self.whole.close()

    def hang_up(self) -> None:
        """Closes the connection, in the midst of a body only once the sender can have read the answer."""
        self._linger() if self.reading == BODY else self.whole.close()

    def _linger(self) -> None:
        """Ends our side, and hears the other out for a moment: who is cut off while it sends never reads why."""
        if self.whole.is_closing() or self._lingers:
            return
        if self._response_pending():
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self._over, self.reading, self.watched = True, BETWEEN, BETWEEN
        self.parser = DiscardParser(self.limits.body, self.whole.close)  # type: ignore[assignment]
        self._lingers = self.loop.time() + _LINGER_SECONDS
        self.flow.resume_reading()
        self.whole.write_eof()
        self.wheel.schedule(self, self._lingers)

    def _read_upgrade_body(self, rest: bytes) -> None:
        """Reads the body of a request that would upgrade: there is nothing to upgrade to, so it is one as any other."""
        self.upgrading = False
        cycle: Any = self.cycle
        if cycle is None or self._over:
            return
        cycle.keep_alive = False
        framing = [b"%b: %b\r\n" % header for header in self.headers if header[0] in _FRAMING]
        self.parser = httptools.HttpRequestParser(_Body(self))
        try:
            self.parser.feed_data(b"POST / HTTP/1.1\r\n%b\r\n%b" % (b"".join(framing), rest))
        except httptools.HttpParserError as error:
            self._unreadable(error)

    def _unreadable(self, error: httptools.HttpParserError) -> None:
        if isinstance(error, httptools.HttpParserCallbackError) and not self._over:
            _note(error)
        self.reject(400)

    def _end(self, now: float) -> float:
        """When what goes on must have ended, or when to look again where it is we who are waited for."""
        limits = self.limits
        if self._stalled is not None:
            begun, size = self._stalled
            taken = size - self.whole.get_write_buffer_size()
            return begun + limits.stall_seconds + max(0, taken) / BYTES_PER_SECOND
        if self.whole.is_closing():
            self._closed = self._closed or now
            return self._closed + limits.stall_seconds
        if self._calm and now < self._calm:
            return self._calm
        if self._calm:
            self._calm = 0.0
            self.flow.resume_reading()
        if self.flow.read_paused:
            self._since = now
            return now + limits.stall_seconds
        if self.watched:
            return self._deadline()
        if self._response_pending():
            return now + limits.idle_seconds
        return self._last + limits.idle_seconds

    def _deadline(self) -> float:
        if self.watched == HEAD:
            return self._since + self.limits.header_seconds
        return self._since + self.limits.body_seconds + self._wire / BYTES_PER_SECOND

    def _response_pending(self) -> bool:
        cycle: Any = self.cycle
        return cycle is not None and not cycle.response_complete

    def _response_owed(self) -> bool:
        """Whether an earlier request than the one being read is still to be answered, or this one is already."""
        return self._response_pending() and (self.reading != BODY or bool(self.pipeline) or self.cycle.response_started)


class _Body:
    """What a second parser tells: the body of one request, and that it is whole."""

    def __init__(self, protocol: LimitedProtocol) -> None:
        self._protocol: LimitedProtocol | None = protocol

    def on_body(self, body: bytes) -> None:
        """Hands it on."""
        if self._protocol is not None:
            self._protocol.on_body(body)

    def on_message_complete(self) -> None:
        """Hands it on; what follows is no request, since the connection ends with the answer."""
        protocol, self._protocol = self._protocol, None
        if protocol is not None:
            protocol.on_message_complete()


class DiscardParser:
    """Reads what nobody wants to know, up to a bound."""

    def __init__(self, most: int, enough: Callable[[], None]) -> None:
        self._left = most
        self._enough = enough

    def feed_data(self, data: bytes) -> None:
        """Forgets it."""
        self._left -= len(data)
        if self._left < 0:
            self._enough()


def _note(error: Exception) -> None:
    """Logs a bug of ours that the parser met; a request that cannot be read is none."""
    if not isinstance(error.__context__, _UNREADABLE):
        _log.error("a request could not be taken", exc_info=error.__context__ or error)


def _refusal(status: int, headers: list[tuple[bytes, bytes]]) -> bytes:
    body = b'{"error":{"code":"%b","message":"%b"}}' % _WORDS[status]
    more = b"retry-after: 1\r\n" if status == 503 else b""
    common = b"".join([b"%b: %b\r\n" % header for header in headers])
    return b"%b%b%bcontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b" % (
        STATUS_LINE[status],
        common,
        more,
        len(body),
        body,
    )
