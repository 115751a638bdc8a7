"""Metrics, log lines and traces of a server; none of them contains stored data."""

import http.client
import http.server
import json
import re
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from prometheus_client.parser import text_string_to_metric_families

from kernel.core.config import VERSION
from kernel.core.ids import utc_now
from kernel.security import api_keys
from kernel.security.api_keys import Key
from tests.http.http_requests import modern
from tests.reliability.server_process import Server, serving, until

SECRET = "the garage is behind the old mill"
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
CARRIED = f"00-{TRACE}-{PARENT}-01"
JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


class Collector:
    """Takes spans as a collector of OpenTelemetry does."""

    def __init__(self) -> None:
        spans: list[Span] = []
        services: set[str] = set()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                sent = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["content-length"])))
                for resource in sent.resource_spans:
                    services.update(
                        one.value.string_value for one in resource.resource.attributes if one.key == "service.name"
                    )
                    spans.extend(span for scope in resource.scope_spans for span in scope.spans)
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Says nothing."""

        self.spans, self.services = spans, services
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Watching(NamedTuple):
    """A server with everything on, and where its spans go."""

    server: Server
    collector: Collector


@pytest.fixture(scope="module")
def watching(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watching]:
    """One server, called in every way there is, and ended, so that everything was sent."""
    collector = Collector()
    settings = {
        "QUIPU_METRICS": 1,
        "QUIPU_TRACES": 1,
        "QUIPU_LOG": "json",
        "QUIPU_LOG_CALLS": 1,
        "QUIPU_LOG_REQUESTS": 1,
        "QUIPU_PROXIES": "127.0.0.1",
        "QUIPU_MODEL": "none",
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.address,
        "OTEL_BSP_SCHEDULE_DELAY": 50,
    }
    with serving(tmp_path_factory.mktemp("watching") / "data", **settings) as server:
        yield Watching(server, collector)
    collector.close()


def send(port: int, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] = {}) -> tuple[int, bytes]:
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, body or None, dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def tool(port: int, name: str, headers: Mapping[str, str] = {}, **arguments: Any) -> int:
    """A call by plain JSON; its status."""
    return send(port, "POST", f"/tools/{name}", json.dumps(arguments).encode(), {**JSON, **headers})[0]


def by_mcp(port: int, name: str, meta: Mapping[str, Any], **arguments: Any) -> None:
    body, headers = modern("tools/call", name=name, arguments=arguments)
    body["params"]["_meta"].update(meta)
    status, answer = send(port, "POST", "/mcp", json.dumps(body).encode(), dict(headers))
    assert status == 200, answer


def scraped(port: int) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Every sample by name and labels, as Prometheus itself reads them."""
    status, body = send(port, "GET", "/metrics")
    assert status == 200, body
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(body.decode()):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def logged(server: Server, tool: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in server.log().splitlines() if line.startswith("{")]
    return [line for line in lines if line["message"] == "call" and line["tool"] == tool]


def spans(watching: Watching, name: str, count: int) -> Sequence[Span]:
    """The spans of a tool, once there are so many."""

    def found() -> list[Span]:
        return [span for span in watching.collector.spans if span.name == f"tools/call {name}"]

    until(lambda: len(found()) >= count, f"{count} spans of {name}")
    return found()


def attributes(span: Span) -> dict[str, str]:
    return {one.key: one.value.string_value for one in span.attributes}


