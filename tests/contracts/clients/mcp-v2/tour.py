"""The official Python client, second generation, configured by JSON; prints its results as JSON."""

import asyncio
import json
import sys
from typing import Any

from mcp import Client, StdioServerParameters


async def tour(task: dict[str, Any]) -> dict[str, Any]:
    target: Any = task.get("url")
    if target is None:
        program, *arguments = task["command"]
        target = StdioServerParameters(command=program, args=arguments, env=task["env"])
    async with Client(target) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        added = await client.call_tool("add_memory", task["memory"])
        found = await client.call_tool("recall", {"query": task["query"]})
        resource = await client.read_resource(task["uri"])
        refused = await client.call_tool("read_memory", {"path": task["missing"]})
        assert refused.is_error
        failed = list[str]()
        for name, arguments in task.get("calls", ()):
            try:
                await client.call_tool(name, arguments)
            except Exception as error:  # the tour goes on, and tells all
                failed.append(f"{name}: {error}")
        return {
            "tools": tools,
            "added": added.content[0].text,
            "recalled": found.content[0].text,
            "resource": resource.contents[0].text,
            "refused": refused.content[0].text,
            "failed": failed,
        }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(tour(json.loads(sys.argv[1])))))
