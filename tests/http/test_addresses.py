"""An MCP address serves all dialects, one, or those that it names."""

import gc
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import httpx
import pytest

from kernel.core.config import Config
from kernel.mcp.listings import WHEN_TO_RECALL, WHEN_TO_STORE
from kernel.mcp.server import Service
from kernel.server import app, asgi
from tests.reliability.server_process import Server, serving
from tests.security.authenticated_server import House, house


def services() -> int:
    """How many services this process keeps."""
    gc.collect()
    return sum(isinstance(kept, Service) for kept in gc.get_objects())


def list_tools(house: House, path: str, key: str = "") -> None:
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}'
    assert house.ask("POST", path, key, body, headers).status == 200


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("addresses") / "data") as started:
        yield started


def post(server: Server, path: str, method: str, **params: object) -> httpx.Response:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    accept = {"accept": "application/json, text/event-stream"}
    return httpx.post(f"http://127.0.0.1:{server.port}{path}", json=message, headers=accept)


def tools_at(server: Server, path: str) -> list[str]:
    return [tool["name"] for tool in post(server, path, "tools/list").json()["result"]["tools"]]


@pytest.mark.parametrize("path", ["/mcp/paths,common", "/mcp/common,paths"])
def test_address_of_several_dialects_has_their_tools_in_any_order(server: Server, path: str) -> None:
    wanted = [tool.name for dialect in app.select_dialects(("paths", "common")) for tool in dialect.tools]
    assert tools_at(server, path) == wanted
    assert tools_at(server, f"{path}?tools=read") == ["read_memory", "list_memories", "recall"]


def test_every_selection_of_dialects_has_an_address() -> None:
    paths = [asgi.address(chosen) for chosen in asgi.selections(app.DIALECTS)]
    assert len({*paths}) == len(paths) == 2 ** len(app.DIALECTS) - 1


def test_an_extra_dialect_is_with_the_others_only_where_it_is_named(server: Server, tmp_path: Path) -> None:
    own = [tool.name for tool in app.graph.DIALECT.tools]
    assert tools_at(server, "/mcp/graph") == own
    assert not set(own) & set(tools_at(server, "/mcp"))
    with serving(tmp_path / "data", QUIPU_DIALECTS="paths,graph") as other:
        assert tools_at(other, "/mcp") == [*tools_at(other, "/mcp/paths"), *own]


def test_all_dialects_by_name_are_those_of_the_whole_server(server: Server) -> None:
    names = ",".join(dialect.name for dialect in app.UNION)
    assert tools_at(server, f"/mcp/{names}") == tools_at(server, "/mcp")


@pytest.mark.parametrize(
    "path", ["/mcp/paths,", "/mcp/,", "/mcp/paths,paths", "/mcp/paths,nosuch", f"/mcp/{'paths,' * 2000}common"]
)
def test_other_lists_are_not_found(server: Server, path: str) -> None:
    assert post(server, path, "tools/list").status_code == 404


def test_tools_of_other_dialects_are_unknown_there(server: Server) -> None:
    answer = post(server, "/mcp/paths,common", "tools/call", name="search", arguments={"db": "core", "query": "x"})
    assert answer.json()["error"] == {"code": -32602, "message": "Unknown tool: search"}


@pytest.mark.parametrize(("path", "stores"), [("/mcp/paths,common", True), ("/mcp/common", False)])
def test_instructions_say_when_to_search_and_where_tools_write_when_to_store(
    server: Server, path: str, stores: bool
) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    told = post(server, path, "initialize", **hello).json()["result"]["instructions"]
    assert told.startswith(WHEN_TO_RECALL)
    assert (WHEN_TO_STORE in told) is stores


@pytest.mark.parametrize("path", ["/mcp", "/mcp/graph", "/mcp/paths,common"])
def test_a_slash_at_the_end_of_an_address_changes_nothing(server: Server, path: str) -> None:
    assert post(server, f"{path}/", "tools/list").content == post(server, path, "tools/list").content


def test_a_slash_at_the_end_of_a_tool_changes_nothing(server: Server) -> None:
    url = f"http://127.0.0.1:{server.port}/tools/list_memories"
    assert httpx.post(f"{url}/", json={}).content == httpx.post(url, json={}).content


@pytest.mark.parametrize(("count", "status"), [(100_000, 200), (100_001, 400)])
def test_many_halves_of_emoji_are_replaced_and_more_are_no_json(server: Server, count: int, status: int) -> None:
    url = f"http://127.0.0.1:{server.port}/tools/add_memory"
    text = "\\ud83d" * count
    answer = httpx.post(
        url, content=f'{{"path":"halves/{count}","content":"{text}"}}', headers={"content-type": "application/json"}
    )
    assert answer.status_code == status


HALVES = ["\\ud83d", "\\uDE00\\ud83d", "\\ud83dx", "\\\\\\ud83d"]


