"""MCP over stdio: responses to lines, separation from stray output, the end of a session."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from kernel.mcp import stdio
from kernel.mcp.stdio import converse
from kernel.store.store import Job
from tests.http import mcp_fixture
from tests.http.http_requests import LEGACY, MODERN, complete, error, message, meta, result, text
from tests.http.mcp_fixture import FIRST, MARKS, RELEASED, SECOND, STARTED

ROOT = Path(__file__).resolve().parents[3]
SHAPE = "The body must be one JSON-RPC request or notification object"
HELLO = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "piper", "version": "1"}}


def spawn(folder: Path, **more: Any) -> Any:
    command = [sys.executable, "-m", "tests.http.mcp_fixture", str(folder)]
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    return subprocess.Popen(command, cwd=ROOT, **streams)  # pyrefly: ignore[no-matching-overload]


def lines(*messages: Any) -> bytes:
    return b"".join(one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n" for one in messages)


def call(name: str, id_: Any = 1, **arguments: Any) -> dict[str, Any]:
    return message("tools/call", {"name": name, "arguments": arguments}, id_)


def echoed(value: str, id_: Any = 1) -> dict[str, Any]:
    return result(id_, **text(value, structuredContent={"text": value}))


class Pipe:
    """A server at the other end of two pipes, in a thread of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        from_us, self._out = os.pipe()
        self._in, to_us = os.pipe()
        self.incoming: BinaryIO = os.fdopen(self._in, "rb")
        self.thread = threading.Thread(target=self._serve, args=(from_us, to_us))
        self.thread.start()

    def _serve(self, source: int, sink: int) -> None:
        with mcp_fixture.opened(self._folder, FIRST, SECOND) as dispatch:
            asyncio.run(converse(mcp_fixture.service(dispatch), dispatch, source, sink, mcp_fixture.LIMITS))
        os.close(source)
        os.close(sink)

    def send(self, *messages: Any) -> None:
        data = lines(*messages)
        while data:
            data = data[os.write(self._out, data) :]

    def receive(self) -> Any:
        return json.loads(self.incoming.readline())

    def end(self, then: Callable[[], None] = lambda: None) -> list[Any]:
        """Closes our end and does `then`; returns the input until the server has closed its own."""
        if self._out >= 0:
            os.close(self._out)
            self._out = -1
        then()
        rest = [json.loads(line) for line in self.incoming]
        self.thread.join()
        return rest


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[Pipe]:
    talk = Pipe(tmp_path)
    yield talk
    RELEASED.set()
    talk.end()
    talk.incoming.close()


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (message("ping"), result()),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}\r\n', result()),
        (b'  {"jsonrpc":"2.0","id":1,"method":"ping"}\t\n', result()),
        (b"\n\r\n  \n" + lines(message("ping")), result()),
        (b"{\n", error(-32700, "Parse error", id_=None)),
        (b"\xff\xfe\n", error(-32700, "Parse error", id_=None)),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\xff"}}\n', error(-32700, "Parse error")),
        (b'{"method":"ping","params":{"a":NaN},"jsonrpc":"2.0","id":1}\n', error(-32700, "Parse error")),
        (b'{"id":"a-1","method":"ping","params":{"a":"\t"}}\n', error(-32700, "Parse error", id_="a-1")),
        (b'{"jsonrpc":"2.0","method":"ping","params":{"id":1,}}\n', error(-32700, "Parse error", id_=None)),
        (b'{"jsonrpc":"2.0","id":1,"result":NaN}\n', error(-32700, "Parse error", id_=None)),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}\n', error(-32600, SHAPE)),
        (b'{"id":1,"method":"ping","params":"%b"}\n' % (b"x" * 900_000), error(-32600, "Line too long")),
        (b'{"method":"ping","params":"%b","id":1}\n' % (b"x" * 300_001), error(-32600, "Line too long")),
        (b"[" * 1000 + b"\n", error(-32700, "Nested too deeply", id_=None)),
        ([message("ping")], error(-32600, SHAPE, id_=None)),
        ({"jsonrpc": "2.0"}, error(-32600, "A message is one JSON-RPC request or notification object", id_=None)),
        (message("ping", id_=None), error(-32600, SHAPE, id_=None)),
        (b"x" * 300_001 + b"\n", error(-32600, "Line too long", id_=None)),
        (b"x" * 900_000 + b"\n", error(-32600, "Line too long", id_=None)),
        (message("server/discover"), error(-32601, "Method not found")),
        (message("nonsense"), error(-32601, "Method not found")),
        (message("ping", {"_meta": meta()}), error(-32601, "Method not found")),
        (call("echo", text="hi"), echoed("hi")),
        (call("echo", text="half \ud83d"), echoed("half \ufffd")),
        (message("ping", {"half": "\ud83d"}), result()),
        (
            message("tools/call", {"name": "echo", "arguments": {"text": "hi"}, "_meta": meta()}),
            complete(**text("hi", structuredContent={"text": "hi"})),
        ),
        (
            message("tools/list", {"_meta": meta("2099-01-01")}),
            error(-32022, "Unsupported protocol version", {"supported": [MODERN], "requested": "2099-01-01"}),
        ),
        (
            message("tools/list", {"_meta": meta(LEGACY)}),
            error(-32022, "Unsupported protocol version", {"supported": [MODERN], "requested": LEGACY}),
        ),
        (
            message("tools/list", {"_meta": {"io.modelcontextprotocol/protocolVersion": MODERN}}),
            error(-32602, "params._meta lacks io.modelcontextprotocol/clientCapabilities"),
        ),
        (
            message("tools/call", {"name": 1}),
            error(-32602, "Invalid params: Expected `string`, got `integer` - at `name`"),
        ),
        (call("zzz"), error(-32602, "Unknown tool: zzz")),
    ],
)
def test_each_line_gets_its_response(pipe: Pipe, sent: Any, expected: Any) -> None:
    pipe.send(sent, message("ping", id_="after"))
    assert [pipe.receive(), pipe.receive()] == [expected, result("after")]


