"""The first generation of the official client, as a program of its own: `client_v1.py URL` ends with 0 if all is well.

It runs in an environment with that client and nothing of ours, so it states its expectations in plain words.
"""

# pyrefly: ignore-errors
# The names below are those of a release that is not the one installed beside the tests.

import asyncio
import sys
from typing import Any

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client
from mcp.shared.exceptions import McpError
from mcp.types import PromptReference
from pydantic import AnyUrl


async def tour(url: str) -> None:
    steps: list[Any] = []
    lines: list[Any] = []

    async def step(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total, message))

    async def line(params: Any) -> None:
        lines.append((params.level, params.data))

    async with (
        streamablehttp_client(url) as (incoming, outgoing, session_id),
        ClientSession(incoming, outgoing, logging_callback=line) as client,
    ):
        hello = await client.initialize()
        same("version", hello.protocolVersion, "2025-11-25")
        same("session", session_id(), None)
        await client.send_ping()
        await client.set_logging_level("error")
        same("tools", [tool.name for tool in (await client.list_tools()).tools][:2], ["echo", "keep"])
        found = await client.call_tool("echo", {"text": "hi"})
        same("call", (found.isError, found.structuredContent), (False, {"text": "hi"}))
        same("fault", (await client.call_tool("fail", {"code": "busy"})).isError, True)
        same("question", (await client.call_tool("ask", {"text": "Hi"})).isError, True)
        await client.call_tool("report", {"text": "hi"}, progress_callback=step)
        same("steps", steps, [(1.0, 3.0, "one"), (2.0, None, None)])
        same("lines", lines, [("error", "hi")])
        await others(client)


async def others(client: ClientSession) -> None:
    same("resources", [str(one.uri) for one in (await client.list_resources()).resources], ["first://a"])
    same("resource", (await client.read_resource(AnyUrl("first://a"))).contents[0].model_dump()["text"], "A")
    prompt = await client.get_prompt("greeting", {"name": "Ada"})
    same("prompt", prompt.messages[0].content.model_dump()["text"], "Greet Ada")
    ref = PromptReference(type="ref/prompt", name="greeting")
    same("completion", (await client.complete(ref, {"name": "name", "value": "A"})).completion.total, 150)
    try:
        await client.call_tool("absent", {})
    except McpError as error:
        same("unknown tool", error.error.code, -32602)
    else:
        same("unknown tool", "a result", "an error")


def same(what: str, found: Any, expected: Any) -> None:
    if found != expected:
        sys.exit(f"{what}: {found!r} is not {expected!r}")


if __name__ == "__main__":
    asyncio.run(tour(sys.argv[1]))
