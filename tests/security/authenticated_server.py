"""A server with keys, in a thread, and callers with a right key, with a wrong key, and without a key."""

import http.client
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import uvicorn

from kernel.cli.console_guide import guide
from kernel.core.config import Config
from kernel.http.fast_path import protocol
from kernel.security import api_keys
from kernel.security.api_keys import Key
from kernel.server.app import open_kernel
from kernel.server.asgi import Application
from tests.postgres.stores import placed

JSON = "application/json"
MODERN = "2026-07-28"
LEGACY = "2025-11-25"
EXPIRED = "2026-01-01T00:00:00.000Z"
PATIENCE = 60
Scope = Any


class Answer(NamedTuple):
    """Hold the answer to a caller; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def challenge(self) -> str:
        """Return the challenge of the answer, empty if nothing keeps the caller out."""
        return self.headers.get("www-authenticate", "")


class House:
    """A running server, and its address for callers."""

    def __init__(self, port: int, application: Application | None, data: Path) -> None:
        self.port = port
        self.application = application
        self.data = data
        self._mine = threading.local()
        self._lines: list[http.client.HTTPConnection] = []

    def key(self, scope: Scope = "admin", tenant: str = "main", **more: Any) -> str:
        """A new key, of which the server knows once it is `told`."""
        return api_keys.create(self.data, Key("", scope, EXPIRED, tenant=tenant, **more))[1]

    def told(self) -> None:
        """Waits until the server has looked at its keys again."""
        time.sleep(0.3)

    def ask(
        self, method: str, path: str, key: str = "", body: bytes | None = None, headers: Mapping[str, str] = {}
    ) -> Answer:
        """One request, with the key, if any, as a bearer."""
        given = {**({"authorization": f"Bearer {key}"} if key else {}), **headers}
        line = self._line()
        try:
            line.request(method, path, body, given)
            answer = line.getresponse()
        except (http.client.RemoteDisconnected, ConnectionError):  # it was closed after the answer before
            line.close()
            line.request(method, path, body, given)
            answer = line.getresponse()
        return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())

    def tool(self, name: str, arguments: Mapping[str, Any], key: str = "") -> Answer:
        """A tool called as JSON."""
        headers = {"content-type": JSON, "accept": JSON}
        return self.ask("POST", f"/tools/{name}", key, json.dumps(arguments).encode(), headers)

    def mcp(
        self, method: str, params: Mapping[str, Any], key: str = "", path: str = "/mcp", version: str = MODERN
    ) -> Answer:
        """An MCP request in either era."""
        headers = {"content-type": JSON, "accept": f"{JSON}, text/event-stream", "mcp-protocol-version": version}
        if version == MODERN:
            prefix = "io.modelcontextprotocol/"
            params = {**params, "_meta": {f"{prefix}protocolVersion": MODERN, f"{prefix}clientCapabilities": {}}}
            headers["mcp-method"] = method
            named = params.get("name") or params.get("uri")
            headers.update({"mcp-name": named} if named else {})
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.ask("POST", path, key, json.dumps(body).encode(), headers)

    def call(self, name: str, arguments: Mapping[str, Any], key: str = "", **more: Any) -> Answer:
        """A tool called by MCP."""
        return self.mcp("tools/call", {"name": name, "arguments": arguments}, key, **more)

    def listed(self, key: str = "", path: str = "/mcp") -> set[str]:
        """The names of the tools that a caller is shown by MCP."""
        return {tool["name"] for tool in json.loads(self.mcp("tools/list", {}, key, path).body)["result"]["tools"]}

    def _line(self) -> http.client.HTTPConnection:
        """A connection for each thread that calls."""
        if not hasattr(self._mine, "line"):
            self._mine.line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
            self._lines.append(self._mine.line)
        return self._mine.line

    def close(self) -> None:
        """Closes every connection."""
        for line in self._lines:
            line.close()


@contextmanager
def house(config: Config, port: int = 0) -> Iterator[House]:
    """A server of this configuration on a port of its own, in this process."""
    application = Application(open_kernel(placed(config)))
    settings = uvicorn.Config(
        application,
        port=port,
        lifespan="off",
        ws="none",
        log_level="warning",
        http=protocol(application.fast_routes),
        interface="asgi3",
        server_header=False,
    )
    server = uvicorn.Server(settings)
    application.stopping, application.guide = lambda: server.should_exit, guide
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.005)
        running = House(server.servers[0].sockets[0].getsockname()[1], application, config.data)
        with closing(running):
            yield running
    finally:
        server.should_exit = True
        thread.join()
        application.close()
