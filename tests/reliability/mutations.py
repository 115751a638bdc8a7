"""Valid calls of every kind, and ways to damage them: bytes, JSON values, headers and framing."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

CORPUS = Path(__file__).parent / "corpus"
MODERN = "2026-07-28"
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
ODD_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**53,
    2**63,
    2**64,
    -(2**63),
    1.5,
    1e308,
    "",
    " ",
    "\0",
    "\x1b[31m",
    "null",
    "a" * 70_000,
    "../../etc/passwd",
    "project/todo",
    "\u202e\u200b",
    "😀",
    "日本",
    "'; DROP TABLE doc; --",
    '"',
    "*",
    "title:x",
    "NEAR(a b)",
    "(" * 2000,
    "---\nstatus: error",
    [],
    {},
    [None],
    {"": ""},
    [[[[[]]]]],
    {"a": {"b": {}}},
)
ODD_BYTES = (
    b"\xff",
    b"\xc3\x28",
    b"\x00",
    b"\xef\xbb\xbf",
    b"NaN",
    b"1e999",
    b"-",
    b'"\\ud800"',
    b'"\\ud800\\udc00"',
    b"[" * 3000,
    b'{"a":' * 500,
    b"/*",
    b",",
    b":",
    b"}",
    b"]",
    b'"',
    b"\\",
    b"\r\n\r\n",
    b"0x10",
    b"Infinity",
    b"1" * 5000,
)
ODD_HEADERS = (
    "",
    " ",
    "*",
    "null",
    "text/plain",
    "application/json",
    "application/json; charset=latin-1",
    "2099-01-01",
    MODERN,
    *LEGACY,
    "tools/call",
    "tools/list",
    "add_memory",
    "=?base64?YWRk?=",
    "=?base64?!?=",
    "evil.example",
    "localhost",
    "http://evil.example",
    "http://localhost:1",
    "gzip",
    "chunked",
    "a" * 9000,
    "1",
    "-1",
    "99999999999",
    "\t",
    "caf\u00e9",
    "h2c",
    "Upgrade",
    "close",
    "Bearer x",
)

ODD_NAMES = (
    "Origin",
    "Content-Encoding",
    "Mcp-Session-Id",
    "Mcp-Param-X",
    "Transfer-Encoding",
    "Mcp-Name",
    "Upgrade",
    "Connection",
    "Authorization",
)


class Call(NamedTuple):
    """One HTTP request; `length` states another Content-Length than the true length."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    length: str | None = None

    def encode(self) -> bytes:
        """The request as it goes over the wire."""
        lines = [f"{self.method} {self.path} HTTP/1.1", *(f"{name}: {value}" for name, value in self.headers)]
        lines.append(f"Content-Length: {len(self.body) if self.length is None else self.length}")
        return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + self.body


def corpus() -> list[Call]:
    """The valid calls: every method of both eras, every tool as JSON, and the inputs that once made trouble."""
    tools = json.loads((CORPUS / "tools.json").read_text(encoding="utf-8"))
    methods = json.loads((CORPUS / "methods.json").read_text(encoding="utf-8"))
    calls = [_post(f"/tools/{name}", arguments) for name, examples in tools.items() for arguments in examples]
    for name, examples in tools.items():
        for arguments in examples:
            methods.append(["tools/call", {"name": name, "arguments": arguments}])
    for method, params in methods:
        calls.extend(_legacy(method, params, version) for version in LEGACY)
        calls.append(_modern(method, params))
    return calls


def mutations(seed: int, count: int) -> Iterator[Call]:
    """`count` damaged calls, the same for the same seed."""
    chance = random.Random(seed)
    valid = corpus()
    for _ in range(count):
        call = chance.choice(valid)
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            call = chance.choice(KINDS)(chance, call)
        yield call


def _post(path: str, value: Any, *headers: tuple[str, str]) -> Call:
    base = (
        ("Host", "localhost"),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
    )
    return Call("POST", path, (*base, *headers), json.dumps(value).encode())


def _legacy(method: str, params: Any, version: str) -> Call:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return _post("/mcp", body, ("MCP-Protocol-Version", version))


def _modern(method: str, params: Any) -> Call:
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "fuzz", "version": "1"},
        "progressToken": 7,
    }
    body = {"jsonrpc": "2.0", "id": "a", "method": method, "params": {**params, "_meta": meta}}
    named = [("Mcp-Name", str(params[key])) for key in ("name", "uri") if key in params]
    return _post("/mcp", body, ("MCP-Protocol-Version", MODERN), ("Mcp-Method", method), *named)


def _flip(chance: random.Random, call: Call) -> Call:
    body = bytearray(call.body)
    for _ in range(chance.randint(1, 4)):
        if body:
            body[chance.randrange(len(body))] = chance.randrange(256)
    return call._replace(body=bytes(body))


def _splice(chance: random.Random, call: Call) -> Call:
    at = chance.randint(0, len(call.body))
    end = min(len(call.body), at + chance.choice((0, 0, 1, 5, 40)))
    return call._replace(body=call.body[:at] + chance.choice(ODD_BYTES) + call.body[end:])


def _cut(chance: random.Random, call: Call) -> Call:
    return call._replace(body=call.body[: chance.randint(0, len(call.body))])


def _value(chance: random.Random, call: Call) -> Call:
    try:
        tree = json.loads(call.body)
    except (ValueError, RecursionError):
        return _flip(chance, call)
    places = list(spots(tree))
    if places:
        holder, key = chance.choice(places)
        if chance.random() < 0.2 and isinstance(holder, dict):
            holder[chance.choice(("extra", "", "__class__", "jsonrpc", "path"))] = holder.pop(key)
        else:
            holder[key] = chance.choice(ODD_VALUES)
    return call._replace(body=json.dumps(tree, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass"))


def spots(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every value in JSON, as its container and its name or place there."""
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in pairs:
        yield tree, key
        yield from spots(value)


def header(chance: random.Random, call: Call) -> Call:
    """Return the call with a missing or an odd header."""
    headers = list(call.headers)
    if not headers:
        return call
    at = chance.randrange(len(headers))
    action = chance.randrange(4)
    if action == 0:
        del headers[at]
    elif action == 1:
        headers[at] = (headers[at][0], chance.choice(ODD_HEADERS))
    elif action == 2:
        headers.append((headers[at][0], chance.choice((headers[at][1], *ODD_HEADERS))))
    else:
        name = chance.choice(ODD_NAMES)
        headers.append((name, chance.choice(ODD_HEADERS)))
    return call._replace(headers=tuple(headers))


def _frame(chance: random.Random, call: Call) -> Call:
    action = chance.randrange(4)
    if action == 0:
        return call._replace(method=chance.choice(("GET", "DELETE", "PUT", "OPTIONS", "HEAD", "post", "X")))
    if action == 1:
        paths = (
            "/mcp/",
            "/mcp/none",
            "/mcp/paths",
            "/mcp?tools=read",
            "/tools/",
            "/tools/none",
            "/",
            "/%00",
            "/mcp?" + "a" * 500,
        )
        return call._replace(path=chance.choice(paths))
    if action == 2:
        return call._replace(length=chance.choice(("0", "-1", "x", "99999999", "1", "+5", "")))
    return call._replace(body=b"[" + call.body + b"," + call.body + b"]")


KINDS = (_flip, _splice, _cut, _value, _value, _value, header, header, _frame)
