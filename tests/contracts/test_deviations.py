"""The comparison sees every way in which a tool can leave its contract, and nothing else."""

from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import UNSET, Meta, Struct, UnsetType

from kernel.app import DIALECTS
from kernel.errors import Fault
from kernel.tools import Deviation, Dialect, Hints, Reply, Tool
from tests.contracts.deviation_tables import BEGIN, END, declared, readme, replace_table
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


def reply(tool: Tool, result: Any) -> Reply:
    return Reply(b"", "text/plain")


def fail(fault: Fault) -> Reply:
    return Reply(b"", "text/plain", fault.code)


DECLARING = Dialect(
    "paths",
    "",
    (
        tool("read_memory", Same)._replace(
            deviations=(Deviation("tool", "no", "yes", "Memories that cannot be read are useless"),)
        ),
        tool("search", Same)._replace(deviations=(Deviation("default limit", "`20`", "10", "?"),)),
    ),
    reply,
    fail,
    deviations={
        "every tool": (Deviation("behaviour", "any path", "no `..`", "Paths are names"),),
        "search, find": (Deviation("parameter extra", "no", "a | b", "Both need it"),),
    },
)


def test_declared_differences_are_those_of_the_compared_kinds() -> None:
    assert declared_differences(DECLARING) == {
        Difference("paths", "read_memory", "tool", "no", "yes"),
        Difference("paths", "search", "default limit", "20", "10"),
        Difference("paths", "search", "parameter extra", "no", "a | b"),
        Difference("paths", "find", "parameter extra", "no", "a | b"),
    }


def test_every_deviation_needs_a_reason() -> None:
    assert without_reason(DECLARING) == ["search: default limit"]


def test_the_table_is_written_between_its_markers() -> None:
    assert replace_table(f"# paths\n\n{BEGIN}\nold\n{END}\n\nMore text.\n", DECLARING) == (
        f"# paths\n\n{BEGIN}\n"
        "| tool | what | contract | ours | reason |\n"
        "| --- | --- | --- | --- | --- |\n"
        "| read_memory | tool | no | yes | Memories that cannot be read are useless |\n"
        "| search | default limit | `20` | 10 | ? |\n"
        "| every tool | behaviour | any path | no `..` | Paths are names |\n"
        "| search, find | parameter extra | no | a \\| b | Both need it |\n"
        f"{END}\n\nMore text.\n"
    )
    with pytest.raises(ValueError, match="needs the lines"):
        replace_table("# paths\n", DECLARING)


@pytest.mark.parametrize("dialect", [one for one in DIALECTS if any(declared(one))], ids=lambda one: one.name)
def test_the_readme_of_a_dialect_has_the_table_of_its_declared_deviations(dialect: Dialect) -> None:
    """`python -m tests.contracts.deviation_tables` writes it again."""
    text = readme(dialect).read_text(encoding="utf-8")
    assert replace_table(text, dialect) == text
