"""What is answered without a task is answered as it would be with one, and the connection goes on as before."""

import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
import uvicorn

from kernel.app import open_kernel
from kernel.asgi import Application
from kernel.config import Config
from kernel.dispatch import catch_faults
from kernel.http.fast_path import Done, FastRoute, Header, HttpResponse, Pending, protocol
from kernel.limits import Limits
from tests.http import mcp_fixture
from tests.http.http_requests import BASIC, changed, legacy, modern
from tests.http.mcp_fixture import LIMITS, MARKS, RELEASED, STARTED, Served

ECHO = {"name": "echo", "arguments": {"text": "hello"}}
KEEP = {"name": "keep", "arguments": {"text": "hello"}}
PATH = "/mcp"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with mcp_fixture.served(tmp_path_factory.mktemp("direct")) as served:
        yield served


def raw(request: tuple[Any, Sequence[tuple[str, str]]], path: str = PATH) -> bytes:
    """A request as bytes."""
    body, headers = request
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers), f"content-length: {len(data)}"]
    return "\r\n".join([*lines, "", ""]).encode() + data


class Line:
    """One connection on which whole answers are read."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self._read = b""

    def send(self, *pieces: bytes) -> None:
        for number, piece in enumerate(pieces):
            if number:
                time.sleep(0.02)
            self._socket.sendall(piece)

    def answer(self) -> tuple[bytes, bytes]:
        """The head without its date, and the body."""
        while b"\r\n\r\n" not in self._read:
            self._more()
        head, _, rest = self._read.partition(b"\r\n\r\n")
        lines = [line for line in head.split(b"\r\n") if not line.startswith(b"date: ")]
        assert len(lines) == head.count(b"\r\n")
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
        """Whether the server closed, sooner than it closes idle connections, and sent nothing more."""
        self._socket.settimeout(3)
        return self._socket.recv(1) == b""

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def line(server: Served) -> Iterator[Line]:
    opened = Line(server.port)
    yield opened
    opened.close()


REQUESTS = {
    "a short tool, legacy": legacy("tools/call", **ECHO),
    "a short tool, modern": modern("tools/call", **ECHO),
    "a tool that waits, legacy": legacy("tools/call", **KEEP),
    "a tool that waits, modern": modern("tools/call", **KEEP),
    "a tool that fails": modern("tools/call", name="fail", arguments={"code": "not_found"}),
    "arguments that do not fit": legacy("tools/call", name="keep", arguments={"text": 1}),
    "arguments that are no object": legacy("tools/call", name="keep", arguments=[1]),
    "a tool that is not there": legacy("tools/call", name="absent", arguments={}),
    "a list": modern("tools/list"),
    "a resource": modern("resources/read", uri="first://a"),
    "no method": modern("absent"),
    "a notification": ({"jsonrpc": "2.0", "method": "notifications/initialized"}, BASIC),
    "no JSON": (b"{", BASIC),
    "another version": (modern("ping")[0], changed(modern("ping")[1], mcp_protocol_version="2099-01-01")),
    "a wrong method header": (modern("ping")[0], changed(modern("ping")[1], mcp_method="pong")),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_in_one_piece_is_answered_as_one_in_two(server: Served, name: str) -> None:
    whole = raw(REQUESTS[name])
    answers: list[tuple[bytes, bytes]] = []
    for pieces in ((whole,), (whole[:-1], whole[-1:]), (whole[:30], whole[30:])):
        line = Line(server.port)
        line.send(*pieces)
        answers.append(line.answer())
        line.close()
    assert answers == [answers[0]] * 3


@pytest.mark.parametrize(
    "headers",
    [{"content_type": "text/plain"}, {"accept": "text/html"}, {"host": "elsewhere"}, {"origin": "http://elsewhere"}],
)
def test_what_is_turned_away_is_turned_away_alike_and_the_connection_ends(
    server: Served, headers: dict[str, str]
) -> None:
    body, given = legacy("ping")
    whole = raw((body, changed(given, **headers)))
    answers: list[tuple[bytes, bytes]] = []
    for pieces in ((whole,), (whole[:-1], whole[-1:])):
        line = Line(server.port)
        line.send(*pieces)
        answers.append(line.answer())
        assert line.ended()
        line.close()
    assert answers[0] == answers[1]
    assert b"connection: close" in answers[0][0]


def test_requests_sent_at_once_are_answered_in_order_whatever_way_they_go(line: Line) -> None:
    sent = [
        legacy("tools/call", number, **(KEEP if number % 3 else ECHO))
        if number % 2
        else legacy("resources/list", number)
        for number in range(40)
    ]
    line.send(b"".join(raw(one) for one in sent))
    assert [json.loads(line.answer()[1])["id"] for _ in sent] == list(range(40))


@pytest.mark.parametrize("first", [ECHO, KEEP], ids=["at once", "waiting"])
def test_what_follows_an_answer_given_at_once_has_a_body_of_its_own(line: Line, first: dict[str, Any]) -> None:
    body, headers = legacy("tools/call", 2, **ECHO)
    line.send(raw(legacy("tools/call", 1, **first)))
    assert json.loads(line.answer()[1])["id"] == 1
    line.send(raw((body, [*headers, ("connection", "close")])))
    assert json.loads(line.answer()[1])["id"] == 2


def test_a_call_that_waits_keeps_its_body_from_those_behind_it(line: Line) -> None:
    sent = [legacy("tools/call", number, **KEEP) for number in range(20)]
    line.send(b"".join(raw(one) for one in sent))
    assert [json.loads(line.answer()[1])["id"] for _ in sent] == list(range(20))


def test_a_body_past_the_limit_is_refused_and_one_at_the_limit_is_read(server: Served) -> None:
    body = json.dumps(legacy("ping")[0]).encode()
    for size, status in ((LIMITS.body, b"200"), (LIMITS.body + 1, b"413")):
        line = Line(server.port)
        line.send(raw((body.ljust(size), BASIC)))
        assert line.answer()[0].split(b" ")[1] == status
        line.close()


def test_a_client_that_asks_for_the_end_gets_its_answer_and_the_end(line: Line) -> None:
    body, headers = legacy("tools/call", **ECHO)
    line.send(raw((body, [*headers, ("connection", "close")])))
    assert b"connection: close" in line.answer()[0]
    assert line.ended()


def test_a_modern_call_is_dropped_when_its_client_leaves_and_a_legacy_call_is_done(server: Served) -> None:
    STARTED.clear()
    RELEASED.clear()
    MARKS.clear()
    lines = [Line(server.port) for _ in range(4)]
    lines[0].send(raw(legacy("tools/call", name="hold", arguments={})))
    assert STARTED.wait(10)
    lines[1].send(raw(modern("tools/call", name="mark", arguments={"text": "modern"})))
    lines[2].send(raw(legacy("tools/call", name="mark", arguments={"text": "legacy"})))
    time.sleep(0.1)
    for line in lines[1:3]:
        line.close()
    time.sleep(0.1)
    RELEASED.set()
    lines[3].send(raw(legacy("tools/call", name="mark", arguments={"text": "last"})))
    assert lines[3].answer()[0].startswith(b"HTTP/1.1 200 ")
    assert MARKS == ["legacy", "last"]
    assert b"released" in lines[0].answer()[1]
    for line in (lines[0], lines[3]):
        line.close()


JSON = ("content-type", "application/json")
HOST = ("host", "localhost")
TOOLS = {
    "a short tool": ("/tools/read_memory", b'{"path": "absent"}', [HOST, JSON]),
    "a short tool as JSON": ("/tools/list_memories", b"{}", [HOST, JSON, ("accept", "application/json")]),
    "a tool that waits": ("/tools/drop_memory", b'{"path": "absent"}', [HOST, JSON]),
    "a search": ("/tools/recall", b'{"query": "anything"}', [HOST, JSON]),
    "arguments that do not fit": ("/tools/drop_memory", b'{"path": 1}', [HOST, JSON]),
    "no JSON": ("/tools/drop_memory", b"{", [HOST, JSON]),
    "no tool": ("/tools/absent", b"{}", [HOST, JSON]),
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
def test_a_tool_called_in_one_piece_answers_as_one_called_in_two(tools: int, name: str) -> None:
    path, body, headers = TOOLS[name]
    whole = raw((body, headers), path)
    answers: list[tuple[bytes, bytes]] = []
    for pieces in ((whole,), (whole[:-1], whole[-1:]), (whole[:30], whole[30:])):
        line = Line(tools)
        line.send(*pieces)
        answers.append(line.answer())
        line.close()
    assert answers == [answers[0]] * 3


def test_a_tool_that_takes_nothing_needs_no_body(tools: int) -> None:
    line = Line(tools)
    line.send(raw((b"", [HOST]), "/tools/list_memories"))
    head, body = line.answer()
    assert (head.split(b"\r\n")[0], body[:11]) == (b"HTTP/1.1 200 OK", b"status: ok\n")
    line.close()


@contextmanager
def running(app: Any, hot: Mapping[bytes, FastRoute], limits: Limits = Limits()) -> Iterator[int]:
    """A server of `app` in a thread."""
    config = uvicorn.Config(
        app, port=0, lifespan="off", ws="none", log_level="critical", http=protocol(hot, limits), interface="asgi3"
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
    """A server with one hot address and nothing else."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("nothing comes this way")

    with running(app, {b"/mcp": partial(catch_faults, direct)}, limits) as port:
        yield port


