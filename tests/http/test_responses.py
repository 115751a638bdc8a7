"""Framing of responses: HEAD, pipelined, after 100 Continue, empty, and to bytes that are not HTTP."""

import http.client
import socket
from collections.abc import Iterator

import pytest

from tests.reliability.server_process import serving

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
POST = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%b\r\n%b"


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with serving(tmp_path_factory.mktemp("responses") / "data") as server:
        yield server.port


def test_head_response_has_no_body_and_keeps_the_connection(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    for method in ("HEAD", "GET", "HEAD"):
        connection.request(method, "/healthz")
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, b"" if method == "HEAD" else b'{"status":"ok"}')
    connection.close()


def test_pipelined_requests_are_answered_in_order(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(POST % (len(PING), b"", PING) * 20)
        data = b""
        while data.count(b'"result":{}') < 20:
            data += connection.recv(65536)
    assert data.count(b"HTTP/1.1 200 OK") == 20


def test_expect_continue_gets_100_and_then_the_response(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(POST % (len(PING), b"Expect: 100-continue\r\n", b""))
        assert connection.recv(65536).startswith(b"HTTP/1.1 100 Continue\r\n\r\n")
        connection.sendall(PING)
        data = b""
        while b'{"jsonrpc":"2.0","id":1,"result":{}}' not in data:
            part = connection.recv(65536)
            assert part
            data += part
    assert data.startswith(b"HTTP/1.1 200 OK")


def test_fast_path_response_is_one_segment(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        for _ in range(50):
            connection.sendall(POST % (len(PING), b"", PING))
            assert connection.recv(65536).endswith(b'"result":{}}')


def test_notification_gets_an_empty_202(port: int) -> None:
    notice = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(POST % (len(notice), b"", notice))
        assert connection.recv(65536).startswith(b"HTTP/1.1 202 ")


def test_unsupported_http_version_is_a_400(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(b"POST /mcp HTTP/9.9\r\nHost: localhost\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 400 ")
