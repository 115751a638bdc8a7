"""Connections that do not behave: they say nothing, half of something, too much, or do not listen."""

import json
import selectors
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any

PATIENCE = 30.0
TICK = 0.05


def request(path: str = "/tools/recall", body: bytes = b'{"query":"x"}', **headers: str) -> bytes:
    """A whole POST; a header given empty is left out."""
    usual = {"Host": "localhost", "Content-Type": "application/json", "Content-Length": str(len(body))}
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{name}: {value}" for name, value in {**usual, **given}.items() if value]
    return "\r\n".join([f"POST {path} HTTP/1.1", *lines, "", ""]).encode() + body


class Peer:
    """One connection; `host` may be any address of the loopback network, so that ports do not run out."""

    def __init__(self, port: int, sent: bytes = b"", *, host: str = "127.0.0.1", listens: bool = True) -> None:
        self.socket = socket.socket()
        if not listens:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.bind((host, 0))
        self.socket.settimeout(PATIENCE)
        self.socket.connect(("127.0.0.1", port))
        self.opened = time.monotonic()
        self.said = b""
        self.ended = 0.0
        self.send(sent)

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def local_port(self) -> int:
        """The port of this end."""
        return self.socket.getsockname()[1]

    def send(self, data: bytes) -> bool:
        """Whether the server takes this; a closed connection takes nothing."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def listen(self) -> bool:
        """Adds the received bytes to `said`; whether the server is still there. If not, `ended` says after how long."""
        try:
            part = self.socket.recv(1 << 16)
        except ConnectionResetError:
            part = b""
        self.said += part
        if not part:
            self.ended = time.monotonic() - self.opened
        return bool(part)

    def answer(self) -> tuple[int, Mapping[str, str], Any]:
        """One answer: its status, its headers and its body, read as JSON."""
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._more()
        head, _, body = data.partition(b"\r\n\r\n")
        lines = (line.partition(": ") for line in head.decode("latin-1").split("\r\n")[1:])
        headers = {name.lower(): value for name, _, value in lines}
        while len(body) < int(headers["content-length"]):
            body += self._more()
        return status(head), headers, json.loads(body) if body[:1] in b"{[" else body.decode()

    def _more(self) -> bytes:
        data = self.socket.recv(1 << 16)
        if not data:
            raise EOFError
        return data

    def close(self) -> None:
        """Ends the connection."""
        self.socket.close()


def until_ended(peers: Mapping[Peer, bytes]) -> None:
    """Waits until the server has closed every connection; each says its piece again and again meanwhile."""
    begun = time.monotonic()
    with selectors.DefaultSelector() as waiting:
        for peer in peers:
            waiting.register(peer.socket, selectors.EVENT_READ, peer)
        while waiting.get_map():
            assert time.monotonic() - begun < PATIENCE, "the server listens on"
            for key, _ in waiting.select(TICK):
                if not key.data.listen():
                    waiting.unregister(key.fileobj)
            for key in waiting.get_map().values():
                key.data.send(peers[key.data])


@contextmanager
def crowd(port: int, *sent: bytes, count: int, **more: Any) -> Iterator[list[Peer]]:
    """`count` connections that say these things in turn, all closed at the end."""
    with ExitStack() as stack:
        yield [stack.enter_context(Peer(port, sent[at % len(sent)], **more)) for at in range(count)]


def status(said: bytes) -> int:
    """The status of the last answer in `said`, 0 where there is none."""
    at = said.rfind(b"HTTP/1.1 ")
    return int(said[at + 9 : at + 12]) if at >= 0 else 0
