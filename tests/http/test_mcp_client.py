"""The official client over HTTP and stdio, with each way to negotiate a version."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp_types import ElicitRequestFormParams, ElicitResult, Implementation, PromptReference

from tests.http.http_requests import LEGACY, MODERN
from tests.http.mcp_fixture import FIRST, SECOND, Served

ROOT = Path(__file__).resolve().parents[2]
V1 = ROOT / ".venv-clients" / "mcp-v1" / "bin" / "python"
TOOLS = [tool.name for dialect in (FIRST, SECOND) for tool in dialect.tools]
Connect = Callable[..., Client]


@pytest.fixture(params=["http", "stdio"])
def connect(request: pytest.FixtureRequest, tmp_path: Path) -> Connect:
    """Makes a client of either transport."""
    if request.param == "http":
        target: Any = request.getfixturevalue("server").url
    else:
        command = ["-m", "tests.http.mcp_fixture", str(tmp_path)]
        target = StdioServerParameters(command=sys.executable, args=command, cwd=ROOT)
    return lambda **more: Client(target, client_info=Implementation(name="official", version="2"), **more)


@pytest.mark.parametrize("mode", ["auto", "legacy", MODERN])
def test_official_client_lists_calls_and_reads(connect: Connect, mode: str) -> None:
    async def scene() -> None:
        async with connect(mode=mode) as client:
            assert client.protocol_version == (LEGACY if mode == "legacy" else MODERN)
            await lists(client)
            await calls(client)
            await reads(client)

    asyncio.run(scene())


async def lists(client: Client) -> None:
    assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
    assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["greeting", "dialogue", "garbled"]
    found, cursor = [], None
    while True:
        page = await client.list_resources(cursor=cursor)
        found += [resource.uri for resource in page.resources]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert found == ["first://a", "first://b", "first://second/c"]
    templates = (await client.list_resource_templates()).resource_templates
    assert [template.uri_template for template in templates] == ["first://{name}"]


async def calls(client: Client) -> None:
    found = await client.call_tool("echo", {"text": "é\n\u2028"})
    assert (found.is_error, found.structured_content) == (False, {"text": "é\n\u2028"})
    assert (await client.call_tool("fail", {"code": "busy"})).is_error
    with pytest.raises(MCPError) as caught:
        await client.call_tool("absent", {})
    assert caught.value.error.code == -32602


async def reads(client: Client) -> None:
    assert (await client.read_resource("first://a")).contents[0].model_dump()["text"] == "A"
    with pytest.raises(MCPError, match="Resource not found"):
        await client.read_resource("first://nothing")
    prompt = await client.get_prompt("greeting", {"name": "Ada"})
    assert prompt.messages[0].content.model_dump()["text"] == "Greet Ada"
    ref = PromptReference(type="ref/prompt", name="greeting")
    completion = (await client.complete(ref, {"name": "name", "value": "A"})).completion
    assert (len(completion.values), completion.total, completion.has_more) == (100, 150, True)


@pytest.mark.parametrize("mode", ["legacy", MODERN])
def test_official_client_receives_progress_and_logs(connect: Connect, mode: str) -> None:
    steps: list[Any] = []
    lines: list[Any] = []

    async def step(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total, message))

    async def line(params: Any) -> None:
        lines.append((params.level, params.data))

    async def scene() -> None:
        async with connect(mode=mode, logging_callback=line, log_level="error") as client:
            await client.call_tool("report", {"text": "hi"}, progress_callback=step)

    asyncio.run(scene())
    assert steps == [(1, 3, "one"), (2, None, None)]
    assert lines == [("error", "hi")]


def test_official_client_answers_input_requests(connect: Connect) -> None:
    names = iter(["Ada", "Bob", "Eve"])

    async def ask(_context: Any, params: Any) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        return ElicitResult(action="accept", content={"name": next(names)})

    async def scene() -> None:
        async with connect(elicitation_callback=ask) as client:
            found = await client.call_tool("ask", {"text": "Hi"})
            assert found.structured_content == {"text": "Hi Ada and Bob"}
            prompt = await client.get_prompt("dialogue")
            assert prompt.messages[0].content.model_dump()["text"] == "asked Eve"

    asyncio.run(scene())


def test_input_request_without_the_capability_is_an_error(connect: Connect) -> None:
    async def scene() -> None:
        async with connect() as client:
            with pytest.raises(MCPError) as caught:
                await client.call_tool("ask", {"text": "Hi"})
            assert caught.value.error.code == -32021

    asyncio.run(scene())


@pytest.mark.full
@pytest.mark.skipif(not V1.exists(), reason="the environment of the first client was not made")
def test_first_generation_of_the_official_client_is_served(server: Served) -> None:
    command = [V1, Path(__file__).with_name("client_v1.py"), server.url]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")
