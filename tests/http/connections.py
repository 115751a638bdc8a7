"""Connections that send requests in chosen segments, and servers of one protocol class in a thread."""

import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from kernel.calls.dispatch import catch_faults
from kernel.core.limits import Limits
from kernel.http.fast_path import FastRoute, protocol


def raw(request: tuple[Any, Sequence[tuple[str, str]]], path: str = "/mcp") -> bytes:
    """A request as bytes."""
    body, headers = request
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return _head(path, headers, f"content-length: {len(data)}") + data


def chunked(request: tuple[Any, Sequence[tuple[str, str]]], path: str = "/mcp") -> tuple[bytes, bytes]:
    """A request in two segments that the fast path hands to the application, since its length is unknown."""
    body, headers = request
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = _head(path, headers, "transfer-encoding: chunked")
    return head, (b"%x\r\n%b\r\n" % (len(data), data) if data else b"") + b"0\r\n\r\n"


def _head(path: str, headers: Sequence[tuple[str, str]], framing: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers), framing]
    return "\r\n".join([*lines, "", ""]).encode()


def segmented(whole: bytes) -> list[tuple[bytes, ...]]:
    """A request in one segment, in head and body, and split inside the body, inside the head, and into many."""
    body = whole.index(b"\r\n\r\n") + 4
    many = tuple(whole[at : at + 40] for at in range(0, len(whole), 40))
    return [(whole,), (whole[:body], whole[body:]), (whole[:-1], whole[-1:]), (whole[:30], whole[30:]), many]


def answers_to(port: int, forms: Sequence[tuple[bytes, ...]]) -> list[tuple[bytes, bytes]]:
    """The answer to each form of a request, each on a connection of its own."""
    answers: list[tuple[bytes, bytes]] = []
    for segments in forms:
        line = Connection(port)
        line.send(*segments)
        answers.append(line.answer())
        line.close()
    return answers


class Connection:
    """A client connection that reads whole responses."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._read = b""

    def send(self, *segments: bytes, pause: float = 0.01) -> None:
        for number, segment in enumerate(segments):
            if number:
                time.sleep(pause)  # without it the server could read two segments at once
            self._socket.sendall(segment)

    def answer(self) -> tuple[bytes, bytes]:
        """The head without its date and its id, and the body."""
        while b"\r\n\r\n" not in self._read:
            self._more()
        head, _, rest = self._read.partition(b"\r\n\r\n")
        lines = [line for line in head.split(b"\r\n") if not line.startswith((b"date: ", b"x-request-id: "))]
        assert len(lines) == head.count(b"\r\n") - 1
        size = next(int(line[16:]) for line in lines if line.startswith(b"content-length: "))
        self._read = rest
        while len(self._read) < size:
            self._more()
        body, self._read = self._read[:size], self._read[size:]
        return b"\r\n".join(lines), body

    def _more(self) -> None:
        data = self._socket.recv(65536)
        if not data:
            raise EOFError
        self._read += data

    def ended(self) -> bool:
        """Whether the server closes within 3 seconds, which is before the idle time, and sends nothing more."""
        self._socket.settimeout(3)
        return self._socket.recv(1) == b""

    def close(self) -> None:
        self._socket.close()


@contextmanager
def running(app: ASGIApp, fast_routes: Mapping[bytes, FastRoute], limits: Limits = Limits()) -> Iterator[int]:
    """A server of `app` in a thread."""
    config = uvicorn.Config(
        app,
        port=0,
        lifespan="off",
        ws="none",
        log_level="critical",
        http=protocol(fast_routes, limits),
        interface="asgi3",
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        thread.join(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def serving(direct: FastRoute, limits: Limits = Limits()) -> Iterator[int]:
    """A server with one fast route; its application must not be called."""

    async def app(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise AssertionError("the application was called")

    with running(app, {b"/mcp": partial(catch_faults, direct)}, limits) as port:
        yield port
