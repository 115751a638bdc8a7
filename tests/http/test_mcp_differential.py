"""The same requests to the official low-level server and to ours; a table declares the differences."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool

from kernel.http.mcp import Endpoint
from tests.http.http_requests import BASIC, CLIENT, LEGACY, MODERN, changed, legacy, message, meta, modern, read
from tests.http.mcp_fixture import LIMITS, PLAIN, opened, service, unlocked

WHISPER = {"name": "whisper", "arguments": {"text": "hi"}}
HELLO = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT}
NOTE = {"jsonrpc": "2.0", "method": "notifications/initialized"}
AS_LEGACY = [*BASIC, ("mcp-protocol-version", LEGACY)]
AS_MODERN = [*BASIC, ("mcp-protocol-version", MODERN)]


def with_headers(request: tuple[Any, Any], **new: str | None) -> tuple[Any, Any]:
    return request[0], changed(request[1], **new)


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in meta().items() if not name.endswith(key)}


PROBES: dict[str, tuple[Any, Any]] = {
    "legacy initialize": (message("initialize", HELLO), [*BASIC]),
    "legacy initialize with a version header": legacy("initialize", **HELLO),
    "legacy initialize of the future": (message("initialize", {**HELLO, "protocolVersion": "2099-01-01"}), [*BASIC]),
    "legacy initialize without its parts": legacy("initialize"),
    "legacy ping": legacy("ping"),
    "legacy list": legacy("tools/list"),
    "legacy list, any cursor": legacy("tools/list", cursor="x"),
    "legacy list, wrong cursor": legacy("tools/list", cursor=1),
    "legacy call": legacy("tools/call", **WHISPER),
    "legacy call, string id": legacy("tools/call", "a", **WHISPER),
    "legacy call, no version": with_headers(legacy("tools/call", **WHISPER), mcp_protocol_version=None),
    "legacy call, old version": legacy("tools/call", version="2024-11-05", **WHISPER),
    "legacy call, no name": legacy("tools/call"),
    "legacy call, arguments a list": legacy("tools/call", name="whisper", arguments=[]),
    "legacy call, unknown tool": legacy("tools/call", name="absent"),
    "legacy discover": legacy("server/discover"),
    "legacy prompts": legacy("prompts/list"),
    "legacy resources": legacy("resources/list"),
    "legacy logging": legacy("logging/setLevel", level="info"),
    "legacy nonsense": legacy("nonsense"),
    "legacy notification": (NOTE, AS_LEGACY),
    "legacy posted result": ({"jsonrpc": "2.0", "id": 1, "result": {}}, AS_LEGACY),
    "legacy posted error": ({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}}, AS_LEGACY),
    "legacy no json": (b"{", AS_LEGACY),
    "legacy empty body": (b"", AS_LEGACY),
    "legacy bad utf-8": (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', AS_LEGACY),
    "legacy deep nesting": (b"[" * 5000, AS_LEGACY),
    "legacy batch": ([message("ping")], AS_LEGACY),
    "legacy scalar": (b"1", AS_LEGACY),
    "legacy no jsonrpc": ({"id": 1, "method": "ping"}, AS_LEGACY),
    "legacy wrong jsonrpc": ({**message("ping"), "jsonrpc": "1.0"}, AS_LEGACY),
    "legacy id null": (message("ping", id_=None), AS_LEGACY),
    "legacy id fraction": (message("ping", id_=1.5), AS_LEGACY),
    "legacy id true": (message("ping", id_=True), AS_LEGACY),
    "legacy method a number": ({**message("ping"), "method": 1}, AS_LEGACY),
    "legacy params a list": ({**message("ping"), "params": []}, AS_LEGACY),
    "legacy params null": ({**message("ping"), "params": None}, AS_LEGACY),
    "legacy foreign host": with_headers(legacy("ping"), host="evil.example"),
    "legacy foreign origin": with_headers(legacy("ping"), origin="https://evil.example"),
    "legacy own origin": with_headers(legacy("ping"), origin="http://localhost:3000"),
    "legacy text": with_headers(legacy("ping"), content_type="text/plain"),
    "legacy charset": with_headers(legacy("ping"), content_type="application/json; charset=utf-8"),
    "legacy accepts html": with_headers(legacy("ping"), accept="text/html"),
    "legacy accepts json alone": with_headers(legacy("ping"), accept="application/json"),
    "legacy version of the future": with_headers(legacy("ping"), mcp_protocol_version="2099-01-01"),
    "legacy header, modern body": with_headers(modern("tools/call", **WHISPER), mcp_protocol_version=LEGACY),
    "no header, modern body": with_headers(modern("tools/call", **WHISPER), mcp_protocol_version=None),
    "modern discover": modern("server/discover"),
    "modern list": modern("tools/list"),
    "modern list, any cursor": modern("tools/list", cursor="x"),
    "modern call": modern("tools/call", **WHISPER),
    "modern call, no client": modern("tools/call", meta_=without("clientInfo"), **WHISPER),
    "modern call, no capabilities": modern("tools/call", meta_=without("clientCapabilities"), **WHISPER),
    "modern call, no version in the body": modern("tools/call", meta_=without("protocolVersion"), **WHISPER),
    "modern call, no meta": (message("tools/call", WHISPER), modern("tools/call", **WHISPER)[1]),
    "modern call, other version in the body": modern("tools/call", meta_=meta(LEGACY), **WHISPER),
    "modern call, bad level": modern("tools/call", meta_=meta(logLevel="loud"), **WHISPER),
    "modern call, bad client": modern("tools/call", meta_=meta(clientInfo={}), **WHISPER),
    "modern call, no name": modern("tools/call"),
    "modern call, arguments a list": modern("tools/call", name="whisper", arguments=[]),
    "modern call, unknown tool": modern("tools/call", name="absent"),
    "modern call, no method header": with_headers(modern("tools/call", **WHISPER), mcp_method=None),
    "modern call, other method header": with_headers(modern("tools/call", **WHISPER), mcp_method="tools/list"),
    "modern call, no name header": with_headers(modern("tools/call", **WHISPER), mcp_name=None),
    "modern call, other name header": with_headers(modern("tools/call", **WHISPER), mcp_name="Whisper"),
    "modern call, wrapped name": with_headers(modern("tools/call", **WHISPER), mcp_name="=?base64?d2hpc3Blcg==?="),
    "modern call, badly wrapped name": with_headers(modern("tools/call", **WHISPER), mcp_name="=?base64?d2hpc3B?="),
    "modern call, name and blank": with_headers(modern("tools/call", **WHISPER), mcp_name="whisper "),
    "modern call, doubled name": (
        modern("tools/call", **WHISPER)[0],
        [*modern("tools/call", **WHISPER)[1], ("mcp-name", "other")],
    ),
    "modern version of the future": with_headers(
        modern("tools/list", meta_=meta("2099-01-01")), mcp_protocol_version="2099-01-01"
    ),
    "modern initialize": modern("initialize", **HELLO),
    "modern ping": modern("ping"),
    "modern logging": modern("logging/setLevel", level="info"),
    "modern prompts": modern("prompts/list"),
    "modern listen": modern("subscriptions/listen", notifications={}),
    "modern nonsense": modern("nonsense"),
    "modern notification": (NOTE, AS_MODERN),
    "modern posted result": ({"jsonrpc": "2.0", "id": 1, "result": {}}, AS_MODERN),
    "modern no json": (b"{", AS_MODERN),
    "modern bad utf-8": (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', AS_MODERN),
    "modern deep nesting": (b"[" * 5000, AS_MODERN),
    "modern batch": ([message("ping")], AS_MODERN),
    "modern id null": (message("ping", id_=None), AS_MODERN),
    "modern id fraction": (message("ping", id_=1.5), AS_MODERN),
    "modern id true": (message("ping", id_=True), AS_MODERN),
    "modern foreign host": with_headers(modern("tools/list"), host="evil.example"),
    "modern foreign origin": with_headers(modern("tools/list"), origin="https://evil.example"),
    "modern text": with_headers(modern("tools/list"), content_type="text/plain"),
    "modern accepts json alone": with_headers(modern("tools/list"), accept="application/json"),
    "notification of the future": (NOTE, [*BASIC, ("mcp-protocol-version", "2099-01-01")]),
}
SHAPE = ((400, -32600), (400, -32602), "a message of the wrong shape is an invalid request, not one with bad params")
NO_ID = ((400, -32600), (202, None), "an id of the wrong type is owed an error, not the silence of a notification")
MIXED = ((400, -32020), (200, "result"), "a body that names another version than its header is not guessed about")
CURSOR = "a cursor the server did not issue is not the first page"
REASON = "a refusal says why in the body"
MEDIA = ((415, -32600), (400, None), "a wrong media type has a status of its own")
DIFFERENT: dict[str, tuple[Any, Any, str]] = {
    "legacy list, any cursor": ((200, -32602), (200, "result"), CURSOR),
    "modern list, any cursor": ((400, -32602), (200, "result"), CURSOR),
    **dict.fromkeys(
        (
            "legacy batch",
            "legacy scalar",
            "legacy no jsonrpc",
            "legacy wrong jsonrpc",
            "legacy method a number",
            "legacy params a list",
        ),
        SHAPE,
    ),
    **dict.fromkeys(("legacy id null", "legacy id fraction", "legacy id true"), NO_ID),
    **dict.fromkeys(("legacy header, modern body", "no header, modern body"), MIXED),
    **dict.fromkeys(("legacy text", "modern text"), MEDIA),
    **dict.fromkeys(("legacy foreign host", "modern foreign host"), ((421, -32600), (421, None), REASON)),
    **dict.fromkeys(("legacy foreign origin", "modern foreign origin"), ((403, -32600), (403, None), REASON)),
    "legacy version of the future": ((400, -32022), (400, -32602), "the client learns which versions there are"),
    "modern call, name and blank": ((200, "result"), (400, -32020), "blanks around a header value mean nothing"),
}


class Beside(NamedTuple):
    """Both servers and the loop they run in."""

    ours: Any
    theirs: Any
    runner: asyncio.Runner


async def whisper(_context: Any, params: Any) -> CallToolResult:
    if params.name != "whisper":
        raise MCPError(-32602, f"Unknown tool: {params.name}")
    value = params.arguments["text"]
    return CallToolResult(content=[TextContent(text=value)], structured_content={"text": value})


async def shown(_context: Any, _params: Any) -> ListToolsResult:
    return ListToolsResult(tools=[Tool(name="whisper", input_schema={"type": "object"})])


@asynccontextmanager
async def official() -> AsyncIterator[Any]:
    guard = TransportSecuritySettings(
        allowed_hosts=["127.0.0.1:*", "localhost:*"], allowed_origins=["http://localhost:*"]
    )
    server = Server("official", version="1", on_list_tools=shown, on_call_tool=whisper)
    manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True, security_settings=guard)
    async with manager.run():
        yield manager.handle_request


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    with opened(tmp_path_factory.mktemp("beside"), PLAIN) as dispatch, asyncio.Runner() as runner:
        one = service(dispatch)
        yield Beside(Endpoint(lambda _query, _reach: one, LIMITS, unlocked(dispatch)), official, runner)


async def verdict(app: Any, body: Any, headers: Any) -> tuple[int, Any]:
    """Status, and the error code or the kind of the body."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent: list[Any] = []
    waiting = [{"type": "http.request", "body": data, "more_body": False}]

    async def receive() -> Any:
        return waiting.pop() if waiting else await asyncio.Event().wait()

    async def send(part: Any) -> None:
        sent.append(part)

    raw = [(name.encode(), value.encode()) for name, value in headers]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "headers": raw}
    await app({**scope, "http_version": "1.1", "scheme": "http", "root_path": ""}, receive, send)
    head, *parts = sent
    content = b"".join(part.get("body", b"") for part in parts)
    if dict(head["headers"]).get(b"content-type") != b"application/json":
        return int(head["status"]), None
    found = read(content, "application/json")
    if found is None:
        return int(head["status"]), None
    return int(head["status"]), found["error"]["code"] if "error" in found else "result"


@pytest.mark.parametrize("name", PROBES)
def test_responses_equal_those_of_the_official_server_except_declared_differences(beside: Beside, name: str) -> None:
    body, headers = PROBES[name]

    async def scene() -> tuple[Any, Any]:
        async with beside.theirs() as theirs:
            return await verdict(beside.ours, body, headers), await verdict(theirs, body, headers)

    ours, theirs = beside.runner.run(scene())
    assert (ours, theirs) == DIFFERENT.get(name, (theirs, theirs))[:2]


def test_declared_differences_name_known_probes() -> None:
    assert set(DIFFERENT) <= set(PROBES)