@pytest.mark.parametrize(
    "sent",
    [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": []}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled"},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "no"}},
    ],
)
def test_notification_gets_no_response(pipe: Pipe, sent: Any) -> None:
    pipe.send(sent, message("ping", id_="after"))
    assert pipe.receive() == result("after")


def test_actor_is_the_client_name_of_handshake_or_meta(pipe: Pipe) -> None:
    kept = message("tools/call", {"name": "keep", "arguments": {"text": ""}}, 2)
    pipe.send(kept)
    assert pipe.receive()["result"]["structuredContent"] == {"by": "anonymous"}
    pipe.send(message("initialize", HELLO))
    assert pipe.receive()["result"]["protocolVersion"] == LEGACY
    pipe.send(kept)
    assert pipe.receive()["result"]["structuredContent"] == {"by": "piper"}
    kept["params"]["_meta"] = meta()
    pipe.send(kept)
    assert pipe.receive()["result"]["structuredContent"] == {"by": "tester"}


def reported(pipe: Pipe) -> list[str]:
    """The levels of the lines that come before the answer."""
    found = []
    while "id" not in (one := pipe.receive()):
        found.append(one["params"]["level"])
    return found


def test_a_log_level_holds_for_the_rest_of_the_session(pipe: Pipe) -> None:
    levels = []
    for level in (None, "debug", "critical"):
        if level is not None:
            pipe.send(message("logging/setLevel", {"level": level}))
            assert pipe.receive() == result()
        pipe.send(call("report", text="hi"))
        levels.append(reported(pipe))
    assert levels == [["error"], ["debug", "error"], []]


GRAPH = {"uri": "memory://knowledge-graph"}
NEW = {"entities": [{"name": "a", "entityType": "t", "observations": []}]}


