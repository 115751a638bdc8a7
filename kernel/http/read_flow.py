"""The received bytes of a connection: they are parsed piece by piece, so that few requests wait at a time."""

import asyncio
from collections.abc import Callable, Sized

from uvicorn.protocols.http.flow_control import FlowControl

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

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._go_on)

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
