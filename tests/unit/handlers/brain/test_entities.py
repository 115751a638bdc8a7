"""Entities are kept with their linked rows, and go with their links."""

from typing import Any

import pytest

from kernel.server.app import Kernel
from tests.conftest import Clock
from tests.support.handlers_brain_memories import IDENTITY, LATER, NOW, by_words, events
from tests.unit.handlers.brain.conftest import CallOk


def row(key: str, name: str, kind: str = "project", **changed: Any) -> dict[str, Any]:
    """Return a new entity as the contract wants it, with these changes."""
    return {
        "id": key,
        "name": name,
        "type": kind,
        "subtype": None,
        "description": None,
        "tags": None,
        "aliases": None,
        "status": "active",
        "mention_count": 0,
        "first_mentioned": None,
        "last_mentioned": None,
        "has_embedding": 1,
        "embedding_model": IDENTITY,
        "metadata": None,
        "created_at": NOW,
        "updated_at": NOW,
        **changed,
    }


def link(call_ok: CallOk, source: str, target: str, relationship: str = "relates_to") -> None:
    kinds = {"mem": "memory", "ent": "entity"}
    call_ok(
        "create_link",
        db="core",
        source_type=kinds[source[:3]],
        source_id=source,
        target_type=kinds[target[:3]],
        target_id=target,
        relationship=relationship,
    )


def test_create_answers_with_the_whole_row(call_ok: CallOk, kernel: Kernel, clock: Clock) -> None:
    answer = call_ok(
        "create_entity",
        db="core",
        name="Quipu",
        type="system",
        subtype="server",
        description="Knots on cords",
        tags=["inca"],
        metadata={"a": ["khipu"], "from": {"file": "export"}},
    )

    assert answer == row(
        "ent_1",
        "Quipu",
        "system",
        subtype="server",
        description="Knots on cords",
        tags='["inca"]',
        metadata='{"a":["khipu"],"from":{"file":"export"}}',
    )
    assert call_ok("get_entities", db="core") == [answer]
    found = [by_words(kernel, words) for words in ("quipu", "knots", "system", "inca", "server", "khipu", "export")]
    assert found == [{"ent_1"}] * 6 + [set()]  # the source of an imported row is no word of it
    assert events(kernel, "ent_1") == [("created", None, "Quipu. Knots on cords", None)]


def test_entity_needs_only_a_name_and_type(call_ok: CallOk, clock: Clock) -> None:
    assert call_ok("create_entity", db="core", name="Ada", type="person") == row("ent_1", "Ada", "person")


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ({}, ["Cy", "Bo", "Al"]),
        ({"type": "person"}, ["Bo", "Al"]),
        ({"type": "client"}, []),
        ({"tags": ["X"]}, ["Bo", "Al"]),
        ({"tags": ["%"]}, []),
        ({"tags": ["y", "z"]}, ["Cy", "Bo"]),
        ({"status": "archived"}, ["Di"]),
        ({"limit": 1}, ["Cy"]),
        ({"limit": 1, "offset": 2}, ["Al"]),
    ],
    ids=str,
)
def test_filters_choose_and_the_last_updated_comes_first(
    call_ok: CallOk, clock: Clock, filters: dict[str, Any], wanted: list[str]
) -> None:
    for name, kind, tags in (("Al", "person", ["x"]), ("Bo", "person", ["x", "y"]), ("Cy", "concept", ["z"])):
        call_ok("create_entity", db="core", name=name, type=kind, tags=tags)
        clock.move(minutes=1)
    call_ok("create_entity", db="core", name="Di", type="client")
    call_ok("update_entity", db="core", id="ent_4", status="archived")
    call_ok("create_entity", db="dnd", name="Ed", type="person")

    assert [entity["name"] for entity in call_ok("get_entities", db="core", **filters)] == wanted


def test_update_changes_given_fields_and_indexed_text(call_ok: CallOk, kernel: Kernel, clock: Clock) -> None:
    saved = call_ok("create_entity", db="core", name="Quipu", type="system", description="Knots", tags=["a"])
    clock.move(hours=1)

    changed = call_ok("update_entity", db="core", id="ent_1", description="Cords", tags=["b"], metadata={"x": 1})

    assert changed == {
        **saved,
        "description": "Cords",
        "tags": '["b"]',
        "metadata": '{"x":1}',
        "updated_at": LATER,
    }
    assert call_ok("get_entities", db="core") == [changed]
    assert [by_words(kernel, words) for words in ("knots", "cords", "a", "b")] == [set(), {"ent_1"}, set(), {"ent_1"}]
    assert events(kernel, "ent_1")[1:] == [
        ("updated", "Quipu. Knots", "Quipu. Cords", "Changed description, tags, metadata")
    ]
    call_ok("update_entity", db="core", id="ent_1", status="archived")
    assert by_words(kernel, "cords") == set()
    call_ok("update_entity", db="core", id="ent_1", status="active", name="Khipu")
    assert by_words(kernel, "khipu cords") == {"ent_1"}


