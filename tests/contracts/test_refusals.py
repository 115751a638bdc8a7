"""Wrong calls made from the schemas of all tools: each refusal names the parameter, and how to mend the call."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple, get_args

import msgspec
import pytest

from kernel.calls.schema import Schema, input_schema
from kernel.calls.tools import Tool
from kernel.server.app import DIALECTS, Kernel
from tests.conftest import Call
from tests.unit.rest_client import RestClient

TOOLS = [tool for dialect in DIALECTS for tool in dialect.tools]
# Tools that ignore unknown parameters, as their original does.
IGNORE_UNKNOWN = {tool.name for dialect in DIALECTS if dialect.name in {"graph", "files"} for tool in dialect.tools}
WRONG: dict[str, Any] = {"string": ["a"], "integer": "many", "number": "many", "boolean": "perhaps", "array": 7}
RULE: dict[str, Any] = {"action": "add", "name": "tea", "content": "Green.", "scopeType": "global"}
TEXT: dict[str, Any] = {"session_id": "s", "content": "Green."}


class WrongCall(NamedTuple):
    """Yield arguments with a wrong value, its name, and texts of which any mends the call."""

    arguments: dict[str, Any]
    name: str
    remedies: tuple[str, ...]


def plain(schema: Schema, root: Schema) -> Schema:
    """A schema without references, and without its null."""
    if "$ref" in schema:
        return plain(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    choices = [choice for choice in schema.get("anyOf", ()) if choice.get("type") != "null"]
    return plain(choices[0], root) if choices else schema


def fitting(schema: Schema, root: Schema) -> Any:
    """A value that a parameter accepts."""
    shape = plain(schema, root)
    if "enum" in shape:
        return shape["enum"][0]
    match shape.get("type"):
        case "integer" | "number":
            return shape.get("minimum", 1)
        case "boolean":
            return True
        case "array":
            return [fitting(shape.get("items", {}), root)]
        case "object":
            return {name: fitting(shape["properties"][name], root) for name in shape.get("required", ())}
        case _:
            return "2026-01-01T00:00:00Z" if shape.get("format") == "date-time" else "tea"


def wrong_parts(shape: Schema, root: Schema) -> Iterator[tuple[Any, str, tuple[str, ...]]]:
    """Arrays with a wrong item and objects with a wrong member, their places, and their remedies."""
    item = plain(shape.get("items", {}), root)
    if item.get("type") in WRONG:
        yield [fitting(item, root), WRONG[item["type"]]], "[1]", (str(item["type"]), *map(str, item.get("enum", ())))
    for name, schema in shape.get("properties", {}).items():
        member = plain(schema, root)
        if member.get("type") in WRONG:
            remedies = (str(member["type"]), *map(str, member.get("enum", ())))
            yield {**fitting(shape, root), name: WRONG[member["type"]]}, f".{name}", remedies


def wrong_sizes(shape: Schema, root: Schema) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Texts and arrays that are too long or empty, an enum in capitals, a number as text, and their remedies."""
    if "maxLength" in shape and "enum" not in shape:
        yield "x" * (shape["maxLength"] + 1), (str(shape["maxLength"]),)
    if shape.get("minLength") and "enum" not in shape:
        yield "", ("length >= 1", "blank", "empty", "is required")
    if "maxItems" in shape:
        yield [fitting(shape["items"], root)] * (shape["maxItems"] + 1), (str(shape["maxItems"]),)
    if str(shape.get("enum", [""])[0]).islower():
        yield shape["enum"][0].upper(), tuple(map(str, shape["enum"]))
    if shape.get("type") in {"integer", "number", "boolean"}:
        yield "1", (str(shape["type"]),)


def wrong_calls(tool: Tool) -> Iterator[WrongCall]:
    """One call for each way in which each parameter can be wrong."""
    root = input_schema(tool)
    properties: dict[str, Schema] = root.get("properties", {})
    usual = {name: fitting(properties[name], root) for name in root.get("required", ())}
    for name, schema in properties.items():
        shape = plain(schema, root)
        kind = str(shape.get("type", ""))
        if tool.name not in IGNORE_UNKNOWN:
            misspelt = name + name[-1]
            yield WrongCall({**usual, misspelt: usual.get(name, fitting(schema, root))}, misspelt, (name,))
        if "enum" in shape:
            yield WrongCall({**usual, name: "nonsense"}, name, tuple(map(str, shape["enum"])))
        elif kind in WRONG and "anyOf" not in schema:
            yield WrongCall({**usual, name: WRONG[kind]}, name, (kind,))
        yield from (WrongCall({**usual, name: value}, name, remedies) for value, remedies in wrong_sizes(shape, root))
        for bound, step in (("minimum", -1), ("maximum", 1)):
            if bound in shape and kind in {"integer", "number"}:
                yield WrongCall({**usual, name: shape[bound] + step}, name, (str(shape[bound]),))
        yield from (
            WrongCall({**usual, name: value}, f"{name}{place}", remedies)
            for value, place, remedies in wrong_parts(shape, root)
        )
        if name in usual:
            yield WrongCall(
                {key: value for key, value in usual.items() if key != name},
                name,
                (kind, f"{name} is required", *map(str, shape.get("enum", ()))),
            )


