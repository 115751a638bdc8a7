"""MCP over HTTP: checks of method, headers, message and version, in the order in which they run."""

import json
import socket
from typing import Any

import pytest

from kernel.mcp.messages import HANDSHAKE_VERSIONS
from tests.http.http_requests import (
    ACCEPT,
    BASIC,
    HOST,
    JSON,
    LEGACY,
    MODERN,
    Answer,
    Full,
    changed,
    complete,
    error,
    exchange,
    legacy,
    message,
    meta,
    modern,
    result,
    send,
    text,
)
from tests.http.mcp_fixture import LIMITS, Served

ECHO = {"name": "echo", "arguments": {"text": "hi"}}
SAID = text("hi", structuredContent={"text": "hi"})
SHAPE = "The body must be one JSON-RPC request or notification object"
MISMATCH = "The mcp-protocol-version header does not match the version in _meta"
UNSUPPORTED = "Unsupported protocol version"


def refused(status: int, reason: str, **headers: str) -> Full:
    body = error(-32600, reason, id_=None)
    size = str(len(json.dumps(body, separators=(",", ":"))))
    return Full(status, body, {"content-type": "application/json", "content-length": size, **headers})


def plain(full: Full) -> Full:
    kept = {name: value for name, value in full.headers.items() if name not in ("date", "server", "x-request-id")}
    return full._replace(headers=kept)


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "OPTIONS", "PATCH"])
def test_other_methods_than_post_get_405_with_allow(server: Served, method: str) -> None:
    assert plain(exchange(server.port, b"", [*BASIC], method=method)) == refused(
        405, "Method not allowed, use POST", allow="POST"
    )


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        ({"origin": "https://evil.example"}, 403, "Origin not allowed: QUIPU_ALLOWED_ORIGINS adds names"),
        ({"origin": "null"}, 403, "Origin not allowed: QUIPU_ALLOWED_ORIGINS adds names"),
        ({"origin": "http://localhost.evil.example"}, 403, "Origin not allowed: QUIPU_ALLOWED_ORIGINS adds names"),
        ({"host": "evil.example"}, 421, "Host not allowed: QUIPU_ALLOWED_HOSTS adds names"),
        ({"host": "localhost@evil.example"}, 421, "Host not allowed: QUIPU_ALLOWED_HOSTS adds names"),
        ({"host": None}, 421, "Host not allowed: QUIPU_ALLOWED_HOSTS adds names"),
        ({"content_type": "text/plain"}, 415, "Content-Type must be application/json"),
        ({"content_type": "application/jsonx"}, 415, "Content-Type must be application/json"),
        ({"content_type": None}, 415, "Content-Type must be application/json"),
        ({"content_encoding": "gzip"}, 415, "Content-Encoding is not supported"),
        ({"accept": "text/html"}, 406, "Accept must allow application/json"),
        ({"accept": "text/event-stream"}, 406, "Accept must allow application/json"),
        ({"content_length": "300001"}, 413, "Body too large, at most 300000 bytes"),
        ({"x_padding": "x" * 16384}, 431, "Headers too large"),
        ({"x" * 16384: "x"}, 431, "Headers too large"),
    ],
)
@pytest.mark.parametrize("request_", [legacy("tools/call", **ECHO), modern("tools/call", **ECHO)])
def test_request_refused_by_its_headers_is_refused_before_its_body(
    server: Served, request_: Any, change: dict[str, str | None], status: int, reason: str
) -> None:
    body, headers = request_
    found = exchange(server.port, body, changed(headers, **change))
    assert plain(found) == refused(status, reason, connection="close")


@pytest.mark.parametrize(
    "change",
    [
        {"origin": "http://localhost:3000"},
        {"origin": "https://127.0.0.1"},
        {"origin": "http://[::1]:80"},
        {"host": "localhost"},
        {"host": "LOCALHOST.:1"},
        {"host": "[::1]:7847"},
        {"content_type": "application/json; charset=utf-8"},
        {"content_type": "Application/JSON"},
        {"content_encoding": "identity"},
        {"accept": None},
        {"accept": "*/*"},
        {"accept": "text/html, application/*;q=0.5"},
        {"mcp_session_id": "no such session", "last_event_id": "7"},
    ],
)
@pytest.mark.parametrize("request_", [legacy("tools/call", **ECHO), modern("tools/call", **ECHO)])
def test_accepted_headers_are_served_without_cors_headers(
    server: Served, request_: Any, change: dict[str, str | None]
) -> None:
    body, headers = request_
    found = exchange(server.port, body, changed(headers, **change))
    names = {"content-type", "content-length", "date", "server", "x-request-id"}
    assert (found.status, set(found.headers)) == (200, names)