@pytest.mark.parametrize("half", HALVES)
def test_half_an_emoji_is_replaced_and_its_call_is_answered(server: Server, half: str) -> None:
    """JavaScript writes it so, if a text was cut in the middle of an emoji."""
    whole = half.replace("\\ud83d", "\ufffd").replace("\\uDE00", "\ufffd").replace("\\\\", "\\")
    call = {"name": "add_memory", "arguments": {"path": f"half/{HALVES.index(half)}", "content": "HALF"}}
    message = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call}).replace("HALF", half)
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    base = f"http://127.0.0.1:{server.port}"
    assert httpx.post(f"{base}/mcp", content=message.encode(), headers=headers).json()["id"] == 7
    again = json.dumps(call["arguments"]).replace("HALF", half)
    json_only = {"accept": "application/json", "content-type": "application/json"}
    assert httpx.post(f"{base}/tools/replace_memory", content=again.encode(), headers=json_only).status_code == 200
    stored = httpx.post(f"{base}/tools/read_memory", json={"path": f"half/{HALVES.index(half)}"}, headers=json_only)
    assert stored.json()["content"] == whole


INSPECTOR = "http://localhost:6274"


@pytest.mark.parametrize("path", ["/mcp", "/mcp/graph", "/tools/recall", "/tools", "/healthz"])
def test_a_client_in_a_browser_may_call_from_an_accepted_origin(server: Server, path: str) -> None:
    asks = {
        "origin": INSPECTOR,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type,mcp-protocol-version",
    }
    url = f"http://127.0.0.1:{server.port}{path}"
    preflight = httpx.options(url, headers=asks)
    assert preflight.status_code == 204
    assert {name: value for name, value in preflight.headers.items() if name.startswith("access-control")} == {
        "access-control-allow-origin": INSPECTOR,
        "access-control-allow-methods": "GET, POST, PATCH, DELETE",
        "access-control-allow-headers": asks["access-control-request-headers"],
        "access-control-max-age": "600",
    }
    answer = httpx.post(url, json={}, headers={"origin": INSPECTOR})
    assert answer.headers["access-control-allow-origin"] == INSPECTOR
    assert "mcp-session-id" in answer.headers["access-control-expose-headers"]
    assert "origin" in answer.headers["vary"].lower()


NO_DIALECT = "There is no address {}: below /mcp/ are these dialects, or several with commas between: " + ", ".join(
    dialect.name for dialect in app.DIALECTS
)


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("path", ["/mcp/nope", "/mcp/paths,nosuch"])
def test_an_unknown_address_of_mcp_is_an_error_of_json_rpc_that_names_the_dialects(
    server: Server, method: str, path: str
) -> None:
    answer = httpx.request(method, f"http://127.0.0.1:{server.port}{path}", json={} if method == "POST" else None)
    error = {"code": -32600, "message": NO_DIALECT.format(path)}
    assert (answer.status_code, answer.json()) == (404, {"jsonrpc": "2.0", "id": None, "error": error})


@pytest.mark.parametrize("path", ["/api", "/memories", "/mcpx", "/tenants", "/.well-known/nope", "/nope%1b"])
def test_an_unknown_path_is_an_error_that_leads_to_the_addresses(server: Server, path: str) -> None:
    answer = httpx.get(f"http://127.0.0.1:{server.port}{path}")
    message = f"There is no address {unquote(path)}: GET / lists those that there are."
    assert (answer.status_code, answer.json()) == (404, {"error": {"code": "not_found", "message": message}})


@pytest.mark.parametrize("path", ["/v1", "/v1/messages", "/v1/memory_stores/x/y/z"])
def test_an_unknown_path_of_an_api_is_an_error_in_its_form(server: Server, path: str) -> None:
    answer = httpx.get(f"http://127.0.0.1:{server.port}{path}")
    error = {"type": "not_found_error", "message": f"There is no {path}"}
    assert (answer.status_code, answer.json()["type"], answer.json()["error"]) == (404, "error", error)


def test_a_page_names_the_method_that_it_takes(server: Server) -> None:
    answer = httpx.post(f"http://127.0.0.1:{server.port}/tools", json={})
    error = {"code": "method_not_allowed", "message": "Method not allowed, use GET, HEAD."}
    assert (answer.status_code, answer.json()) == (405, {"error": error})
    assert answer.headers["allow"] == "GET, HEAD"


def test_a_server_keeps_few_lists_of_tools_however_many_addresses_and_keys_there_are(tmp_path: Path) -> None:
    with house(Config(data=tmp_path / "data", model=None)) as open_server:
        before = services()
        for dialects in asgi.selections(app.DIALECTS):
            for query in ("", "?tools=read", "?schemas=strict"):
                list_tools(open_server, f"{asgi.address(dialects)}{query}")
        assert services() - before == 64
    with house(Config(data=tmp_path / "other", model=None)) as locked_server:
        before = services()
        keys = [locked_server.key("write", write=(f"paths:agent{number}",)) for number in range(5)]
        locked_server.told()
        for key in keys:
            list_tools(locked_server, "/mcp", key)
            assert locked_server.ask("GET", "/openapi.json", key).status == 200
        assert services() - before == 1
