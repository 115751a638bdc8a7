"""JSON schema of arguments and results: one object each, with its needs alone."""

from typing import Annotated, Any, Literal

import msgspec
import pytest
from jsonschema import Draft202012Validator
from msgspec import Meta

from kernel.calls.dialect import Dialect
from kernel.calls.schema import input_schema, output_schema, result_types, with_configured_choices
from kernel.calls.settings import Setting, names
from kernel.calls.tools import InputRequired, Interaction, Reply, read
from kernel.server import app


class Leaf(msgspec.Struct):
    name: str


class Tree(msgspec.Struct, forbid_unknown_fields=True):
    """A tree."""

    leaf: Leaf
    kind: Annotated[Literal["oak", "pine"], Meta(description="Which tree")] = "oak"
    children: list["Tree"] = []


class Plant(msgspec.Struct, tag="plant", tag_field="action", forbid_unknown_fields=True):
    leaf: Leaf
    depth: int | None = 3
    limit: int = 20
    order: Literal["old", "new"] = "old"
    until: None = None


class Fell(msgspec.Struct, tag="fell", tag_field="action", forbid_unknown_fields=True):
    name: Annotated[str, Meta(description="Which one")]
    leaf: Annotated[Leaf | None, Meta(description="Where")] = None
    limit: Annotated[int, Meta(description="How many")] = 20
    order: Literal["old", "new"] = "new"


class Burn(msgspec.Struct, tag="burn", tag_field="action", forbid_unknown_fields=True):
    what: Any = None


class Rest(msgspec.Struct, tag="rest", tag_field="action", forbid_unknown_fields=True):
    pass


class Loose(msgspec.Struct, tag="loose", tag_field="action"):
    pass


TreeId = Annotated[str, Meta(min_length=1, description="Which tree")]


class Look(msgspec.Struct, tag="look", tag_field="action"):
    id: TreeId | None = None


class Water(msgspec.Struct, tag="water", tag_field="action"):
    id: TreeId
    amount: Annotated[Annotated[int, Meta(ge=0)] | None, Meta(description="Litres (water: 5 if left out)")] = 5


class Prune(msgspec.Struct, tag="prune", tag_field="action"):
    id: Annotated[str, Meta(min_length=1)]
    amount: Annotated[int, Meta(ge=0)] | None = None


def grow(tx: Any, request: Tree) -> Leaf:
    """Grows."""
    return request.leaf


def work(tx: Any, request: Plant | Fell | Rest | Burn) -> Leaf | Tree:
    """Works."""
    return Leaf("")


def idle(tx: Any, request: Loose | Rest) -> list[Leaf]:
    """Idles."""
    return []


def tend(tx: Any, request: Look | Water | Prune) -> Leaf:
    """Tends."""
    return Leaf("")


def wish(tx: Any, request: Leaf, turn: Interaction) -> Tree | InputRequired:
    """Asks."""
    return InputRequired({})


def test_input_required_is_no_result_type() -> None:
    assert result_types(read(wish, interactive=True)) == (Tree,)
    assert result_types(read(tend)) == (Leaf,)