def test_metrics_count_and_time_calls_by_outcome(watching: Watching) -> None:
    port = watching.server.port
    before = scraped(port)
    statuses = [tool(port, "read_memory", path="none"), tool(port, "add_memory", path="car", content=SECRET)]
    statuses += [tool(port, "add_memory", path="car", content="x"), tool(port, "add_memory", path=3)]
    statuses += [tool(port, "recall", query="garage"), tool(port, "memory_sync")]
    assert statuses == [404, 200, 409, 400, 200, 200]
    after = scraped(port)

    counted = {
        (dict(labels)["tool"], dict(labels)["outcome"]): value
        for labels, value in after["quipu_calls_total"].items()
        if value != before.get("quipu_calls_total", {}).get(labels)
    }
    assert counted == {
        ("read_memory", "not_found"): 1,
        ("add_memory", "ok"): 1,
        ("add_memory", "conflict"): 1,
        ("add_memory", "invalid"): 1,
        ("recall", "ok"): 1,
        ("memory_sync", "ok"): 1,
    }
    label = (("dialect", "paths"), ("tool", "add_memory"))
    assert after["quipu_call_duration_seconds_count"][label] == 3
    assert 0 < after["quipu_call_duration_seconds_sum"][label] < 30
    buckets = [
        value for labels, value in after["quipu_call_duration_seconds_bucket"].items() if set(label) <= set(labels)
    ]
    assert buckets == sorted(buckets)
    assert buckets[-1] == 3


def test_metrics_show_the_state_of_store_and_server(watching: Watching) -> None:
    tool(watching.server.port, "add_memory", path="state", content="x")
    found = scraped(watching.server.port)
    main = (("tenant", "main"),)
    assert found["quipu_info"] == {(("schema", next(iter(found["quipu_info"]))[0][1]), ("version", VERSION)): 1}
    assert found["quipu_queue_calls"] == {(("queue", "write"), *main): 0, (("queue", "read"), *main): 0}
    assert found["quipu_queue_oldest_seconds"] == {(("queue", "write"), *main): 0, (("queue", "read"), *main): 0}
    assert found["quipu_commit_calls_count"][main] <= found["quipu_commit_calls_sum"][main]
    assert found["quipu_commit_calls_bucket"][(("le", "1"), *main)] >= 1
    assert found["quipu_wal_bytes"][main] > 0
    assert found["quipu_database_bytes"][main] > 0
    assert found["quipu_connections"] == {(): 1}
    assert found["quipu_open_tenants"] == {(): 1}
    assert found["process_cpu_seconds_total"][()] > 0


def test_call_log_line_has_an_id_and_no_contents(watching: Watching) -> None:
    port = watching.server.port
    assert tool(port, "replace_memory", path="nowhere", content=SECRET) == 404
    by_mcp(port, "replace_memory", {}, path="nowhere", content=SECRET)
    until(lambda: len(logged(watching.server, "replace_memory")) == 2, "two lines")
    first, second = logged(watching.server, "replace_memory")
    assert first["call"] != second["call"]
    assert first["milliseconds"] > 0
    fixed = ("level", "logger", "dialect", "tenant", "actor", "outcome")
    assert [first[name] for name in fixed] == ["info", "quipu.calls", "paths", "main", "anonymous", "not_found"]
    assert second["actor"] != "anonymous"
    assert SECRET not in watching.server.log()
    assert "nowhere" not in watching.server.log()


def test_span_continues_the_trace_of_the_caller(watching: Watching) -> None:
    port = watching.server.port
    tool(port, "list_memories", {"traceparent": CARRIED, "tracestate": "vendor=1", "x-request-id": "of-span"})
    by_mcp(port, "list_memories", {"traceparent": CARRIED})
    tool(port, "list_memories")
    tool(port, "list_memories", {"traceparent": "nonsense"})
    with_header, with_meta, alone, nonsense = spans(watching, "list_memories", 4)
    for span in (with_header, with_meta):
        assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, PARENT)
    assert with_header.trace_state == "vendor=1"
    for span in (alone, nonsense):
        assert span.trace_id.hex() != TRACE
        assert span.parent_span_id == b""
    assert watching.collector.services == {"quipu"}
    assert with_header.kind == Span.SPAN_KIND_SERVER
    assert attributes(with_header) == {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "list_memories",
        "quipu.dialect": "paths",
        "quipu.tenant": "main",
        "quipu.call": "of-span",
    }
    assert 0 < with_header.end_time_unix_nano - with_header.start_time_unix_nano < 30e9


