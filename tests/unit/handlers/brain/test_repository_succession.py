"""A memory that is replaced hands on its links, has one successor at a time, and is free without it."""

from collections.abc import Callable
from typing import Any

import pytest

from kernel.server.app import Kernel
from tests.conftest import Clock, everything
from tests.support.handlers_brain_memories import LATER, NOW, events, row
from tests.unit.handlers.brain.conftest import CallOk

Refused = Callable[..., tuple[str | None, str]]
REPLACERS: dict[str, dict[str, Any]] = {
    "supersede_memory": {"old_id": "mem_1", "new_content": "Lyon 3"},
    "handle_correction": {"wrong_memory_id": "mem_1", "correct_content": "Lyon 3"},
}


@pytest.fixture
def home(call_ok: CallOk, clock: Clock) -> dict[str, Any]:
    """A memory of a project with metadata, linked from and to entities and to a memory, saved an hour ago."""
    saved = call_ok(
        "save_memory",
        db="core",
        content="Lyon",
        category="fact",
        project_id="web",
        metadata={"src": "crm", "ticket": 42},
    )
    call_ok("create_entity", db="core", name="Ada", type="person")
    call_ok("create_entity", db="core", name="Move", type="project")
    call_ok("save_memory", db="core", content="Rivers", category="fact")
    for source, target in (("memory:mem_1", "entity:ent_2"), ("entity:ent_3", "memory:mem_1")):
        link(call_ok, source, target)
    link(call_ok, "memory:mem_1", "memory:mem_4")
    clock.move(hours=1)
    return saved


def link(call_ok: CallOk, source: str, target: str) -> None:
    (source_type, source_id), (target_type, target_id) = source.split(":"), target.split(":")
    ends = {"source_type": source_type, "source_id": source_id, "target_type": target_type, "target_id": target_id}
    call_ok("create_link", db="core", relationship="part_of", strength=0.5, metadata={"a": 1}, **ends)


def link_row(key: str, source: str, target: str, at: str = LATER) -> dict[str, Any]:
    kinds = {"m": "memory", "e": "entity"}
    return {
        "id": key,
        "source_type": kinds[source[0]],
        "source_id": source,
        "target_type": kinds[target[0]],
        "target_id": target,
        "relationship": "part_of",
        "strength": 0.5,
        "context": None,
        "bidirectional": 0,
        "metadata": '{"a":1}',
        "created_at": at,
    }


@pytest.mark.parametrize("name", REPLACERS)
def test_a_successor_carries_project_metadata_and_links_to_entities_on(
    call_ok: CallOk, kernel: Kernel, home: dict[str, Any], name: str
) -> None:
    answer = call_ok(name, db="core", **REPLACERS[name])

    new = answer.get("new_memory") or answer["correction_memory"]
    mine = {"category": "correction", "importance": 5} if name == "handle_correction" else {}
    inherited = {"project_id": "web", "metadata": '{"src":"crm","ticket":42}'}
    assert new == row("mem_8", "Lyon 3", **{**inherited, **mine}, created_at=LATER, updated_at=LATER)  # pyrefly: ignore[bad-argument-type]
    links = {found["id"]: found for found in call_ok("get_links", db="core")}
    assert {key: links[key] for key in sorted(links) if links[key]["relationship"] == "part_of"} == {
        "lnk_10": link_row("lnk_10", "mem_8", "ent_2"),
        "lnk_11": link_row("lnk_11", "ent_3", "mem_8"),
        "lnk_5": link_row("lnk_5", "mem_1", "ent_2", NOW),
        "lnk_6": link_row("lnk_6", "ent_3", "mem_1", NOW),
        "lnk_7": link_row("lnk_7", "mem_1", "mem_4", NOW),
    }
    assert events(kernel, "lnk_10") == [("created", None, "mem_8 part_of ent_2", "Carried on from mem_1")]
    around = call_ok("get_entity_full", db="core", id="ent_2")
    assert (around["linked_memories"], around["scoped_memories"]) == ([new], [])


