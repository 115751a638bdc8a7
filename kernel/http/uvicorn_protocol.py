"""Uvicorn's HTTP protocol with limits on connections, request sizes, and the time a client may take to send or read.

A connection has deadlines (one coarse timer for all), parses piece by piece so that few requests wait at a time, is
dropped if it does not take its answers, and reports each request to the log.
"""

import asyncio
import logging
import socket
import struct
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Sized
from time import monotonic
from typing import Any, NamedTuple, Protocol, cast

import httptools
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from kernel.core.ids import current_call, new_call_id
from kernel.core.limits import BYTES_PER_SECOND, UPLOAD_BYTES, UPLOAD_PATH, Header, Limits, weight
from kernel.core.memory import until_memory
from kernel.http.incoming_bodies import IncomingBodies
from kernel.security.rate_limit import forwarded_address

# How many responses of this process had which HTTP status; only the event loop counts.
STATUSES: Counter[int] = Counter()

# Takes the status of a response and the bytes of its body, once.
Report = Callable[[int, int], None]

GONE = 499  # the client has left before its answer; of nginx
_request_log = logging.getLogger("quipu.requests")
REQUEST_ID = b"x-request-id"
_MOST_ID = 128
_MOST_CHARS = 200  # of a path
_TRACE = slice(3, 35)  # of `traceparent`: 00-TRACE-SPAN-FLAGS


def request_id(value: bytes | None) -> str:
    """Return the `X-Request-ID` of a request, or a new id for none and for a text that could not stand in a line."""
    if value is None:
        return new_call_id()
    id_ = value.decode("latin-1")
    is_word = id_.isascii() and id_.isprintable() and " " not in id_
    return id_ if is_word and 0 < len(id_) <= _MOST_ID else new_call_id()


def id_header(id_: str) -> Header:
    return REQUEST_ID, id_.encode()


def begin_report(id_: str, client: str, method: str, url: bytes, headers: Sequence[Header]) -> Report:
    """Return the report of a request, a line of the log: who asked, what for, and the answer; no query and no body."""
    since, values = monotonic(), dict(headers)
    path = url[: _MOST_CHARS + 1].partition(b"?")[0].decode("latin-1")
    fields: dict[str, object] = {
        "request": id_,
        "client": client,
        "method": method,
        "path": path if len(path) <= _MOST_CHARS else f"{path[:_MOST_CHARS]}…",
    }
    trace = values.get(b"traceparent", b"")[_TRACE].decode("latin-1")

    def report(status: int, size: int) -> None:
        fields.update(status=status, bytes=size, milliseconds=round((monotonic() - since) * 1000, 3))
        _request_log.info("request", extra={"fields": {**fields, "trace": trace} if trace else fields})

    return report


def observed(app: ASGIApp, report: Report | None, abort: Callable[[], object]) -> ASGIApp:
    """Return the same application, with the status of its response counted and reported; `abort` ends its connection
    if memory does not suffice.
    """

    async def counting(scope: Scope, receive: Receive, send: Send) -> None:
        status = size = 0

        async def noting(message: Message) -> None:
            nonlocal status, size
            if "status" in message:  # the begin of a response
                status = message["status"]
                STATUSES[status] += 1
            size += len(message.get("body", b""))
            await send(message)

        try:
            await app(scope, receive, noting)
            status = status or GONE
        except MemoryError:  # there may be none for an answer either
            abort()
            raise
        finally:
            if report is not None:
                report(status or 500, size)

    return counting


# Seconds between two checks: deadlines are whole seconds, and a timer per connection costs more than it is worth.
TICK = 0.25
# After a pause of the event loop this long, bytes that arrived meanwhile are read before deadlines are checked.
_LOOP_STALL_SECONDS = 1.0


class Deadlined(Protocol):
    """A connection with deadlines; `on_deadline(now)` acts if any has passed, and returns when to check again."""

    slot: int
    loop: asyncio.AbstractEventLoop

    def on_deadline(self, now: float) -> float | None: ...


