"""A relay of bytes between a client and a server that notes which protocol versions the client names."""

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_VERSION = re.compile(rb"\r\nmcp-protocol-version:[ \t]*([\x21-\x7e]+)", re.IGNORECASE)


class Relay:
    """Listens on a port of its own and passes everything on, unchanged, to `target` on this machine."""

    def __init__(self, target: int) -> None:
        self.versions: list[str] = []
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Takes no more connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client = self._listener.accept()[0]
                server = socket.create_connection(("127.0.0.1", self._target))
                threading.Thread(target=self._pass, args=(client, server, True), daemon=True).start()
                threading.Thread(target=self._pass, args=(server, client, False), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, asking: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if asking:
                    self.versions += [found.decode() for found in _VERSION.findall(data)]
                sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


@contextmanager
def relaying(target: int) -> Iterator[Relay]:
    """A relay that is closed at the end of the block."""
    relay = Relay(target)
    try:
        yield relay
    finally:
        relay.close()
