"""The MCP toolset of Pydantic AI, configured by JSON; prints its results as JSON."""

import asyncio
import json
import sys
from typing import Any

from fastmcp.client.transports import StdioTransport
from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.mcp import MCPToolset


async def tour(task: dict[str, Any]) -> dict[str, Any]:
    target: Any = task.get("url")
    if target is None:
        program, *arguments = task["command"]
        target = StdioTransport(program, arguments, env=task["env"])
    async with MCPToolset(target) as client:
        tools = [tool.name for tool in await client.list_tools()]
        added = await client.direct_call_tool("add_memory", task["memory"])
        found = await client.direct_call_tool("recall", {"query": task["query"]})
        resource = await client.read_resource(task["uri"])
        try:
            await client.direct_call_tool("read_memory", {"path": task["missing"]})
            refused = ""
        except ModelRetry as error:
            refused = str(error)
        return {
            "tools": tools,
            "added": json.dumps(added),
            "recalled": json.dumps(found),
            "resource": resource,
            "refused": refused,
        }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(tour(json.loads(sys.argv[1])))))
