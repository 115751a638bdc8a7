"""Calls, values and checks that several tests of update streams share."""

import http.client
import json
from typing import Any, ClassVar

from tests.http.http_requests import LEGACY, legacy
from tests.reliability.server_process import Server
from tests.security.authenticated_server import House

URI = "memory://knowledge-graph"


UPDATED = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": URI}}


HELLO = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


PATIENCE = 60


class Line:
    """One connection, whose responses may be streams."""

    opened: ClassVar[list["Line"]] = []

    def __init__(self, port: int) -> None:
        self.opened.append(self)
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self._response: Any = None

    def ask(self, verb: str, path: str, body: Any = None, **headers: str) -> Any:
        """The head of the response."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request(verb, path, body, given)
        self._response = self._connection.getresponse()
        return self._response

    def body(self) -> bytes:
        return self._response.read()

    def event(self) -> Any:
        """The next message of the stream; None at its end."""
        while line := self._response.readline():
            if line.startswith(b"data: "):
                return json.loads(line[6:])
        return None

    def close(self) -> None:
        if self._response is not None:
            self._response.close()
        self._connection.close()


class Client2025:
    """A client of the older revisions."""

    def __init__(self, server: Server | House, path: str = "/mcp/graph", **headers: str) -> None:
        self.path, self.headers, self.server = path, headers, server
        found = self.post(legacy("initialize", **HELLO))
        self.session = found.getheader("mcp-session-id")

    def line(self) -> Line:
        return Line(self.server.port)

    def post(self, made: Any) -> Any:
        body, headers = made
        line = self.line()
        given = {name.replace("-", "_"): value for name, value in headers} | self.headers
        if getattr(self, "session", None):
            given["mcp_session_id"] = self.session
        found = line.ask("POST", self.path, json.dumps(body), **given)
        assert found.status == 200
        found.content = json.loads(line.body())
        return found

    def subscribe(self, method: str = "resources/subscribe", uri: str = URI) -> None:
        assert self.post(legacy(method, uri=uri)).content["result"] == {}

    def stream(self, verb: str = "GET", **more: str) -> Any:
        line = self.line()
        given = {"accept": "text/event-stream", "mcp_session_id": self.session or "", **self.headers, **more}
        return line.ask(verb, self.path, **given), line

    def write(self, name: str) -> None:
        entity = {"name": name, "entityType": "t", "observations": []}
        self.post(legacy("tools/call", name="create_entities", arguments={"entities": [entity]}))