def test_too_many_headers_are_refused(server: Served) -> None:
    body, headers = legacy("ping")
    many = [*headers, *((f"x-{number}", "1") for number in range(100))]
    assert plain(exchange(server.port, body, many)) == refused(431, "Headers too large", connection="close")


@pytest.mark.parametrize("header", [HOST, JSON, ("origin", "http://localhost")])
def test_repeated_security_header_is_refused(server: Served, header: tuple[str, str]) -> None:
    body, headers = legacy("ping")
    expected = refused(400, "A header that may appear once appears more than once", connection="close")
    assert plain(exchange(server.port, body, [*headers, header, header])) == expected


def test_chunked_body_is_read_up_to_the_limit(server: Served) -> None:
    body, headers = legacy("tools/call", **ECHO)
    data = json.dumps(body).encode()
    chunked = [*headers, ("transfer-encoding", "chunked")]
    halves = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (data[:20], data[20:], b""))
    assert exchange(server.port, halves, chunked)[:2] == (200, result(**SAID))
    endless = b"%x\r\n%b\r\n" % (LIMITS.body + 1, b" " * (LIMITS.body + 1))
    expected = refused(413, "Body too large or too slow", connection="close")
    assert plain(exchange(server.port, endless, chunked)) == expected


def test_disconnect_inside_a_body_does_not_affect_other_connections(server: Served) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as half:
        half.sendall(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n")
        half.sendall(b"content-length: 100\r\n\r\n{")
    assert send(server.port, legacy("ping")) == (200, result())


DEEP = '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":%s}}'


@pytest.mark.parametrize(
    ("body", "code", "reason"),
    [
        (b"", -32700, "Parse error"),
        (b"{", -32700, "Parse error"),
        (b"[1, 2", -32700, "Parse error"),
        (b"\xef\xbb\xbf{}", -32700, "Parse error"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"} x', -32700, "Parse error"),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700, "Parse error"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\xff"}}', -32700, "Parse error"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}', -32700, "Parse error"),
        ((DEEP % ("[" * 63 + "]" * 63)).encode(), -32700, "Nested too deeply"),
        (b"[" * 40_000, -32700, "Nested too deeply"),
        (b"[" * 100_000, -32700, "Too many values"),
        (b"[]", -32600, SHAPE),
        (b"1", -32600, SHAPE),
        (b"null", -32600, SHAPE),
        (json.dumps([message("ping")]).encode(), -32600, SHAPE),
        (b"{}", -32600, SHAPE),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600, SHAPE),
        (b'{"id":1,"method":"ping"}', -32600, SHAPE),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, SHAPE),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, SHAPE),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, SHAPE),
        (b'{"jsonrpc":"2.0","id":[],"method":"ping"}', -32600, SHAPE),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600, SHAPE),
        (b'{"jsonrpc":"2.0","id":1}', -32600, SHAPE),
    ],
)
@pytest.mark.parametrize("version", [LEGACY, MODERN])
def test_invalid_message_is_refused_in_both_eras(
    server: Served, body: bytes, code: int, reason: str, version: str
) -> None:
    found = send(server.port, (body, [*BASIC, ("mcp-protocol-version", version)]))
    assert found == (400, error(code, reason, id_=None))


@pytest.mark.parametrize("id_", [0, -1, 2**63, 10**30, "", "a", "\u20ac\u2028", '"\\'])
@pytest.mark.parametrize("make", [legacy, modern])
def test_response_repeats_the_request_id(server: Served, make: Any, id_: Any) -> None:
    found = send(server.port, make("tools/call", id_, **ECHO))
    assert (found.status, found.body["id"]) == (200, id_)


