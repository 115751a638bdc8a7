"""The schemas of all tools by the rules of the clients that refuse most: VS Code, Gemini and OpenAI."""

from collections.abc import Iterator
from typing import Any

import pytest

from kernel.calls.schema import input_schema, output_schema
from kernel.mcp.strict_schemas import strict_schema
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
# Those that OpenAI takes with `strict: true` for every model, and its bounds of 2024, the tightest that it had.
STRICT_KEYWORDS = {"type", "description", "enum", "anyOf", "items", "properties", "required", "additionalProperties"}
MOST_LEVELS, MOST_PROPERTIES, MOST_CHOICES, MOST_CHARACTERS = 5, 100, 500, 15_000


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


def unfit(schema: Any) -> Iterator[str]:
    """Return the reasons for which OpenAI refuses a schema of arguments with `strict: true`."""
    every = [*nodes(schema, "input")]
    for at, node in every:
        if more := node.keys() - STRICT_KEYWORDS:
            yield f"{at}: {more}"
        if not KINDS & node.keys() or ("anyOf" in node and "type" in node):
            yield f"{at}: no type"
        if node.get("type") == "object" and node["additionalProperties"] is not False:
            yield f"{at}: takes any keys"
        if node.get("type") == "object" and [*node["properties"]] != node["required"]:
            yield f"{at}: a property that may be left out"
        if at.count("/properties/") > MOST_LEVELS:
            yield f"{at}: too deep"
    names = [name for _, node in every for name in node.get("properties", ())]
    choices = [choice for _, node in every for choice in node.get("enum", ())]
    if (
        len(names) > MOST_PROPERTIES
        or len(choices) > MOST_CHOICES
        or len("".join([*names, *choices])) > MOST_CHARACTERS
    ):
        yield "input: too large"


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_strict_mode_of_openai_takes_every_strict_schema(tool: Any) -> None:
    schema = strict_schema(input_schema(tool))
    assert schema["type"] == "object"
    assert [*unfit(schema)] == []


def test_strict_schema_tells_limits_and_defaults_in_words() -> None:
    usual = {
        "type": "object",
        "required": ["query"],
        "properties": {
            "query": {"type": "string", "description": "Words.", "minLength": 1, "pattern": r"\S"},
            "limit": {"anyOf": [{"type": "integer", "maximum": 9}, {"type": "null"}], "default": 5},
            "tags": {"type": "array", "items": {"type": "string"}, "default": []},
            "order": {"enum": ["new", "old"], "type": "string"},
            "more": {"type": "object", "properties": {}, "additionalProperties": True, "description": "Any."},
        },
    }
    null = {"type": "null"}
    assert strict_schema(usual) == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "Words. (minLength 1)"},
            "limit": {"anyOf": [{"type": "integer", "description": "(maximum 9)"}, null], "description": "(default 5)"},
            "tags": {
                "anyOf": [{"type": "array", "items": {"type": "string"}}, null],
                "description": "(default [])",
            },
            "order": {"anyOf": [{"type": "string", "enum": ["new", "old"]}, null]},
            "more": {"anyOf": [{"type": "string"}, null], "description": "Any. A JSON object as text."},
        },
        "required": ["query", "limit", "tags", "order", "more"],
        "additionalProperties": False,
    }
