"""The tools of `graph` are those of the reference server, whose list of tools is kept in `graph_tools.json`."""

import json
from pathlib import Path
from typing import Any

from handlers import graph
from kernel.mcp.listings import tool_entry

RECORDED = json.loads(Path(__file__).with_name("graph_tools.json").read_text(encoding="utf-8"))
# Words that describe an object, or are empty for a tool that only reads; see the table of deviations.
LEFT_OUT = {"$schema", "$defs", "title"}


def inline(schema: Any, parts: Any) -> Any:
    """A schema with its definitions in place, without descriptions of objects and of parameters that hold objects."""
    if isinstance(schema, list):
        return [inline(one, parts) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return inline(parts[schema["$ref"].rpartition("/")[2]], parts)
    found = {key: inline(value, parts) for key, value in schema.items() if key not in LEFT_OUT}
    holds_objects = found.get("items", {}).get("type") == "object"
    dropped = {"description"} if holds_objects or found.get("type") == "object" else set[str]()
    return {key: value for key, value in found.items() if key not in dropped and (key, value) != ("required", [])}


def comparable(tool: dict[str, Any]) -> dict[str, Any]:
    reads = tool["annotations"]["readOnlyHint"]
    unsaid = {"destructiveHint", "idempotentHint"} if reads else set()
    return {
        "name": tool["name"],
        "title": tool["title"],
        "description": tool["description"].removesuffix("."),
        "annotations": {name: value for name, value in tool["annotations"].items() if name not in unsaid},
        **{key: inline(tool[key], tool[key].get("$defs")) for key in ("inputSchema", "outputSchema")},
    }


def test_tools_are_those_of_the_reference_server_in_its_order() -> None:
    assert [comparable(tool_entry(tool)) for tool in graph.DIALECT.tools] == [comparable(tool) for tool in RECORDED]
