"""Notes keep long texts with a version that counts, and are found by their summaries."""

from typing import Any

import pytest

from kernel.server.app import Kernel
from tests.conftest import Clock
from tests.support.handlers_brain_memories import IDENTITY, LATER, NOW, by_words, events
from tests.unit.handlers.brain.conftest import CallOk


def row(key: str, title: str, content: str, **changed: Any) -> dict[str, Any]:
    return {
        "id": key,
        "db": "core",
        "title": title,
        "content": content,
        "note_type": "note",
        "summary": None,
        "key_points": None,
        "tags": None,
        "category": None,
        "parent_note_id": None,
        "version": 1,
        "previous_version_id": None,
        "project_id": None,
        "entity_id": None,
        "word_count": len(content.split()),
        "has_embedding": 1,
        "embedding_model": IDENTITY,
        "created_at": NOW,
        "updated_at": NOW,
        **changed,
    }


def test_save_answers_with_the_whole_row(call_ok: CallOk, kernel: Kernel, clock: Clock) -> None:
    plain = call_ok("save_note", db="core", title="Tea", content=" steep \n for  three minutes ")
    given = {
        "note_type": "gdd",
        "summary": "About knots",
        "key_points": ["one", ""],
        "tags": ["t"],
        "category": "c",
        "parent_note_id": "note_1",
        "project_id": call_ok("create_entity", db="core", name="Web", type="project")["id"],
        "entity_id": call_ok("create_entity", db="dnd", name="Ada", type="person")["id"],
    }
    full = call_ok("save_note", db="core", title="Quipu", content="cords", **given)

    assert plain == row("note_1", "Tea", " steep \n for  three minutes ", word_count=4)
    assert full == row("note_4", "Quipu", "cords", **{**given, "key_points": '["one",""]', "tags": '["t"]'})
    found = [by_words(kernel, words) for words in ("steep", "tea", "knots", "cords", "t")]
    assert found == [{"note_1"}, {"note_1"}, {"note_4"}, {"note_4"}, {"note_4"}]
    assert events(kernel, "note_4") == [("created", None, "cords", None)]


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ({}, [2, 1, 0]),
        ({"note_type": "journal"}, [1]),
        ({"category": "c"}, [2]),
        ({"tags": ["T"]}, [1, 0]),
        ({"project_id": "web"}, [0]),
        ({"entity_id": "ent_1"}, [2]),
        ({"limit": 2}, [2, 1]),
        ({"offset": 2}, [0]),
    ],
    ids=str,
)
def test_filters_choose_and_the_last_updated_comes_first(
    call_ok: CallOk, clock: Clock, filters: dict[str, Any], wanted: list[int]
) -> None:
    made = []
    call_ok("create_entity", db="core", name="Ada", type="person")
    for more in (
        {"tags": ["t"], "project_id": "web"},
        {"tags": ["t"], "note_type": "journal"},
        {"category": "c", "entity_id": "ent_1"},
    ):
        made.append(call_ok("save_note", db="core", title="x", content="y", **more))
        clock.move(minutes=1)

    assert call_ok("get_notes", db="core", **filters) == [made[at] for at in wanted]


def test_default_limit_of_notes_is_20(call_ok: CallOk) -> None:
    for number in range(22):
        call_ok("save_note", db="core", title=f"{number}", content="y")

    assert (len(call_ok("get_notes", db="core")), len(call_ok("get_notes", db="core", limit=30))) == (20, 22)


def test_new_content_increments_version_and_is_indexed(call_ok: CallOk, kernel: Kernel, clock: Clock) -> None:
    saved = call_ok("save_note", db="core", title="Tea", content="steep", tags=["a"])
    clock.move(hours=1)

    titled = call_ok("update_note", db="core", id="note_1", title="Green tea", note_type="spec")
    changed = call_ok("update_note", db="core", id="note_1", content="pour it", tags=["b"])

    assert titled == {**saved, "title": "Green tea", "note_type": "spec", "updated_at": LATER}
    assert changed == {**titled, "content": "pour it", "tags": '["b"]', "version": 2, "word_count": 2}
    assert call_ok("get_notes", db="core") == [changed]
    assert [by_words(kernel, words) for words in ("steep", "pour", "green")] == [set(), {"note_1"}, {"note_1"}]
    assert events(kernel, "note_1") == [
        ("created", None, "steep", None),
        ("updated", "steep", "steep", "Changed title, note_type"),
        ("updated", "steep", "pour it", "Changed content, tags"),
    ]


def test_an_unknown_note_and_an_update_of_nothing_are_refused(call_ok: CallOk, refused: CallOk) -> None:
    key = call_ok("save_note", db="core", title="x", content="y")["id"]

    assert refused("update_note", db="dnd", id=key, title="z") == (
        "not_found",
        f"Error: Note '{key}' not found; it is in core",
    )
    assert refused("update_note", db="core", id=key) == ("invalid", "No fields to update")
    same = {name: call_ok("get_notes", db="core")[0][name] for name in ("title", "content")}
    assert refused("update_note", db="core", id=key, **same) == (
        "invalid",
        "No fields to update: these values are stored already",
    )
