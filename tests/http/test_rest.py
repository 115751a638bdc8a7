"""JSON over HTTP: replies of tools, errors outside of dialects, lists and probes."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, get_args

import httpx
import msgspec
import pytest

from kernel.calls.dialect import Dialect
from kernel.calls.dispatch import Dispatch, catch_faults
from kernel.calls.schema import input_schema, output_schema
from kernel.calls.tools import Hints, InputRequired, Interaction, Reply, Tool, exclusive, read, write
from kernel.core.config import VERSION
from kernel.core.errors import HTTP_STATUS, Code, Fault
from kernel.core.limits import Limits
from kernel.engines.migrations import migrate
from kernel.engines.sqlite.connection import Connection
from kernel.engines.sqlite.database import SqliteDatabase
from kernel.http import rest, routes
from kernel.store import statements as sql
from kernel.store.context import StoreContext
from kernel.store.store import Store
from tests.http.mcp_fixture import unlocked

LIMITS = Limits(body=200, depth=8)
JSON = "application/json"
MARKDOWN = "text/markdown; charset=utf-8"
HOME_LINKS = ["/mcp", "/mcp/talk,plain", "/mcp/talk", "/mcp/plain", "/tools", "/openapi.json", "/healthz", "/readyz"]
Send = Callable[..., tuple[int, dict[str, str], bytes]]


class Words(msgspec.Struct):
    text: str = "nothing"


class Failing(msgspec.Struct):
    code: Code


class EchoResult(msgspec.Struct):
    text: str
    actor: str


def say(tx: Any, request: Words) -> EchoResult:
    """Says it back, and who asked."""
    return EchoResult(request.text, tx.call_context.actor)


def keep(tx: Any, request: Words) -> EchoResult:
    """Says it back from the writer."""
    return EchoResult(request.text, tx.call_context.actor)


def fail(tx: Any, request: Failing) -> EchoResult:
    """Fails as asked."""
    raise Fault(request.code, f"It is {request.code}.")


def wonder(tx: Any, request: Words, turn: Interaction) -> EchoResult | InputRequired:
    """Reports, then asks for a name before it answers."""
    turn.progress(1, None, None)
    turn.log("info", request.text)
    return InputRequired({"name": {"method": "elicitation/create", "params": {"message": "Who?"}}})


def markdown(tool: Tool, result: EchoResult) -> Reply:
    return Reply(f"# {result.text}".encode(), MARKDOWN, structured=msgspec.json.encode(result))


def apology(fault: Fault) -> Reply:
    return Reply(f"Sorry: {fault.message}".encode(), MARKDOWN, fault.code)


def plain(tool: Tool, result: EchoResult) -> Reply:
    return Reply(b'{"text": "as the contract words it"}', JSON, structured=msgspec.json.encode(result))


def complaint(fault: Fault) -> Reply:
    return Reply(msgspec.json.encode({"error": fault.message}), JSON, fault.code)


def bare(tx: Any, request: Words) -> EchoResult:
    """Answers in JSON of its own."""
    return say(tx, request)


TALK = Dialect(
    "talk",
    "Speaks Markdown.",
    (read(say, Hints(title="Say", short=True)), write(keep), exclusive(fail), read(wonder, interactive=True)),
    markdown,
    apology,
)
PLAIN = Dialect("plain", "Speaks JSON.", (read(bare),), plain, complaint)


@pytest.fixture(scope="module")
def dispatch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dispatch]:
    statements = {key: statement.text for key, statement in sql.load().items()}
    file = tmp_path_factory.mktemp("rest") / "quipu.db"
    db = Connection(file, StoreContext(statements), readonly=False)
    migrate(db)
    db.close()
    store = Store(SqliteDatabase(file, StoreContext(statements)), catch_faults)
    store.start()
    yield Dispatch(store, (TALK, PLAIN))
    store.close()


@pytest.fixture
def send(dispatch: Dispatch) -> Send:
    """Sends one request to the edge as the application composes it."""
    doors = unlocked(dispatch)
    pages = routes.Pages(dispatch, LIMITS, doors, lambda: routes.Ready("loading", 2))
    tools = rest.ToolRoutes(dispatch, LIMITS, doors)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await (tools if scope["path"].startswith("/tools/") else pages)(scope, receive, send)

    def request(method: str, path: str, **more: Any) -> tuple[int, dict[str, str], bytes]:
        return asyncio.run(exchange(app, method, path, **more))

    return request


async def exchange(app: Any, method: str, path: str, **more: Any) -> tuple[int, dict[str, str], bytes]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost:7847") as client:
        answer = await client.request(method, path, **more)
        return answer.status_code, dict(answer.headers), answer.content


def answered(body: bytes, media: str = JSON, status: int = 200, **more: str) -> tuple[int, dict[str, str], bytes]:
    return status, {"content-type": media, "content-length": str(len(body)), **more}, body


def refused(status: int, code: str, message: str, **more: str) -> tuple[int, dict[str, str], bytes]:
    return answered(msgspec.json.encode({"error": {"code": code, "message": message}}), JSON, status, **more)


def unread(status: int, code: str, message: str) -> tuple[int, dict[str, str], bytes]:
    return refused(status, code, message, connection="close")


@pytest.mark.parametrize("tool", ["say", "keep"])
def test_tool_returns_the_dialects_reply(send: Send, tool: str) -> None:
    assert send("POST", f"/tools/{tool}", json={"text": "hello"}) == answered(b"# hello", MARKDOWN)


def test_no_body_means_no_arguments(send: Send) -> None:
    assert send("POST", "/tools/say") == answered(b"# nothing", MARKDOWN)


def test_an_empty_chunked_body_means_no_arguments(send: Send) -> None:
    headers = {"content-type": JSON}
    assert send("POST", "/tools/say", content=chunks(b""), headers=headers) == answered(b"# nothing", MARKDOWN)


@pytest.mark.parametrize("accept", [JSON, "text/html, Application/JSON;q=0.9"])
def test_accept_json_returns_the_structured_result(send: Send, accept: str) -> None:
    expected = answered(b'{"text":"hello","actor":"anonymous"}')
    assert send("POST", "/tools/say", json={"text": "hello"}, headers={"accept": accept}) == expected


def test_reply_that_is_json_is_returned_unchanged(send: Send) -> None:
    expected = answered(b'{"text": "as the contract words it"}')
    assert send("POST", "/tools/bare", json={}, headers={"accept": JSON}) == expected


def test_caller_cannot_choose_its_actor(send: Send) -> None:
    headers = {"accept": JSON, "x-quipu-actor": "root"}
    assert send("POST", "/tools/say", headers=headers) == answered(b'{"text":"nothing","actor":"anonymous"}')


@pytest.mark.parametrize("code", get_args(Code))
def test_every_fault_has_its_status_and_only_busy_has_retry_after(send: Send, code: Code) -> None:
    more = {"retry-after": "1"} if code == "busy" else {}
    expected = answered(f"Sorry: It is {code}.".encode(), MARKDOWN, HTTP_STATUS[code], **more)
    assert send("POST", "/tools/fail", json={"code": code}) == expected


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "not valid JSON"),
        (b'{"text":"\xff"}', "not valid JSON"),
        (b"[]", "expected `object`, got `array`; expects object with text"),
        (b"null", "expected `object`, got `null`; expects object with text"),
        (b'{"text":1}', "expected `string`, got `integer` - at `text`"),
        (b'{"text":' + b"[" * 20 + b"]" * 20 + b"}", "nested too deeply"),
    ],
)
def test_invalid_arguments_are_worded_by_the_dialect(send: Send, body: bytes, message: str) -> None:
    expected = answered(f"Sorry: Invalid arguments: {message}".encode(), MARKDOWN, 400)
    assert send("POST", "/tools/say", content=body, headers={"content-type": JSON}) == expected


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/tools/nothing", ": nothing."),
        ("/tools/", ","),
        ("/tools/say/more", ": say/more, did you mean say?"),
        ("/tools/Say", ": Say, did you mean say?"),
        ("/tools/" + "x" * 900, f": {'x' * 128}."),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_unknown_tool_is_a_404(send: Send, method: str, path: str, said: str) -> None:
    assert send(method, path) == refused(404, "not_found", f"Unknown tool{said} GET /tools lists the tools.")


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS"])
def test_tool_with_another_method_is_a_405(send: Send, method: str) -> None:
    expected = refused(405, "method_not_allowed", "Method not allowed, use POST.", allow="POST")
    assert send(method, "/tools/say") == expected


@pytest.mark.parametrize("media", ["text/plain", "application/x-www-form-urlencoded", "", "application/jsonx"])
def test_body_that_is_not_declared_as_json_is_a_415(send: Send, media: str) -> None:
    expected = unread(415, "unsupported_media_type", "Content-Type must be application/json")
    assert send("POST", "/tools/say", content=b"{}", headers={"content-type": media}) == expected


def test_content_type_may_have_a_charset(send: Send) -> None:
    headers = {"content-type": "application/json; charset=utf-8"}
    assert send("POST", "/tools/say", content=b"{}", headers=headers) == answered(b"# nothing", MARKDOWN)


def test_a_body_over_the_limit_is_refused_whether_declared_or_chunked(send: Send) -> None:
    body = json.dumps({"text": "x" * 300}).encode()
    headers = {"content-type": JSON}
    declared = unread(413, "too_large", "Body too large, at most 200 bytes")
    chunked = unread(413, "too_large", "Body too large or too slow")
    assert send("POST", "/tools/say", content=body, headers=headers) == declared
    assert send("POST", "/tools/say", content=chunks(body[:150], body[150:]), headers=headers) == chunked


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def test_too_many_headers_are_refused(send: Send) -> None:
    headers = {f"x-{number}": "1" for number in range(100)}
    expected = unread(431, "headers_too_large", "Headers too large")
    assert send("POST", "/tools/say", headers=headers) == expected


def test_repeated_host_header_is_refused(send: Send) -> None:
    expected = unread(400, "invalid", "A header that may appear once appears more than once")
    assert send("POST", "/tools/say", headers=[("host", "localhost"), ("host", "evil.example")]) == expected


@pytest.mark.parametrize(
    ("header", "value", "expected"),
    [
        (
            "host",
            "evil.example",
            unread(421, "misdirected_request", "Host not allowed: QUIPU_ALLOWED_HOSTS adds names"),
        ),
        (
            "origin",
            "https://evil.example",
            unread(403, "forbidden", "Origin not allowed: QUIPU_ALLOWED_ORIGINS adds names"),
        ),
        ("origin", "null", unread(403, "forbidden", "Origin not allowed: QUIPU_ALLOWED_ORIGINS adds names")),
        ("origin", "http://localhost:7847", answered(b"# nothing", MARKDOWN)),
    ],
)
def test_foreign_hosts_and_origins_are_refused(
    send: Send, header: str, value: str, expected: tuple[int, dict[str, str], bytes]
) -> None:
    assert send("POST", "/tools/say", headers={header: value}) == expected


def test_interactive_tool_returns_409_with_its_input_requests(send: Send) -> None:
    inputs = {"name": {"method": "elicitation/create", "params": {"message": "Who?"}}}
    message = "The tool requires input (name), which only an MCP client can provide."
    body = msgspec.json.encode({"error": {"code": "input_required", "message": message, "inputs": inputs}})
    assert send("POST", "/tools/wonder", json={}) == answered(body, JSON, 409)


def test_the_list_shows_every_tool_with_its_schemas(send: Send) -> None:
    shown = [
        {
            "name": tool.name,
            "dialect": dialect.name,
            "description": tool.description,
            "mode": tool.mode,
            "input_schema": input_schema(tool),
            "output_schema": output_schema(tool),
        }
        for dialect in (TALK, PLAIN)
        for tool in dialect.tools
    ]
    assert send("GET", "/tools") == answered(msgspec.json.encode({"tools": shown}))


def test_health_answers_without_store_or_model(send: Send) -> None:
    assert send("GET", "/healthz") == answered(b'{"status":"ok"}')
    assert send("HEAD", "/healthz")[:2] == answered(b'{"status":"ok"}')[:2]


def test_readiness_tells_the_state_of_the_model_and_the_schema(send: Send) -> None:
    assert send("GET", "/readyz") == answered(b'{"status":"ready","model":"loading","schema":2}')


@pytest.mark.parametrize("accept", ["text/html,application/xhtml+xml;q=0.9,*/*;q=0.8", "Text/HTML"])
def test_home_page_is_html_for_browsers_and_loads_nothing(send: Send, accept: str) -> None:
    status, headers, body = send("GET", "/", headers={"accept": accept})
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert headers["vary"] == "accept"
    page = body.decode()
    for path in HOME_LINKS:
        assert f'<a href="{path}">{path}</a>' in page
    assert VERSION in page
    assert not any(part in page for part in ("<script", "src=", "http://", "https://", "url("))


@pytest.mark.parametrize("accept", ["*/*", "application/json", "text/plain"])
def test_home_page_is_plain_text_for_other_clients(send: Send, accept: str) -> None:
    status, headers, body = send("GET", "/", headers={"accept": accept})
    assert (status, headers["content-type"]) == (200, "text/plain; charset=utf-8")
    text = body.decode()
    assert text.startswith(f"Quipu {VERSION}\n")
    assert [line.split()[0] for line in text.splitlines() if line.startswith("  ")] == HOME_LINKS


@pytest.mark.parametrize("path", ["/", "/tools", "/openapi.json", "/healthz", "/readyz"])
def test_get_routes_refuse_other_methods(send: Send, path: str) -> None:
    status, headers, _ = send("POST", path)
    assert (status, set(headers["allow"].split(", "))) == (405, {"GET", "HEAD"})
