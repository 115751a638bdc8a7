"""Uvicorn's HTTP protocol with the head and the body of a response in one write, which is one system call less."""

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_HEAD = b"HTTP/1.1 "
_CONTINUE = b"HTTP/1.1 100"


class JoinedTransport:
    """A transport that keeps the head of a response back until its body comes.

    Heads that no body may follow pass at once: those of HEAD, interim ones, and all while requests are pipelined.
    """

    def __init__(self, transport: asyncio.Transport, protocol: "JoinedProtocol") -> None:
        self._transport = transport
        self._protocol = protocol
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Writes, the head of a response together with what follows it."""
        if self._head:
            data, self._head = self._head + data, b""
        elif data.startswith(_HEAD) and self._joins(data):
            self._head = data
            return
        self._transport.write(data)

    def close(self) -> None:
        """Closes once everything is written."""
        if self._head:
            self.write(b"")
        self._protocol.hang_up()

    def _joins(self, data: bytes) -> bool:
        protocol = self._protocol
        # What could not be parsed has no method yet; its refusal comes whole.
        method = protocol.scope and protocol.scope.get("method")
        return method not in (None, "HEAD") and not protocol.pipeline and not data.startswith(_CONTINUE)


class JoinedProtocol(HttpToolsProtocol):
    """The protocol for `uvicorn.Config(http=...)`."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Puts the joining transport in front of the real one."""
        self.whole = transport
        super().connection_made(cast("asyncio.Transport", JoinedTransport(transport, self)))

    def hang_up(self) -> None:
        """Closes the connection."""
        self.whole.close()
