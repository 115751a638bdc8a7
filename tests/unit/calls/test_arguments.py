"""The answer to a client whose arguments do not fit, and the numbers that fit in another form."""

import asyncio
import itertools
import json
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from kernel.calls.arguments import allowed_values, argument_error, error_message, path_steps
from kernel.calls.dialect import Dialect
from kernel.calls.dispatch import ToolEntry
from kernel.calls.schema import Schema, input_schema
from kernel.calls.tools import read
from kernel.security.permissions import ANONYMOUS_CALLER
from kernel.server.app import DIALECTS, Kernel
from kernel.store.transaction import Tx
from tests.conftest import Call, entry_named


class Where(Struct, forbid_unknown_fields=True):
    """A place."""

    kind: Literal["garden", "house"] = "house"
    floors: list[int] = []


class Move(Struct, forbid_unknown_fields=True):
    """Hold the things to move."""

    to: Where
    times: Annotated[int, Meta(ge=1, le=9)] = 1
    weight: Annotated[float, Meta(le=86400)] = 1.0
    name: Annotated[str, Meta(pattern=r"\S")] = "box"
    heavy: bool | None = None
    sides: list[Literal["left", "right"]] = []
    notes: dict[Annotated[str, Meta(min_length=2)], int] = {}
    pace: Literal["fast", "slow"] | float = "slow"
    extras: Annotated[list[Any], Meta(description="Anything")] = []
    label: Annotated[str, Meta(description="One of - . /. Shown on the box")] = ""


class Moved(Struct):
    """Nothing."""


def move(tx: Tx, request: Move) -> Moved:
    """Move something."""
    return Moved()


TOOL = read(move)


def message(arguments: Any) -> str:
    """The refusal of these arguments."""
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.json.decode(msgspec.json.encode(arguments), type=Move)
    return error_message(argument_error(TOOL, refused.value))


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ({"to": {"kind": "attic"}}, "invalid enum value 'attic', choose from garden, house - at `to.kind`"),
        ({"to": {}, "sides": ["left", "up"]}, "invalid enum value 'up', choose from left, right - at `sides[1]`"),
        ({"to": {}, "pace": "2"}, "invalid enum value '2', choose from fast, slow, or a number - at `pace`"),
        ({"to": {}, "times": "2"}, "expected `integer`, got `string` - at `times`"),
        ({"to": {}, "weight": 1e9}, "expected `number` <= 86400 - at `weight`"),
        ({"to": {}, "notes": {"a": 1}}, "expected `string` of length >= 2 as a key - at `notes`"),
        ({"to": {}, "extras": 1}, "expected `array`, got `integer` - at `extras`; expects array (Anything)"),
        ({"to": {}, "heavy": 1}, "expected `boolean | null`, got `integer` - at `heavy`"),
        ({"to": {}, "name": " "}, "must not be blank - at `name`; expects string"),
        ({"to": {}, "weight": "heavy"}, "expected `number`, got `string` - at `weight`"),
        ({"to": {}, "label": 5}, "expected `string`, got `integer` - at `label`; expects string (One of - . /)"),
        ({}, "missing required field `to`; expects object with kind, floors (A place)"),
        ({"to": {"street": 1}}, "contains unknown field `street` - at `to`; `to` takes kind, floors"),
        (
            {"to": {"kind": "x" * 10_000}},
            f"invalid enum value '{'x' * 160}…', choose from garden, house - at `to.kind`",
        ),
        (
            {"to": {"y" * 10_000: 1}},
            f"contains unknown field `{'y' * 160}…` - at `to`; `to` takes kind, floors",
        ),
    ],
)
def test_refusal_names_the_field_and_what_is_allowed_in_the_terms_of_json(arguments: Any, refusal: str) -> None:
    assert message(arguments) == f"Invalid arguments: {refusal}"


def test_path_of_an_error_is_read_step_by_step() -> None:
    assert [path_steps(path) for path in ("", "a", "a.b[0].c", "[...]", "notes[...]")] == [
        [],
        ["a"],
        ["a", "b", 0, "c"],
        [""],
        ["notes", ""],
    ]


@pytest.mark.slow
@given(st.text())
def test_any_path_has_a_list_of_allowed_values(path: str) -> None:
    assert allowed_values(input_schema(TOOL), path) in ([], ["garden", "house"], ["left", "right"])


@pytest.mark.parametrize(
    ("name", "arguments", "given"),
    [
        ("memory_query", {"action": "search", "limit": 5.0}, "limit"),
        ("search_memory", {"query": "tea", "session_id": "s", "limit": 5.0}, "limit"),
        ("get_memories", {"db": "core", "limit": 5.0}, "limit"),
        ("list_memories", {"limit": 5.0}, "limit"),
        ("memory_recall", {"query": "tea", "limit": 5.0}, "limit"),
        ("recall", {"query": "tea", "limit": 5.0}, "limit"),
    ],
)
def test_whole_float_is_taken_for_an_integer_and_no_other(
    call: Call, name: str, arguments: dict[str, Any], given: str
) -> None:
    whole = call(name, **{**arguments, given: 5})
    assert call(name, **arguments) == whole
    refused = call(name, **{**arguments, given: 5.5})
    assert refused.fault == "invalid"
    assert given in refused.body.decode()


