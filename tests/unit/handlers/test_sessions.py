"""Every tool of sessions returns the shape of its contract; invalid input is refused by field and changes nothing."""

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handlers import sessions
from kernel.calls.schema import input_schema
from kernel.core.errors import HTTP_STATUS, Fault
from tests.conftest import TESTER, Call, everything
from tests.contracts.seed_texts import contracts
from tests.unit.handlers.sessions.calls import LISTS, TOOLS, opened

GOOD: dict[str, dict[str, Any]] = {
    "remember": {"content": "parse_config() fails", "session_id": "s"},
    "search_memory": {"query": "fails", "session_id": "s"},
    "list_recent": {},
    "list_entities": {"memory_id": 1},
    "upsert_entity": {"name": "Foo", "entity_type": "class", "observations_json": '["x"]', "memory_id": 1},
    "add_relation": {"source": "Foo", "target": "Bar", "relation_type": "uses"},
    "get_entity": {"name": "Foo"},
    "get_context_graph": {},
    "diagnostics": {},
    "health": {},
    "maintenance": {"action": "purge_all", "confirm": True},
}
KEYS = {name: set(tool.returns) for name, tool in ((tool.name, tool) for tool in contracts()["sessions"])}
# Parts of the contract in prose, or only of an outcome other than success.
UNSAID = {
    "list_recent": {"session_id", "content"},
    "get_entity": {"observations", "relations"},
    "get_context_graph": {"entities", "relations"},
}
OTHER = {"remember": {"status"}, "maintenance": {"status", "deleted"}}


def test_every_tool_returns_the_keys_of_its_contract(tmp_path: Path) -> None:
    with opened(tmp_path, ENABLE_GRAPH="1") as (_, ask):
        for name, arguments in GOOD.items():
            found = ask(name, **arguments)
            shown = found[0] if name in LISTS else found
            wanted = KEYS[name] | UNSAID.get(name, set())
            if name == "remember":
                wanted -= OTHER["remember"]
            assert wanted <= set(shown), (name, wanted - set(shown))
    assert sorted(GOOD) == sorted(TOOLS)


def test_session_id_is_required_by_the_schema_as_in_the_contract() -> None:
    for name in ("remember", "search_memory"):
        schema = input_schema(TOOLS[name])
        assert "session_id" in schema["required"]
        assert schema["properties"]["session_id"]["type"] == "string"
        assert schema["additionalProperties"] is False
        assert sorted(schema["properties"]) == sorted(TOOLS[name].request.__struct_fields__)


def test_session_id_is_optional_in_the_schema_where_a_setting_supplies_it(tmp_path: Path) -> None:
    with opened(tmp_path, SESSION_ID="home") as (kernel, ask):
        shown = {name: input_schema(kernel.dispatch.tools[name].tool) for name in ("remember", "search_memory")}
        assert {name: schema["required"] for name, schema in shown.items()} == {
            "remember": ["content"],
            "search_memory": ["query"],
        }
        assert ask("remember", content="tea")["session_id"] == "home"


def test_an_empty_list_has_no_text_and_an_empty_result(call: Call) -> None:
    reply = call("list_recent")
    assert (reply.body, reply.structured, reply.content, reply.fault) == (b"[]", b'{"result":[]}', b"[]", None)
    call("remember", content="x", session_id="s")
    assert call("list_recent").content is None


@pytest.mark.parametrize("code", list(HTTP_STATUS))
def test_every_failure_has_the_shape_of_the_original(code: Any) -> None:
    fault = Fault(code, "No.")
    fault.tool = "remember"
    reply = sessions.fail(fault)
    assert (reply.body, reply.fault) == (b'{"status":"error","error":"No.","tool":"remember"}', code)


HOSTILE: tuple[Any, ...] = (None, True, 1.5, [], {}, "", "\0", "\ud800", "x" * 1_100_000, -1, 0, 2**63, 2**64, 10**400)


def raw(arguments: dict[str, Any]) -> bytes:
    return json.dumps(arguments).encode("utf-8", "surrogatepass")


def bad() -> list[tuple[str, dict[str, Any], str]]:
    """Calls that must be refused: each field missing, unknown, or of a wrong type."""
    calls: list[tuple[str, dict[str, Any], str]] = []
    for name, tool in TOOLS.items():
        good = GOOD[name]
        calls.append((name, {**good, "nonsense": 1}, "nonsense"))
        calls += [
            (name, {key: value for key, value in good.items() if key != gone}, gone)
            for gone in input_schema(tool).get("required", ())
        ]
        calls += [
            (name, {**good, field: wrong}, field) for field in tool.request.__struct_fields__ for wrong in ([], {})
        ]
    return calls


@pytest.mark.parametrize(("name", "arguments", "field"), bad(), ids=str)
def test_bad_input_is_refused_by_field_and_changes_nothing(
    unchanged: Call, name: str, arguments: dict[str, Any], field: str
) -> None:
    reply = unchanged(name, **arguments)
    answer = msgspec.json.decode(reply.body)
    assert (reply.fault, list(answer), answer["status"], answer["tool"]) == (
        "invalid",
        ["status", "error", "tool"],
        "error",
        name,
    )
    assert field in answer["error"]


@pytest.mark.slow
@pytest.mark.parametrize("name", TOOLS)
def test_hostile_values_get_a_defined_answer(tmp_path: Path, runner: asyncio.Runner, name: str) -> None:
    with opened(tmp_path, ENABLE_GRAPH="1") as (kernel, _):
        bound = kernel.dispatch.tools[name]
        for field in bound.tool.request.__struct_fields__:
            for value in HOSTILE:
                before = everything(kernel)
                reply: Any = runner.run(kernel.dispatch.call(bound, raw({**GOOD[name], field: value}), TESTER))
                assert reply.fault in (None, "invalid", "not_found"), (field, value, reply.body[:200])
                assert isinstance(msgspec.json.decode(reply.body), dict | list)
                if reply.fault:
                    assert everything(kernel) == before, (field, value)
