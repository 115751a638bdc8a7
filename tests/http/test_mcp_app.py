"""The MCP App of recall over HTTP: its mention in tools, capabilities and resources, in both eras."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernel.core.config import Config
from tests.security.authenticated_server import LEGACY, MODERN, House, house

URI = "ui://quipu/recall.html"
MEDIA = "text/html;profile=mcp-app"
EXTENSION = {"io.modelcontextprotocol/ui": {}, "io.modelcontextprotocol/skills": {}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house(Config(data=tmp_path_factory.mktemp("app") / "data", model=None)) as running:
        yield running


def result(server: House, method: str, params: dict[str, Any], version: str, path: str = "/mcp") -> Any:
    answer = server.mcp(method, params, path=path, version=version)
    assert answer.status == 200, answer.body
    return json.loads(answer.body)["result"]


def capabilities(server: House, version: str, path: str = "/mcp") -> Any:
    if version == MODERN:
        return result(server, "server/discover", {}, version, path)["capabilities"]
    about = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    return result(server, "initialize", about, version, path)["capabilities"]


@pytest.mark.parametrize("version", [MODERN, LEGACY])
def test_recall_names_the_app_that_shows_its_results(server: House, version: str) -> None:
    tools = {tool["name"]: tool for tool in result(server, "tools/list", {}, version)["tools"]}
    assert tools.pop("recall")["_meta"] == {"ui": {"resourceUri": URI}, "ui/resourceUri": URI}
    assert [name for name, tool in tools.items() if "_meta" in tool] == []
    assert capabilities(server, version)["extensions"] == EXTENSION


@pytest.mark.parametrize("version", [MODERN, LEGACY])
def test_server_without_recall_offers_no_app(server: House, version: str) -> None:
    assert "extensions" not in capabilities(server, version, "/mcp/paths")
    listed = result(server, "resources/list", {}, version, "/mcp/paths")["resources"]
    assert URI not in [one["uri"] for one in listed]


@pytest.mark.parametrize("version", [MODERN, LEGACY])
def test_app_is_one_small_file_that_needs_no_origin(server: House, version: str) -> None:
    found = result(server, "resources/read", {"uri": URI}, version)
    (content,) = found["contents"]
    text = content.pop("text")
    sandbox = {"csp": {}, "permissions": {"clipboardWrite": {}}, "prefersBorder": False}
    assert content == {"uri": URI, "mimeType": MEDIA, "_meta": {"ui": sandbox}}
    assert len(text.encode()) <= 20_000
    assert [
        word for word in ("http://", "https://", "innerHTML", "eval(", "import ", "src=", "url(") if word in text
    ] == []
    listed = result(server, "resources/list", {}, version)["resources"]
    entry = next(one for one in listed if one["uri"] == URI)
    assert (entry["mimeType"], entry["size"]) == (MEDIA, len(text.encode()))
    if version == MODERN:
        assert (found["ttlMs"], found["cacheScope"]) == (3_600_000, "public")


def test_results_are_the_same_with_and_without_the_app(tmp_path: Path) -> None:
    with house(Config(data=tmp_path / "data", model=None)) as server:
        server.tool("add_memory", {"path": "tea", "content": "Green tea"})
        found = result(server, "tools/call", {"name": "recall", "arguments": {"query": "tea"}}, MODERN)
        assert json.loads(found["content"][0]["text"]) == found["structuredContent"]
        assert found["structuredContent"]["memories"][0]["id"] == "paths/tea"


def test_unknown_app_is_no_resource(server: House) -> None:
    answer = server.mcp("resources/read", {"uri": "ui://quipu/other.html"})
    assert json.loads(answer.body)["error"]["message"] == "Resource not found"
