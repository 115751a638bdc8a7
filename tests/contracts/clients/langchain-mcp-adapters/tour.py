"""LangChain's adapters, configured by JSON; prints their results as JSON."""

import asyncio
import json
import sys
from typing import Any

from langchain_core.tools import ToolException
from langchain_mcp_adapters.client import MultiServerMCPClient


def connection(task: dict[str, Any]) -> dict[str, Any]:
    if "url" in task:
        return {"transport": "streamable_http", "url": task["url"]}
    program, *arguments = task["command"]
    return {"transport": "stdio", "command": program, "args": arguments, "env": task["env"]}


def text(answer: Any) -> str:
    return answer if isinstance(answer, str) else "".join(block["text"] for block in answer)


async def tour(task: dict[str, Any]) -> dict[str, Any]:
    client = MultiServerMCPClient({"quipu": connection(task)}, handle_tool_errors=False)
    tools = {tool.name: tool for tool in await client.get_tools()}
    added = await tools["add_memory"].ainvoke(task["memory"])
    found = await tools["recall"].ainvoke({"query": task["query"]})
    (resource,) = await client.get_resources("quipu", uris=task["uri"])
    try:
        await tools["read_memory"].ainvoke({"path": task["missing"]})
        refused = ""
    except ToolException as error:
        refused = str(error)
    return {
        "tools": list(tools),
        "added": text(added),
        "recalled": text(found),
        "resource": resource.as_string(),
        "refused": refused,
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(tour(json.loads(sys.argv[1])))))
