"""Only the health and the login of the server answer a stranger; nothing answers a foreign page."""

import base64
import http.client
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from kernel.core.config import Config
from kernel.security import api_keys
from kernel.server import app, asgi
from tests.catalogue import Catalogue
from tests.security.authenticated_server import EXPIRED, JSON, Answer, House, house
from tests.security.sockets import Peer, request
from tests.support.security_routes import METADATA

TOOLS = [f"/tools/{tool.name}" for dialect in app.DIALECTS for tool in dialect.tools]
ENDPOINTS = ["/mcp", *(asgi.address(chosen) for chosen in asgi.selections(app.DIALECTS))]
RESOURCES = [path for path in ENDPOINTS if "," not in path]
METHOD_PATHS = [method.path for dialect in app.DIALECTS for method in dialect.rest]
PAGES = ["/tools", "/openapi.json", "/readyz", "/metrics", "/docs", "/admin", "/", "/favicon.ico", "/keys.json"]
SIDEWAYS = [
    "/healthz/",
    "/HEALTHZ",
    "/healthz/../tools",
    "/healthz%2f..%2ftools",
    "//healthz",
    "//tools",
    "/healthz;a",
    "/./tools",
    "/tools/",
    "/tools//",
    "/tools/absent",
    "/tools/../tools",
    "/v1",
    "/v1/memory_stores/",
    "/v1/memory_stores/a/../..",
    "//v1/memory_stores",
    "/mcp/",
    "/mcp/absent",
    "/mcp/common,paths",
    "/mcp/paths,absent",
    "/mcp/../mcp",
    "/%6dcp",
    "/mcp%00",
    "/.well-known",
    "/.well-known/",
    "/.well-known/oauth-authorization-server",
    "/.well-known/openid-configuration",
    f"{METADATA}/../../tools",
    f"{METADATA}x",
    f"{METADATA}/tools",
    f"{METADATA}/mcp/absent",
    f"{METADATA}/mcp/paths,common",
    f"{METADATA}/",
]
EVERYBODYS = ["/healthz", METADATA, *(f"{METADATA}{path}" for path in RESOURCES)]
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"]
BODY = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}'
HEADERS = {"content-type": JSON, "accept": f"{JSON}, text/event-stream"}


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A server with one key."""
    with house(Config(data=tmp_path_factory.mktemp("routes") / "data", model=None)) as running:
        running.key()
        running.told()
        yield running


@pytest.fixture(scope="module")
def unlocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A server as it comes out of the box."""
    with house(Config(data=tmp_path_factory.mktemp("unlocked") / "data", model=None)) as running:
        yield running


def test_every_route_is_walked(locked: House) -> None:
    """Every path of the application stands in one of the lists above."""
    served: Any = locked.application
    found = {
        *served._mcp,
        *(path.decode() for path in served.fast_routes),
        *(route.path for route in served._pages.site.routes),
    }
    assert found <= {*ENDPOINTS, *TOOLS, *PAGES, *EVERYBODYS}
    assert {"/mcp", "/tools/recall", "/tools", "/healthz"} <= found


@pytest.mark.parametrize("method", METHODS)
def test_no_route_answers_who_has_no_key(locked: House, method: str, catalogue: Catalogue) -> None:
    paths = [*ENDPOINTS, *TOOLS, *METHOD_PATHS, *PAGES, *SIDEWAYS]
    body = BODY if method in {"POST", "PUT", "PATCH"} else None
    answers = {path: locked.ask(method, path, body=body, headers=HEADERS) for path in paths}
    let_in = {path: answer for path, answer in answers.items() if not (refused(answer) or terse(path, answer))}
    assert let_in == {}
    catalogue("S05", injected=f"{method} without a key", times=len(paths), outcome="401")


def terse(path: str, answer: Answer) -> bool:
    """Whether a stranger hears that the server is ready, and nothing else."""
    return path.partition("?")[0] == "/readyz" and (answer.status, answer.body) in {
        (200, b'{"status":"ready"}'),
        (200, b""),
    }


def refused(answer: Answer) -> bool:
    return answer.status == 401 and answer.challenge.startswith('Bearer realm="quipu", scope="read"')


