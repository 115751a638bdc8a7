"""Calls, values and checks that several tests of console live share."""

import json
from collections.abc import Mapping
from typing import Any

from tests.security.authenticated_server import House


def call_as(server: House, client: str, tool: str, arguments: Mapping[str, Any]) -> None:
    """A call of a client that tells its name."""
    prefix = "io.modelcontextprotocol/"
    meta = {
        f"{prefix}protocolVersion": "2026-07-28",
        f"{prefix}clientCapabilities": {},
        f"{prefix}clientInfo": {"name": client, "version": "1"},
    }
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": tool,
    }
    assert server.ask("POST", "/mcp", body=json.dumps(body).encode(), headers=headers).status == 200
