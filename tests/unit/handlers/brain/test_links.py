"""Links join existing rows, once each, and are call_ok newest first."""

from typing import Any

import apsw
import pytest

from kernel.server.app import Kernel
from tests.conftest import Clock
from tests.support.handlers_brain_memories import NOW, events
from tests.unit.handlers.brain.conftest import CallOk


@pytest.fixture
def ends(call_ok: CallOk, clock: Clock) -> None:
    """The memories `mem_1` and `mem_2`, the entity `ent_3`, and `mem_4` in another database."""
    call_ok("bulk_save_memories", db="core", memories=[{"content": word, "category": "fact"} for word in ("a", "b")])
    call_ok("create_entity", db="core", name="c", type="concept")
    call_ok("save_memory", db="dnd", content="d", category="fact")


def given(source: str = "mem_1", target: str = "mem_2", **more: Any) -> dict[str, Any]:
    kinds = {"m": "memory", "e": "entity"}
    return {
        "db": "core",
        "source_type": kinds[source[0]],
        "source_id": source,
        "target_type": kinds[target[0]],
        "target_id": target,
        "relationship": "relates_to",
        **more,
    }


def test_create_answers_with_the_whole_row(call_ok: CallOk, kernel: Kernel, ends: None) -> None:
    answer = call_ok("create_link", **given(target="ent_3", relationship="part_of", strength=0.5, metadata={"a": 1}))

    assert answer == {
        "id": "lnk_5",
        "source_type": "memory",
        "source_id": "mem_1",
        "target_type": "entity",
        "target_id": "ent_3",
        "relationship": "part_of",
        "strength": 0.5,
        "context": None,
        "bidirectional": 0,
        "metadata": '{"a":1}',
        "created_at": NOW,
    }
    assert call_ok("get_links", db="core") == [answer]
    assert events(kernel, "lnk_5") == [("created", None, "mem_1 part_of ent_3", None)]


def test_strength_defaults_to_1(call_ok: CallOk, ends: None) -> None:
    answer = call_ok("create_link", **given())

    assert (answer["strength"], answer["metadata"]) == (1.0, None)


def test_only_an_identical_link_is_refused(call_ok: CallOk, refused: CallOk, ends: None) -> None:
    call_ok("create_link", **given())

    assert refused("create_link", **given(strength=0.1)) == ("conflict", "This exact link already exists")
    call_ok("create_link", **given("mem_2", "mem_1"))
    call_ok("create_link", **given(relationship="a word of its own"))
    call_ok("create_link", **given("mem_1", "mem_1"))
    assert len(call_ok("get_links", db="core")) == 4


@pytest.mark.parametrize(
    ("source", "target", "missing"),
    [
        ("mem_9", "mem_1", "Memory 'mem_9'"),
        ("mem_1", "ent_9", "Entity 'ent_9'"),
        ("ent_1", "mem_1", "Entity 'ent_1'"),
        ("mem_3", "ent_9", "Memory 'mem_3'"),
    ],
)
def test_link_to_missing_row_is_refused(refused: CallOk, ends: None, source: str, target: str, missing: str) -> None:
    assert refused("create_link", **given(source, target)) == ("not_found", f"Error: {missing} not found")


def test_link_may_end_in_another_database(call_ok: CallOk, ends: None) -> None:
    assert call_ok("create_link", **given("mem_1", "mem_4"))["target_id"] == "mem_4"


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ({}, [3, 2, 1, 0]),
        ({"source_id": "mem_1"}, [2, 1, 0]),
        ({"target_id": "mem_2"}, [1, 0]),
        ({"relationship": "part_of"}, [3, 1]),
        ({"source_id": "mem_1", "target_id": "mem_2"}, [1, 0]),
        ({"source_id": "mem_1", "relationship": "part_of"}, [1]),
        ({"target_id": "mem_2", "relationship": "relates_to"}, [0]),
        ({"source_id": "mem_1", "target_id": "mem_2", "relationship": "part_of"}, [1]),
        ({"source_id": "mem_2"}, []),
        ({"relationship": "part"}, []),
    ],
    ids=str,
)
def test_filters_choose_and_the_newest_comes_first(
    call_ok: CallOk, clock: Clock, ends: None, filters: dict[str, str], wanted: list[int]
) -> None:
    made = []
    for one in (
        given(),
        given(relationship="part_of"),
        given(target="ent_3"),
        given("ent_3", "mem_1", relationship="part_of"),
    ):
        made.append(call_ok("create_link", **one))
        clock.move(seconds=1)

    assert call_ok("get_links", db="core", **filters) == [made[at] for at in wanted]
    assert call_ok("get_links", db="dnd", **filters) == []


def test_delete_removes_only_the_link(call_ok: CallOk, kernel: Kernel, ends: None, refused: CallOk) -> None:
    call_ok("create_link", **given())

    assert call_ok("delete_link", db="core", id="lnk_5") == "Deleted link 'lnk_5'"

    assert call_ok("get_links", db="core") == []
    assert len(call_ok("get_memories", db="core")) == 2
    assert events(kernel, "lnk_5")[-1] == ("deleted", "mem_1 relates_to mem_2", None, None)
    assert refused("delete_link", db="core", id="lnk_5") == ("not_found", "Error: Link 'lnk_5' not found")


def test_link_of_another_database_is_deleted_with_its_target(call_ok: CallOk, ends: None) -> None:
    call_ok("create_link", **{**given(target="mem_4"), "db": "therapy"})
    call_ok("create_link", **{**given(target="ent_3"), "db": "therapy"})
    call_ok("create_link", **{**given("mem_2", "mem_4"), "db": "therapy"})

    call_ok("delete_memory", db="dnd", id="mem_4")
    call_ok("delete_entity", db="core", id="ent_3")

    assert call_ok("get_links", db="therapy") == []


@pytest.mark.parametrize(("kind", "table"), [("memory", "brain_memory"), ("entity", "brain_entity")])
def test_link_of_another_database_stays_if_the_id_exists_there(
    call_ok: CallOk, kernel: Kernel, ends: None, kind: str, table: str
) -> None:
    key = {"memory": "mem_1", "entity": "ent_3"}[kind]
    call_ok("create_link", **given(key, "mem_2"))
    call_ok("create_link", **{**given(key, "mem_4"), "db": "dnd"})
    _copy(kernel, table, key)

    call_ok(f"delete_{kind}", db="core", id=key)

    assert call_ok("get_links", db="core") == []
    assert [link["source_id"] for link in call_ok("get_links", db="dnd")] == [key]


def _copy(kernel: Kernel, table: str, key: str) -> None:
    """The row in `therapy` too, as two files that are brought in may hold one id."""
    db = apsw.Connection(str(kernel.config.file))
    db.execute(f"CREATE TEMP TABLE copy AS SELECT * FROM {table} WHERE id = ?", (key,))
    db.execute("UPDATE copy SET db = 'therapy'")
    db.execute(f"INSERT INTO {table} SELECT * FROM copy")
    db.close()