def bearers(locked: House) -> Mapping[str, tuple[str, Mapping[str, str]]]:
    """Ways to show a key that are none: parts after the path, and headers."""
    key, expired, gone = locked.key(), locked.key(expires=EXPIRED), locked.key()
    api_keys.revoke(locked.data, api_keys.parse(gone), EXPIRED)
    locked.told()
    plain = base64.b64encode(f"quipu:{key}".encode()).decode()
    bearer = f"Bearer {key}"
    wrong = {
        "a wrong key": f"Bearer {key[:-1]}{'A' if key[-1] != 'A' else 'B'}",
        "half a key": f"Bearer {key[:30]}",
        "a key and more": f"{bearer}x",
        "two keys": f"{bearer}, {bearer}",
        "an empty key": "Bearer ",
        "an expired key": f"Bearer {expired}",
        "a revoked key": f"Bearer {gone}",
        "no scheme": key,
        "the id of a key": f"Bearer quipu_{api_keys.parse(key)}",
        "another scheme": f"Token {key}",
        "a password": f"Basic {plain}",
        "what is stored": f"Bearer {api_keys.digest(key)}",
        "a token of nobody": "Bearer eyJhbGciOiJub25lIn0.e30.",
    }
    elsewhere = {"x-api-key": key, "cookie": f"key={key}", "proxy-authorization": bearer, "x-auth": bearer}
    return {
        **{name: ("", {"authorization": value}) for name, value in wrong.items()},
        **{f"in {name}": ("", {name: value}) for name, value in elsewhere.items()},
        **{
            f"in the address as {name}": (f"?{name}={key}", {})
            for name in ("key", "access_token", "api_key", "authorization", "token")
        },
    }


def test_a_key_counts_only_whole_and_in_its_place(locked: House, catalogue: Catalogue) -> None:
    ways = bearers(locked)
    wrong = []
    for name, (query, headers) in ways.items():
        for path in ("/mcp", "/mcp/brain", "/tools/list_memories", "/tools", "/readyz"):
            method, body = ("POST", BODY) if path.startswith(("/mcp", "/tools/")) else ("GET", None)
            answer = locked.ask(method, path + query, body=body, headers={**HEADERS, **headers})
            if not (refused(answer) or ("authorization" not in headers and terse(path, answer))):
                wrong.append((name, path, answer))
    assert wrong == []
    catalogue("S05", injected="a key that is none", times=5 * len(ways), outcome="401")


def test_two_headers_of_one_name_are_refused(locked: House) -> None:
    key = locked.key()
    locked.told()
    line = http.client.HTTPConnection("127.0.0.1", locked.port, timeout=60)
    for path in ("/mcp", "/tools/list_memories", "/readyz"):
        line.putrequest("POST" if path != "/readyz" else "GET", path)
        for value in (f"Bearer {key}", "Bearer x"):
            line.putheader("authorization", value)
        line.putheader("content-type", JSON)
        line.putheader("content-length", "2")
        line.endheaders(b"{}")
        answer = line.getresponse()
        assert (answer.status, len(answer.read()) > 0) == (400, True)
        line.close()


def test_a_request_in_pieces_is_refused_as_a_whole_one_is(locked: House) -> None:
    """Whole requests are answered by the reader, those in pieces by a task; neither lets a stranger in."""
    for path in ("/mcp", "/tools/add_memory", "/tools/recall"):
        whole = request(path, b'{"path":"a","content":"b"}')
        for pieces in ((whole,), (whole[:-1], whole[-1:]), (whole[:30], whole[30:])):
            with Peer(locked.port) as peer:
                for piece in pieces:
                    peer.send(piece)
                assert peer.answer()[0] == 401, (path, pieces)


def test_what_answers_everybody_tells_nothing_of_what_is_kept(locked: House) -> None:
    answer = locked.ask("GET", "/healthz")
    assert (answer.status, json.loads(answer.body)) == (200, {"status": "ok"})
    assert locked.ask("POST", "/healthz", body=b"{}", headers=HEADERS).status in {401, 405}


def test_without_keys_there_is_no_way_in_to_tell_of(unlocked: House) -> None:
    """Clients that look for a way to sign in before they do anything must find that there is none."""
    for path in [*EVERYBODYS[1:], *(one for one in SIDEWAYS if one.startswith("/.well-known"))]:
        assert unlocked.ask("GET", path).status == 404, path
    assert unlocked.ask("GET", "/readyz").status == 200
    assert unlocked.tool("list_memories", {}).status == 200


FOREIGN = [
    "http://evil.example",
    "https://evil.example",
    "http://evil.example:7847",
    "null",
    "http://127.0.0.1.evil.example",
    "http://localhost.evil.example",
    "http://evil.example@localhost",
    "file://",
    "http://[::2]",
    "http://0.0.0.0",
    "chrome-extension://abcdef",
    "http://localhost:x",
    "http://localhost evil.example",
    "",
    "http://",
    "//localhost",
    "http://2130706433",
    "http://127.1",
    "http://xn--lcalhost-xxa",
]
HOSTS = [
    "evil.example",
    "evil.example:7847",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "evil.example#localhost",
    "localhost@evil.example",
    "[::2]",
    "0.0.0.0",
    "2130706433",
    "127.1",
    "",
    "localhost:x",
    "localhost localhost",
    "localhost/evil.example",
    "localhost,evil.example",
    "\x00localhost",
]
OURS = ["localhost", "LOCALHOST:80", "127.0.0.1", "127.0.0.1:9", "[::1]", "[::1]:7847", "localhost.", "localhost.:80"]
REACHED = [
    ("POST", "/mcp"),
    ("POST", "/mcp/brain"),
    ("POST", "/tools/list_memories"),
    ("GET", "/tools"),
    ("GET", "/openapi.json"),
    ("GET", "/readyz"),
    ("GET", "/mcp"),
]


