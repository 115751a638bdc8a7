"""Offers to agents over MCP beside tools: prompts, completions, skills, instructions, a question before deletions."""

import hashlib
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from handlers.common.prompts import SKILL
from kernel.cli.token_cost import estimate_tokens
from kernel.server import app
from tests.http.http_requests import Answer, legacy, meta, modern, send
from tests.reliability.server_process import Client, Server, serving

MOST_INSTRUCTION_TOKENS = 150
EXTENSION = "io.modelcontextprotocol/skills"
URI = "skill://quipu-memory/SKILL.md"
BOTH = pytest.mark.parametrize("make", [legacy, modern])
ASKS = meta(clientCapabilities={"elicitation": {}})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("agents") / "data") as started:
        client = Client(started.port)
        for path, content in (("web/port", "The API listens on port 8123."), ("web/stack", "Starlette."), ("a", "x")):
            client.call("add_memory", path=path, content=content)
        client.call("remember", session_id="s-1", content="Where the work stands: the form is done.", kind="note")
        client.close()
        yield started


def asked(server: Server, make: Any, method: str, **params: Any) -> dict[str, Any]:
    """The result of a request."""
    answer = send(server.port, make(method, **params))
    assert answer.status == 200, answer
    return answer.body["result"]


def prompt(server: Server, make: Any, name: str, **arguments: str) -> str:
    """The text of a prompt."""
    [message] = asked(server, make, "prompts/get", name=name, arguments=arguments)["messages"]
    assert message["role"] == "user"
    return message["content"]["text"]


@BOTH
def test_prompts_are_listed_with_their_arguments(make: Any, server: Server) -> None:
    found = asked(server, make, "prompts/list")["prompts"]
    assert {one["name"]: [argument["name"] for argument in one["arguments"]] for one in found} == {
        "prime": ["project"],
        "recall": ["query", "scope"],
        "remember": ["text"],
        "wrong": ["what", "id"],
        "handoff": ["project"],
    }


@BOTH
def test_prompts_carry_what_is_stored_inside_the_fence(make: Any, server: Server) -> None:
    fenced = "<quipu-memories>\nAbout this question:\n- web/port The API listens on port 8123. [paths/web/port, "
    assert "- web/port: The API listens on port 8123. [paths/web/port, " in prompt(server, make, "prime", project="web")
    assert prompt(server, make, "prime", project="/other") == "Nothing is stored for the project /other yet."
    assert fenced in prompt(server, make, "recall", query="Which port does the API listen on?")
    assert "has found nothing" in prompt(server, make, "recall", query="zxqv wvut", scope="s-1")
    assert fenced in prompt(server, make, "wrong", what="the port of the API")
    assert "[sessions/1, " in prompt(server, make, "wrong", what="it", id="sessions/1")
    assert prompt(server, make, "remember", text="Tabs in Makefiles.").endswith("\n\nTabs in Makefiles.")
    assert '{"project": "web"}' in prompt(server, make, "handoff", project="web")


@pytest.mark.parametrize(("name", "arguments"), [("recall", {}), ("wrong", {"what": "x", "id": "none"}), ("none", {})])
def test_wrong_prompts_are_refused(name: str, arguments: dict[str, str], server: Server) -> None:
    answer = send(server.port, modern("prompts/get", name=name, arguments=arguments))
    assert (answer.status, answer.body["error"]["code"]) == (400, -32602)


def completed(server: Server, make: Any, ref: dict[str, str], name: str, value: str) -> list[str]:
    found = asked(server, make, "completion/complete", ref=ref, argument={"name": name, "value": value})
    return found["completion"]["values"]


@BOTH
def test_paths_scopes_and_ids_are_completed(make: Any, server: Server) -> None:
    template = {"type": "ref/resource", "uri": "memory://paths/{+path}"}
    assert completed(server, make, template, "path", "web/") == ["web/port", "web/stack"]
    assert completed(server, make, {"type": "ref/prompt", "name": "recall"}, "scope", "s") == ["s-1"]
    assert completed(server, make, {"type": "ref/prompt", "name": "recall"}, "query", "s") == []
    wrong = {"type": "ref/prompt", "name": "wrong"}
    assert completed(server, make, wrong, "id", "paths/w") == ["paths/web/stack", "paths/web/port"]


