"""The fast path answers as the ASGI application does, and keeps the connection usable."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from kernel.calls.dispatch import Pending
from kernel.core.config import Config
from kernel.core.limits import Header, Limits
from kernel.http.edge import HttpResponse
from kernel.http.fast_path import Done, FastRoute
from kernel.server.app import open_kernel
from kernel.server.asgi import Application
from tests.http import mcp_fixture
from tests.http.connections import Connection, answers_to, chunked, raw, running, segmented, serving
from tests.http.http_requests import BASIC, changed, legacy, modern
from tests.http.mcp_fixture import LIMITS, MARKS, RELEASED, STARTED, Served

ECHO = {"name": "echo", "arguments": {"text": "hello"}}
KEEP = {"name": "keep", "arguments": {"text": "hello"}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with mcp_fixture.served(tmp_path_factory.mktemp("direct")) as served:
        yield served


@pytest.fixture
def connection(server: Served) -> Iterator[Connection]:
    opened = Connection(server.port)
    yield opened
    opened.close()


REQUESTS = {
    "a short tool, legacy": legacy("tools/call", **ECHO),
    "a short tool, modern": modern("tools/call", **ECHO),
    "a queued tool, legacy": legacy("tools/call", **KEEP),
    "a queued tool, modern": modern("tools/call", **KEEP),
    "a tool that fails": modern("tools/call", name="fail", arguments={"code": "not_found"}),
    "invalid arguments": legacy("tools/call", name="keep", arguments={"text": 1}),
    "arguments that are not an object": legacy("tools/call", name="keep", arguments=[1]),
    "an unknown tool": legacy("tools/call", name="absent", arguments={}),
    "a list": modern("tools/list"),
    "a resource": modern("resources/read", uri="first://a"),
    "an unknown method": modern("absent"),
    "a notification": ({"jsonrpc": "2.0", "method": "notifications/initialized"}, BASIC),
    "malformed JSON": (b"{", BASIC),
    "an unsupported version": (modern("ping")[0], changed(modern("ping")[1], mcp_protocol_version="2099-01-01")),
    "a mismatched method header": (modern("ping")[0], changed(modern("ping")[1], mcp_method="pong")),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_segments_do_not_change_the_response(server: Served, name: str) -> None:
    forms = [*segmented(raw(REQUESTS[name])), chunked(REQUESTS[name])]
    answers = answers_to(server.port, forms)
    assert answers == [answers[0]] * len(forms)


@pytest.mark.parametrize(
    "headers",
    [{"content_type": "text/plain"}, {"accept": "text/html"}, {"host": "elsewhere"}, {"origin": "http://elsewhere"}],
)
def test_segments_do_not_change_a_rejection_by_headers(server: Served, headers: dict[str, str]) -> None:
    body, given = legacy("ping")
    whole = raw((body, changed(given, **headers)))
    answers: list[tuple[bytes, bytes]] = []
    forms = segmented(whole)[:4]
    for segments in forms:
        connection = Connection(server.port)
        connection.send(*segments)
        answers.append(connection.answer())
        assert connection.ended()
        connection.close()
    assert answers == [answers[0]] * len(forms)
    assert b"connection: close" in answers[0][0]


def test_pipelined_requests_are_answered_in_order_on_both_paths(connection: Connection) -> None:
    sent = [
        legacy("tools/call", number, **(KEEP if number % 3 else ECHO))  # pyrefly: ignore[bad-argument-type]
        if number % 2
        else legacy("resources/list", number)
        for number in range(40)
    ]
    connection.send(b"".join(raw(one) for one in sent))
    assert [json.loads(connection.answer()[1])["id"] for _ in sent] == list(range(40))


@pytest.mark.parametrize("first", [ECHO, KEEP], ids=["immediate", "pending"])
def test_next_request_on_a_connection_gets_its_own_body(connection: Connection, first: dict[str, Any]) -> None:
    body, headers = legacy("tools/call", 2, **ECHO)
    connection.send(raw(legacy("tools/call", 1, **first)))
    assert json.loads(connection.answer()[1])["id"] == 1
    connection.send(raw((body, [*headers, ("connection", "close")])))
    assert json.loads(connection.answer()[1])["id"] == 2


def test_pipelined_pending_calls_keep_their_own_bodies(connection: Connection) -> None:
    sent = [legacy("tools/call", number, **KEEP) for number in range(20)]
    connection.send(b"".join(raw(one) for one in sent))
    assert [json.loads(connection.answer()[1])["id"] for _ in sent] == list(range(20))


def test_body_limit_is_inclusive(server: Served) -> None:
    body = json.dumps(legacy("ping")[0]).encode()
    for size, status in ((LIMITS.body, b"200"), (LIMITS.body + 1, b"413")):
        connection = Connection(server.port)
        connection.send(raw((body.ljust(size), BASIC)))
        assert connection.answer()[0].split(b" ")[1] == status
        connection.close()


def test_connection_close_is_honoured_after_the_response(connection: Connection) -> None:
    body, headers = legacy("tools/call", **ECHO)
    connection.send(raw((body, [*headers, ("connection", "close")])))
    assert b"connection: close" in connection.answer()[0]
    assert connection.ended()


def test_disconnect_cancels_a_modern_call_but_not_a_legacy_one(server: Served) -> None:
    STARTED.clear()
    RELEASED.clear()
    MARKS.clear()
    connections = [Connection(server.port) for _ in range(4)]
    connections[0].send(raw(legacy("tools/call", name="hold", arguments={})))
    assert STARTED.wait(10)
    connections[1].send(raw(modern("tools/call", name="mark", arguments={"text": "modern"})))
    connections[2].send(raw(legacy("tools/call", name="mark", arguments={"text": "legacy"})))
    time.sleep(0.1)
    for connection in connections[1:3]:
        connection.close()
    time.sleep(0.1)
    RELEASED.set()
    connections[3].send(raw(legacy("tools/call", name="mark", arguments={"text": "last"})))
    assert connections[3].answer()[0].startswith(b"HTTP/1.1 200 ")
    assert MARKS == ["legacy", "last"]
    assert b"released" in connections[0].answer()[1]
    for connection in (connections[0], connections[3]):
        connection.close()


JSON = ("content-type", "application/json")
HOST = ("host", "localhost")
TOOLS = {
    "a short tool": ("/tools/read_memory", b'{"path": "absent"}', [HOST, JSON]),
    "a short tool as JSON": ("/tools/list_memories", b"{}", [HOST, JSON, ("accept", "application/json")]),
    "a queued tool": ("/tools/drop_memory", b'{"path": "absent"}', [HOST, JSON]),
    "a search": ("/tools/recall", b'{"query": "anything"}', [HOST, JSON]),
    "invalid arguments": ("/tools/drop_memory", b'{"path": 1}', [HOST, JSON]),
    "malformed JSON": ("/tools/drop_memory", b"{", [HOST, JSON]),
    "an unknown tool": ("/tools/absent", b"{}", [HOST, JSON]),
    "another media type": ("/tools/read_memory", b"{}", [HOST, ("content-type", "text/plain")]),
    "another host": ("/tools/read_memory", b"{}", [("host", "elsewhere"), JSON]),
    "nested too deeply": ("/tools/read_memory", b"[" * 1000, [HOST, JSON]),
}


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    kernel = open_kernel(Config(data=tmp_path_factory.mktemp("tools") / "data"))
    served = Application(kernel)
    with running(served, served.fast_routes) as port:
        yield port
    kernel.store.close()


@pytest.mark.parametrize("name", TOOLS)
def test_segments_do_not_change_the_response_of_a_tool_route(tools: int, name: str) -> None:
    path, body, headers = TOOLS[name]
    forms = [*segmented(raw((body, headers), path)), chunked((body, headers), path)]
    answers = answers_to(tools, forms)
    assert answers == [answers[0]] * len(forms)


def test_tool_without_arguments_needs_no_body(tools: int) -> None:
    connection = Connection(tools)
    connection.send(raw((b"", [HOST]), "/tools/list_memories"))
    head, body = connection.answer()
    assert (head.split(b"\r\n")[0], body[:11]) == (b"HTTP/1.1 200 OK", b"status: ok\n")
    connection.close()


def responding(text: bytes) -> FastRoute:
    def direct(_raw: Sequence[Header], _body: bytes | None, _done: Done) -> HttpResponse | Pending | None:
        return HttpResponse(200, text)

    return direct


def test_exception_in_a_route_is_a_500_and_closes_the_connection() -> None:
    def broken(_raw: Sequence[Header], _body: bytes | None, _done: Done) -> HttpResponse | Pending | None:
        raise RuntimeError("a secret")

    with serving(broken) as port:
        for _ in range(2):
            connection = Connection(port)
            connection.send(raw(legacy("ping")))
            head, body = connection.answer()
            error = {"code": "internal", "message": "Internal error: the log of the server has it."}
            assert head.split(b"\r\n")[0] == b"HTTP/1.1 500 Internal Server Error"
            assert json.loads(body) == {"error": error}
            assert connection.ended()
            connection.close()


def test_idle_connection_is_closed_after_the_idle_time() -> None:
    with serving(responding(b"{}"), Limits(idle_seconds=1)) as port:
        connection = Connection(port)
        begun = time.monotonic()
        for _ in range(8):
            connection.send(raw(legacy("ping")))
            assert connection.answer()[1] == b"{}"
            time.sleep(0.2)
        assert connection.ended()
        assert time.monotonic() - begun >= 2.3
        connection.close()


def test_shutdown_answers_a_pending_call_first() -> None:
    begun = threading.Event()

    def slow(_raw: Sequence[Header], _body: bytes | None, done: Done) -> HttpResponse | Pending | None:
        asyncio.get_running_loop().call_later(0.5, done, HttpResponse(200, b'"late"'))
        begun.set()
        return Pending(lambda: None)

    with serving(slow) as port:
        connection = Connection(port)
        connection.send(raw(legacy("ping")))
        assert begun.wait(10)
    head, body = connection.answer()
    assert body == b'"late"'
    assert b"connection: close" in head
    assert connection.ended()
    connection.close()


@pytest.mark.parametrize("count", [100, 101])
def test_trailers_are_limited_as_headers_are(tools: int, count: int) -> None:
    head, body = chunked((b'{"path": "absent"}', [HOST, JSON]), "/tools/read_memory")
    body = body[:-2] + b"a:b\r\n" * count + b"\r\n"
    statuses = [answer[0].split(b" ")[1] for answer in answers_to(tools, [(head + body,), (head, body)])]
    assert statuses == [b"404" if count == 100 else b"431"] * 2