@pytest.mark.parametrize("depth", [1, 61])
def test_params_may_nest_up_to_the_depth_limit(server: Served, depth: int) -> None:
    body = (DEEP % ("[" * depth + "]" * depth)).encode()
    assert send(server.port, (body, [*BASIC])) == (200, result())


@pytest.mark.parametrize(
    ("body", "version", "expected"),
    [
        ({"jsonrpc": "2.0", "method": "notifications/initialized"}, LEGACY, (202, None)),
        ({"jsonrpc": "2.0", "method": "notifications/initialized"}, None, (202, None)),
        ({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}, MODERN, (202, None)),
        ({"jsonrpc": "2.0", "method": "tools/call"}, MODERN, (202, None)),
        ({"jsonrpc": "2.0", "id": 1, "result": {}}, LEGACY, (202, None)),
        ({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "no"}}, LEGACY, (202, None)),
        ({"jsonrpc": "2.0", "id": 1, "result": {}}, MODERN, (400, error(-32600, SHAPE, id_=None))),
        (
            {"jsonrpc": "2.0", "method": "notifications/cancelled"},
            "2099-01-01",
            (400, error(-32022, UNSUPPORTED, {"supported": [MODERN], "requested": "2099-01-01"}, None)),
        ),
    ],
)
def test_notifications_and_responses_get_202(
    server: Served, body: Any, version: str | None, expected: tuple[int, Any]
) -> None:
    headers = [*BASIC] if version is None else [*BASIC, ("mcp-protocol-version", version)]
    assert send(server.port, (body, headers)) == expected


@pytest.mark.parametrize("version", [*HANDSHAKE_VERSIONS, None, f"{LEGACY} ", f"{LEGACY}\t"])
def test_handshake_versions_and_a_missing_version_are_the_legacy_era(server: Served, version: str | None) -> None:
    body, headers = legacy("tools/call", **ECHO)
    assert send(server.port, (body, changed(headers, mcp_protocol_version=version))) == (200, result(**SAID))


@pytest.mark.parametrize("version", [LEGACY, "2025-03-26", None])
def test_version_mismatch_of_header_and_body_is_refused(server: Served, version: str | None) -> None:
    body, headers = modern("tools/call", **ECHO)
    found = send(server.port, (body, changed(headers, mcp_protocol_version=version)))
    assert found == (400, error(-32020, MISMATCH))


def test_equal_versions_in_header_and_body_are_accepted(server: Served) -> None:
    found = send(server.port, legacy("tools/call", **ECHO, _meta=meta(LEGACY)))
    assert found == (200, result(**SAID))


@pytest.mark.parametrize("version", ["2099-01-01", "", "latest", "2026-07-28x"])
@pytest.mark.parametrize("with_meta", [True, False])
def test_unsupported_version_error_lists_the_supported_ones(server: Served, version: str, with_meta: bool) -> None:
    body, headers = modern("tools/list", meta_=meta(version)) if with_meta else legacy("tools/list")
    found = send(server.port, (body, changed(headers, mcp_protocol_version=version)))
    assert found == (400, error(-32022, UNSUPPORTED, {"supported": [MODERN], "requested": version}))


VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, f"params._meta lacks {VERSION_KEY}, {CAPABILITIES_KEY}"),
        ({VERSION_KEY: MODERN}, f"params._meta lacks {CAPABILITIES_KEY}"),
        ({CAPABILITIES_KEY: {}}, f"params._meta lacks {VERSION_KEY}"),
        (
            meta(clientCapabilities=[]),
            f"Invalid params: Expected `object`, got `array` - at `_meta.{CAPABILITIES_KEY}`",
        ),
        (
            meta(logLevel="loud"),
            "Invalid params: Invalid enum value 'loud' - at `_meta.io.modelcontextprotocol/logLevel`",
        ),
        (
            meta(progressToken=1.5),
            "Invalid params: Expected `integer | string | null`, got `number` - at `_meta.progressToken`",
        ),
        (7, "Invalid params: Expected `object | null`, got `integer` - at `_meta`"),
    ],
)
def test_modern_request_without_required_meta_is_refused(server: Served, given: Any, reason: str) -> None:
    found = send(server.port, modern("tools/list", meta_=given))
    assert found == (400, error(-32602, reason))