@pytest.mark.parametrize("name", REPLACERS)
def test_a_successor_carries_links_of_other_databases_on(call_ok: CallOk, home: dict[str, Any], name: str) -> None:
    ends = {"source_type": "memory", "source_id": "mem_1", "target_type": "entity", "target_id": "ent_2"}
    call_ok("create_link", db="dnd", relationship="part_of", strength=0.5, metadata={"a": 1}, **ends)

    answer = call_ok(name, db="core", **REPLACERS[name])

    new = answer.get("new_memory") or answer["correction_memory"]
    links = call_ok("get_links", db="dnd")
    wanted = {source: link_row(key, source, "ent_2") for key, source in (("lnk_8", "mem_1"), ("lnk_13", new["id"]))}
    assert {found["source_id"]: found for found in links} == wanted


@pytest.mark.parametrize(
    ("metadata", "reason", "wanted"),
    [
        ({"src": "crm"}, "newer", '{"src":"crm","supersede_reason":"newer"}'),
        ({"supersede_reason": "older", "src": "crm"}, "newer", '{"src":"crm","supersede_reason":"newer"}'),
        ({"supersede_reason": "older", "src": "crm"}, None, '{"src":"crm"}'),
        ({"supersede_reason": "older"}, None, None),
        (None, "newer", '{"supersede_reason":"newer"}'),
        (None, None, None),
        ({"n": 10**30}, "newer", f'{{"n":{10**30},"supersede_reason":"newer"}}'),
    ],
)
def test_a_reason_is_added_to_the_inherited_metadata(
    call_ok: CallOk, metadata: dict[str, Any] | None, reason: str | None, wanted: str | None
) -> None:
    key = call_ok("save_memory", db="core", content="x", category="fact", metadata=metadata)["id"]

    new = call_ok("supersede_memory", db="core", old_id=key, new_content="y", reason=reason)["new_memory"]

    assert new["metadata"] == wanted


@pytest.mark.parametrize("again", REPLACERS)
@pytest.mark.parametrize("first", REPLACERS)
def test_a_memory_with_a_successor_is_not_replaced_again(
    call_ok: CallOk, refused: Refused, home: dict[str, Any], first: str, again: str
) -> None:
    call_ok(first, db="core", **REPLACERS[first])

    assert refused(again, db="core", **REPLACERS[again]) == (
        "conflict",
        "Error: Memory 'mem_1' is already superseded by 'mem_8'",
    )


@pytest.mark.parametrize("again", REPLACERS)
@pytest.mark.parametrize("first", REPLACERS)
def test_a_deleted_successor_frees_its_predecessor(
    call_ok: CallOk, kernel: Kernel, clock: Clock, home: dict[str, Any], first: str, again: str
) -> None:
    call_ok(first, db="core", **REPLACERS[first])
    status = {"supersede_memory": "superseded", "handle_correction": "archived"}[first]
    clock.move(hours=1)

    call_ok("delete_memory", db="core", id="mem_8")

    later = "2026-01-02T05:04:05.678Z"
    assert call_ok("get_memories", db="core", status=status) == [{**home, "status": status, "updated_at": later}]
    assert events(kernel, "mem_1")[-1] == ("updated", "Lyon", None, "Deleted mem_8")
    assert call_ok(again, db="core", **REPLACERS[again])


def test_a_successor_that_is_gone_without_its_link_does_not_block(
    call_ok: CallOk, kernel: Kernel, home: dict[str, Any]
) -> None:
    done = call_ok("supersede_memory", db="core", **REPLACERS["supersede_memory"])
    call_ok("delete_link", db="core", id=done["link_id"])
    call_ok("delete_memory", db="core", id="mem_8")
    assert [memory[7] for memory in everything(kernel)["brain_memory"] if "mem_8" in memory] != []

    again = call_ok("supersede_memory", db="core", **REPLACERS["supersede_memory"])

    assert again["old_memory"]["superseded_by"] == again["new_memory"]["id"]


def test_a_memory_that_is_active_again_has_no_successor(call_ok: CallOk, home: dict[str, Any]) -> None:
    call_ok("supersede_memory", db="core", **REPLACERS["supersede_memory"])

    assert call_ok("update_memory", db="core", id="mem_1", status="active") == {**home, "updated_at": LATER}
