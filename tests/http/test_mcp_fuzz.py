"""Arbitrary requests get a valid message, an empty 202 or a refusal, and never a 500."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp_types.jsonrpc import jsonrpc_message_adapter

from kernel.http.mcp import Endpoint
from kernel.mcp.messages import HANDSHAKE_VERSIONS, METHODS
from tests.http.http_requests import CLIENT, LEGACY, MODERN, meta, read
from tests.http.mcp_fixture import FIRST, LIMITS, RELEASED, SECOND, opened, service, unlocked

QUICK = [tool.name for dialect in (FIRST, SECOND) for tool in dialect.tools if tool.name != "shout"]
junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)
versions = st.sampled_from([*HANDSHAKE_VERSIONS, MODERN, "2099-01-01", "", f"{MODERN} "])
names = st.sampled_from([*QUICK, "greeting", "dialogue", "absent", "first://a", "first://broken", "\u20ac"])
methods = st.sampled_from([*METHODS, "notifications/cancelled", "nonsense", ""])
metas = st.one_of(
    st.just(meta()),
    st.just(meta(logLevel="debug", progressToken=1, clientCapabilities={"elicitation": {}, "sampling": {}})),
    st.builds(lambda version, token: {**meta(version), "progressToken": token}, versions, junk),
    junk,
)
known = {
    "name": names,
    "uri": names,
    "arguments": st.just({"text": "hi"}) | st.just({"name": "Ada"}) | junk,
    "cursor": st.none() | st.text(max_size=8),
    "level": st.sampled_from(["debug", "loud"]),
    "ref": st.just({"type": "ref/prompt", "name": "greeting"}) | junk,
    "argument": st.just({"name": "name", "value": ""}) | junk,
    "inputResponses": junk,
    "requestState": st.text(max_size=8) | junk,
    "protocolVersion": versions,
    "capabilities": st.just({}) | junk,
    "clientInfo": st.just(CLIENT) | junk,
    "_meta": metas,
}
params = st.fixed_dictionaries({}, optional=known) | junk
members = {"jsonrpc": st.just("2.0") | junk, "id": st.integers() | st.text(max_size=4) | junk, "method": methods | junk}
messages = st.fixed_dictionaries({"jsonrpc": st.just("2.0"), "id": st.integers(), "method": methods, "params": params})
bodies = st.one_of(
    messages,
    st.fixed_dictionaries({}, optional={**members, "params": params, "result": junk, "error": junk}),
    st.lists(messages, max_size=2),
    junk,
).map(lambda value: json.dumps(value).encode())


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A body with a piece of it replaced by other bytes."""
    body = draw(bodies)
    start = draw(st.integers(0, len(body)))
    return body[:start] + draw(st.binary(max_size=4)) + body[start + draw(st.integers(0, 4)) :]


values = st.binary(max_size=12) | st.text(max_size=8).map(lambda text: text.encode("latin-1", "replace"))
headers = st.lists(
    st.one_of(
        st.tuples(st.just(b"mcp-protocol-version"), versions.map(str.encode) | values),
        st.tuples(st.just(b"mcp-method"), methods.map(str.encode) | values),
        st.tuples(st.just(b"mcp-name"), names.map(str.encode) | st.just(b"=?base64?ZWNobw==?=") | values),
        st.tuples(st.sampled_from([b"mcp-param-region", b"accept", b"origin", b"host", b"content-type"]), values),
        st.tuples(st.sampled_from([b"content-length", b"content-encoding", b"x-any"]), values),
    ),
    max_size=4,
)
usual = [
    (b"host", b"localhost"),
    (b"content-type", b"application/json"),
    (b"accept", b"application/json, text/event-stream"),
]


class Ran(NamedTuple):
    """An endpoint and the loop to run it in."""

    app: Any
    runner: asyncio.Runner

    def post(self, body: bytes, extra: Any) -> tuple[int, Any]:
        sent: list[Any] = []

        waiting = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Any:
            if not waiting:
                await asyncio.Event().wait()  # the client stays
            return waiting.pop()

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "headers": [*usual, *extra]}
        self.runner.run(self.app(scope, receive, send))
        head, *parts = sent
        media = dict(head["headers"]).get(b"content-type", b"").decode()
        return head["status"], read(b"".join(part["body"] for part in parts), media)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    RELEASED.set()
    with opened(tmp_path_factory.mktemp("fuzz"), FIRST, SECOND) as dispatch, asyncio.Runner() as runner:
        one = service(dispatch)
        yield Ran(Endpoint(lambda _query, _reach: one, LIMITS, unlocked(dispatch)), runner)


relaxed = settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def check(status: int, body: Any) -> None:
    if status == 202:
        assert body is None
        return
    assert status == 200 or 400 <= status < 500
    for message in body if isinstance(body, list) else [body]:
        jsonrpc_message_adapter.validate_python(message)
        assert message["jsonrpc"] == "2.0"
        assert "method" in message or ("result" in message) is not ("error" in message)
        assert message.get("error", {}).get("code") != -32603 or "secret" not in message["error"]["message"]


@relaxed
@given(bodies | damaged(), headers)
def test_arbitrary_requests_never_cause_a_500(ran: Ran, body: bytes, extra: Any) -> None:
    check(*ran.post(body, extra))


@relaxed
@given(messages, st.sampled_from([None, LEGACY, MODERN]))
def test_well_formed_requests_never_cause_a_500(ran: Ran, message: Any, version: str | None) -> None:
    extra = [] if version is None else [(b"mcp-protocol-version", version.encode())]
    given_ = message["params"]
    if version == MODERN and isinstance(given_, dict):
        given_.setdefault("_meta", meta())
        name = given_.get("name") if message["method"] != "resources/read" else given_.get("uri")
        extra += [(b"mcp-method", message["method"].encode())]
        extra += [(b"mcp-name", name.encode())] if isinstance(name, str) and name.isascii() else []
    check(*ran.post(json.dumps(message).encode(), extra))
