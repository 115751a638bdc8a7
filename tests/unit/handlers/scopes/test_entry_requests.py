"""The schemas that a model reads: every parameter is described, and free texts are free."""

import pytest

from handlers import scopes
from kernel.calls.schema import input_schema
from tests.unit.handlers.scopes.conftest import Do


@pytest.mark.parametrize("tool", scopes.DIALECT.tools, ids=lambda tool: tool.name)
def test_every_parameter_has_a_description(tool: scopes.Tool) -> None:
    properties = input_schema(tool).get("properties", {})
    assert [name for name, schema in properties.items() if "description" not in schema] == []


def test_the_category_of_tools_knowledge_and_tags_is_free_text(do: Do) -> None:
    word = {"category": "convention"}
    made = do("memory_tool", "add", scopeType="global", name="t", **word)["tool"]
    fact = do("memory_knowledge", "add", scopeType="global", title="k", content="a", **word)["knowledge"]
    tag = do("memory_tag", "create", name="mine", **word)["tag"]
    assert [made["category"], fact["category"], tag["category"]] == ["convention"] * 3
    changed = do("memory_knowledge", "update", id=fact["id"], category="other")["knowledge"]
    assert changed["category"] == "other"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("memory_project", "get: id or name;"),
        ("memory_guideline", "get: id, or name with scopeType;"),
        ("memory_knowledge", "get: id, or title with scopeType;"),
        ("memory_relation", "delete: id, or all five fields."),
        ("memory_tag", "attach: entryType, entryId, tagId or tagName;"),
    ],
)
def test_action_names_the_parameters_of_which_one_is_needed(name: str, sentence: str) -> None:
    (tool,) = (tool for tool in scopes.DIALECT.tools if tool.name == name)
    assert sentence in input_schema(tool)["properties"]["action"]["description"]
