"""The official client calls every tool of every dialect, with and without null for omitted parameters."""

import asyncio
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp_types import Tool

from kernel.server import app
from tests.security.calls import CALLS, is_end

ROOT = Path(__file__).resolve().parents[2]
DIALECTS = ",".join(dialect.name for dialect in app.DIALECTS)


def strict(tool: Tool, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as a client sends them for which every property is required: null for omitted parameters."""
    assert [*tool.input_schema["properties"]] == tool.input_schema["required"]
    return {**dict.fromkeys(tool.input_schema["properties"]), **given}


def plain(_tool: Tool, given: Mapping[str, Any]) -> dict[str, Any]:
    return {**given}


async def refused(
    folder: Path, arguments: Callable[[Tool, Mapping[str, Any]], dict[str, Any]], *options: str
) -> set[str]:
    """The calls that are answered by an error, in a store of their own; the client checks the others."""
    command = ["-m", "kernel", "stdio", *options, "--data", str(folder)]
    target = StdioServerParameters(command=sys.executable, args=command, cwd=ROOT, env={"QUIPU_DIALECTS": DIALECTS})
    errors = set[str]()
    async with Client(target) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {*tools} == {name for name, _ in CALLS}
        for (name, action), given in sorted(CALLS.items(), key=is_end):
            result = await client.call_tool(name, arguments(tools[name], given))
            if result.is_error:
                errors.add(f"{name} {action}")
    return errors


def test_the_official_client_calls_every_tool_with_and_without_nulls(tmp_path: Path) -> None:
    errors = asyncio.run(refused(tmp_path / "plain", plain))
    with_nulls = asyncio.run(refused(tmp_path / "strict", strict, "--strict"))
    assert with_nulls == errors
    assert len(errors) < len(CALLS) / 3  # those of rows that are not there