def sent(running: House, method: str, path: str, headers: Mapping[str, str]) -> Answer:
    body = None if method == "GET" else BODY if path.startswith("/mcp") else b"{}"
    return running.ask(method, path, body=body, headers={**HEADERS, **headers})


@pytest.mark.parametrize("which", ["locked", "unlocked"])
@pytest.mark.parametrize("host", ["10.42.0.7:7847", "[fd00::7]:7847", "quipu.default.svc:7847", "localhost"])
def test_a_kubelet_reads_that_the_server_is_ready_and_no_more(
    which: str, host: str, request: pytest.FixtureRequest
) -> None:
    running: House = request.getfixturevalue(which)
    answer = running.ask("GET", "/readyz", headers={"host": host, "user-agent": "kube-probe/1.31"})
    details = which == "unlocked" and host == "localhost"
    assert answer.status == 200
    assert (json.loads(answer.body) == {"status": "ready"}) is not details
    assert running.ask("GET", "/tools", headers={"host": "10.42.0.7:7847"}).status == 421


def test_whoever_has_a_key_reads_how_ready_the_server_is(locked: House) -> None:
    key = locked.key()
    locked.told()
    assert "schema" in json.loads(locked.ask("GET", "/readyz", headers={"authorization": f"Bearer {key}"}).body)
    assert locked.ask("GET", "/readyz", headers={"authorization": f"Bearer {key}x"}).status == 401


@pytest.mark.parametrize("which", ["locked", "unlocked"])
def test_a_page_of_somebody_else_reaches_nothing(
    which: str, request: pytest.FixtureRequest, catalogue: Catalogue
) -> None:
    running: House = request.getfixturevalue(which)
    wrong = []
    for method, path in REACHED:
        for name, values, status in (("origin", FOREIGN, {403}), ("host", HOSTS, {421, 400})):
            for value in values:
                answer = sent(running, method, path, {name: value})
                shut = answer.status in status or (name == "host" and terse(path, answer))
                if not shut or any(key.startswith("access-control") for key in answer.headers):
                    wrong.append((method, path, name, value, answer))
        for value in OURS:
            here = {"host": value, "origin": f"http://{value.rstrip('.')}"}
            if sent(running, method, path, here).status in {403, 421}:
                wrong.append((method, path, value))  # pyrefly: ignore[bad-argument-type]
    assert wrong == []
    times = len(REACHED) * (len(FOREIGN) + len(HOSTS))
    catalogue("S01", injected=f"names of others, {which}", times=times, outcome="403, 421")


@pytest.mark.parametrize("which", ["locked", "unlocked"])
def test_no_answer_lets_another_page_read_it(which: str, request: pytest.FixtureRequest, catalogue: Catalogue) -> None:
    running: House = request.getfixturevalue(which)
    asks = {"access-control-request-method": "POST", "access-control-request-headers": "authorization, content-type"}
    answers = [
        running.ask(method, path, headers={**HEADERS, **asks, "origin": origin})
        for origin in ("http://evil.example", "http://localhost.evil.example", "null")
        for method in ("OPTIONS", "GET", "DELETE")
        for path in ("/mcp", "/tools/list_memories", "/tools", "/readyz", "/healthz", METADATA)
    ]
    assert [a for a in answers if any(name.startswith("access-control") for name in a.headers)] == []
    catalogue("S02", injected=f"preflights and reads, {which}", times=len(answers), outcome="no page may read them")


SIMPLE = [
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "",
    "text/json",
    "application/jsonp",
    "application/json-rpc",
    "text/plain; application/json",
    "application/xml",
]


def test_a_form_cannot_call_a_tool(unlocked: House, catalogue: Catalogue) -> None:
    for path in (*ENDPOINTS, "/tools/add_memory", "/tools/clear_memory", "/tools/recall"):
        for media in SIMPLE:
            body = BODY if path.startswith("/mcp") else b'{"path":"a","content":"b"}'
            answer = unlocked.ask("POST", path, body=body, headers={"content-type": media})
            assert answer.status == 415, (path, media, answer)
    assert json.loads(unlocked.tool("list_memories", {}).body)["total"] == 0
    times = len(SIMPLE) * (len(ENDPOINTS) + 3)
    catalogue("S03", injected="bodies of a form", times=times, outcome="415")
