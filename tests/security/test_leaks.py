"""An error names the fault of the request, never the structure, the place or the data of the server."""

import itertools
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kernel.security import api_keys as keys
from kernel.security.api_keys import Key
from tests.catalogue import Catalogue
from tests.reliability.server_process import Server, serving
from tests.security.authenticated_server import EXPIRED, JSON, MODERN, Answer, House
from tests.security.calls import CALLS
from tests.support.security_scopes import needed

EVERY = int(os.environ.get("MISTAKES_EVERY", "6"))  # 1 makes all of them
SECRET = "the queen of hearts"
# Words that only the owner of the code or the machine should see.
TRACES = re.compile(
    r"traceback|file \"|line \d+, in|\.py\b|apsw|sqlite|msgspec|uvicorn|starlette|no such (?:table|column)|"
    r"syntax error|\bselect\b.*\bfrom\b|\binsert into\b|\bbrain_memory\b|\bpaths_memory\b|site-packages|/usr/|"
    r"/home/|/root/|python\d|0x[0-9a-f]{6,}|NoneType|KeyError|AttributeError|TypeError",
    re.I,
)
WRONG: Mapping[str, Any] = {
    "a number": 7,
    "a text": "x",
    "a list": [[]],
    "null": None,
    "an object": {"a": {"b": 1}},
    "long": "x" * 70_000,
    "quotes": "'; DROP TABLE doc; --",
    "a path": "../../../../etc/passwd",
    "NUL": "a\0b",
    "a big number": 10**30,
    "a surrogate": "\ud800",
    "FTS": 'title:x "AND" NEAR(* {',
}


class Stand(NamedTuple):
    server: Server
    house: House
    keys: Mapping[str, str]


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    with standing(tmp_path_factory.mktemp("leaks")) as found:
        yield found


@contextmanager
def standing(folder: Path) -> Iterator[Stand]:
    """A server in a process of its own that keeps a secret, with its log."""
    with serving(folder / "data") as server:
        made = {
            scope: keys.create(server.data, Key("", scope, EXPIRED, tenant="acme"))[1]
            for scope in ("read", "write", "admin")
        }
        time.sleep(0.3)
        house = House(server.port, None, server.data)
        house.tool("add_memory", {"path": "secret", "content": SECRET}, made["write"])
        try:
            yield Stand(server, house, made)
        finally:
            house.close()


def shows(text: str, data: Path) -> list[str]:
    """Return the parts of a text that give the server away."""
    found = [match[0] for match in TRACES.finditer(text)]
    return found + [part for part in (str(data), str(data.parent), SECRET) if part in text]


