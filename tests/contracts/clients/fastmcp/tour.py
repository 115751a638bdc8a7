"""The client of fastmcp, configured by JSON; prints its results as JSON."""

import asyncio
import json
import sys
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError


async def tour(task: dict[str, Any]) -> dict[str, Any]:
    target: Any = task.get("url")
    if target is None:
        program, *arguments = task["command"]
        target = StdioTransport(program, arguments, env=task["env"])
    async with Client(target) as client:
        tools = [tool.name for tool in await client.list_tools()]
        added = await client.call_tool("add_memory", task["memory"])
        found = await client.call_tool("recall", {"query": task["query"]})
        resource = await client.read_resource(task["uri"])
        try:
            await client.call_tool("read_memory", {"path": task["missing"]})
            refused = ""
        except ToolError as error:
            refused = str(error)
        return {
            "tools": tools,
            "added": added.content[0].text,
            "recalled": found.content[0].text,
            "resource": resource[0].text,
            "refused": refused,
        }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(tour(json.loads(sys.argv[1])))))