def answered(folder: Path, *sent: Any) -> list[Any]:
    """The answers of a server of `graph` to some requests and notifications, each sent after the answer before:
    ids of answers, and methods and parameters of notifications.
    """
    found = list[Any]()
    command = [sys.executable, "-m", "kernel", "stdio", "--dialect", "graph", "--data", str(folder / "data")]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for one in sent:
            process.stdin.write(lines(one))
            process.stdin.flush()
            awaited = one.get("id", found[-1] if found else None)
            while not found or found[-1] != awaited:
                answer = json.loads(process.stdout.readline())
                acknowledged = answer.get("method") == "notifications/subscriptions/acknowledged"
                found.append(answer.get("id", (answer.get("method"), answer.get("params"))))
                if acknowledged:
                    break
        process.stdin.close()
        assert process.wait(timeout=60) == 0
    return found


@pytest.mark.slow
def test_strict_schemas_are_an_option_of_stdio(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kernel", "stdio", "--strict", "--dialect", "paths", "--data", str(tmp_path)]
    sent = [message("initialize", HELLO, 1), message("tools/list", {}, 2)]
    done = subprocess.run(command, cwd=ROOT, input=b"".join(map(lines, sent)), capture_output=True, check=True)
    listed = json.loads(done.stdout.splitlines()[1])["result"]["tools"]
    schemas = [tool["inputSchema"] for tool in listed]
    assert len(schemas) == 6
    assert all([*schema["properties"]] == schema["required"] for schema in schemas)


@pytest.mark.slow
def test_subscriber_is_notified_before_the_answer_of_each_call_that_writes(tmp_path: Path) -> None:
    lost = {"observations": [{"entityName": "b", "contents": []}]}
    found = answered(
        tmp_path,
        message("initialize", HELLO, 1),
        call("create_entities", 2, **NEW),
        message("resources/subscribe", GRAPH, 3),
        message("resources/subscribe", {"uri": "memory://other"}, 4),
        call("create_entities", 5, **NEW),
        call("read_graph", 6),
        call("add_observations", 7, **lost),
        message("resources/unsubscribe", GRAPH, 8),
        call("create_entities", 9, **NEW),
    )
    assert found == [1, 2, 3, 4, ("notifications/resources/updated", GRAPH), 5, 6, 7, 8, 9]


@pytest.mark.slow
def test_listener_is_notified_under_the_id_of_its_request_until_it_cancels_it(tmp_path: Path) -> None:
    asked = {"notifications": {"resourceSubscriptions": [GRAPH["uri"]], "toolsListChanged": True}, "_meta": meta()}
    gone = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "b"}}
    first, second = ({"io.modelcontextprotocol/subscriptionId": id_} for id_ in ("a", "b"))
    honoured = {"notifications": {"resourceSubscriptions": [GRAPH["uri"]]}}
    found = answered(
        tmp_path,
        message("subscriptions/listen", asked, "a"),
        message("subscriptions/listen", asked, "b"),
        call("create_entities", 3, **NEW),
        gone,
        call("create_entities", 4, **NEW),
        message("subscriptions/listen", asked, "a"),
    )
    acknowledged, updated = "notifications/subscriptions/acknowledged", "notifications/resources/updated"
    assert found == [
        (acknowledged, {**honoured, "_meta": first}),
        (acknowledged, {**honoured, "_meta": second}),
        (updated, {**GRAPH, "_meta": first}),
        (updated, {**GRAPH, "_meta": second}),
        3,
        (updated, {**GRAPH, "_meta": first}),
        4,
        "a",  # an error: a request with this id is under way
    ]


def test_slow_calls_do_not_hold_up_fast_ones(pipe: Pipe) -> None:
    STARTED.clear()
    RELEASED.clear()
    pipe.send(call("hold", "slow"), call("echo", "fast", text="hi"))
    assert pipe.receive() == echoed("hi", "fast")
    assert STARTED.wait(5)
    RELEASED.set()
    assert pipe.receive() == echoed("released", "slow")


