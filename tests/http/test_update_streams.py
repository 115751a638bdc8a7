"""Who subscribes to the resource of `graph` over HTTP is notified of every call that writes to it, in both eras."""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.subscriptions import ResourceUpdated
from mcp_types import ResourceUpdatedNotification

from kernel.security import api_keys
from tests.http.http_requests import MODERN, modern
from tests.reliability.server_process import Server, serving
from tests.support.http_update_streams import PATIENCE, UPDATED, URI, Client2025, Line

CREATED = "2026-01-01T00:00:00.000Z"


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Closes every connection of a test."""
    yield
    for line in Line.opened:
        line.close()
    Line.opened.clear()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("updates") / "data", QUIPU_MODEL="none") as started:
        yield started


@pytest.fixture
def client(server: Server) -> Client2025:
    return Client2025(server)


def test_open_stream_of_a_session_has_what_it_subscribed_to(client: Client2025) -> None:
    found, line = client.stream()
    assert (found.status, found.getheader("content-type")) == (200, "text/event-stream")
    client.subscribe(uri="memory://other")
    client.write("before")
    client.subscribe()
    for name in ("one", "one"):  # also where nothing changes
        client.write(name)
        assert line.event() == UPDATED
    client.subscribe("resources/unsubscribe")
    client.write("after")
    assert client.stream("DELETE")[0].status == 200
    assert line.event() is None


def test_notification_waits_for_the_stream_and_is_there_once(client: Client2025) -> None:
    client.subscribe()
    client.write("one")
    client.write("two")
    _, line = client.stream()
    assert line.event() == UPDATED
    client.write("three")
    assert line.event() == UPDATED


def test_second_stream_takes_the_place_of_the_first(client: Client2025) -> None:
    client.subscribe()
    _, first = client.stream()
    _, second = client.stream()
    assert first.event() is None
    client.write("one")
    assert second.event() == UPDATED


def test_calls_of_every_transport_are_told(client: Client2025, server: Server) -> None:
    client.subscribe()
    _, line = client.stream()
    other = client.line()
    entity = {"entityNames": ["nobody"]}
    assert (
        other.ask("POST", "/tools/delete_entities", json.dumps(entity), content_type="application/json").status == 200
    )
    assert line.event() == UPDATED


@pytest.mark.parametrize(
    ("path", "status"), [("/mcp/graph", 404), ("/mcp/graph,common", 404), ("/mcp/paths", 405), ("/mcp", 405)]
)
def test_stream_needs_a_session_of_an_address_with_such_a_resource(server: Server, path: str, status: int) -> None:
    client = Client2025(server, path)
    assert (client.session is not None) == (status == 404)
    for session in ("", "x", "session_1." + "0" * 64, (client.session or "x")[:-1]):
        assert client.stream(mcp_session_id=session)[0].status == status
        assert client.stream("DELETE", mcp_session_id=session)[0].status == status
    line = client.line()
    assert line.ask("GET", path, accept="text/event-stream").status == 405
    if status == 404:
        assert client.stream(accept="application/json")[0].status == 406


def test_session_is_of_its_caller_and_its_stream_ends_with_the_key(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    tenants = ("main", "main", "acme")
    keys = [api_keys.create(data, api_keys.Key("", "write", CREATED, tenant=tenant)) for tenant in tenants]
    with serving(data, QUIPU_MODEL="none") as server:
        mine, housemate, other = (Client2025(server, authorization=f"Bearer {secret}") for _, secret in keys)
        for client in (mine, housemate, other):
            client.subscribe()
        for client in (housemate, other):
            assert client.stream(mcp_session_id=mine.session or "")[0].status == 404
        assert mine.stream(authorization="Bearer x")[0].status == 401
        lines = [client.stream()[1] for client in (mine, housemate, other)]
        housemate.write("of main")
        assert [line.event() for line in lines[:2]] == [UPDATED, UPDATED]
        other.write("of acme")
        assert lines[2].event() == UPDATED

        api_keys.revoke(data, keys[0][0].id, CREATED)
        time.sleep(0.3)  # until the server looks at its keys again
        housemate.write("more")
        assert [line.event() for line in lines[:2]] == [None, UPDATED]


def listening(server: Server, **notifications: Any) -> tuple[Any, Line]:
    body, headers = modern("subscriptions/listen", notifications=notifications)
    line = Line(server.port)
    given = {name.replace("-", "_"): value for name, value in headers}
    return line.ask("POST", "/mcp/graph", json.dumps(body), **given), line


def test_listen_acknowledges_what_it_honours_and_sends_that_alone(server: Server, client: Client2025) -> None:
    meta = {"io.modelcontextprotocol/subscriptionId": 1}
    found, line = listening(server, toolsListChanged=True, resourceSubscriptions=[URI, "memory://other"])
    assert (found.status, found.getheader("content-type")) == (200, "text/event-stream")
    assert line.event() == {
        "jsonrpc": "2.0",
        "method": "notifications/subscriptions/acknowledged",
        "params": {"notifications": {"resourceSubscriptions": [URI]}, "_meta": meta},
    }
    client.write("one")
    assert line.event() == {**UPDATED, "params": {"uri": URI, "_meta": meta}}
    _, nothing = listening(server, promptsListChanged=True)
    assert nothing.event()["params"]["notifications"] == {}


def test_listen_needs_a_client_that_takes_streams(server: Server) -> None:
    body, headers = modern("subscriptions/listen", notifications={})
    given = {name.replace("-", "_"): value for name, value in headers} | {"accept": "application/json"}
    assert Line(server.port).ask("POST", "/mcp/graph", json.dumps(body), **given).status == 406


def test_streams_end_when_the_server_stops(tmp_path: Path) -> None:
    with serving(tmp_path / "data", QUIPU_MODEL="none") as server:
        client = Client2025(server)
        _, line = client.stream()
        _, listener = listening(server, resourceSubscriptions=[URI])
        listener.event()
        begun = time.monotonic()
        server.stop()
        assert line.event() is None
        ended = listener.event()
        assert (ended["id"], ended["result"]["resultType"]) == (1, "complete")
        assert ended["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == 1
        assert time.monotonic() - begun < PATIENCE


def test_several_processes_offer_no_subscriptions(tmp_path: Path) -> None:
    with serving(tmp_path / "data", QUIPU_MODEL="none", QUIPU_WORKERS="2") as server:
        assert Client2025(server).session is None
        _, line = listening(server, resourceSubscriptions=[URI])
        assert line.event()["params"]["notifications"] == {}


async def write(client: Client) -> None:
    await client.call_tool("delete_entities", {"entityNames": ["nobody"]})


@pytest.mark.filterwarnings("ignore:resources/subscribe is removed")
def test_official_client_of_the_older_revisions_is_told(server: Server) -> None:
    async def scene() -> None:
        seen = asyncio.Queue[Any]()

        async def on_message(message: Any) -> None:
            await seen.put(message)

        address = f"http://127.0.0.1:{server.port}/mcp/graph"
        async with Client(address, mode="legacy", message_handler=on_message) as client, asyncio.timeout(PATIENCE):
            await client.subscribe_resource(URI)
            for _ in range(2):
                await write(client)
                found = await seen.get()
                assert isinstance(found, ResourceUpdatedNotification)
                assert found.params.uri == URI

    asyncio.run(scene())


def test_official_client_of_the_newest_revision_is_told(server: Server) -> None:
    async def scene() -> None:
        async with (
            Client(f"http://127.0.0.1:{server.port}/mcp/graph", mode=MODERN) as client,
            asyncio.timeout(PATIENCE),
            client.listen(resource_subscriptions=[URI], tools_list_changed=True) as found,
        ):
            assert found.honored.resource_subscriptions == [URI]
            assert not found.honored.tools_list_changed
            events = aiter(found)
            for _ in range(2):
                await write(client)
                assert await anext(events) == ResourceUpdated(uri=URI)

    asyncio.run(scene())
