"""Uvicorn's HTTP protocol as far as it parses, with limits on the parts of a request."""

import logging
from abc import abstractmethod
from typing import cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from kernel.core.limits import Limits, weight
from kernel.http.read_flow import DiscardParser, ReceiveFlow, Trailers, UpgradeBody, fits_one_turn

_log = logging.getLogger("quipu")
# The part that the parser is reading; plain integers, since they are compared for each segment.
BETWEEN_REQUESTS, HEAD, BODY = range(3)
FRAMING = (b"content-length", b"transfer-encoding")
_UNREADABLE = (httptools.HttpParserInvalidURLError, UnicodeDecodeError)


class Rejected(Exception):
    """Ends the parsing of a request that was rejected."""


class ParsingProtocol(HttpToolsProtocol):
    """One connection, as far as it parses; a subclass answers rejected and incomplete requests."""

    limits = Limits()
    flow: ReceiveFlow  # pyright: ignore[reportIncompatibleVariableOverride]

    # The initial state of one connection.
    reading = BETWEEN_REQUESTS
    upgrading = False  # the parser leaves the body of this request to another protocol
    rejected = False
    trailers: Trailers | None = None  # while the chunk being read has no body, as the last chunk

    @abstractmethod
    def reject(self, status: int) -> None:
        """Rejects the request being read and closes."""

    @abstractmethod
    def on_incomplete(self, received: int) -> None:
        """A piece of `received` bytes did not complete the request."""

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
        self.reading = BODY
        self.upgrading = bool(self.parser.should_upgrade())
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Ends the request, unless its body is left to another protocol."""
        if self.upgrading:
            return
        self.reading = BETWEEN_REQUESTS
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
        if self.parser.get_method() == b"CONNECT":
            self.reject(501)
            raise Rejected
        if self.parser.get_http_version() != "1.1" and any(name == b"transfer-encoding" for name, _ in self.headers):
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


def _log_callback_error(error: Exception) -> None:
    if not isinstance(error.__context__, _UNREADABLE):
        _log.error("a request could not be accepted", exc_info=error.__context__ or error)