def test_entity_full_has_linked_and_scoped_rows(call_ok: CallOk, clock: Clock) -> None:
    for name in ("Quipu", "Ada", "Gone", "Far"):
        call_ok("create_entity", db="core", name=name, type="project")
        clock.move(minutes=1)
    for content, more in (
        ("linked", {"importance": 5}),
        ("linked and scoped", {"project_id": "ent_1"}),
        ("scoped", {"project_id": "ent_1"}),
        ("archived", {"project_id": "ent_1"}),
        ("unrelated", {}),
        ("links to it", {}),
    ):
        call_ok("save_memory", db="core", content=content, category="fact", **more)
    link(call_ok, "ent_1", "mem_5")
    link(call_ok, "mem_6", "ent_1")
    link(call_ok, "ent_1", "mem_6", "part_of")
    link(call_ok, "mem_10", "ent_1", "depends_on")
    link(call_ok, "ent_1", "mem_8")
    link(call_ok, "ent_1", "ent_2", "depends_on")
    link(call_ok, "ent_2", "ent_1", "depends_on")
    link(call_ok, "ent_2", "ent_1", "part_of")
    link(call_ok, "ent_1", "ent_1")
    link(call_ok, "ent_3", "ent_1")
    call_ok("update_entity", db="core", id="ent_3", status="archived")
    call_ok("update_memory", db="core", id="mem_8", status="archived")

    answer = call_ok("get_entity_full", db="core", id="ent_1")

    assert list(answer) == ["entity", "linked_memories", "scoped_memories", "related_entities"]
    assert answer["entity"] == row("ent_1", "Quipu")
    assert [memory["content"] for memory in answer["linked_memories"]] == ["linked", "links to it", "linked and scoped"]
    assert [memory["content"] for memory in answer["scoped_memories"]] == ["scoped"]
    ada = row("ent_2", "Ada", created_at=answer["related_entities"][0]["created_at"])
    ada["updated_at"] = ada["created_at"]
    assert answer["related_entities"] == [{**ada, "relationship": "depends_on"}, {**ada, "relationship": "part_of"}]
    assert call_ok("get_memories", db="core")[0]["access_count"] == 0


def test_entity_without_relations_has_empty_lists(call_ok: CallOk, clock: Clock) -> None:
    call_ok("create_entity", db="core", name="Quipu", type="system")

    assert call_ok("get_entity_full", db="core", id="ent_1") == {
        "entity": row("ent_1", "Quipu", "system"),
        "linked_memories": [],
        "scoped_memories": [],
        "related_entities": [],
    }


def test_delete_removes_links_of_both_directions_but_no_memory(call_ok: CallOk, kernel: Kernel, clock: Clock) -> None:
    for name in ("Quipu", "Ada"):
        call_ok("create_entity", db="core", name=name, type="system")
    call_ok("save_memory", db="core", content="x", category="fact", project_id="ent_1")
    link(call_ok, "ent_1", "ent_2")
    link(call_ok, "mem_3", "ent_1")
    link(call_ok, "mem_3", "ent_2")

    assert call_ok("delete_entity", db="core", id="ent_1") == "Deleted entity 'ent_1' and its links"

    assert [entity["id"] for entity in call_ok("get_entities", db="core")] == ["ent_2"]
    assert [(one["source_id"], one["target_id"]) for one in call_ok("get_links", db="core")] == [("mem_3", "ent_2")]
    assert call_ok("get_memories", db="core")[0]["project_id"] == "ent_1"
    assert by_words(kernel, "quipu") == set()
    assert events(kernel, "ent_1")[-1] == ("deleted", "Quipu", None, None)


@pytest.mark.parametrize(
    ("name", "more"), [("update_entity", {"name": "x"}), ("get_entity_full", {}), ("delete_entity", {})]
)
def test_an_unknown_entity_is_not_found(call_ok: CallOk, refused: CallOk, name: str, more: dict[str, str]) -> None:
    key = call_ok("create_entity", db="therapy", name="Elsewhere", type="person")["id"]

    assert refused(name, db="core", id=key, **more) == (
        "not_found",
        f"Error: Entity '{key}' not found; it is in therapy",
    )


def test_an_update_of_nothing_is_refused_in_the_contracts_words(call_ok: CallOk, refused: CallOk) -> None:
    key = call_ok("create_entity", db="core", name="Quipu", type="system")["id"]

    assert refused("update_entity", db="core", id=key) == ("invalid", "No fields to update")