def mistaken(arguments: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The same call with one thing wrong at a time."""
    for name, value in WRONG.items():
        for field in [*arguments, "unknown"]:
            if field != "action" or isinstance(value, (int, str)):
                yield f"{name} as {field}", {**arguments, field: value}
    yield "nothing", {}


@pytest.mark.parametrize("way", ["json", "mcp"])
def test_no_mistake_makes_a_tool_tell_more_than_the_mistake(stand: Stand, way: str, catalogue: Catalogue) -> None:
    times, wrong = 0, []
    counted = itertools.count()
    key = stand.keys["write"]
    for call, arguments in CALLS.items():
        if needed(call).name == "admin":
            continue
        for name, given in mistaken(arguments):
            if next(counted) % EVERY:
                continue
            times += 1
            answer = asked(stand.house, way, call[0], given, key)
            failed = answer.status >= 400 or b'"isError":true' in answer.body
            text = answer.body.decode().replace("\\/", "/")
            echoed = any(isinstance(value, str) and value in text for value in given.values())
            if answer.status >= 500 or (failed and not echoed and shows(text, stand.server.data)):
                wrong.append((call, name, answer, shows(text, stand.server.data)))
    assert wrong == []
    assert "Traceback" not in stand.server.log()
    catalogue("S08", injected=f"mistakes in every tool by {way}", times=times, outcome="nothing of the server told")


def asked(house: House, way: str, tool: str, given: Mapping[str, Any], key: str) -> Answer:
    return house.tool(tool, given, key) if way == "json" else house.call(tool, given, key)


EDGE: list[tuple[str, str, bytes | None, Mapping[str, str]]] = [
    ("GET", "/absent", None, {}),
    ("GET", "/tools/absent", None, {}),
    ("POST", "/tools/absent", b"{}", {}),
    ("PUT", "/tools/recall", b"{}", {}),
    ("POST", "/tools/recall", b"{", {}),
    ("POST", "/tools/recall", b"\xff", {}),
    ("POST", "/tools/recall", b"[" * 5000, {}),
    ("POST", "/tools/recall", b"{}", {"content-type": "text/plain"}),
    ("POST", "/tools/recall", b"{}", {"content-encoding": "gzip"}),
    ("POST", "/mcp", b"{", {}),
    ("POST", "/mcp", b"[]", {}),
    ("POST", "/mcp", b'{"jsonrpc":"2.0","id":1,"method":"absent"}', {}),
    ("GET", "/mcp", None, {}),
    ("POST", "/mcp", b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"absent"}}', {}),
    ("POST", "/mcp", b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":7}', {}),
    ("POST", "/mcp", b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', {"mcp-protocol-version": "1999-01-01"}),
    ("POST", "/mcp", b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', {"mcp-protocol-version": MODERN}),
    ("POST", "/mcp/absent", b"{}", {}),
    ("POST", "/mcp", b"{}", {"host": "evil.example"}),
    ("POST", "/mcp", b"{}", {"origin": "http://evil.example"}),
    ("GET", "/tools?" + "a" * 4000, None, {}),
    ("GET", "/%ff%fe", None, {}),
    ("GET", "/..%2f..%2fetc%2fpasswd", None, {}),
    ("TRACE", "/", None, {}),
    ("POST", "/mcp", b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"memory://paths/../x"}}', {}),
    ("POST", "/mcp", b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}', {}),
]


@pytest.mark.parametrize("scope", ["none", "read", "write"])
def test_the_edge_says_what_was_wrong_and_nothing_of_itself(stand: Stand, scope: str, catalogue: Catalogue) -> None:
    wrong = []
    for method, path, body, headers in EDGE:
        answer = stand.house.ask(method, path, stand.keys.get(scope, ""), body, {"content-type": JSON, **headers})
        told = shows(answer.body.decode(), stand.server.data)
        if answer.status >= 500 or "server" in answer.headers or told:
            wrong.append((method, path, answer, told))
    assert wrong == []
    assert "Traceback" not in stand.server.log()
    catalogue("S08", injected=f"wrong requests, key: {scope}", times=len(EDGE), outcome="nothing of the server told")


def test_where_the_server_stands_is_for_admins(stand: Stand, catalogue: Catalogue) -> None:
    for tool in ("health", "diagnostics"):
        for scope in ("read", "write"):
            answer = stand.house.tool(tool, {}, stand.keys[scope])
            assert (answer.status, shows(answer.body.decode(), stand.server.data)) == (403, [])
        assert str(stand.server.data) in stand.house.tool(tool, {}, stand.keys["admin"]).body.decode()
    for path in ("/healthz", "/readyz"):
        for key in ("", *stand.keys.values()):
            assert shows(stand.house.ask("GET", path, key).body.decode(), stand.server.data) == []
    catalogue("S08", injected="asks where the server stands", times=12, outcome="403, and nothing in the probes")


def test_a_tenant_that_cannot_be_opened_is_busy_or_broken_and_no_more(stand: Stand, catalogue: Catalogue) -> None:
    """A damaged, a foreign and a newer file, one that is no file, and a folder that is none."""
    tenants, wrong = stand.server.data / "tenants", []
    damage = {"garbage": b"x" * 9000, "empty": b"", "half": b"SQLite format 3\0" + b"\xa5" * 5000}
    for name, content in damage.items():
        (tenants / name).mkdir()
        (tenants / name / "quipu.db").write_bytes(content)
    (tenants / "folder" / "quipu.db").mkdir(parents=True)
    (tenants / "file").write_text("no folder")
    made = {
        name: keys.create(stand.server.data, Key("", "admin", EXPIRED, tenant=name))[1]
        for name in (*damage, "folder", "file")
    }
    time.sleep(0.3)
    for name, key in made.items():
        for answer in (stand.house.tool("list_memories", {}, key), stand.house.call("list_memories", {}, key)):
            told = shows(answer.body.decode(), stand.server.data)
            if told or answer.status != (200 if name == "empty" else 503):
                wrong.append((name, answer, told))
    assert wrong == []
    assert stand.house.tool("list_memories", {}, stand.keys["read"]).status == 200
    assert "Traceback" not in stand.server.log()
    catalogue("S08", injected="tenants whose file is broken", times=len(made) * 2, outcome="503, the others served")


def test_the_log_holds_nothing_of_what_was_kept_or_shown(tmp_path: Path) -> None:
    with standing(tmp_path) as found:
        for call, arguments in CALLS.items():
            for key in found.keys.values():
                found.house.tool(call[0], arguments, key)
                found.house.tool(call[0], {**arguments, "unknown": SECRET}, key)
        log = found.server.log()
    assert SECRET not in log
    assert not any(key[15:] in log for key in found.keys.values())
    assert "Traceback" not in log
