"""Requests of both eras, and a client that sends exactly the given bytes and headers."""

import http.client
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from kernel.core.config import VERSION
from kernel.mcp import messages

MODERN = messages.MODERN_VERSIONS[0]
LEGACY = messages.COUNTER_OFFER
Header = tuple[str, str]

HOST: Header = ("host", "127.0.0.1:7847")
JSON: Header = ("content-type", "application/json")
ACCEPT: Header = ("accept", "application/json, text/event-stream")
BASIC = (HOST, JSON, ACCEPT)
CLIENT = {"name": "tester", "version": "1"}
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
SERVER = {"io.modelcontextprotocol/serverInfo": {"name": "quipu", "title": "Quipu", "version": VERSION}}


class Answer(NamedTuple):
    """Status and body: JSON decoded, a stream as the list of its messages, nothing as None."""

    status: int
    body: Any


class Full(NamedTuple):
    """An answer with its headers."""

    status: int
    body: Any
    headers: dict[str, str]


def meta(version: str = MODERN, **more: Any) -> dict[str, Any]:
    """A modern `_meta`; keys without a slash or a capital get the protocol's prefix."""
    given = {"protocolVersion": version, "clientCapabilities": {}, "clientInfo": CLIENT, **more}
    return {name if name == "progressToken" else f"io.modelcontextprotocol/{name}": v for name, v in given.items()}


def message(method: str, params: dict[str, Any] | None = None, id_: Any = 1) -> dict[str, Any]:
    """A request."""
    return {"jsonrpc": "2.0", "id": id_, "method": method, **({} if params is None else {"params": params})}


def legacy(method: str, id_: Any = 1, version: str = LEGACY, **params: Any) -> tuple[Any, list[Header]]:
    """A request of the handshake era: body and headers."""
    return message(method, params, id_), [*BASIC, ("mcp-protocol-version", version)]


def modern(
    method: str, id_: Any = 1, *, meta_: dict[str, Any] | None = None, **params: Any
) -> tuple[Any, list[Header]]:
    """A request of the modern era: body and headers that agree."""
    full = {**params, "_meta": meta() if meta_ is None else meta_}
    headers = [*BASIC, ("mcp-protocol-version", MODERN), ("mcp-method", method)]
    if method in NAMED and isinstance(params.get(NAMED[method]), str):
        headers.append(("mcp-name", params[NAMED[method]]))
    return message(method, full, id_), headers


def changed(headers: Sequence[Header], **new: str | None) -> list[Header]:
    """The headers with some replaced, or dropped for None; underscores stand for hyphens."""
    names = {name.replace("_", "-"): value for name, value in new.items()}
    kept = [(name, value) for name, value in headers if name not in names]
    return kept + [(name, value) for name, value in names.items() if value is not None]


def exchange(port: int, body: Any, headers: Sequence[Header], *, method: str = "POST", path: str = "/mcp") -> Full:
    """Sends one request over a connection of its own."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        sized = any(name in ("content-length", "transfer-encoding") for name, _ in headers)
        for name, value in headers if sized else [*headers, ("content-length", str(len(data)))]:
            connection.putheader(name, value)
        connection.endheaders(data)
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Full(response.status, read(response.read(), found.get("content-type", "")), found)
    finally:
        connection.close()


def send(port: int, request: tuple[Any, Sequence[Header]], **more: Any) -> Answer:
    """`exchange` without the headers of the answer."""
    return Answer(*exchange(port, *request, **more)[:2])


def read(data: bytes, media: str) -> Any:
    """A body as its media type says."""
    if media == "text/event-stream":
        frames = [frame for frame in data.decode().split("\n\n") if frame and not frame.startswith(":")]
        return [json.loads(frame.removeprefix("event: message\ndata: ")) for frame in frames]
    return json.loads(data) if data else None


def error(code: int, text: str, data: Any = None, id_: Any = 1) -> dict[str, Any]:
    """An error response."""
    return {
        "jsonrpc": "2.0",
        "id": id_,
        "error": {"code": code, "message": text, **({} if data is None else {"data": data})},
    }


def result(id_: Any = 1, /, **fields: Any) -> dict[str, Any]:
    """A legacy response."""
    return {"jsonrpc": "2.0", "id": id_, "result": fields}


def complete(id_: Any = 1, /, kind: str = "complete", **fields: Any) -> dict[str, Any]:
    """A modern response."""
    return result(id_, resultType=kind, _meta=SERVER, **fields)


def text(value: str, **more: Any) -> dict[str, Any]:
    """The fields of a tool result with one text block."""
    return {"content": [{"type": "text", "text": value}], "isError": False, **more}
