"""The calls that keep undo data, and the answer of undo for a call that cannot be undone."""

from functools import partial
from typing import Any, get_args

import msgspec
import pytest

from kernel.calls.tools import Tool
from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.server import app
from kernel.server.app import Kernel, open_kernel
from kernel.store import audit
from tests.conftest import Call, Clock, everything
from tests.support.operations_undo import last_call, memories, online, undo_call

TOOLS = [
    tool for one in app.DIALECTS for tool in (*one.tools, *one.memories.curating, *(method.tool for method in one.rest))
]
FORGET = "`quipu forget` deletes what it added"
# The calls that write and keep nothing for undo, with the way back from each.
ADDING = {
    "add_memory": FORGET,
    "save_memory": FORGET,
    "bulk_save_memories": FORGET,
    "smart_save_memory": FORGET,
    "create_entity": FORGET,
    "create_link": FORGET,
    "save_note": FORGET,
    "save_resource": FORGET,
    "remember": FORGET,
    "create_entities": FORGET,
    "create_stored_memory": FORGET,
    "memory_tool add": FORGET,
    "memory_guideline add": FORGET,
    "memory_knowledge add": FORGET,
    "create_relations": "delete_relations",
    "add_observations": "delete_observations",
    "create_memory_store": "delete_memory_store",
    "memory_tag attach": "detach",
    "memory_session start": "end",
    "memory_tag create": "an unused tag changes no answer but the list of tags",
    "memory_org create": "an empty organization changes no answer but the list of them; its parts may be in use",
    "memory_project create": "an empty project changes no answer but the list of them; its parts may be in use",
    "batch_embed": "derived from the rows: the next call makes it again",
    "redact_memory_version": "its purpose is that nothing of the text is left",
}


def arms(tool: Tool) -> list[tuple[str, type]]:
    """The requests of a tool that write, each with its name."""
    found = get_args(tool.request) or (tool.request,)
    writing = [arm for arm in found if arm not in tool.read_arms]
    tags = {arm: arm.__struct_config__.tag for arm in writing}
    return [(f"{tool.name} {tags[arm]}" if tags[arm] else tool.name, arm) for arm in writing]


def test_every_call_that_writes_keeps_what_it_replaced_or_has_a_way_back() -> None:
    kept_not = {
        name
        for tool in TOOLS
        if tool.mode != "read" and not tool.hints.destructive
        for name, arm in arms(tool)
        if arm not in tool.kept_arms
    }
    assert kept_not == ADDING.keys()


def saved(call: Call, tool: str, **arguments: Any) -> Any:
    reply = call(tool, **arguments)
    assert reply.fault is None, reply
    return msgspec.json.decode(reply.body)


ENTRIES = {
    "guideline": ({"name": "tabs", "content": "Use tabs"}, {"content": "Use blanks", "priority": 90}),
    "knowledge": ({"title": "tea", "content": "Green"}, {"content": "Black"}),
    "tool": ({"name": "git", "description": "Versions"}, {"description": "Versions of files"}),
}


@pytest.mark.parametrize("kind", ENTRIES)
@pytest.mark.parametrize("action", ["update", "deactivate"])
def test_an_update_and_a_deactivation_by_the_tool_are_undone(
    kernel: Kernel, call: Call, kind: str, action: str
) -> None:
    first, later = ENTRIES[kind]
    entry = saved(call, f"memory_{kind}", action="add", scopeType="global", **first)[kind]["id"]
    before, shown = memories(kernel), call("recall", query="tabs green versions").body
    saved(call, f"memory_{kind}", action=action, id=entry, **(later if action == "update" else {}))
    assert memories(kernel) != before
    assert not isinstance(online(kernel, last_call(kernel).id), Fault)
    assert memories(kernel) == before
    assert call("recall", query="tabs green versions").body == shown


def test_other_changes_of_scopes_are_undone(kernel: Kernel, call: Call) -> None:
    project = saved(call, "memory_project", action="create", name="Shop")["project"]["id"]
    session = saved(call, "memory_session", action="start", projectId=project)["session"]["id"]
    rule = saved(call, "memory_guideline", action="add", scopeType="global", name="a", content="x")["guideline"]["id"]
    tagged = {"entryType": "guideline", "entryId": rule, "tagName": "ours"}
    saved(call, "memory_tag", action="attach", **tagged)
    for _ in range(2):
        saved(call, "memory_guideline", action="update", id=rule, content="y")
    conflict = saved(call, "memory_conflict", action="list")["conflicts"][0]["id"]
    for tool, arguments in (
        ("memory_project", {"action": "update", "id": project, "description": "A shop"}),
        ("memory_session", {"action": "end", "id": session}),
        ("memory_tag", {"action": "detach", **tagged}),
        ("memory_conflict", {"action": "resolve", "id": conflict, "resolution": "the later one"}),
    ):
        before = memories(kernel)
        saved(call, tool, **arguments)
        assert memories(kernel) != before, tool
        online(kernel, last_call(kernel).id)
        assert memories(kernel) == before, tool


