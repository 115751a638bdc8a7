"""Sessions that subscribe are bounded in number, and calls are observed only as long as there are subscriptions."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from kernel.app import Kernel
from kernel.http import update_streams
from tests.http.http_requests import LEGACY
from tests.unit.rest_client import RestClient

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
