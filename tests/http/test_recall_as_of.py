"""recall as of a time over HTTP, as plain JSON and by MCP."""

import json
import time
from datetime import UTC, datetime
from pathlib import Path

import httpx

from kernel.core.config import Config
from tests.reliability.server_process import serving
from tests.security.authenticated_server import house


def test_deleted_and_changed_memories_are_read_as_they_stood(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server:
        root = f"http://127.0.0.1:{server.port}"

        def tool(name: str, **arguments: object) -> httpx.Response:
            return httpx.post(f"{root}/tools/{name}", json=arguments, headers={"accept": "application/json"})

        def mcp(**arguments: object) -> dict[str, object]:
            params = {"name": "recall", "arguments": arguments}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            accept = {"accept": "application/json, text/event-stream"}
            answer = httpx.post(f"{root}/mcp/common", json=message, headers=accept).json()
            return answer["result"]["structuredContent"]

        for name in ("boiler", "garden"):
            assert tool("add_memory", path=name, content=f"The {name} is checked in May").is_success
        then = datetime.now(UTC).isoformat()
        time.sleep(0.002)  # the next writes must come in a later millisecond
        assert tool("replace_memory", path="boiler", content="It was sold").is_success
        assert tool("drop_memory", path="garden").is_success

        now, past = tool("recall").json(), tool("recall", as_of=then).json()
        found = mcp(query="checked in May", as_of=then)
        refused = tool("recall", as_of="last week")

    assert [memory["text"] for memory in now["memories"]] == ["boiler It was sold"]
    assert sorted(memory["text"] for memory in past["memories"]) == [
        "boiler The boiler is checked in May",
        "garden The garden is checked in May",
    ]
    assert past["unrecorded"] == 0
    assert {memory["id"] for memory in found["memories"]} == {"paths/boiler", "paths/garden"}  # type: ignore[attr-defined]
    message = "as_of is not an ISO 8601 time, such as 2026-01-31 or 2026-01-31T08:00:00Z"
    assert (refused.status_code, refused.json()["error"]["message"]) == (400, message)


def test_key_sees_the_past_of_its_tenant_and_needs_the_permission_of_recall(tmp_path: Path) -> None:
    with house(Config(data=tmp_path / "data", model=None)) as running:
        owner, reader, stranger = running.key(), running.key("read"), running.key(tenant="other")
        limited = running.key("read", dialects=("brain",))
        running.told()
        for name in ("boiler", "garden"):
            given = {"path": name, "content": f"The {name} is checked in May"}
            assert running.tool("add_memory", given, owner).status == 200
        then = datetime.now(UTC).isoformat()
        time.sleep(0.002)  # the next writes must come in a later millisecond
        assert running.tool("drop_memory", {"path": "garden"}, owner).status == 200
        assert running.tool("replace_memory", {"path": "boiler", "content": "It was sold"}, owner).status == 200

        ways = ({}, {"query": "checked in May"}, {"ids": ["paths/boiler", "paths/garden"]}, {"scope": ""})
        for asked in ways:
            past = {key: running.tool("recall", {**asked, "as_of": then}, key) for key in (owner, reader, stranger)}
            found = {key: json.loads(answer.body)["memories"] for key, answer in past.items()}
            assert {memory["id"] for memory in found[owner]} == {"paths/boiler", "paths/garden"}
            assert found[reader] == found[owner]
            assert found[stranger] == []
            assert running.tool("recall", {**asked, "as_of": then}, limited).status == 403
            assert running.tool("recall", {**asked, "as_of": then}).status == 401