class DeadlineWheel:
    """A timer wheel: checks each connection in the tick after its time; times are the loop's, in seconds.

    A connection has one place. Extending its deadline leaves it there, and the early check moves it on: a connection in
    use is then never moved.
    """

    def __init__(self) -> None:
        self._slots: dict[int, set[Deadlined]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._turned_at = 0.0

    def schedule(self, connection: Deadlined, when: float) -> None:
        """Checks `connection` soon after `when`, or at an earlier time that is already scheduled."""
        slot = int(when / TICK) + 1
        if connection.slot:
            if connection.slot <= slot:
                return
            self.cancel(connection)
        connection.slot = slot
        self._slots.setdefault(slot, set()).add(connection)
        if self._timer is None:
            self._start_timer(connection.loop)

    def cancel(self, connection: Deadlined) -> None:
        if connection.slot:
            self._slots[connection.slot].discard(connection)
            connection.slot = 0

    def _start_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        self._turned_at = loop.time()
        self._timer = loop.call_later(TICK, self._turn, loop)

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        stalled = now - self._turned_at > _LOOP_STALL_SECONDS
        reached = int(now / TICK)
        for slot in [slot for slot in self._slots if slot <= reached]:
            for connection in self._slots.pop(slot):
                connection.slot = 0
                until_memory(self._check, connection, now, is_late=stalled)
        self._timer = None
        if self._slots:
            until_memory(self._start_timer, loop)

    def _check(self, connection: Deadlined, now: float, *, is_late: bool) -> None:
        again = now + TICK if is_late else connection.on_deadline(now)
        if again is not None:
            self.schedule(connection, again)


# A client this long behind may be closed; a client that takes its answer at once is never behind for so long.
_GRACE_SECONDS = 1.0


class Taker(Protocol):
    """A connection whose client has not taken all of an answer."""

    def unsent_bytes(self) -> int: ...

    def held_bytes(self) -> int:
        """Return the bytes in memory: a transport frees nothing of an answer before all of it is taken."""
        ...

    def drop(self) -> object:
        """Ends the connection at once."""
        ...


class _Behind(NamedTuple):
    """Since when, the bytes left then, and those in memory."""

    since: float
    left: int
    held: int


class Unsent:
    """The clients that are behind; while their answers hold more than `limit` bytes, the slowest is dropped.

    It has had a second, unless it is twice as much. `limit` 0 is none.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._behind: dict[Taker, _Behind] = {}
        self._total = 0

    def add(self, taker: Taker, now: float) -> None:
        self.remove(taker)
        behind = self._behind[taker] = _Behind(now, taker.unsent_bytes(), taker.held_bytes())
        self._total += behind.held
        self.enforce(now)

    def remove(self, taker: Taker) -> None:
        """Notes that a client has taken its answer, or is gone."""
        behind = self._behind.pop(taker, None)
        if behind is not None:
            self._total -= behind.held

    def enforce(self, now: float) -> None:
        """Drops the slowest clients while all of them are too far behind."""
        if not self._limit or self._total <= self._limit:
            return
        for taker in sorted(self._behind, key=lambda taker: self._pace(taker, now)):
            if self._total <= self._limit:
                return
            if self._total > 2 * self._limit or now - self._behind[taker].since >= _GRACE_SECONDS:
                self.remove(taker)
                taker.drop()

    def _pace(self, taker: Taker, now: float) -> float:
        since, left, _ = self._behind[taker]
        return (left - taker.unsent_bytes()) / max(now - since, 0.001)


# Requests of one connection that wait for their turn. Further bytes are not parsed, and no more are read.
MAX_QUEUED = 16
# Parsed in one turn of the event loop, so that a connection that sends thousands at once does not block the others.
_REQUESTS_PER_TURN = 2
_FEW_BYTES = 18 * MAX_QUEUED  # hold no more requests than may wait: none is shorter than `GET / HTTP/1.1`, empty line
_PIECE_BYTES = 65536
_REST_SECONDS = 0.05
_HEAD_END = b"\r\n\r\n"  # every request has it; that a body may have more of them only makes for smaller pieces


def fits_one_turn(data: bytes) -> bool:
    """Return whether all of `data` may be parsed at once; of most requests only the end of the head is looked for."""
    if len(data) > _PIECE_BYTES:
        return False
    return data.rfind(b"\n") < _FEW_BYTES or data.count(_HEAD_END) <= _REQUESTS_PER_TURN


class ReceiveFlow(FlowControl):
    """Flow control that keeps received bytes while they must not be parsed, and then does not read on.

    `parse` gets each piece; `queue` holds the requests that wait.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        parse: Callable[[bytes | memoryview], object],
        queue: Sized,
    ) -> None:
        super().__init__(transport)
        self._loop = loop
        self._parse = parse
        self._queue = queue
        self._unparsed = b""
        self._at = 0
        self._scheduled = False
        self._stopped = False  # whether the transport does not read

    @property
    def has_unparsed(self) -> bool:
        return self._at < len(self._unparsed)

    def receive(self, data: bytes) -> None:
        """Parses `data` as far as it may be, and keeps the rest."""
        self._unparsed = self._unparsed[self._at :] + data
        self._at = 0
        self._stop()
        self._go_on()

    def discard(self) -> None:
        self._unparsed, self._at = b"", 0

    def pause_reading(self) -> None:
        self.read_paused = True
        self._stop()

    def resume_reading(self) -> None:
        """Parse received bytes, then read on."""
        if not self.read_paused:
            return
        self.read_paused = False
        if self.has_unparsed:
            self._schedule()
        else:
            self._start()

    def rest(self) -> None:
        """Reads on a moment later, so that clients whose input is discarded do not block the others."""
        self.pause_reading()
        self._loop.call_later(_REST_SECONDS, self.resume_reading)

    def _go_on(self) -> None:
        self._scheduled = False
        while self.has_unparsed and not self.read_paused:
            if self._transport.is_closing():
                self.discard()
                return
            room = MAX_QUEUED - len(self._queue)
            if room <= 0:
                self.read_paused = True
                return
            if self._parse_piece(min(room, _REQUESTS_PER_TURN)) and self.has_unparsed:
                self._schedule()
                return
        if not self.read_paused:
            self._start()

    def _parse_piece(self, requests: int) -> bool:
        """Parses at most so many requests; whether it was that many."""
        data, at = self._unparsed, self._at
        limit = min(len(data), at + _PIECE_BYTES)
        end, count = at, 0
        while count < requests and (next_ := data.find(_HEAD_END, end, limit)) >= 0:
            end = next_ + len(_HEAD_END)
            count += 1
        self._at = end if count == requests else limit
        self._parse(memoryview(data)[at : self._at])
        if not self.has_unparsed:
            self.discard()
        return count == requests

    def _go_on_later(self) -> None:
        try:
            self._go_on()
        except MemoryError:  # nothing would call again
            self._transport.abort()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._loop.call_soon(self._go_on_later)
            self._scheduled = True

    def _stop(self) -> None:
        if not self._stopped and not self._transport.is_closing():
            self._stopped = True
            self._transport.pause_reading()

    def _start(self) -> None:
        if self._stopped and not self._transport.is_closing():
            self._stopped = False
            self._transport.resume_reading()