@pytest.mark.slow
def test_cancelled_call_gets_no_response_and_does_not_start(pipe: Pipe) -> None:
    STARTED.clear()
    RELEASED.clear()
    MARKS.clear()
    pipe.send(call("hold", "slow"))
    assert STARTED.wait(5)
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "lost"}}
    pipe.send(call("mark", "lost", text="lost"), cancel, message("ping"))
    assert pipe.receive() == result()
    RELEASED.set()
    assert pipe.receive() == echoed("released", "slow")
    pipe.send(call("mark", "lost", text="kept"))
    assert pipe.receive() == echoed("kept", "lost")
    assert MARKS == ["kept"]


def test_an_id_in_use_is_refused(pipe: Pipe) -> None:
    STARTED.clear()
    RELEASED.clear()
    pipe.send(call("hold", 7), call("hold", 7))
    assert pipe.receive() == error(-32600, "A request with this id is under way", id_=7)
    RELEASED.set()
    assert pipe.receive() == echoed("released", 7)


def test_calls_under_way_are_answered_after_the_end_of_input(pipe: Pipe) -> None:
    STARTED.clear()
    RELEASED.clear()
    pipe.send(call("hold", 7))
    assert STARTED.wait(5)
    assert pipe.end(RELEASED.set) == [echoed("released", 7)]


def test_call_that_exceeds_the_drain_time_is_cancelled(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "DRAIN_SECONDS", 0.01)
    dropped = threading.Event()
    cancel = Job.cancel
    monkeypatch.setattr(Job, "cancel", lambda job: (cancel(job), dropped.set(), RELEASED.set()))
    STARTED.clear()
    RELEASED.clear()
    pipe.send(call("hold", 7))
    assert STARTED.wait(5)
    assert pipe.end() == []
    assert dropped.is_set()


def test_an_error_of_the_program_is_answered(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(stdio.messages, "over_stdio")
    pipe.send(call("echo", text="hi"))
    assert pipe.receive() == error(-32603, "Internal error.")
    monkeypatch.undo()
    pipe.send(call("echo", text="hi"))
    assert pipe.receive() == echoed("hi")


@pytest.mark.slow
def test_client_that_writes_before_it_reads_does_not_block_the_server(pipe: Pipe) -> None:
    long = "x" * 20_000
    count = 100
    writer = threading.Thread(target=pipe.send, args=[call("echo", number, text=long) for number in range(count)])
    writer.start()
    writer.join()
    assert [pipe.receive() for _ in range(count)] == [echoed(long, number) for number in range(count)]


def test_the_last_line_needs_no_end(pipe: Pipe) -> None:
    pipe.send(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    assert pipe.end() == [result()]


@pytest.mark.slow
def test_stray_output_does_not_reach_the_client(tmp_path: Path) -> None:
    with spawn(tmp_path) as process:
        out, err = process.communicate(lines(message("initialize", HELLO), call("shout", 2)), timeout=20)
    assert process.returncode == 0
    assert [json.loads(line)["id"] for line in out.splitlines()] == [1, 2]
    assert err == b"aside\napart\nafter the end\n"


@pytest.mark.slow
def test_a_process_reads_a_plain_file_too(tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    script.write_bytes(lines(message("ping"), call("echo", 2, text="hi")))
    with script.open("rb") as stdin, spawn(tmp_path, stdin=stdin) as process:
        out, _ = process.communicate(timeout=20)
    assert ([json.loads(line) for line in out.splitlines()], process.returncode) == ([result(), echoed("hi", 2)], 0)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends a process without asking it")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_sigterm_ends_the_process_cleanly(tmp_path: Path, number: int) -> None:
    with spawn(tmp_path) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(lines(message("ping")))
        process.stdin.flush()
        assert json.loads(process.stdout.readline()) == result()
        process.send_signal(number)
        assert process.wait(20) == 0


@pytest.mark.slow
def test_closed_output_ends_the_process_cleanly(tmp_path: Path) -> None:
    with spawn(tmp_path) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.close()
        process.stdin.write(lines(message("ping")))
        process.stdin.flush()
        assert process.wait(20) == 0