def wrong_calls_of_actions(tool: Tool) -> Iterator[WrongCall]:
    """One call of each action of a tool with a parameter that it does not have, and one of no action of the tool."""
    arms = get_args(tool.request)
    tag = arms[0].__struct_config__.tag_field
    actions = tuple(str(arm.__struct_config__.tag) for arm in arms)
    yield WrongCall({tag: "nonsense"}, tag, actions)
    yield WrongCall({}, tag, actions)
    for value in (None, 7, "", actions[0].upper(), actions[0] + "s"):
        yield WrongCall({tag: value}, tag, actions)
    for arm, action in zip(arms, actions, strict=True) if tool.name not in IGNORE_UNKNOWN else ():
        yield WrongCall({tag: action, "nonsense": 1}, "nonsense", (f"{tool.name} {action} takes",))
        for name in arm.__struct_encode_fields__:
            yield WrongCall({tag: action, name + name[-1]: 1}, name + name[-1], (f"did you mean `{name}`?",))


@pytest.mark.parametrize("tool", TOOLS, ids=[tool.name for tool in TOOLS])
def test_a_refusal_names_the_parameter_and_the_remedy(call: Call, tool: Tool) -> None:
    calls = [*(wrong_calls_of_actions if get_args(tool.request) else wrong_calls)(tool)]
    answers = [(wrong, call(tool.name, **wrong.arguments)) for wrong in calls]
    unclear = [
        (wrong, reply.body.decode())
        for wrong, reply in answers
        if reply.fault is None
        or wrong.name not in reply.body.decode()
        or not any(remedy and remedy in reply.body.decode() for remedy in wrong.remedies)
    ]
    assert unclear == []


@pytest.mark.parametrize(
    ("tool", "arguments", "remedy"),
    [
        ("save_memory", {"db": "core", "category": "fact", "text": "tea"}, "did you mean `content`?"),
        ("memory_forget", {"filePath": "tea.md"}, "did you mean `filePaths`?"),
        ("get_memory_history", {"id": "mem_1"}, "did you mean `memory_id`?"),
        (
            "memory_guideline",
            {"action": "update", "name": "tea", "content": "Green."},
            "memory_guideline update takes id, category, priority, content, rationale, examples, changeReason, "
            "updatedBy, expectedVersion; get with name and scopeType tells the id",
        ),
        (
            "memory_knowledge",
            {"action": "update", "title": "tea", "content": "Green."},
            "expectedVersion; get with title and scopeType tells the id",
        ),
        ("memory_guideline", {**RULE, "tags": ["a"]}, "; tags are attached by memory_tag"),
        ("memory_guideline", {**RULE, "text": "Green."}, "did you mean `content`?"),
        ("memory_guideline", {**RULE, "query": "tea"}, "memory_guideline add takes scopeType, name, content, "),
        ("memory_query", {"action": "context", "scopeType": "project", "scopeId": "tea"}, "the scopeId of tea is {id}"),
        ("memory_guideline", {**RULE, "scopeType": "project", "scopeId": "tea"}, "the scopeId of tea is {id}"),
        ("memory_session", {"action": "start", "projectId": "tea"}, "the projectId of tea is {id}"),
        ("memory_project", {"action": "get", "id": "tea"}, "the id of tea is {id}"),
        ("memory_project", {"action": "update", "id": "tea", "description": "Green."}, "the id of tea is {id}"),
        ("read_memory", {"path": "drinks/te"}, "did you mean drinks/tea, list_memories shows the paths"),
        (
            "replace_memory",
            {"path": "drinks/te", "content": "Green."},
            "did you mean drinks/tea, please use add_memory",
        ),
        ("drop_memory", {"path": "drinks/te"}, "did you mean drinks/tea, list_memories shows the paths"),
        ("memory_query", {"action": "search", "tags": ["a"]}, "expects object with include, require, exclude"),
        ("remember", {**TEXT, "tags": ["a", "b"]}, "at `tags`; expects string (Tags separated by commas"),
        ("remember", {**TEXT, "metadata_json": {}}, "at `metadata_json`; expects string (JSON object encoded as"),
    ],
)
def test_a_refusal_of_a_usual_mistake_tells_the_right_call(
    call: Call, tool: str, arguments: dict[str, Any], remedy: str
) -> None:
    made = call("memory_project", action="create", name="tea")
    project = msgspec.json.decode(made.body)["project"]["id"]
    assert call("add_memory", path="drinks/tea", content="Green.").fault is None
    refused = call(tool, **arguments)
    assert refused.fault is not None
    assert remedy.format(id=project) in refused.body.decode()


@pytest.mark.parametrize(
    ("command", "arguments", "name", "remedy"),
    [
        ("recall", {"q": "tea"}, "`q`", "did you mean `query`?"),
        ("recall", {}, "`query`", "expects string"),
        ("recall", {"query": "tea", "limit": "many"}, "`limit`", "integer"),
        ("recall", {"query": "tea", "dialects": ["paths", 7]}, "`dialects[1]`", "string"),
        ("list", {"limit": 0}, "`limit`", ">= 1"),
        ("edit", {"id": "paths/a", "vers": "x"}, "`vers`", "did you mean `version`?"),
        ("erase", {"id": ["paths/a"]}, "`id`", "did you mean `ids`?"),
        ("stats", {"all": True}, "`all`", "stats takes no parameters"),
    ],
)
def test_a_command_for_memories_refuses_as_tools_do(
    kernel: Kernel, runner: asyncio.Runner, command: str, arguments: dict[str, Any], name: str, remedy: str
) -> None:
    with closing(RestClient(kernel, runner)) as rest:
        answer = rest.send("POST", f"/memories/{command}", json=arguments)
    message = answer.json()["error"]["message"]
    assert (answer.status_code, name in message, remedy in message) == (400, True, True), message
