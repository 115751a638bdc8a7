"""An id that a tool does not find is often that of another dialect, or of a recall: the refusal says so."""

import asyncio
from typing import Any

import msgspec
import pytest

from kernel.calls.tools import Reply
from kernel.security.permissions import Caller, Permission, Reach, grant
from kernel.server.app import Kernel
from tests.conftest import Call

WRITER = Permission.write


def of_key(kernel: Kernel, runner: asyncio.Runner, dialects: set[str], name: str, arguments: dict[str, Any]) -> str:
    """Return the refusal of a call by a key for these dialects."""
    caller = Caller("key", grant(WRITER, frozenset(dialects), True), key="k1")
    raw = msgspec.json.encode(arguments)
    reply = runner.run(kernel.dispatch.call(kernel.dispatch.tools[name], raw, caller))
    assert isinstance(reply, Reply)
    return reply.body.decode()


@pytest.fixture
def memory(call: Call) -> str:
    """The id of a memory of brain."""
    return str(
        msgspec.json.decode(call("save_memory", db="core", content="The tide is high", category="fact").body)["id"]
    )


@pytest.fixture
def guideline(call: Call) -> str:
    """The id of a guideline of scopes."""
    reply = call("memory_guideline", action="add", scopeType="global", name="tabs", content="Use tabs")
    return str(msgspec.json.decode(reply.body)["guideline"]["id"])


def test_an_id_of_another_dialect_is_told_with_the_call_that_reads_it(call: Call, memory: str, guideline: str) -> None:
    reads = f'brain has it: recall {{"ids": ["brain:core/{memory}"]}} reads it'
    for key in (memory, f"brain:core/{memory}"):
        reply = call("memory_guideline", action="get", id=key)
        assert (reply.fault, msgspec.json.decode(reply.body)["error"]) == (
            "not_found",
            f"Guideline not found: {key}; {reads}",
        )
    reply = call("delete_memory", db="core", id=guideline)
    assert reply.body.decode() == (
        f"Error: Memory '{guideline}' not found; scopes has it: "
        f'recall {{"ids": ["scopes:guidelines/{guideline}"]}} reads it'
    )


def test_the_id_within_that_of_a_recall_is_told(call: Call, guideline: str) -> None:
    key = f"scopes:guidelines/{guideline}"
    reply = call("memory_guideline", action="get", id=key)
    assert msgspec.json.decode(reply.body)["error"] == f"Guideline not found: {key}: its id is {guideline}"


def test_recall_names_the_whole_of_an_id(call: Call, memory: str) -> None:
    reply = call("recall", ids=[memory])
    assert msgspec.json.decode(reply.body)["error"]["message"] == (
        f"ids: {memory} is not an id of a recall; that is brain:core/{memory}"
    )


def test_a_key_learns_nothing_of_dialects_that_it_may_not_call(
    kernel: Kernel, runner: asyncio.Runner, memory: str
) -> None:
    arguments = {"action": "get", "id": memory}
    refusal = of_key(kernel, runner, {"scopes"}, "memory_guideline", arguments)
    assert msgspec.json.decode(refusal)["error"] == f"Guideline not found: {memory}"
    refusal = of_key(kernel, runner, {"scopes", "brain"}, "memory_guideline", arguments)
    assert msgspec.json.decode(refusal)["error"] == (
        f"Guideline not found: {memory}; brain has it: tools of brain take {memory}"
    )


def test_a_key_held_to_places_learns_nothing_of_others(kernel: Kernel, runner: asyncio.Runner, call: Call) -> None:
    assert call("add_memory", path="own/a_1", content="x").fault is None
    assert call("add_memory", path="other/a_1", content="x").fault is None
    reach = Reach(frozenset({"paths:own", "brain"}), frozenset({"brain"}))
    caller = Caller("key", grant(WRITER, frozenset(), True, reach), key="k1")
    for path, hint in (("own/a_1", '; paths has it: recall {"ids": ["paths/own/a_1"]} reads it'), ("other/a_1", "")):
        raw = msgspec.json.encode({"db": "core", "id": path})
        reply = runner.run(kernel.dispatch.call(kernel.dispatch.tools["delete_memory"], raw, caller))
        assert isinstance(reply, Reply)
        assert reply.body.decode() == f"Error: Memory '{path}' not found{hint}"
