"""The MCP servers of the OpenAI Agents SDK, configured by JSON; prints their results as JSON."""

import asyncio
import json
import sys
from typing import Any

from agents.mcp import MCPServerStdio, MCPServerStreamableHttp


def connected(task: dict[str, Any]) -> Any:
    if "url" in task:
        return MCPServerStreamableHttp({"url": task["url"]})
    program, *arguments = task["command"]
    return MCPServerStdio(
        {"command": program, "args": arguments, "env": task["env"]}, client_session_timeout_seconds=60
    )


async def tour(task: dict[str, Any]) -> dict[str, Any]:
    async with connected(task) as client:
        tools = [tool.name for tool in await client.list_tools()]
        added = await client.call_tool("add_memory", task["memory"])
        found = await client.call_tool("recall", {"query": task["query"]})
        resource = await client.read_resource(task["uri"])
        refused = await client.call_tool("read_memory", {"path": task["missing"]})
        assert refused.is_error
        return {
            "tools": tools,
            "added": added.content[0].text,
            "recalled": found.content[0].text,
            "resource": resource.contents[0].text,
            "refused": refused.content[0].text,
        }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(tour(json.loads(sys.argv[1])))))
