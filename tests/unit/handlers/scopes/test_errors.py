"""Every invalid call returns the error of the contract, names the field and changes nothing."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any, get_args

import msgspec
import pytest

from handlers import scopes
from kernel.calls.tools import Reply, json_reply
from kernel.core.errors import HTTP_STATUS, Fault
from kernel.server.app import Kernel
from tests.conftest import TESTER, Call, everything
from tests.unit.handlers.scopes.conftest import Do, Store, exported, result_of

TOOLS = {tool.name: tool for tool in scopes.DIALECT.tools}
# Calls that succeed one after the other in a store of its own; a word in braces is an id that an earlier one gave.
STORY: list[tuple[str, str, dict[str, Any]]] = [
    ("memory_org", "create", {"name": "Org", "metadata": {"plan": "free"}}),
    ("memory_org", "list", {"limit": 20, "offset": 0}),
    (
        "memory_project",
        "create",
        {"name": "P", "orgId": "{organization}", "description": "d", "rootPath": "/p", "metadata": {"goals": []}},
    ),
    ("memory_project", "list", {"orgId": "{organization}", "limit": 20, "offset": 0}),
    ("memory_project", "get", {"id": "{project}"}),
    ("memory_project", "get", {"name": "P", "orgId": "{organization}"}),
    (
        "memory_project",
        "update",
        {"id": "{project}", "name": "P2", "description": "d", "rootPath": "/", "metadata": {}},
    ),
    (
        "memory_session",
        "start",
        {"projectId": "{project}", "name": "s", "purpose": "p", "agentId": "a", "metadata": {"mode": "tdd"}},
    ),
    ("memory_session", "list", {"projectId": "{project}", "status": "active", "limit": 20, "offset": 0}),
    (
        "memory_tool",
        "add",
        {
            "scopeType": "project",
            "scopeId": "{project}",
            "name": "t",
            "category": "cli",
            "description": "d",
            "parameters": {},
            "examples": [],
            "constraints": "c",
            "createdBy": "a",
        },
    ),
    (
        "memory_tool",
        "update",
        {
            "id": "{tool}",
            "description": "d",
            "parameters": {},
            "examples": [],
            "constraints": "c",
            "changeReason": "r",
            "updatedBy": "u",
            "expectedVersion": 1,
        },
    ),
    ("memory_tool", "get", {"id": "{tool}", "asOf": "2100-01-01T00:00:00Z"}),
    ("memory_tool", "get", {"name": "t", "scopeType": "session", "scopeId": "{session}", "inherit": True}),
    (
        "memory_tool",
        "list",
        {
            "scopeType": "project",
            "scopeId": "{project}",
            "category": "cli",
            "inherit": False,
            "includeInactive": False,
            "limit": 20,
            "offset": 0,
        },
    ),
    ("memory_tool", "history", {"id": "{tool}", "asOf": "2100-01-01T00:00:00Z"}),
    (
        "memory_guideline",
        "add",
        {
            "scopeType": "global",
            "name": "g",
            "content": "c",
            "category": "x",
            "priority": 80,
            "rationale": "r",
            "examples": {"good": []},
            "createdBy": "a",
        },
    ),
    (
        "memory_guideline",
        "update",
        {
            "id": "{guideline}",
            "category": "x",
            "priority": 90,
            "content": "c",
            "rationale": "r",
            "examples": {},
            "changeReason": "r",
            "updatedBy": "u",
            "expectedVersion": 1,
        },
    ),
    ("memory_guideline", "update", {"id": "{guideline}", "rationale": "r"}),
    ("memory_guideline", "get", {"id": "{guideline}"}),
    ("memory_guideline", "get", {"name": "g", "scopeType": "global", "asOf": "2100-01-01"}),
    ("memory_guideline", "list", {"scopeType": "global", "category": "x", "limit": 5, "offset": 0}),
    ("memory_guideline", "history", {"id": "{guideline}"}),
    (
        "memory_knowledge",
        "add",
        {
            "scopeType": "session",
            "scopeId": "{session}",
            "title": "k",
            "content": "c",
            "category": "fact",
            "source": "s",
            "confidence": 0.5,
            "validUntil": "2027-01-01T00:00:00Z",
            "createdBy": "a",
        },
    ),
    (
        "memory_knowledge",
        "update",
        {
            "id": "{knowledge}",
            "category": "decision",
            "content": "c",
            "source": "s",
            "confidence": 1,
            "validUntil": "2028-01-01",
            "changeReason": "r",
            "updatedBy": "u",
            "expectedVersion": 1,
        },
    ),
    ("memory_knowledge", "get", {"id": "{knowledge}"}),
    ("memory_knowledge", "get", {"title": "k", "scopeType": "session", "scopeId": "{session}", "inherit": False}),
    ("memory_knowledge", "list", {"scopeType": "session", "scopeId": "{session}", "inherit": True}),
    ("memory_knowledge", "history", {"id": "{knowledge}"}),
    ("memory_tag", "create", {"name": "mine", "category": "custom", "description": "d"}),
    ("memory_tag", "list", {"category": "custom", "isPredefined": False, "limit": 5, "offset": 0}),
    ("memory_tag", "attach", {"entryType": "guideline", "entryId": "{guideline}", "tagName": "python"}),
    ("memory_tag", "attach", {"entryType": "project", "entryId": "{project}", "tagId": "{tag}"}),
    ("memory_tag", "for_entry", {"entryType": "guideline", "entryId": "{guideline}"}),
    ("memory_tag", "detach", {"entryType": "guideline", "entryId": "{guideline}", "tagId": "tag_python"}),
    ("memory_tag", "detach", {"entryType": "project", "entryId": "{project}", "tagName": "mine"}),
    (
        "memory_relation",
        "create",
        {
            "sourceType": "guideline",
            "sourceId": "{guideline}",
            "targetType": "project",
            "targetId": "{project}",
            "relationType": "applies_to",
            "createdBy": "a",
        },
    ),
    (
        "memory_relation",
        "list",
        {
            "sourceType": "guideline",
            "sourceId": "{guideline}",
            "targetType": "project",
            "targetId": "{project}",
            "relationType": "applies_to",
            "limit": 5,
            "offset": 0,
        },
    ),
    (
        "memory_relation",
        "delete",
        {
            "sourceType": "guideline",
            "sourceId": "{guideline}",
            "targetType": "project",
            "targetId": "{project}",
            "relationType": "applies_to",
        },
    ),
    (
        "memory_relation",
        "create",
        {
            "sourceType": "project",
            "sourceId": "{project}",
            "targetType": "guideline",
            "targetId": "{guideline}",
            "relationType": "related_to",
        },
    ),
    ("memory_relation", "delete", {"id": "{relation}"}),
    (
        "memory_file_lock",
        "checkout",
        {
            "file_path": "/a/b",
            "agent_id": "a",
            "session_id": "{session}",
            "project_id": "{project}",
            "expires_in": 60,
            "metadata": {"reason": "r"},
        },
    ),
    ("memory_file_lock", "status", {"file_path": "/a/b"}),
    ("memory_file_lock", "list", {"project_id": "{project}", "session_id": "{session}", "agent_id": "a"}),
    ("memory_file_lock", "checkin", {"file_path": "/a/b", "agent_id": "a", "fencing_token": 1}),
    ("memory_file_lock", "checkout", {"file_path": "/a/b", "agent_id": "a"}),
    ("memory_file_lock", "force_unlock", {"file_path": "/a/b", "agent_id": "b", "reason": "r"}),
    ("memory_conflict", "list", {"entryType": "guideline", "resolved": False, "limit": 5, "offset": 0}),
    ("memory_conflict", "resolve", {"id": "{conflict}", "resolution": "r", "resolvedBy": "a"}),
    (
        "memory_query",
        "search",
        {
            "search": "c",
            "limit": 5,
            "includeVersions": True,
            "includeInactive": False,
            "includeShadowed": False,
            "compact": True,
            "semanticSearch": True,
            "semanticThreshold": 0.5,
            "asOf": "2100-01-01T00:00:00Z",
        },
    ),
    (
        "memory_query",
        "context",
        {
            "scopeType": "session",
            "scopeId": "{session}",
            "inherit": True,
            "compact": False,
            "limit": 5,
            "includeShadowed": True,
            "asOf": "2100-01-01T00:00:00Z",
        },
    ),
    ("memory_session", "end", {"id": "{session}", "status": "discarded"}),
    ("memory_tool", "deactivate", {"id": "{tool}"}),
    ("memory_guideline", "deactivate", {"id": "{guideline}"}),
    ("memory_knowledge", "deactivate", {"id": "{knowledge}"}),
]
# Ids that have to be of something; those of a list, a context or a deletion need not be.
IDS = {"id", "scopeId", "orgId", "projectId", "entryId", "sourceId", "targetId", "tagId", "session_id", "project_id"}
ENUMS = {"scopeType", "status", "entryType", "sourceType", "targetType", "relationType"}
LONG = 1_048_577
NAMES = {(tool, action) for tool, action, _ in STORY}


def filled(given: dict[str, Any], ids: dict[str, str]) -> dict[str, Any]:
    """The arguments of a scenario step, with the ids returned so far."""
    return {name: value.format(**ids) if isinstance(value, str) else value for name, value in given.items()}


def store_ids(answer: dict[str, Any], ids: dict[str, str]) -> None:
    """Stores the ids of a result."""
    ids |= {name: value["id"] for name, value in answer.items() if isinstance(value, dict) and "id" in value}
    if answer.get("conflicts"):
        ids["conflict"] = answer["conflicts"][0]["id"]


def wrong_values(name: str, value: Any) -> Iterator[Any]:
    """Invalid values of an argument."""
    yield from ([], {}) if isinstance(value, (str, int, float)) else ("x", 7)
    if isinstance(value, str):
        yield from (7, True, ["a"], "a\0b", "x" * LONG)
        yield from ("odd",) if name in ENUMS else ()
        yield from ("soon", "2026-13-01") if name in {"validUntil", "asOf"} else ()
    elif isinstance(value, bool):
        yield from ("true", 1, "")
    elif isinstance(value, (int, float)):
        yield from ("1", -1, 2**63, 2**70, 1e308, True)
        yield from (101,) if name == "priority" else (1.01,) if name == "confidence" else ()
        yield from (86_401,) if name == "expires_in" else (0,) if name == "expectedVersion" else ()
        yield from (0.5,) if name not in {"confidence", "expires_in", "semanticThreshold"} else ()


def required(tool: str, action: str) -> list[str]:
    (arm,) = (arm for arm in get_args(TOOLS[tool].request) if arm.__struct_config__.tag == action)
    return list(arm.__struct_encode_fields__[: -len(arm.__struct_defaults__) or None])


def test_the_scenario_covers_every_action() -> None:
    known = {
        (name, arm.__struct_config__.tag)
        for name, tool in TOOLS.items()
        for arm in get_args(tool.request)
        if name in dict(NAMES)
    }
    assert known == NAMES


def refusal(reply: Any, *fields: str) -> str:
    """The message of an error; its shape and field are checked."""
    answer = json.loads(reply.body)
    assert (list(answer), reply.media, reply.structured) == (["error", "code", "context"], "application/json", None)
    assert reply.body.decode() == json.dumps(answer, separators=(",", ":"), ensure_ascii=False)
    assert answer["context"]["field"].partition("[")[0] in fields, answer
    assert reply.fault in {"invalid", "not_found", "conflict"}
    return answer["error"]


@pytest.mark.slow
@pytest.mark.parametrize("chapter", range(len(STORY)), ids=[f"{tool}-{action}" for tool, action, _ in STORY])
def test_bad_arguments_name_their_field_and_change_nothing(kernel: Kernel, call: Call, do: Do, chapter: int) -> None:
    ids: dict[str, str] = {}
    for tool, action, given in STORY[:chapter]:
        store_ids(do(tool, action, **filled(given, ids)), ids)
    tool, action, given = STORY[chapter]
    valid = filled(given, ids)
    before = everything(kernel)

    for name in required(tool, action):
        missing = {key: value for key, value in valid.items() if key != name}
        for empty in (missing, {**missing, name: None}):
            assert refusal(call(tool, action=action, **empty), name) == f"{name} is required"
    for name, value in valid.items():
        for wrong in wrong_values(name, value):
            bad = call(tool, action=action, **{**valid, name: wrong})
            assert refusal(bad, name), (name, wrong)
        if (
            name in IDS
            and action not in {"list", "detach", "delete", "context"}
            and not (action == "get" and name != "id")
        ):
            ghost = call(tool, action=action, **{**valid, name: "ghost"})
            assert "ghost" in refusal(ghost, name)
    assert refusal(call(tool, action=action, **valid, unheard=1), "unheard")
    assert everything(kernel) == before
    result_of(call(tool, action=action, **valid))


@pytest.mark.parametrize("tool", sorted(dict(NAMES)))
def test_an_unknown_action_is_refused_with_the_valid_ones(unchanged: Call, tool: str) -> None:
    actions = [arm.__struct_config__.tag for arm in get_args(TOOLS[tool].request)]
    for given, shown in (
        ({}, "undefined"),
        ({"action": None}, "undefined"),
        ({"action": "odd"}, "odd"),
        ({"action": ""}, ""),
        ({"action": "List"}, "List"),
    ):
        reply = unchanged(tool, **given)
        assert reply.fault == "invalid"
        assert json.loads(reply.body) == {
            "error": f"Unknown action for {tool}: {shown}",
            "code": "E5001",
            "context": {"tool": tool, "field": "action", "action": shown, "validActions": actions},
        }
    assert json.loads(unchanged(tool, action=7).body)["error"].startswith(f"Unknown action for {tool}")


@pytest.mark.parametrize(
    "raw",
    [b"", b"[]", b"null", b'"a"', b"{", b'{"action":NaN}', b'{"action":"\xff"}', b"[" * 9999],
)
def test_non_object_arguments_are_refused(kernel: Kernel, runner: asyncio.Runner, raw: bytes) -> None:
    before = everything(kernel)
    reply = runner.run(kernel.dispatch.call(kernel.dispatch.tools["memory_tool"], raw, TESTER))
    assert isinstance(reply, Reply)
    assert refusal(reply, "arguments").startswith("Validation error: arguments - ")
    assert everything(kernel) == before


def test_null_equals_an_omitted_argument(do: Do) -> None:
    ids: dict[str, str] = {}
    for tool, action, given in STORY:
        (arm,) = (arm for arm in get_args(TOOLS[tool].request) if arm.__struct_config__.tag == action)
        nothing = dict.fromkeys(set(arm.__struct_encode_fields__) - set(given))
        store_ids(do(tool, action, **filled(given, ids), **nothing), ids)


@pytest.mark.parametrize(
    ("code", "label"),
    [
        ("invalid", "E1000"),
        ("not_found", "E2000"),
        ("conflict", "E2002"),
        ("busy", "E4000"),
        ("storage", "E4000"),
        ("internal", "E5001"),
        ("blocked", "E5000"),
        ("disabled", "E5000"),
    ],
)
def test_every_fault_has_the_contracts_shape(code: Any, label: str) -> None:
    answer = scopes.fail(Fault(code, "No."))
    assert (answer.fault, json.loads(answer.body)) == (code, {"error": "No.", "code": label})
    assert code in HTTP_STATUS


def test_replies_are_indented_by_two() -> None:
    value = {"a": [], "b": {}, "c": [1, {"d": None}], "e": 'ü\n"\\\u2028', "f": 1.0, "g": True}
    reply = json_reply(TOOLS["memory_org"], value)
    assert reply.body.decode() == json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    assert reply.structured == msgspec.json.encode(value)


def nest(levels: int) -> dict[str, Any]:
    """Objects nested to a depth."""
    deep: dict[str, Any] = {"x": 1}
    for _ in range(levels - 1):
        deep = {"x": deep}
    return deep


DEEP = [
    ("memory_org", "metadata", {"action": "create", "name": "o"}, 32),
    ("memory_project", "metadata", {"action": "create", "name": "p"}, 32),
    ("memory_session", "metadata", {"action": "start"}, 32),
    ("memory_file_lock", "metadata", {"action": "checkout", "file_path": "/a", "agent_id": "a"}, 32),
    ("memory_tool", "parameters", {"action": "add", "name": "t", "scopeType": "global"}, 32),
    ("memory_tool", "examples", {"action": "add", "name": "t", "scopeType": "global"}, 31),
    ("memory_guideline", "examples", {"action": "add", "name": "g", "scopeType": "global", "content": "c"}, 32),
]


@pytest.mark.parametrize(
    ("tool", "field", "given", "levels"), DEEP, ids=[f"{tool}-{field}" for tool, field, *_ in DEEP]
)
def test_too_deeply_nested_values_are_refused(
    kernel: Kernel, call: Call, do: Do, second_store: Store, tool: str, field: str, given: dict[str, Any], levels: int
) -> None:
    before = everything(kernel)
    for more in (levels + 1, 60, 900):
        deep = [nest(more)] if (tool, field) == ("memory_tool", "examples") else nest(more)
        answer = refusal(call(tool, **given, **{field: deep}), field)
        assert answer == f"Validation error: {field} - must not be nested deeper than 32 levels"
    assert everything(kernel) == before

    deepest = [nest(levels)] if (tool, field) == ("memory_tool", "examples") else nest(levels)
    result_of(call(tool, **given, **{field: deepest}))
    for shape in ("json", "yaml"):
        content = do("memory_export", "export", includeVersions=True, format=shape)["content"]
        brought = second_store.do("memory_import", "import", content=content, format=shape)
        assert brought["errors"] == []
    assert exported(second_store.do) == exported(do)


def test_an_empty_text_beside_a_number_out_of_range_is_refused(kernel: Kernel, runner: asyncio.Runner) -> None:
    """The number hides the action, and with it the fields that are required."""
    raw = b'{"action":"search","relatedTo":{"type":"tool","id":""},"limit":1e999}'
    reply = runner.run(kernel.dispatch.call(kernel.dispatch.tools["memory_query"], raw, TESTER))
    assert isinstance(reply, Reply)
    assert refusal(reply, "relatedTo.id") == "Validation error: relatedTo.id - must not be empty"


@pytest.mark.parametrize("empty", ["", " "])
@pytest.mark.parametrize(
    ("tool", "action", "field"),
    [
        ("memory_project", "update", "name"),
        ("memory_guideline", "update", "content"),
        ("memory_knowledge", "update", "content"),
        ("memory_tag", "attach", "tagName"),
    ],
)
def test_an_empty_text_that_an_action_can_do_without_is_not_called_required(
    call: Call, tool: str, action: str, field: str, empty: str
) -> None:
    more = {"entryType": "tool", "entryId": "x"} if tool == "memory_tag" else {"id": "x"}
    problem = "must not be blank" if empty else "must not be empty"
    reply = call(tool, action=action, **more, **{field: empty})
    assert refusal(reply, field) == f"Validation error: {field} - {problem}"