@pytest.mark.parametrize(
    ("name", "arguments", "stages"),
    [
        ("add_memory", {"path": "of/stages", "content": "x"}, ["queue", "work", "commit"]),
        ("recall", {"query": "stages"}, ["queue", "read"]),
        ("read_memory", {"path": "none"}, []),
    ],
)
def test_span_has_a_child_for_each_stage_of_the_call(
    watching: Watching, name: str, arguments: Mapping[str, str], stages: Sequence[str]
) -> None:
    id_ = f"stages-of-{name}"
    tool(watching.server.port, name, {"x-request-id": id_}, **arguments)

    def of_call() -> list[Span]:
        return [span for span in watching.collector.spans if attributes(span).get("quipu.call") == id_]

    until(lambda: of_call() != [], f"span of {id_}")
    (span,) = of_call()
    children = [child for child in watching.collector.spans if child.parent_span_id == span.span_id]
    assert [child.name for child in children] == stages
    ends = [span.start_time_unix_nano, *(child.end_time_unix_nano for child in children)]
    assert [child.start_time_unix_nano for child in children] == ends[:-1]
    assert [*ends, span.end_time_unix_nano] == sorted([*ends, span.end_time_unix_nano])


def test_failed_call_is_a_failed_span(watching: Watching) -> None:
    tool(watching.server.port, "drop_memory", path="nowhere")
    (span,) = spans(watching, "drop_memory", 1)
    assert attributes(span)["error.type"] == "not_found"
    assert span.status.code == Status.STATUS_CODE_ERROR
    assert all("nowhere" not in value for value in attributes(span).values())


def test_metrics_are_off_by_default(tmp_path: Path) -> None:
    with serving(tmp_path / "data", QUIPU_MODEL="none") as server:
        assert send(server.port, "GET", "/metrics")[0] == 404