def test_a_modern_request_without_any_params_is_refused(server: Served) -> None:
    _, headers = modern("tools/list")
    found = send(server.port, (message("tools/list"), headers))
    assert found == (400, error(-32602, f"params._meta lacks {VERSION_KEY}, {CAPABILITIES_KEY}"))


def test_client_info_is_optional(server: Served) -> None:
    given = {key: value for key, value in meta().items() if "clientInfo" not in key}
    assert send(server.port, modern("tools/call", meta_=given, **ECHO)) == (200, complete(**SAID))


METHOD_SAYS = "The mcp-method header does not match the method of the body"
NAME_SAYS = "The mcp-name header does not match params.name of the body"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"mcp_method": None}, METHOD_SAYS),
        ({"mcp_method": "tools/list"}, METHOD_SAYS),
        ({"mcp_method": "Tools/Call"}, METHOD_SAYS),
        ({"mcp_name": None}, NAME_SAYS),
        ({"mcp_name": "Echo"}, NAME_SAYS),
        ({"mcp_name": "=?base64?ZWNobw?="}, NAME_SAYS),
        ({"mcp_name": "=?base64?ZWNobx==?="}, NAME_SAYS),
        ({"mcp_name": "=?base64?/w==?="}, NAME_SAYS),
    ],
)
def test_routing_header_mismatch_is_refused(server: Served, change: dict[str, str | None], reason: str) -> None:
    body, headers = modern("tools/call", **ECHO)
    assert send(server.port, (body, changed(headers, **change))) == (400, error(-32020, reason))


@pytest.mark.parametrize(
    "change",
    [
        {"mcp_name": "echo  "},
        {"mcp_name": "=?base64?ZWNobw==?="},
        {"mcp_name": "=?base64?ZWNobw==?= \t"},
        {"mcp_method": "tools/call "},
        {"mcp_protocol_version": f"{MODERN} "},
    ],
)
def test_routing_headers_are_stripped_and_names_base64_decoded(server: Served, change: dict[str, str | None]) -> None:
    body, headers = modern("tools/call", **ECHO)
    assert send(server.port, (body, changed(headers, **change))) == (200, complete(**SAID))


@pytest.mark.parametrize("name", ["mcp-method", "mcp-name", "mcp-protocol-version"])
def test_repeated_routing_header_is_refused(server: Served, name: str) -> None:
    body, headers = modern("tools/call", **ECHO)
    doubled = [*headers, *(pair for pair in headers if pair[0] == name)]
    assert send(server.port, (body, doubled)) == (400, error(-32020, f"The {name} header appears more than once"))


def test_repeated_version_header_is_refused_in_the_legacy_era(server: Served) -> None:
    body, headers = legacy("ping")
    found = send(server.port, (body, [*headers, ("mcp-protocol-version", "2025-06-18")]))
    assert found == (400, error(-32020, "The mcp-protocol-version header appears more than once"))


@pytest.mark.parametrize("header", [("accept", "text/html"), ("x-any", "1")])
def test_other_headers_may_be_repeated(server: Served, header: tuple[str, str]) -> None:
    body, headers = modern("tools/call", **ECHO)
    assert send(server.port, (body, [*headers, header, header, ACCEPT])) == (200, complete(**SAID))


REGION = {"region": "eu", "count": 42, "strict": True}
GOOD = {"mcp_param_region": "eu", "mcp_param_count": "42", "mcp_param_strict": "true"}


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        (REGION, GOOD),
        (REGION, {**GOOD, "mcp_param_count": "42.0", "mcp_param_region": "=?base64?ZXU=?="}),
        ({"region": "é", "count": None}, {"mcp_param_region": "=?base64?w6k=?="}),
        ({"count": 10**30}, {"mcp_param_count": "1" + "0" * 30}),
        ({}, {}),
    ],
)
def test_argument_headers_are_compared_by_value(
    server: Served, arguments: dict[str, Any], headers: dict[str, str]
) -> None:
    body, given = modern("tools/call", name="region", arguments=arguments)
    found = send(server.port, (body, changed(given, **headers)))
    assert (found.status, found.body["result"]["isError"]) == (200, False)