class DiscardParser:
    """Discards the input of a rejected request; calls `on_excess` after `limit` bytes."""

    def __init__(self, limit: int, on_excess: Callable[[], None]) -> None:
        self._left = limit
        self._on_excess = on_excess

    def feed_data(self, data: bytes | memoryview) -> None:
        self._left -= len(data)
        if self._left < 0:
            self._on_excess()


class UpgradeBody:
    """Callbacks of a second parser, for the body of one request."""

    def __init__(self, on_body: Callable[[bytes], object], on_complete: Callable[[], object]) -> None:
        self._on_body = on_body
        self._on_complete = on_complete
        self._complete = False

    def on_body(self, body: bytes) -> None:
        if not self._complete:
            self._on_body(body)

    def on_message_complete(self) -> None:
        """Ends the request; data after it is ignored, since the connection closes with the response."""
        if not self._complete:
            self._complete = True
            self._on_complete()


class Trailers:
    """The trailers after the last chunk; `count` and `bytes`, of names and values, are of those that came whole."""

    def __init__(self) -> None:
        self.count = 0
        self.bytes = 0
        self._received: int | None = None  # unknown of the piece in which they may have begun

    def add(self, name: bytes, value: bytes) -> None:
        self.count += 1
        self.bytes += len(name) + len(value)

    def received(self, size: int) -> int:
        """Return the bytes received of them so far, with those of a piece of `size` bytes that did not end them."""
        self._received = 0 if self._received is None else self._received + size
        return self._received


