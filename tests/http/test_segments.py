"""Bodies in several segments: collected on the fast path while they are small, else handed to the application."""

import json
import socket
import threading
import time
from collections.abc import Sequence
from itertools import pairwise

import pytest
from starlette.types import Receive, Scope, Send

from kernel.core.limits import Header, Limits
from kernel.http.edge import HttpResponse
from kernel.http.fast_path import MAX_COLLECTED_BYTES, Done
from tests.http.connections import Connection, chunked, raw, running, serving
from tests.http.http_requests import BASIC


class Bodies:
    """A route that answers with the length of each body, and the bodies it was called with."""

    def __init__(self, *, refusing: bool = False) -> None:
        self.bodies: list[bytes] = []
        self._refusing = refusing

    def __call__(self, _raw: Sequence[Header], body: bytes | None, _done: Done) -> HttpResponse | None:
        if body is None:
            return HttpResponse(403, b"") if self._refusing else None
        self.bodies.append(body)
        return HttpResponse(200, b"fast %d" % len(body))


async def application(_scope: Scope, receive: Receive, send: Send) -> None:
    """Answers `slow` and the length of the body; it never sees a request that the fast path answers."""
    size, more = 0, True
    while more:
        message = await receive()
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    head = [(b"content-length", b"%d" % len(b"slow %d" % size))]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": b"slow %d" % size})


def sized(size: int) -> bytes:
    return raw((b"x" * size, BASIC))


def many(whole: bytes, count: int) -> list[bytes]:
    step = -(-len(whole) // count)
    return [whole[at : at + step] for at in range(0, len(whole), step)]


@pytest.mark.parametrize("count", [1, 2, 7, 100])
@pytest.mark.parametrize("size", [1, 1000, MAX_COLLECTED_BYTES])
def test_small_body_in_any_number_of_segments_stays_on_the_fast_path(size: int, count: int) -> None:
    route = Bodies()
    with running(application, {b"/mcp": route}) as port:
        connection = Connection(port)
        for _ in range(2):
            connection.send(*many(sized(size), count), pause=0.002)
            assert connection.answer()[1] == b"fast %d" % size
        connection.close()
    assert route.bodies == [b"x" * size] * 2


def test_larger_body_in_segments_is_handed_to_the_application() -> None:
    with running(application, {b"/mcp": Bodies()}) as port:
        connection = Connection(port)
        whole = sized(MAX_COLLECTED_BYTES + 1)
        connection.send(whole[:200], whole[200:])
        assert connection.answer()[1] == b"slow %d" % (MAX_COLLECTED_BYTES + 1)
        connection.send(sized(10))
        assert connection.answer()[1] == b"fast 10"
        connection.close()


def test_chunked_body_in_segments_is_handed_to_the_application() -> None:
    asked = threading.Event()

    async def noted(scope: Scope, receive: Receive, send: Send) -> None:
        asked.set()
        await application(scope, receive, send)

    with running(noted, {b"/mcp": Bodies()}) as port:
        connection = Connection(port)
        head, body = chunked((b"x" * 10, BASIC))
        connection.send(head)
        assert asked.wait(10)
        connection.send(body)
        assert connection.answer()[1] == b"slow 10"
        connection.send(head + body)
        assert connection.answer()[1] == b"fast 10"
        connection.close()


def test_expect_continue_is_handed_to_the_application() -> None:
    head = raw((b"", [*BASIC, ("expect", "100-continue")])).replace(b"length: 0", b"length: 3")
    with (
        running(application, {b"/mcp": Bodies()}) as port,
        socket.create_connection(("127.0.0.1", port), timeout=10) as connection,
    ):
        connection.sendall(head)
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"xxx")
        assert connection.recv(65536).endswith(b"slow 3")


def test_request_refused_by_its_headers_is_handed_over_before_its_body_arrives() -> None:
    route = Bodies(refusing=True)

    async def refusing(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 403, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    with running(refusing, {b"/mcp": route}) as port:
        connection = Connection(port)
        connection.send(sized(10)[:-10])
        assert connection.answer()[0].startswith(b"HTTP/1.1 403 ")
        connection.close()
    assert route.bodies == []


def test_pipelined_requests_may_share_segments() -> None:
    route = Bodies()
    with serving(route) as port:
        connection = Connection(port)
        whole = sized(10) + sized(20) + sized(30)
        cuts = [0, 5, len(sized(10)) - 3, len(sized(10)) + 40, len(sized(10) + sized(20)) - 1, len(whole)]
        connection.send(*(whole[start:end] for start, end in pairwise(cuts)))
        assert [connection.answer()[1] for _ in range(3)] == [b"fast 10", b"fast 20", b"fast 30"]
        connection.close()
    assert [len(body) for body in route.bodies] == [10, 20, 30]


@pytest.mark.parametrize("sent", [0, 5], ids=["no body", "half a body"])
def test_slow_body_is_a_408_without_the_application(sent: int) -> None:
    route = Bodies()
    with serving(route, Limits(body_seconds=1)) as port:
        connection = Connection(port)
        connection.send(sized(4), b"")
        assert connection.answer()[1] == b"fast 4"
        begun = time.monotonic()
        connection.send(sized(10)[: sent - 10])
        head, body = connection.answer()
        assert head.startswith(b"HTTP/1.1 408 ")
        assert b"connection: close" in head
        assert json.loads(body) == {"error": {"code": "timeout", "message": "Request timed out"}}
        assert 1 <= time.monotonic() - begun < 5
        assert connection.ended()
        connection.close()
    assert route.bodies == [b"xxxx"]


def test_malformed_chunk_in_one_segment_is_a_400_without_the_application() -> None:
    route = Bodies()
    with serving(route) as port:
        connection = Connection(port)
        connection.send(chunked((b"", BASIC))[0] + b"no chunk\r\n")
        head, body = connection.answer()
        assert head.startswith(b"HTTP/1.1 400 ")
        assert json.loads(body) == {"error": {"code": "invalid", "message": "Malformed HTTP request"}}
        connection.close()
    assert route.bodies == []


def test_disconnect_inside_a_body_calls_nothing() -> None:
    route = Bodies()
    with serving(route) as port:
        for _ in range(3):
            connection = Connection(port)
            connection.send(sized(10)[:-5])
            time.sleep(0.05)
            connection.close()
        connection = Connection(port)
        connection.send(sized(4))
        assert connection.answer()[1] == b"fast 4"
        connection.close()
    assert route.bodies == [b"xxxx"]


def test_shutdown_closes_a_connection_inside_a_body() -> None:
    route = Bodies()
    with serving(route) as port:
        connection = Connection(port)
        connection.send(sized(10)[:-10], b"12345")
        time.sleep(0.05)
    assert connection.ended()
    connection.close()
    assert route.bodies == []
