"""Who listens on a port, asked by a greeting and by looking where the system keeps its sockets."""

import http.server
import os
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kernel.cli.probe import Answered, greet, holder
from kernel.config import VERSION
from tests.reliability.server_process import free_port, serving


@contextmanager
def answering(status: int, body: bytes = b"") -> Iterator[int]:
    """A server on this machine that answers every POST with the same; its port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
            return

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def test_one_of_us_says_who_it_is(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server:
        assert greet("127.0.0.1", server.port) == Answered(200, "quipu", VERSION)


@pytest.mark.parametrize(
    ("status", "body", "found"),
    [
        (404, b"nothing here", Answered(404)),
        (401, b'{"error": {"code": "unauthorized"}}', Answered(401)),
        (200, b'{"result": {"serverInfo": {"name": "other", "version": "9"}}}', Answered(200, "other", "9")),
        (200, b'{"result": 1}', Answered(200)),
        (200, b"[" * 5000, Answered(200)),
        (200, b"\xff", Answered(200)),
    ],
)
def test_what_others_answer_is_no_surprise(status: int, body: bytes, found: Answered) -> None:
    with answering(status, body) as port:
        assert greet("127.0.0.1", port) == found


def test_nobody_and_somebody_who_speaks_no_http_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    assert greet("127.0.0.1", free_port()) is None
    monkeypatch.setattr("kernel.cli.probe._SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(OSError, match="timed out"):
        greet("127.0.0.1", silent.getsockname()[1])


def test_an_answer_that_is_no_http_is_an_error() -> None:
    def speak() -> None:
        with rude.accept()[0] as guest:
            guest.sendall(b"SSH-2.0-OpenSSH\r\n")
            guest.recv(4096)

    with socket.create_server(("127.0.0.1", 0)) as rude:
        thread = threading.Thread(target=speak)
        thread.start()
        with pytest.raises(OSError, match="SSH"):
            greet("127.0.0.1", rude.getsockname()[1])
        thread.join()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who holds a socket")
def test_the_process_that_listens_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as ours:
        port = ours.getsockname()[1]
        assert holder(port).endswith(f" (process {os.getpid()})")
        assert holder(free_port()) == ""


def test_a_system_that_does_not_tell_leaves_the_name_empty(tmp_path: Path) -> None:
    assert holder(80, tmp_path) == ""