@BOTH
def test_the_skill_is_listed_fetched_and_read_with_its_digests(make: Any, server: Server) -> None:
    listed = asked(server, make, "skills/list")
    [skill] = listed["skills"]
    assert skill["uri"] == URI
    assert skill["frontmatter"] == {"name": SKILL.name, "description": SKILL.about, "license": "Apache-2.0"}
    assert asked(server, make, "skills/get", uri=URI)["skill"] == skill
    for file in skill["resources"]:
        [content] = asked(server, make, "resources/read", uri=file["uri"])["contents"]
        data = content["text"].encode()
        assert (file["digest"], file["size"]) == (f"sha256:{hashlib.sha256(data).hexdigest()}", len(data))
    assert {file["uri"] for file in skill["resources"]} == {URI, "skill://quipu-memory/references/tools.md"}
    if make is modern:
        assert (listed["ttlMs"], listed["cacheScope"]) == (3_600_000, "public")


def test_skills_are_an_extension_that_only_addresses_with_common_have(server: Server) -> None:
    assert EXTENSION in asked(server, modern, "server/discover")["capabilities"]["extensions"]
    unknown = send(server.port, modern("skills/get", uri="skill://none/SKILL.md"))
    assert (unknown.status, unknown.body["error"]["code"]) == (400, -32602)
    without = send(server.port, modern("skills/list"), path="/mcp/paths")
    assert (without.status, without.body["error"]["code"]) == (404, -32601)


def test_the_skill_keeps_the_limits_of_agent_skills() -> None:
    entry = SKILL.files["SKILL.md"].decode()
    assert entry.startswith(f"---\nname: {SKILL.name}\ndescription: {SKILL.about}\nlicense: Apache-2.0\n---\n")
    assert len(SKILL.about) <= 1024
    assert entry.count("\n") < 150


@pytest.mark.parametrize("dialect", app.DIALECTS, ids=lambda dialect: dialect.name)
def test_instructions_name_the_first_tool_and_are_short(dialect: Any, server: Server) -> None:
    answer = send(server.port, modern("server/discover"), path=f"/mcp/{dialect.name}")
    instructions = answer.body["result"]["instructions"]
    assert estimate_tokens(instructions) <= MOST_INSTRUCTION_TOKENS
    assert f"\n\n{dialect.name}: {dialect.guide}" in instructions
    named = [tool.name for tool in dialect.tools if tool.name in dialect.guide]
    assert named or dialect.name == "files"


def cleared(server: Server, name: str, arguments: dict[str, Any], **more: Any) -> Answer:
    return send(server.port, modern("tools/call", name=name, arguments=arguments, meta_=ASKS, **more))


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"action": "decline"}, "did not agree"),
        ({"action": "accept", "content": {"agreed": False}}, "did not agree"),
        ({"action": "accept", "content": {"agreed": True}}, "cleared_count: 12"),
    ],
)
@pytest.mark.parametrize("name", ["clear_memory"])
def test_the_user_is_asked_before_many_memories_are_deleted(
    name: str, answer: dict[str, Any], text: str, tmp_path: Any
) -> None:
    with serving(tmp_path / "data") as own:
        client = Client(own.port)
        for number in range(12):
            client.call("add_memory", path=f"m/{number}", content="x")
        first = cleared(own, name, {}).body["result"]
        assert first["resultType"] == "input_required"
        [question] = first["inputRequests"].values()
        assert question["params"]["message"] == "Delete all 12 memories, also those of other agents?"
        again = {"inputResponses": {"confirm": answer}}
        if "requestState" in first:
            again["requestState"] = first["requestState"]
        assert text in cleared(own, name, {}, **again).body["result"]["content"][0]["text"]
        client.close()


def test_maintenance_asks_too_and_what_cannot_ask_is_not_asked(tmp_path: Any) -> None:
    with serving(tmp_path / "data") as own:
        client = Client(own.port)
        client.call("remember", session_id="s", content="The form is done.")
        purge = {"action": "purge_session", "session_id": "s", "confirm": True}
        asked_first = cleared(own, "maintenance", purge).body["result"]
        assert asked_first["resultType"] == "input_required"
        plain = send(own.port, modern("tools/call", name="maintenance", arguments=purge)).body["result"]
        assert plain["structuredContent"] == {"status": "ok", "deleted": 1}
        client.close()


@BOTH
def test_null_for_an_optional_argument_is_as_if_it_was_left_out_over_mcp_and_json(make: Any, server: Server) -> None:
    plain = {"query": "Which port does the API listen on?"}
    nulls = {**plain, "tags": None, "limit": None, "floor": None}
    listed = {"action": "list", "name": None, "entryId": None, "limit": None}

    assert asked(server, make, "tools/call", name="recall", arguments=nulls) == asked(
        server, make, "tools/call", name="recall", arguments=plain
    )
    assert not asked(server, make, "tools/call", name="memory_tag", arguments=listed)["isError"]
    with closing(Client(server.port)) as client:
        assert client.call("recall", **nulls) == client.call("recall", **plain)