LEAF = {"title": "Leaf", "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
TREE = {
    "description": "A tree.",
    "type": "object",
    "properties": {
        "leaf": {"$ref": "#/$defs/Leaf"},
        "kind": {"type": "string", "enum": ["oak", "pine"], "description": "Which tree", "default": "oak"},
        "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}, "default": []},
    },
    "required": ["leaf"],
    "additionalProperties": False,
}


ROOTED = {**TREE, "$defs": {"Leaf": LEAF, "Tree": {"title": "Tree", **TREE}}}


def test_root_is_the_object_with_its_definitions() -> None:
    assert input_schema(read(grow)) == ROOTED
    assert output_schema(read(grow)) == {key: LEAF[key] for key in ("type", "properties", "required")}


def test_arms_merge_into_one_object_with_only_the_tag_required() -> None:
    assert input_schema(read(work)) == {
        "type": "object",
        "properties": {
            "action": {
                "type": "string",
                "enum": ["plant", "fell", "rest", "burn"],
                "description": (
                    "What to do, and what it needs. plant: leaf; fell: name; rest: nothing more; burn: nothing more."
                ),
            },
            "leaf": {**{key: LEAF[key] for key in LEAF if key != "title"}, "description": "Where"},
            "depth": {"type": "integer", "default": 3},
            "limit": {"type": "integer", "description": "How many", "default": 20},
            "order": {"type": "string", "enum": ["new", "old"]},
            "until": {"type": "null"},
            "name": {"type": "string", "description": "Which one"},
            "what": {},
        },
        "required": ["action"],
        "additionalProperties": False,
    }


def test_merged_default_needs_agreement_of_all_arms() -> None:
    properties = input_schema(read(work))["properties"]
    assert {name: shape["default"] for name, shape in properties.items() if "default" in shape} == {
        "depth": 3,
        "limit": 20,
    }


def test_merged_parameter_has_one_choice_and_a_description_however_the_arms_are_annotated() -> None:
    properties = input_schema(read(tend))["properties"]

    assert properties["id"] == {"type": "string", "minLength": 1, "description": "Which tree"}
    assert properties["amount"] == {"type": "integer", "minimum": 0, "description": "Litres (water: 5 if left out)"}


@pytest.mark.slow
def test_every_parameter_is_described_and_no_choice_is_listed_twice() -> None:
    for dialect in app.DIALECTS:
        for tool in dialect.tools:
            for name, shape in input_schema(tool).get("properties", {}).items():
                choices = [str(choice) for choice in shape.get("anyOf", ())]
                assert shape.get("description"), f"{tool.name} {name}"
                assert len(choices) == len(set(choices)), f"{tool.name} {name}"
                plain = [choice for choice in shape.get("anyOf", ()) if "properties" not in choice]
                assert all("description" not in choice for choice in plain), f"{tool.name} {name}"


def test_merged_object_is_strict_only_if_all_arms_are() -> None:
    assert "additionalProperties" not in input_schema(read(idle))


def test_result_that_is_no_single_object_has_no_schema() -> None:
    assert output_schema(read(work)) is None
    assert output_schema(read(idle)) is None


def test_input_required_does_not_hide_the_result_schema() -> None:
    assert output_schema(read(wish, interactive=True)) == ROOTED


def test_explicit_input_schema_is_used() -> None:
    own = {"type": "object"}
    assert input_schema(read(grow, input=own)) is own


@pytest.mark.slow
def test_every_served_tool_has_valid_object_schemas() -> None:
    for dialect in app.DIALECTS:
        for tool in dialect.tools:
            for schema in (input_schema(tool), output_schema(tool)):
                if schema is not None:
                    Draft202012Validator.check_schema(schema)
                    assert schema["type"] == "object"
                    assert b"\\n " not in msgspec.json.encode(schema), tool.name  # a margin of the source


class Pick(msgspec.Struct, forbid_unknown_fields=True):
    one: Annotated[str, Meta(extra_json_schema={"enum": ["a", "b"]})]
    some: list[Annotated[str, Meta(extra_json_schema={"enum": ["a", "b"]})]] | None = None
    kind: Literal["x", "y"] = "x"


def pick(tx: Any, request: Pick) -> Leaf:
    """Picks."""
    return Leaf(request.one)


def test_setting_lists_the_values_of_its_parameters() -> None:
    dialect = Dialect(
        "d",
        "D.",
        (read(pick), read(work)),
        lambda _tool, _result: Reply(b"", ""),
        lambda _fault: Reply(b"", ""),
        settings=(Setting("NAMES", ("a", "b"), names, "names", lists=("one", "some")),),
    )

    shown = with_configured_choices(dialect, {"NAMES": ("c",)})

    schema = input_schema(shown.tools[0])
    assert schema["properties"]["one"] == {"type": "string", "enum": ["c"]}
    assert schema["properties"]["some"]["anyOf"][0] == {"type": "array", "items": {"type": "string", "enum": ["c"]}}
    assert schema["properties"]["kind"] == input_schema(dialect.tools[0])["properties"]["kind"]
    assert shown.tools[1] == dialect.tools[1]
    assert with_configured_choices(dialect, {"NAMES": ("a", "b")}) is dialect
    supplying = dialect._replace(settings=(Setting("NAMES", ("a", "b"), names, "names", supplies=("one",)),))
    supplied = with_configured_choices(supplying, {"NAMES": ("a", "b")})
    assert "one" not in input_schema(supplied.tools[0]).get("required", [])