_log = logging.getLogger("quipu")
# The part that the parser is reading; plain integers, since they are compared for each segment.
BETWEEN_REQUESTS, HEAD, BODY = range(3)
FRAMING = (b"content-length", b"transfer-encoding")
_NOTED = frozenset({b"expect", b"origin", b"transfer-encoding", REQUEST_ID})
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
_REJECTED_WHILE_SENDING = (400, 408, 413, 431, 501)


class CycleTransport(NamedTuple):
    """The part of a transport that a request of uvicorn needs; `close` is the protocol's, which may linger."""

    write: Callable[[bytes], None]
    is_closing: Callable[[], bool]
    close: Callable[[], None]


class Rejected(Exception):
    """Ends the parsing of a request that was rejected."""


class LimitedProtocol(HttpToolsProtocol):
    """One connection; `limits`, `wheel`, `unsent` and `incoming` are shared by all connections of a server."""

    limits = Limits()
    wheel = DeadlineWheel()
    unsent = Unsent(0)
    incoming = IncomingBodies(sys.maxsize)
    logs_requests = False
    proxies: frozenset[str] = frozenset()  # whose word about the address of a client is taken
    peer = ""

    flow: ReceiveFlow  # pyrefly: ignore[bad-override-mutable-attribute]

    # The initial state of one connection.
    reading = BETWEEN_REQUESTS
    upgrading = False  # the parser leaves the body of this request to another protocol
    rejected = False
    noted: dict[bytes, bytes]  # the headers of the request being read that decide how it is read
    trailers: Trailers | None = None  # while the chunk being read has no body, as the last chunk
    slot = 0
    timed = BETWEEN_REQUESTS  # the part that has a deadline, which starts when it does not arrive whole
    _timed_since = 0.0
    _timed_bytes = 0
    _counted = False  # whether the body that is read is among `incoming`
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
        self.flow = flow
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
        elif self._counted:
            self._end_count()

    def on_message_begin(self) -> None:
        self.reading = HEAD
        self.noted = {}
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keeps a header; a trailer is counted, and is no header (RFC 9110 section 6.5.1)."""
        if self.trailers is not None:
            self.trailers.add(name, value)
            self._check_trailers(self.trailers)
            return
        name = name.lower()
        if name in _NOTED:
            self.noted[name] = value
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
        codings = self.transfer_codings()
        if self.parser.get_method() == b"CONNECT" or codings not in ([], [b"chunked"]):
            self.reject(501)
            raise Rejected
        if codings and self.parser.get_http_version() != "1.1":
            self.reject(400)  # RFC 9112 section 6.1
            raise Rejected

    def transfer_codings(self) -> list[bytes]:
        return [value.lower() for name, value in self.headers if name == b"transfer-encoding"]

    def discard_input(self) -> None:
        self.rejected = True
        self._end_count()
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
            self._end_count()
            self.timed = self.reading
            self._timed_since = self.loop.time()
            self._timed_bytes = 0
            self.wheel.schedule(self, self._read_deadline())
        else:
            self._timed_bytes += received
        if self.timed == HEAD and self._timed_bytes > self.limits.header_bytes:
            self.reject(431)
        elif self.timed == BODY and self._timed_bytes > 2 * self._most_of_body() + _CHUNKING_BYTES:
            self.reject(413)
        elif self.trailers is not None and self.trailers.received(received) > self.limits.header_bytes:
            self.reject(431)
        elif self.timed == BODY and self.url != UPLOAD_PATH:
            self._counted = True
            self.incoming.note(self, self._timed_since, self._timed_bytes, self.loop.time())

    def give_up(self) -> None:
        self.reject(408)

    def _end_count(self) -> None:
        self._counted = False
        self.incoming.remove(self)

    def _most_of_body(self) -> int:
        return max(self.limits.body, UPLOAD_BYTES if self.url == UPLOAD_PATH else 0)

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
        self._end_count()
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
        id_ = request_id(dict(headers).get(REQUEST_ID))
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
        id_ = request_id(dict(headers).get(REQUEST_ID))
        current_call.set(id_)
        cycle.default_headers = [*cycle.default_headers, id_header(id_)]
        report = self.begin_report(id_, scope["method"], scope["raw_path"], headers)
        super()._start_asgi_task(cycle, cast("Any", observed(app, report, self.transport.abort)))

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
