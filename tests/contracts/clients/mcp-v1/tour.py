"""The official Python client, first generation, configured by JSON; prints its results as JSON."""

import asyncio
import json
import sys
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl


def connected(task: dict[str, Any]) -> Any:
    if "url" in task:
        return streamable_http_client(task["url"])
    program, *arguments = task["command"]
    return stdio_client(StdioServerParameters(command=program, args=arguments, env=task["env"]))


async def tour(task: dict[str, Any]) -> dict[str, Any]:
    async with connected(task) as (incoming, outgoing, *_), ClientSession(incoming, outgoing) as client:
        await client.initialize()
        tools = [tool.name for tool in (await client.list_tools()).tools]
        added = await client.call_tool("add_memory", task["memory"])
        found = await client.call_tool("recall", {"query": task["query"]})
        resource = await client.read_resource(AnyUrl(task["uri"]))
        refused = await client.call_tool("read_memory", {"path": task["missing"]})
        assert refused.isError
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