def said(text: bytes) -> FastRoute:
    def direct(_raw: Sequence[Header], _body: bytes, _done: Done) -> HttpResponse | Pending | None:
        return HttpResponse(200, text)

    return direct


def test_a_bug_is_an_error_of_the_server_and_ends_the_connection_only() -> None:
    def broken(_raw: Sequence[Header], _body: bytes, _done: Done) -> HttpResponse | Pending | None:
        raise RuntimeError("a secret")

    with serving(broken) as port:
        for _ in range(2):
            line = Line(port)
            line.send(raw(legacy("ping")))
            head, body = line.answer()
            assert (head.split(b"\r\n")[0], body) == (b"HTTP/1.1 500 Internal Server Error", b"Internal Server Error")
            assert line.ended()
            line.close()


def test_a_connection_is_closed_when_it_has_been_idle_and_not_before() -> None:
    with serving(said(b"{}"), Limits(idle_seconds=1)) as port:
        line = Line(port)
        begun = time.monotonic()
        for _ in range(8):
            line.send(raw(legacy("ping")))
            assert line.answer()[1] == b"{}"
            time.sleep(0.2)
        assert line.ended()
        assert time.monotonic() - begun >= 2.3
        line.close()


def test_a_call_under_way_when_the_server_stops_is_answered_first() -> None:
    begun = threading.Event()

    def slow(_raw: Sequence[Header], _body: bytes, done: Done) -> HttpResponse | Pending | None:
        import asyncio

        asyncio.get_running_loop().call_later(0.5, done, HttpResponse(200, b'"late"'))
        begun.set()
        return Pending(lambda: None)

    with serving(slow) as port:
        line = Line(port)
        line.send(raw(legacy("ping")))
        assert begun.wait(10)
    head, body = line.answer()
    assert body == b'"late"'
    assert b"connection: close" in head
    assert line.ended()
    line.close()
