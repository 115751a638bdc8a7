"""HTTP requests as bytes: a tool called over MCP of either era, or as plain JSON."""

from typing import Any, Literal

import msgspec

from loadtests.lib.http_load import Request

Era = Literal["modern", "legacy"]
VERSIONS: dict[Era, str] = {"modern": "2026-07-28", "legacy": "2025-11-25"}
CLIENT = {"name": "quipu-bench", "version": "1"}
FINE = b'"isError":false'

_META = {
    "io.modelcontextprotocol/protocolVersion": VERSIONS["modern"],
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def headers(era: Era, tool: str) -> dict[str, str]:
    """The headers of a tools/call besides those every POST has."""
    sent = {"accept": "application/json, text/event-stream", "mcp-protocol-version": VERSIONS[era]}
    return {**sent, "mcp-method": "tools/call", "mcp-name": tool} if era == "modern" else sent


def message(era: Era, tool: str, arguments: Any, number: int = 1) -> dict[str, Any]:
    """The JSON-RPC request of a tools/call."""
    params = {"name": tool, "arguments": arguments}
    if era == "modern":
        params["_meta"] = _META
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def post(path: str, body: bytes, extra: dict[str, str] | None = None) -> bytes:
    """One POST of JSON over a connection that stays open."""
    # The port in Host need not be the true one, and requests are built before there is one.
    lines = [f"POST {path} HTTP/1.1", "host: 127.0.0.1:7847", "content-type: application/json"]
    lines += [f"{name}: {value}" for name, value in (extra or {}).items()]
    return "\r\n".join([*lines, f"content-length: {len(body)}", "", ""]).encode() + body


def mcp(era: Era, tool: str, arguments: Any, expect: bytes, number: int = 1) -> Request:
    """A tool called over MCP; the reply must not be an error and must hold `expect`."""
    body = msgspec.json.encode(message(era, tool, arguments, number))
    return Request(post("/mcp", body, headers(era, tool)), (FINE, expect))


def json(tool: str, arguments: Any, expect: bytes) -> Request:
    """A tool called by POST /tools/{name}; the reply must hold `expect`."""
    return Request(post(f"/tools/{tool}", msgspec.json.encode(arguments)), (expect,))
