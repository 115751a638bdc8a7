"""Sessions that subscribe are bounded in number, and calls are observed only as long as there are subscriptions."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from kernel.http import update_streams
from kernel.security import api_keys
from kernel.server.app import Kernel
from tests.http.http_requests import LEGACY
from tests.unit.rest_client import RestClient

CREATED = "2026-01-01T00:00:00.000Z"
URI = "memory://knowledge-graph"
HELLO = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
HEADERS = {"mcp-protocol-version": LEGACY, "accept": "application/json, text/event-stream"}


@pytest.fixture
def client(kernel: Kernel, runner: asyncio.Runner) -> Iterator[RestClient]:
    made = RestClient(kernel, runner, **HEADERS)
    yield made
    made.close()


def ask(client: RestClient, method: str, session: str = "", **params: Any) -> Any:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return client.send("POST", "/mcp/graph", json=message, headers={"mcp-session-id": session} if session else {})


def opened(client: RestClient) -> str:
    return ask(client, "initialize", **HELLO).headers["mcp-session-id"]


def observers(kernel: Kernel) -> dict[str, int]:
    """How many observers each tool has, without those that have none."""
    return {name: len(entry.observers) for name, entry in kernel.dispatch.tools.items() if entry.observers}


@pytest.mark.slow
def test_only_calls_that_write_to_the_graph_are_observed_and_only_while_somebody_listens(
    client: RestClient, kernel: Kernel
) -> None:
    first, second = opened(client), opened(client)
    for session in (first, first, second, ""):
        assert ask(client, "resources/subscribe", session, uri=URI).json()["result"] == {}
    assert ask(client, "resources/subscribe", first, uri="memory://other").json()["result"] == {}
    six = {tool.name for tool in kernel.dispatch.tools["read_graph"].dialect.tools if tool.mode == "write"}
    assert observers(kernel) == dict.fromkeys(six, 2)
    ask(client, "resources/unsubscribe", first, uri=URI)
    assert observers(kernel) == dict.fromkeys(six, 1)
    assert client.send("DELETE", "/mcp/graph", headers={"mcp-session-id": second}).status_code == 200
    assert observers(kernel) == {}


def test_the_oldest_session_makes_room(client: RestClient, kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update_streams, "_MAX_SESSIONS", 2)
    sessions = [opened(client) for _ in range(5)]
    for session in sessions:
        ask(client, "resources/subscribe", session, uri=URI)
    assert set(observers(kernel).values()) == {2}
    for session in sessions[3:]:
        client.send("DELETE", "/mcp/graph", headers={"mcp-session-id": session})
    assert observers(kernel) == {}


def test_a_session_that_was_not_issued_subscribes_to_nothing(client: RestClient, kernel: Kernel) -> None:
    for session in ("x", "session_1.00", opened(client) + "0"):
        ask(client, "resources/subscribe", session, uri=URI)
    assert observers(kernel) == {}


def ask_as(client: RestClient, key: str, method: str, session: str = "", **params: Any) -> Any:
    headers = {"authorization": f"Bearer {key}", **({"mcp-session-id": session} if session else {})}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return client.send("POST", "/mcp/graph", json=message, headers=headers)


def test_a_caller_with_many_sessions_takes_the_place_of_its_own_alone(
    client: RestClient, kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(update_streams, "_MAX_OF_CALLER", 2)
    one, many = (api_keys.create(kernel.config.data, api_keys.Key("", "write", CREATED))[1] for _ in range(2))
    keys = [one, *[many] * 5]
    sessions = [ask_as(client, key, "initialize", **HELLO).headers["mcp-session-id"] for key in keys]
    for key, session in zip(keys, sessions, strict=True):
        assert ask_as(client, key, "resources/subscribe", session, uri=URI).json()["result"] == {}
    assert set(observers(kernel).values()) == {1 + 2}
    for key, session in zip(keys, sessions, strict=True):
        client.send("DELETE", "/mcp/graph", headers={"authorization": f"Bearer {key}", "mcp-session-id": session})
    assert observers(kernel) == {}


class Listener:
    """A client with an open stream, which takes the end of it only once it is `ready`."""

    def __init__(self, client: RestClient, session: str) -> None:
        self.taken: list[bytes] = []
        self.ready = asyncio.Event()
        self._left, self._answered = asyncio.Event(), asyncio.Event()
        headers = {**HEADERS, "host": "127.0.0.1", "mcp-session-id": session}
        self._scope = {
            "type": "http",
            "method": "GET",
            "path": "/mcp/graph",
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
        self._application = client.application
        self.status = 0

    async def open(self) -> None:
        """Opens the stream; returns once it is open or refused."""
        self._task = asyncio.ensure_future(self._application(self._scope, self._receive, self._send))
        await self._answered.wait()

    async def end(self) -> None:
        """Takes the end of the stream."""
        self.ready.set()
        await self._task

    async def leave(self) -> None:
        """Closes the connection."""
        self._left.set()
        await self.end()

    async def _receive(self) -> Any:
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._answered.set()
            return
        if not message.get("more_body"):
            await self.ready.wait()
        self.taken.append(message["body"])


def test_the_end_of_a_stream_leaves_a_later_session_of_the_same_id(client: RestClient, runner: asyncio.Runner) -> None:
    session = opened(client)
    first, second = Listener(client, session), Listener(client, session)
    runner.run(first.open())
    client.send("DELETE", "/mcp/graph", headers={"mcp-session-id": session})
    runner.run(second.open())
    runner.run(first.end())
    ask(client, "resources/subscribe", session, uri=URI)
    ask(client, "tools/call", session, name="delete_entities", arguments={"entityNames": ["nobody"]})
    runner.run(asyncio.sleep(0))
    assert b"notifications/resources/updated" in b"".join(second.taken)
    client.send("DELETE", "/mcp/graph", headers={"mcp-session-id": session})
    runner.run(second.end())


def test_streams_of_a_caller_are_bounded_and_make_room_when_they_end(
    client: RestClient, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(update_streams, "_MAX_OF_CALLER", 2)
    several = [Listener(client, opened(client)) for _ in range(4)]
    for listener in several[:3]:
        listener.ready.set()
        runner.run(listener.open())
    assert [listener.status for listener in several] == [200, 200, 503, 0]
    runner.run(several[0].leave())
    runner.run(several[3].open())
    assert several[3].status == 200
    for listener in (several[1], several[3]):
        runner.run(listener.leave())