@pytest.fixture
def send_raw(kernel: Kernel, runner: asyncio.Runner) -> Callable[[str, bytes], Any]:
    """A call with arguments as they are."""
    return lambda name, raw: runner.run(
        kernel.dispatch.call(entry_named(kernel.dispatch, name), raw, ANONYMOUS_CALLER, None)
    )


def test_any_number_of_values_of_a_call_is_mended(call: Call) -> None:
    memory = {"content": "Tea", "category": "fact", "subcategory": None, "importance": 5.0, "metadata": '{"a":1.0}'}
    saved = json.loads(call("bulk_save_memories", db="core", memories=[memory] * 100).body)
    assert saved["saved"] == 100


def test_a_null_and_half_an_emoji_are_mended_in_one_call(send_raw: Callable[[str, bytes], Any]) -> None:
    answer = send_raw(
        "save_memory", rb'{"db":"core","category":"fact","importance":null,"content":"tea \ud83d","tags":null}'
    )
    assert json.loads(answer.body)["content"] == "tea \ufffd"


SECOND = ["null", '"x"', "[]", "{}", "true", "5.5", "1e300", "7", "7.0"]


def numbers_in(schema: Schema, root: Schema, path: tuple[str, ...] = ("",)) -> Iterator[tuple[str, ...]]:
    """The paths of the integers of a schema that stand in objects, each after the action of its arm of a union."""
    node: Schema = root["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    action: Schema = node.get("properties", {}).get("action", {})
    if len(path) == 1 and action:
        path = (action.get("const") or action.get("enum", [""])[0],)
    for arm in node.get("anyOf", ()):
        yield from numbers_in(arm, root, path)
    if node.get("type") == "integer":
        yield path
    for name, child in node.get("properties", {}).items():
        yield from numbers_in(child, root, (*path, name))


@pytest.mark.parametrize("name", sorted(tool.name for dialect in DIALECTS for tool in dialect.tools))
def test_a_parameter_given_twice_is_refused_or_the_last_counts(
    send_raw: Callable[[str, bytes], Any], name: str
) -> None:
    tool = next(tool for dialect in DIALECTS for tool in dialect.tools if tool.name == name)
    schema = input_schema(tool)
    for (action, *path), second in itertools.product(set(numbers_in(schema, schema)), SECOND):
        *parents, last = map(json.dumps, path)
        body = "{" + (f'"action":"{action}",' if action else "")
        body += "".join(f"{parent}:{{" for parent in parents) + f"{last}:5.0,{last}:{second}"
        body += "}" * (len(parents) + 1)
        assert send_raw(name, body.encode()).fault != "internal", body


@pytest.mark.parametrize(("second", "wanted"), [("2", 2), ("2.0", 2), ("1", 1)])
def test_of_a_parameter_given_twice_the_last_counts(
    call: Call, send_raw: Callable[[str, bytes], Any], second: str, wanted: int
) -> None:
    for path in "abc":
        call("add_memory", path=path, content="tea")
    answer = send_raw("recall", f'{{"query":"tea","limit":5.0,"limit":{second}}}'.encode())
    assert len(json.loads(answer.body)["memories"]) == wanted


def test_numbers_in_free_json_stay_as_they_were_given(call: Call) -> None:
    metadata = {"ratio": 1.0, "count": 2}
    call("save_memory", db="core", content="Tea", category="fact", importance=5.0, metadata=metadata)
    assert b'"ratio":1.0' in call("get_memories", db="core", limit=1.0).body.replace(b" ", b"").replace(b"\\", b"")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("tea", "expected `object | null`, got `string`"),
        ('{"a":', "expected `object | null`, got `string`"),
        ("[1]", "expected `object | null`, got `string`"),
        ("{" * 100_000, "expected `object | null`, got `string`"),
        ('{"a":[' + "[]," * 50_000 + "0]}", "expected `object | null`, got `string`"),  # too many values for a request
    ],
)
def test_text_that_is_no_json_object_is_refused_for_an_object_of_free_keys(call: Call, text: str, reason: str) -> None:
    refused = call("save_memory", db="core", content="Tea", category="fact", metadata=text)
    assert reason in refused.body.decode()


def test_json_text_is_taken_for_an_object_of_free_keys_and_no_other(call: Call) -> None:
    saved = call("save_memory", db="core", content="Tea", category="fact", metadata=' {"a": [1.0, null]}')
    assert saved.fault is None
    (memory,) = msgspec.json.decode(call("get_memories", db="core").body)
    assert memory["metadata"] == '{"a":[1.0,null]}'
    refused = call("memory_query", action="search", scope='{"type":"global"}')
    assert "scope - expected object, got string" in refused.body.decode()


def test_decoder_of_a_tool_is_made_once() -> None:
    dialect = Dialect("moves", "", (TOOL,), lambda _tool, _result: None, lambda _fault: None)  # type: ignore[arg-type,return-value]
    entry = ToolEntry(dialect, TOOL)
    assert entry.decode is entry.decode
