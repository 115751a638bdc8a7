"""mcp-use, configured by JSON; prints its results as JSON."""

import asyncio
import json
import sys
from typing import Any

from mcp_use import MCPClient
from pydantic import AnyUrl


def connection(task: dict[str, Any]) -> dict[str, Any]:
    if "url" in task:
        return {"url": task["url"]}
    program, *arguments = task["command"]
    return {"command": program, "args": arguments, "env": task["env"]}


async def tour(task: dict[str, Any]) -> dict[str, Any]:
    clients = MCPClient.from_dict({"mcpServers": {"quipu": connection(task)}})
    client = await clients.create_session("quipu")
    try:
        tools = [tool.name for tool in await client.list_tools()]
        added = await client.call_tool("add_memory", task["memory"])
        found = await client.call_tool("recall", {"query": task["query"]})
        resource = await client.read_resource(AnyUrl(task["uri"]))
        refused = await client.call_tool("read_memory", {"path": task["missing"]})
        assert refused.isError
        return {
            "tools": tools,
            "added": added.content[0].text,
            "recalled": found.content[0].text,
            "resource": resource.contents[0].text,
            "refused": refused.content[0].text,
        }
    finally:
        await clients.close_all_sessions()


if __name__ == "__main__":
    print(json.dumps(asyncio.run(tour(json.loads(sys.argv[1])))))
