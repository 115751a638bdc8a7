"""A client of a running server: tools by name over MCP, with the latency of each call."""

import http.client
import time
from typing import Any

import msgspec

from loadtests.lib import http_requests


class Caller:
    """A persistent connection; `seconds` is the latency of the last call."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._headers: dict[str, dict[str, str]] = {}
        self.seconds = 0.0

    def call(self, tool: str, **arguments: Any) -> Any:
        """The answer of a tool; raises RuntimeError if the tool fails."""
        body = msgspec.json.encode(http_requests.message("modern", tool, arguments))
        headers = self._headers.setdefault(
            tool, {**http_requests.headers("modern", tool), "content-type": "application/json"}
        )
        begun = time.perf_counter()
        self._connection.request("POST", "/mcp", body, headers)
        reply = self._connection.getresponse().read()
        self.seconds = time.perf_counter() - begun
        result = msgspec.json.decode(reply).get("result")
        if result is None or result.get("isError"):
            raise RuntimeError(f"{tool}: {reply[:500].decode(errors='replace')}")
        found = result.get("structuredContent")
        return found if found is not None else msgspec.json.decode(result["content"][0]["text"])

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