def test_metrics_require_the_admin_permission(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    made = (Key("", "read", utc_now()), Key("", "write", utc_now()), Key("", "admin", utc_now()))
    tokens = {key.scope: api_keys.create(data, key)[1] for key in made}
    with serving(data, QUIPU_METRICS=1, QUIPU_MODEL="none") as server:
        found = {
            scope: send(server.port, "GET", "/metrics", headers={"authorization": f"Bearer {token}"})
            for scope, token in tokens.items()
        }
        assert send(server.port, "GET", "/metrics")[0] == 401
    assert {scope: status for scope, (status, _) in found.items()} == {"read": 403, "write": 403, "admin": 200}
    assert json.loads(found["read"][1]) == {
        "error": {"code": "insufficient_scope", "message": "/metrics needs the scope admin"}
    }


def test_responses_are_counted_by_status(watching: Watching) -> None:
    port = watching.server.port
    before = scraped(port).get("quipu_http_responses_total", {})
    assert tool(port, "list_memories") == 200
    assert tool(port, "no_such_tool") == 404
    assert send(port, "GET", "/nowhere")[0] == 404
    assert send(port, "POST", "/mcp", b"{}", {"host": "elsewhere.example"})[0] == 421
    after = scraped(port)["quipu_http_responses_total"]

    counts = {dict(labels)["status"]: count - before.get(labels, 0) for labels, count in after.items()}
    assert {status: count for status, count in counts.items() if count} == {"200": 2, "404": 2, "421": 1}


def test_memories_and_waits_in_queues_are_told(watching: Watching) -> None:
    port = watching.server.port
    before = scraped(port)
    assert tool(port, "memory_remember", title="counted", content="text", memoryType="learning") == 200
    after = scraped(port)

    main, write = (("tenant", "main"),), (("queue", "write"), ("tenant", "main"))
    assert after["quipu_memories"][main] - before["quipu_memories"][main] == 1
    grown = after["quipu_queue_wait_seconds_count"][write] - before["quipu_queue_wait_seconds_count"][write]
    assert grown >= 1
    assert after["process_start_time_seconds"][()] == before["process_start_time_seconds"][()] > 1.7e9


def exchanged(port: int, request: bytes) -> tuple[int, list[str]]:
    """The status of the answer to a request as bytes, and every id in its head."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as peer:
        peer.sendall(request)
        answer = http.client.HTTPResponse(peer)
        answer.begin()
        answer.read()
        return answer.status, answer.headers.get_all("x-request-id", [])


def request_line(server: Server, id_: str) -> dict[str, Any]:
    """Return the only line of a request."""

    def lines() -> list[dict[str, Any]]:
        every = [json.loads(line) for line in server.log().splitlines() if line.startswith("{")]
        return [line for line in every if line["message"] == "request" and line["request"] == id_]

    until(lambda: bool(lines()), "a line")
    (line,) = lines()
    return line


HOST = "host: 127.0.0.1\r\nx-request-id: {}"
EMPTY = "content-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}"
# A status, and a request without its id.
ANSWERED = {
    "a tool": (200, f"POST /tools/list_memories HTTP/1.1\r\n{HOST}\r\n{EMPTY}"),
    "a probe": (200, f"GET /healthz HTTP/1.1\r\n{HOST}\r\n\r\n"),
    "a page": (200, f"GET /tools HTTP/1.1\r\n{HOST}\r\n\r\n"),
    "no page": (404, f"GET /nowhere HTTP/1.1\r\n{HOST}\r\n\r\n"),
    "another method": (405, f"PUT /mcp HTTP/1.1\r\n{HOST}\r\n\r\n"),
    "a method of an API": (404, f"GET /v1/nothing HTTP/1.1\r\n{HOST}\r\n\r\n"),
    "a refused host": (421, f"POST /mcp HTTP/1.1\r\nhost: elsewhere\r\nx-request-id: {{}}\r\n{EMPTY}"),
    "malformed framing": (400, f"POST /mcp HTTP/1.1\r\n{HOST}\r\ncontent-length: x\r\n\r\n"),
    "a tunnel": (501, f"CONNECT a:1 HTTP/1.1\r\n{HOST}\r\n\r\n"),
}


@pytest.mark.parametrize("name", ANSWERED)
def test_every_response_names_the_id_of_its_request(watching: Watching, name: str) -> None:
    status, request = ANSWERED[name]
    id_ = f"sent-{name.replace(' ', '-')}"
    assert exchanged(watching.server.port, request.format(id_).encode()) == (status, [id_])
    assert request_line(watching.server, id_)["status"] == status


@pytest.mark.parametrize("id_", ["", "two words", "\xe9", "x" * 129, "tab\tbed"])
def test_id_that_could_not_stand_in_a_line_is_replaced(watching: Watching, id_: str) -> None:
    requests = [ANSWERED[name][1].format(id_).encode("latin-1") for name in ("a tool", "a page")]
    for request in requests:
        status, (answered,) = exchanged(watching.server.port, request)
        assert status == 200
        assert re.fullmatch("[0-9a-f]+-[0-9a-f]+-[0-9a-f]+", answered)


def test_line_of_a_request_says_who_asked_for_what_and_the_answer(watching: Watching) -> None:
    port = watching.server.port
    headers = {"x-request-id": "whole", "traceparent": CARRIED, "x-forwarded-for": "6.6.6.6, 203.0.113.9,127.0.0.1"}
    status, body = send(port, "POST", "/tools/read_memory", b'{"path": "none"}', {**JSON, **headers})
    line = request_line(watching.server, "whole")
    assert line.pop("time").endswith("Z")
    assert line.pop("milliseconds") > 0
    assert line == {
        "level": "info",
        "logger": "quipu.requests",
        "message": "request",
        "request": "whole",
        "client": "203.0.113.9",
        "method": "POST",
        "path": "/tools/read_memory",
        "status": status,
        "bytes": len(body),
        "trace": TRACE,
    }
    assert [line["call"] for line in logged(watching.server, "read_memory")][-1] == "whole"


def test_query_and_end_of_a_long_path_are_not_in_the_line(watching: Watching) -> None:
    port = watching.server.port
    send(port, "GET", f"/openapi.json?q={SECRET.replace(' ', '+')}", headers={"x-request-id": "query"})
    send(port, "GET", f"/{'x' * 999}", headers={"x-request-id": "long"})
    paths = [request_line(watching.server, id_)["path"] for id_ in ("query", "long")]
    assert paths == ["/openapi.json", f"/{'x' * 199}…"]
