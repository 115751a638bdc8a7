"""The comparison sees every way in which a tool can leave its contract, and nothing else."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from kernel.tools import Hints, Tool
from tests.contracts.deviations import Deviation, found, written
from tests.contracts.seed_texts import Action, Contract, Param


class Same(Struct):
    db: Literal["core", "dnd"]
    query: str
    types: tuple[Literal["memory", "entity"], ...] = ("memory", "entity")
    limit: Annotated[int, Meta(ge=1)] = 20
    weight: float | None = None
    scope: dict[str, Any] | UnsetType = UNSET


class Other(Struct):
    db: str
    types: list[str]
    limit: int = 10
    weight: int = 3
    scope: str = ""
    extra: bool = False


class Inner(Struct):
    type: Literal["global", "org"]
    id: str = ""


class Create(Struct, tag="create", tag_field="action"):
    name: str
    scope: Inner | None = None
    priority: int = 50


class Listing(Struct, tag="list", tag_field="action"):
    limit: int = 50


class Slack(Struct, tag="create", tag_field="action"):
    name: str = ""
    scope: Inner | None = None
    priority: int = 1


ACTION = Param("action", "string", True, values=("create", "list"), closed=True, about="What to do")
PLAIN = Contract(
    "brain",
    "search",
    (
        Param("db", "enum", True, values=("core", "dnd"), closed=True),
        Param("query", "string", True),
        Param("types", "string[]", default="both", values=("memory", "entity")),
        Param("limit", "int", default="20"),
        Param("weight", "float (0–1)"),
        Param("scope", "object"),
    ),
)
NAME = Param("name", "string", True, about="Name")
NESTED = (Param("scope.type", "string", values=("global", "org"), closed=True), Param("scope.id", "string"))
PRIORITY = Param("priority", "number", default="50", about="0-100 (default: 50)")
BUNDLE = Contract(
    "scopes",
    "memory_org",
    (ACTION, NAME._replace(required=False), *NESTED, PRIORITY._replace(default=""), Param("limit", "number")),
    (),
    (Action("create", (ACTION, NAME, *NESTED, PRIORITY)), Action("list", (ACTION, Param("limit", "number")))),
)


def tool(name: str, request: Any) -> Tool:
    return Tool(name, "", request, None, print, "read", Hints())


def test_a_tool_like_its_contract_does_not_deviate() -> None:
    assert found((PLAIN,), (tool("search", Same),)) == set()


def test_every_difference_in_a_parameter_is_found() -> None:
    rows = {
        ("values db", "core, dnd", "any"),
        ("parameter query", "yes", "no"),
        ("parameter extra", "no", "yes"),
        ("required types", "no", "yes"),
        ("default limit", "20", "10"),
        ("type weight", "float (0–1)", "integer"),
        ("default weight", "none", "3"),
        ("type scope", "object", "string"),
    }

    assert found((PLAIN,), (tool("search", Other),)) == {Deviation("brain", "search", *row) for row in rows}


def test_a_tool_too_few_and_a_tool_too_many_are_found() -> None:
    assert found((PLAIN,), (tool("find", Same),)) == {
        Deviation("brain", "search", "tool", "yes", "no"),
        Deviation("brain", "find", "tool", "no", "yes"),
    }


def test_a_bundled_tool_is_compared_action_by_action() -> None:
    assert found((BUNDLE,), (tool("memory_org", Create | Listing),)) == set()
    assert found((BUNDLE,), (tool("memory_org", Slack | Listing),)) == {
        Deviation("scopes", "memory_org", "required create.name", "yes", "no"),
        Deviation("scopes", "memory_org", "default create.priority", "50", "1"),
    }


def test_a_missing_action_is_found() -> None:
    one = msgspec.defstruct("One", [("limit", int)], tag="list", tag_field="action")
    two = msgspec.defstruct("Two", [("name", str)], tag="add", tag_field="action")

    differences = found((BUNDLE,), (tool("memory_org", one | two),))

    assert Deviation("scopes", "memory_org", "values action", "create, list", "add, list") in differences


def test_rows_of_other_kinds_are_left_alone_but_every_row_needs_a_reason() -> None:
    readme = (
        "# Handlers\n\n"
        "| dialect | tool | what | contract | ours | reason |\n"
        "| --- | --- | --- | --- | --- | --- |\n"
        "| paths | `read_memory` | tool | no | yes | a memory nobody can read is none |\n"
        "| paths | `add_memory` | behaviour | any path | no `..` | paths are names |\n"
        "| brain | `search` | default `limit` | `20` | `10` | ? |\n"
        "\nMore text.\n"
    )

    rows, unreasoned = written(readme)

    assert rows == {
        Deviation("paths", "read_memory", "tool", "no", "yes"),
        Deviation("brain", "search", "default limit", "20", "10"),
    }
    assert len(unreasoned) == 1