def refusal(kernel: Kernel, number: int) -> str:
    with pytest.raises(Fault) as refused:
        online(kernel, number)
    return refused.value.message


def test_a_call_that_was_undone_says_when_and_by_which(kernel: Kernel, call: Call, clock: Clock) -> None:
    call("add_memory", path="car", content="red")
    call("drop_memory", path="car")
    at = clock.move(minutes=1)
    online(kernel, 2)
    assert refusal(kernel, 2) == f"Call 2 cannot be undone: call 3 of local undid it at {at}."
    assert refusal(kernel, 3) == "Call 3 cannot be undone: it is itself the undo of call 2."


def test_an_expired_call_says_how_long_changes_are_kept(kernel: Kernel, call: Call, clock: Clock) -> None:
    at = clock.now
    call("add_memory", path="car", content="red")
    call("drop_memory", path="car")
    clock.move(hours=200)
    call("add_memory", path="bus", content="red")
    call("drop_memory", path="bus")
    said = f"Call 2 cannot be undone: it expired: what a call changed is kept for 168 hours, and it was at {at}."
    assert refusal(kernel, 2) == said


def test_a_later_change_is_named(kernel: Kernel, call: Call, clock: Clock) -> None:
    call("add_memory", path="car", content="red")
    call("replace_memory", path="car", content="blue")
    call("replace_memory", path="car", content="green")
    before = everything(kernel)
    assert refusal(kernel, 2) == (
        "Call 2 cannot be undone: paths/car has been changed again since, or is needed by what came later: "
        f"call 3 (replace_memory at {clock.now})."
    )
    assert everything(kernel) == before


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("add_memory", {"path": "car", "content": "red"}, "`quipu forget paths/car` deletes what it added"),
        (
            "create_entities",
            {"entities": [{"name": "$(my API)", "entityType": "system", "observations": ["red"]}]},
            "`quipu forget 'graph/$(my API)'` deletes what it added",
        ),
        (
            "bulk_save_memories",
            {"db": "core", "memories": [{"content": text, "category": "fact"} for text in ("a cart", "a horse")]},
            "`quipu forget` deletes what it added, such as brain:core/mem_1, brain:core/mem_2",
        ),
        (
            "memory_guideline",
            {"action": "add", "scopeType": "global", "name": "a", "content": "x"},
            "`quipu forget scopes:guidelines/gl_1` deletes what it added",
        ),
    ],
)
def test_a_call_that_only_added_says_how_that_is_deleted(
    kernel: Kernel, call: Call, clock: Clock, tool: str, arguments: dict[str, Any], said: str
) -> None:
    assert call(tool, **arguments).fault is None
    assert refusal(kernel, 1) == f"Call 1 cannot be undone: it replaced nothing, so nothing was kept; {said}."


def test_a_number_that_no_call_has_is_told_from_one_that_cannot_be_undone(kernel: Kernel, call: Call) -> None:
    assert refusal(kernel, 1) == "There is no call 1 in the audit: no call has changed anything yet."
    assert call("drop_memory", path="none").fault is not None  # a call that failed has no number
    call("add_memory", path="car", content="red")
    assert refusal(kernel, 2) == "There is no call 2 in the audit: the newest is call 1."


def test_nothing_is_kept_where_the_setting_says_so(kernel: Kernel, call: Call) -> None:
    call("add_memory", path="car", content="red")
    call("drop_memory", path="car")

    kernel.store.write_sync(lambda tx: audit.delete_undo(tx, 2))
    assert "it changed too much at once, or what was kept has been deleted since" in refusal(kernel, 2)
    kernel.store.close()
    kept_none = open_kernel(Config(data=kernel.config.data, undo_hours=0))
    work = partial(undo_call, number=2, hours=kept_none.store.undo_hours)
    with pytest.raises(Fault, match="nothing is kept for it, as QUIPU_UNDO_HOURS=0 asks"):
        kept_none.store.write_sync(work)
    kept_none.store.close()
