"""Null for an optional argument means that it is not given, in every tool and action and every REST method."""

import asyncio
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator
from msgspec import inspect

from handlers.console.commands import COMMANDS
from kernel.calls.dispatch import ToolEntry
from kernel.calls.schema import input_schema
from kernel.calls.tools import Schema, Tool
from kernel.core.config import Config
from kernel.mcp.strict_schemas import strict_schema
from kernel.security.permissions import ANONYMOUS_CALLER
from kernel.server import app
from kernel.server.app import Kernel, open_kernel
from tests.conftest import Call, Clock
from tests.security.calls import CALLS
from tests.unit.rest_client import RestClient

Arguments = Mapping[str, Any]
TOOLS = {tool.name: tool for dialect in app.DIALECTS for tool in dialect.tools}
METHODS = {method.tool.name: method.tool for dialect in app.DIALECTS for method in dialect.rest}
# Objects as parameters, with omitted members.
OBJECTS: Mapping[tuple[str, str], Arguments] = {
    ("memory_query", "search"): {
        "scope": {"type": "global"},
        "tags": {"include": ["mine"]},
        "relatedTo": {"type": "tool", "id": "absent"},
    },
}
FREE: Arguments = {"why": None, "parts": [1, {"a": "b"}]}
DURATION = re.compile(rb'"[a-z_]*time_ms":[0-9.]+')
ENDS = ("delete", "forget", "drop", "clear", "purge", "reset", "maintenance")  # so that others have something to read
ORDERED = sorted(CALLS, key=lambda call: call[0].startswith(ENDS) or call[1] in ENDS)


type_info = cache(inspect.type_info)


def arm_of(tool: Tool, action: str) -> inspect.StructType:
    """The fields that this action of a tool takes."""
    whole = type_info(tool.request)
    arms: Any = getattr(whole, "types", (whole,))
    return next(one for one in arms if not action or one.tag in {None, action})


def needs(tool: Tool, action: str) -> set[str]:
    """The parameters that this action of a tool requires."""
    arm = arm_of(tool, action)
    return {field.encode_name for field in arm.fields if field.required} | {arm.tag_field or "action"}


def optional(tool: Tool, action: str) -> list[str]:
    """The parameters that it does not require, those of the other actions included."""
    return [name for name in input_schema(tool)["properties"] if name not in needs(tool, action)]


def with_null_members(value: Any, declared: Any) -> Any:
    """The value with a null for each optional member of the objects in it that it leaves out."""
    kind = getattr(declared, "type", declared)
    kinds = [getattr(part, "type", part) for part in getattr(kind, "types", (kind,))]
    if isinstance(value, list):
        return [with_null_members(part, one.item_type) for one in kinds for part in value if hasattr(one, "item_type")]
    structs = [one for one in kinds if isinstance(one, inspect.StructType)]
    if not structs:
        return value
    fields = {field.encode_name: field for field in structs[0].fields}
    members = {name: with_null_members(part, fields[name].type) for name, part in value.items()}
    return {**{name: None for name, field in fields.items() if not field.required}, **members}


def free_objects(schema: Schema) -> Arguments:
    """A value for each parameter with objects of any keys."""
    every = {name: (part, *part.get("anyOf", ())) for name, part in schema.get("properties", {}).items()}
    return {name: FREE for name, parts in every.items() if any(map(is_free, parts))}


def is_free(schema: Schema) -> bool:
    """Whether an object of any keys and values may be there."""
    return schema.get("additionalProperties") is True and not schema["properties"]


def strict_value(value: Any, schema: Schema) -> Any:
    """The same value by the strict schema: null for a member that is absent, and an object of free keys as text."""
    parts = [schema, *schema.get("anyOf", ())]
    if isinstance(value, list):
        items = next((part["items"] for part in parts if "items" in part), {})
        return [strict_value(part, items) for part in value]
    objects = [part for part in parts if part.get("type") == "object"]
    if not isinstance(value, dict) or not objects:
        return value
    members = objects[0]["properties"]
    if not members and objects[0].get("additionalProperties") is not False:
        return json.dumps(value)
    return {name: strict_value(value.get(name), part) for name, part in members.items()}


class Twins:
    """Two kernels that get the same calls, but one null where the other gets nothing."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folders = (folder / "a", folder / "b")
        self.kernels = [open_kernel(Config(data=folder / "data")) for folder in self.folders]
        self.runner, self.count, self.ids = asyncio.Runner(), 0, itertools.count()
        patch.setattr("kernel.store.transaction.new_id", lambda prefix, _clock: f"{prefix}_{next(self.ids)}")

    def close(self) -> None:
        """End both."""
        for kernel in self.kernels:
            kernel.store.close()
        self.runner.close()

    def answers(self, name: str, *arguments: Arguments) -> list[bytes]:
        """The answers to the first arguments, and of the other kernel to the second, both under one folder."""
        found: list[bytes] = []
        self.count += 1
        for folder, kernel, given in zip(self.folders, self.kernels, arguments, strict=True):
            self.ids = itertools.count(self.count * 1000)
            entry = ToolEntry(*next((d, t) for d in app.DIALECTS for t in d.tools if t.name == name))
            answer = kernel.dispatch.call(entry, msgspec.json.encode(given), ANONYMOUS_CALLER)
            reply: Any = self.runner.get_loop().run_until_complete(answer)
            kernel.store.write_sync(lambda _tx: None)  # the work after a read, such as a count of access, comes first
            found.append(DURATION.sub(b"", reply.body.replace(str(folder).encode(), b"FOLDER")))
        return found


@pytest.fixture
def rest(kernel: Kernel, runner: asyncio.Runner) -> Iterator[RestClient]:
    """Requests to `/v1/memory_stores`."""
    client = RestClient(kernel, runner)
    yield client
    client.close()


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twins]:
    """One pair for all tools, whose clocks stand still."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kernel.store.transaction.utc_now", Clock("2026-01-02T03:04:05.678Z"))
        pair = Twins(tmp_path_factory.mktemp("twins"), patch)
        for (name, _), given in CALLS.items():
            if not name.startswith(ENDS):
                pair.answers(name, given, given)
        yield pair
        pair.close()


