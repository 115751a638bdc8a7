"""The schemas of all tools by the rules of the clients that refuse most: VS Code, Gemini and OpenAI."""

from collections.abc import Iterator
from typing import Any

import pytest

from kernel.calls.schema import input_schema, output_schema
from kernel.server import app

TOOLS = [tool for dialect in app.DIALECTS for tool in dialect.tools]
NAMES = ("properties", "$defs")  # of objects whose keys are names
KINDS = {"type", "anyOf"}
TYPES = {"string", "integer", "number", "boolean", "array", "object", "null"}
# Gemini takes these keywords of JSON Schema, and refuses a request with others.
KEYWORDS = {
    *("type", "description", "title", "default", "enum", "items", "properties", "required", "anyOf"),
    *("minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength", "pattern", "additionalProperties"),
}


def nodes(node: Any, path: str, *, names: bool = False) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each schema in a schema, with its path."""
    if isinstance(node, list):
        for number, part in enumerate(node):
            yield from nodes(part, f"{path}/{number}")
    elif isinstance(node, dict):
        if not names:
            yield path, node
        for key, part in node.items():
            if names or key in {*NAMES, "items", "anyOf", "additionalProperties"}:
                yield from nodes(part, f"{path}/{key}", names=not names and key in NAMES)


def is_array(node: dict[str, Any]) -> bool:
    return node.get("type") == "array" and "prefixItems" not in node


def complaints(schema: Any, path: str) -> Iterator[str]:
    """Return the reasons for which a strict client refuses a schema."""
    for at, node in nodes(schema, path):
        if not KINDS & node.keys():
            yield f"{at}: no type"
        if "type" in node and node["type"] not in TYPES:
            yield f"{at}: type {node['type']}"
        if (is_array(node) and "items" not in node) or (node.get("type") == "object" and "properties" not in node):
            yield f"{at}: an {node['type']} without items or properties"
        if "enum" in node and (not node["enum"] or len({*map(type, node["enum"])}) > 1):
            yield f"{at}: an enum of several types"
        missing = {*node.get("required", ())} - {*node.get("properties", ())}
        if missing:
            yield f"{at}: {missing} required and not there"
        if at.startswith("input") and (more := node.keys() - KEYWORDS):
            yield f"{at}: {more}"


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_the_strictest_clients_take_every_schema(tool: Any) -> None:
    schema = input_schema(tool)
    assert (schema["type"], tool.name.isidentifier(), len(tool.name) <= 64) == ("object", True, True)
    assert [*complaints(schema, "input")] == []
    assert [at for at, node in nodes(output_schema(tool), "output") if "items" not in node and is_array(node)] == []
