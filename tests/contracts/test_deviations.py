"""The comparison sees every way in which a tool can leave its contract, and nothing else."""

from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import UNSET, Meta, Struct, UnsetType

from kernel.calls.dialect import Dialect
from kernel.calls.tools import Hints, Tool
from kernel.server.app import DIALECTS
from tests.contracts.deviation_tables import BEGIN, END, Deviation, parse_deviations, read_deviations
from tests.contracts.deviations import Difference, declared_differences, differences, without_reason
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
    return Tool(name, "", request, type(None), print, "read", Hints())


def test_a_tool_like_its_contract_does_not_deviate() -> None:
    assert differences((PLAIN,), (tool("search", Same),)) == set()


def test_every_difference_in_a_parameter_is_reported() -> None:
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

    assert differences((PLAIN,), (tool("search", Other),)) == {Difference("brain", "search", *row) for row in rows}


def test_a_tool_too_few_and_a_tool_too_many_are_reported() -> None:
    assert differences((PLAIN,), (tool("find", Same),)) == {
        Difference("brain", "search", "tool", "yes", "no"),
        Difference("brain", "find", "tool", "no", "yes"),
    }


def test_a_bundled_tool_is_compared_action_by_action() -> None:
    assert differences((BUNDLE,), (tool("memory_org", Create | Listing),)) == set()
    assert differences((BUNDLE,), (tool("memory_org", Slack | Listing),)) == {
        Difference("scopes", "memory_org", "required create.name", "yes", "no"),
        Difference("scopes", "memory_org", "default create.priority", "50", "1"),
    }


def test_a_missing_action_is_reported() -> None:
    one = msgspec.defstruct("One", [("limit", int)], tag="list", tag_field="action")
    two = msgspec.defstruct("Two", [("name", str)], tag="add", tag_field="action")

    found = differences((BUNDLE,), (tool("memory_org", one | two),))

    assert Difference("scopes", "memory_org", "values action", "create, list", "add, list") in found


README = f"""# paths

{BEGIN}
| tool | what | contract | ours | reason |
| --- | --- | --- | --- | --- |
| read_memory | tool | no | yes | Memories that cannot be read are useless |
| search | default limit | `20` | 10 | ? |
| every tool | behaviour | any path | no `..` | Paths are names |
| search, find | parameter extra | no | a \\| b | Both need it |
{END}

More text.
"""


def test_rows_are_read_between_their_markers() -> None:
    assert parse_deviations(README)[2:] == [
        Deviation("every tool", "behaviour", "any path", "no `..`", "Paths are names"),
        Deviation("search, find", "parameter extra", "no", "a | b", "Both need it"),
    ]
    assert parse_deviations("# paths\n") == []


@pytest.mark.parametrize("damage", [("| tool | what", "| what | tool"), ("| ? |", "|"), (END, "")])
def test_a_malformed_table_is_refused(damage: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match=r"columns|without"):
        parse_deviations(README.replace(*damage))


def test_declared_differences_are_those_of_the_compared_kinds() -> None:
    assert declared_differences("paths", parse_deviations(README)) == {
        Difference("paths", "read_memory", "tool", "no", "yes"),
        Difference("paths", "search", "default limit", "20", "10"),
        Difference("paths", "search", "parameter extra", "no", "a | b"),
        Difference("paths", "find", "parameter extra", "no", "a | b"),
    }


def test_every_deviation_needs_a_reason() -> None:
    assert without_reason(parse_deviations(README)) == ["search: default limit"]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_a_row_names_tools_of_its_dialect(dialect: Dialect) -> None:
    names = {tool.name for tool in dialect.tools}
    rows = [row.tools for row in read_deviations(dialect.name) if "_" in row.tools and not row.tools.startswith("/")]
    assert [tools for tools in rows if not names & set(tools.split(", "))] == []