@pytest.mark.parametrize(("name", "action"), ORDERED)
def test_null_for_an_optional_argument_is_answered_as_if_it_was_not_given(twins: Twins, name: str, action: str) -> None:
    usual = {**CALLS[name, action], **OBJECTS.get((name, action), {})}
    names = optional(TOOLS[name], action)
    wrong: list[tuple[str, bytes, bytes]] = []
    for parameter in [*names, names]:
        nulls = dict.fromkeys(parameter if isinstance(parameter, list) else [parameter])
        plain = {key: value for key, value in usual.items() if key not in nulls}
        without, with_null = twins.answers(name, plain, {**plain, **nulls})
        if without != with_null:
            wrong.append((str(parameter), without[:300], with_null[:300]))
    assert wrong == []


@pytest.mark.parametrize(("name", "action"), CALLS)
def test_null_in_an_object_of_a_parameter_is_answered_as_if_it_was_not_given(
    twins: Twins, name: str, action: str
) -> None:
    usual = {**CALLS[name, action], **OBJECTS.get((name, action), {})}
    types = {field.encode_name: field.type for field in arm_of(TOOLS[name], action).fields}
    nulls = {key: with_null_members(value, types[key]) if key in types else value for key, value in usual.items()}
    if nulls != usual:
        without, with_null = twins.answers(name, usual, nulls)
        assert without == with_null


@pytest.mark.parametrize(("name", "action"), CALLS)
def test_arguments_of_the_strict_schema_are_answered_as_the_usual_ones(twins: Twins, name: str, action: str) -> None:
    whole = input_schema(TOOLS[name])
    taken = {field.encode_name for field in arm_of(TOOLS[name], action).fields}
    free = {key: value for key, value in free_objects(whole).items() if key in taken}
    usual = {**CALLS[name, action], **OBJECTS.get((name, action), {}), **free}
    strict = strict_schema(whole)
    arguments = strict_value(usual, {**whole, "additionalProperties": False})
    assert not [*Draft202012Validator(strict).iter_errors(arguments)]

    without, with_all = twins.answers(name, usual, arguments)

    assert without == with_all
    assert usual == arguments or {*arguments} == {*whole["properties"]}


@pytest.mark.parametrize(("name", "action"), CALLS)
def test_null_for_a_required_argument_is_refused_by_name(call: Call, name: str, action: str) -> None:
    for parameter in needs(TOOLS[name], action) & {*CALLS[name, action]}:
        reply = call(name, **{**CALLS[name, action], parameter: None})
        assert reply.fault == "invalid"
        assert parameter in reply.body.decode()


def test_null_for_an_unknown_argument_is_refused_by_name(call: Call) -> None:
    assert "unheard_of" in call("recall", query="tea", unheard_of=None).body.decode()
    assert "unheard_of" in call("memory_query", action="search", unheard_of=None).body.decode()


def test_null_and_a_whole_float_come_together(call: Call) -> None:
    assert call("recall", query="tea", limit=5.0, tags=None) == call("recall", query="tea", limit=5)


def test_null_in_free_json_is_kept(call: Call) -> None:
    metadata = {"why": None, "parts": [None, {"a": None}]}
    call("save_memory", db="core", content="Tea", category="fact", importance=None, metadata=metadata)

    (memory,) = msgspec.json.decode(call("get_memories", db="core", limit=None).body)

    assert memory["metadata"] in (metadata, msgspec.json.encode(metadata).decode())


def test_null_is_absent_in_rest_methods_except_for_a_key_of_metadata_that_it_removes(rest: RestClient) -> None:
    store = rest("POST", "", {"name": "Notes", "description": None, "metadata": {"a": "1", "b": "2"}})
    assert store["description"] == ""
    assert rest("POST", "", {"name": "Notes", "metadata": None})["metadata"] == {}

    changed = rest("POST", f"/{store['id']}", {"name": None, "description": None, "metadata": {"a": None}})

    assert changed["metadata"] == {"b": "2"}
    assert {**changed, "metadata": 0, "updated_at": 0} == {**store, "metadata": 0, "updated_at": 0}
    memory = rest("POST", f"/{store['id']}/memories", {"path": "/a", "content": "Tea", "view": None})
    assert memory["content"] is None
    shown = rest("POST", f"/{store['id']}/memories/{memory['id']}", {"precondition": None, "view": None}, view="full")
    assert shown["content"] == "Tea"


@pytest.mark.parametrize(
    ("name", "plain"),
    [("recall", {"query": "tea"}), ("list", {}), ("add", {"text": "Tea is green.", "dialect": "paths"}), ("stats", {})],
)
def test_null_is_absent_in_the_commands_for_memories(rest: RestClient, name: str, plain: Arguments) -> None:
    optional = {"limit", "dialects", "tags", "actor", "after", "before", "name"} & {
        field.encode_name for field in msgspec.structs.fields(COMMANDS[name].request)
    }
    answers = [
        rest.send("POST", f"/memories/{name}", json=given) for given in ({**plain, **dict.fromkeys(optional)}, plain)
    ]
    assert [answer.status_code for answer in answers] == ([200, 409] if name == "add" else [200, 200])
    assert answers[0].content == answers[1].content or name == "add"