@pytest.mark.parametrize(
    ("arguments", "headers", "reason"),
    [
        (REGION, {**GOOD, "mcp_param_region": "us"}, "region header does not match the argument region"),
        (REGION, {**GOOD, "mcp_param_region": "=?base64?ZXV?="}, "region header does not match the argument region"),
        (REGION, {**GOOD, "mcp_param_count": "43"}, "count header does not match the argument count"),
        (REGION, {**GOOD, "mcp_param_count": "4.2e1"}, "count header does not match the argument count"),
        (REGION, {**GOOD, "mcp_param_strict": "True"}, "strict header does not match the argument strict"),
        (REGION, {**GOOD, "mcp_param_count": None}, "count header is missing but the argument count is present"),
        ({"region": "eu"}, GOOD, "count header is present but the argument count is not"),
        ({"region": "eu", "count": None}, GOOD, "count header is present but the argument count is not"),
        ({"count": 1}, {"mcp_param_count": "9" * 5000}, "count header does not match the argument count"),
        ({"region": {}}, {"mcp_param_region": "{}"}, "region header is present but the argument region is not"),
    ],
)
def test_argument_header_mismatch_is_refused(
    server: Served, arguments: dict[str, Any], headers: dict[str, str | None], reason: str
) -> None:
    body, given = modern("tools/call", name="region", arguments=arguments)
    found = send(server.port, (body, changed(given, **headers)))
    assert (found.status, found.body["error"]["code"]) == (400, -32020)
    assert found.body["error"]["message"].startswith("The mcp-param-")
    assert found.body["error"]["message"].endswith(reason)


def test_repeated_argument_header_is_refused(server: Served) -> None:
    body, headers = modern("tools/call", name="region", arguments=REGION)
    doubled = [*changed(headers, **GOOD), ("mcp-param-region", "eu")]
    assert send(server.port, (body, doubled)) == (
        400,
        error(-32020, "The mcp-param-region header appears more than once"),
    )


def test_argument_headers_are_ignored_in_the_legacy_era_and_for_other_tools(server: Served) -> None:
    body, headers = legacy("tools/call", name="region", arguments={"region": "eu"})
    found = send(server.port, (body, [*headers, ("mcp-param-region", "us")]))
    assert found.body["result"]["isError"] is False
    body, headers = modern("tools/call", **ECHO)
    assert send(server.port, (body, [*headers, ("mcp-param-region", "us")])) == (200, complete(**SAID))


@pytest.mark.parametrize("query", ["", "?tools=all", "?tools=read&tools=read", "?other=1", "?tools=%ff"])
def test_unknown_profile_in_the_query_serves_all_tools(server: Served, query: str) -> None:
    found = send(server.port, legacy("tools/call", name="keep", arguments={"text": ""}), path=f"/mcp{query}")
    assert found == (200, result(**text("\"Kept(by='anonymous')\"", structuredContent={"by": "anonymous"})))


def test_strict_schemas_require_every_argument(server: Served) -> None:
    listing = send(server.port, legacy("tools/list"), path="/mcp?tools=read&schemas=strict").body["result"]["tools"]
    schemas = {tool["name"]: tool["inputSchema"] for tool in listing}
    assert "keep" not in schemas
    assert all([*schema["properties"]] == schema["required"] for schema in schemas.values())
    usual = send(server.port, legacy("tools/list")).body["result"]["tools"]
    assert any([*tool["inputSchema"]["properties"]] != tool["inputSchema"].get("required", []) for tool in usual)


def test_read_profile_has_no_writing_tool(server: Served) -> None:
    found = send(server.port, legacy("tools/list"), path="/mcp?tools=read")
    names = {tool["name"] for tool in found.body["result"]["tools"]}
    assert names.isdisjoint({"keep", "fail"})
    assert {"echo", "whisper"} <= names
    found = send(server.port, legacy("tools/call", name="keep", arguments={"text": ""}), path="/mcp?tools=read")
    assert found == Answer(200, error(-32602, "Unknown tool: keep"))
