"""The permission of a tool names every action it has, and agrees with the description of the tool."""

from collections.abc import Iterator

import msgspec
import pytest

from kernel.calls.schema import input_schema
from kernel.calls.tools import Tool
from kernel.server import app

TOOLS = {tool.name: tool for dialect in app.DIALECTS for tool in dialect.tools}
# Tools that only read, but report about the machine, need the admin permission.
REPORTS_ON_THE_MACHINE = {"diagnostics", "health"}


def actions(tool: Tool) -> list[str]:
    """The actions of a tool, as clients are shown them."""
    properties = input_schema(tool)["properties"]
    return [name for key in ("action", "command") for name in properties.get(key, {}).get("enum", [])]


def reading(tool: Tool) -> set[str]:
    """The actions that run on a connection that cannot write."""
    if tool.mode == "read":
        return {"", *actions(tool)}
    return {str(arm.__struct_config__.tag) for arm in tool.read_arms}  # type: ignore[attr-defined]


def entries() -> Iterator[tuple[str, str, str]]:
    for name, tool in TOOLS.items():
        entry = tool.permission
        if isinstance(entry, str):
            yield name, "", entry
        else:
            yield from ((name, action, right) for action, right in entry.items())


def test_every_tool_and_every_action_is_listed_and_nothing_else() -> None:
    listed = {
        name: [""] if isinstance(tool.permission, str) else sorted(tool.permission) for name, tool in TOOLS.items()
    }
    assert listed == {name: sorted(actions(tool)) or [""] for name, tool in TOOLS.items()}
    assert len(TOOLS) >= 58


@pytest.mark.parametrize(("name", "action", "right"), list(entries()))
def test_read_permission_is_exactly_for_tools_that_cannot_write(name: str, action: str, right: str) -> None:
    """A right to read means a connection that is opened read-only, for any handler."""
    reads = action in reading(TOOLS[name])
    assert right in {"read", "write", "admin"}
    assert (right == "read") == (reads and name not in REPORTS_ON_THE_MACHINE)


def test_tools_that_affect_all_data_need_admin() -> None:
    admins = {(name, action) for name, action, right in entries() if right == "admin"}
    assert admins == {
        ("clear_memory", ""),
        ("memory_file_lock", "force_unlock"),
        ("memory_init", "reset"),
        ("memory_import", "import"),
        ("cleanup_query_log", ""),
        ("set_config", ""),
        ("maintenance", "purge_all"),
        ("maintenance", "prune_older_than"),
        ("maintenance", "vacuum"),
        ("diagnostics", ""),
        ("health", ""),
    }


def test_dialects_that_read_all_others_are_declared() -> None:
    assert {dialect.name for dialect in app.DIALECTS} >= app.READING_ALL == {"common"}


def misread(tool: Tool, action: str) -> str:
    """Return the error of the decoder for arguments that hold nothing but an action."""
    try:
        msgspec.json.decode(msgspec.json.encode({"action": action, "command": action}), type=tool.request)
    except msgspec.ValidationError as error:
        return str(error)
    return ""


def test_the_decoder_of_a_tool_knows_the_actions_of_the_table() -> None:
    said = {(name, action): misread(TOOLS[name], action) for name, action, _ in entries() if action}
    assert [call for call, text in said.items() if "$.action" in text or "$.command" in text] == []
    assert "$.action" in misread(TOOLS["memory_tag"], "absent")
