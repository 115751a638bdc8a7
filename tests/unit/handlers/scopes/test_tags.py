"""Tags are made once, put on entries and projects, and taken off again."""

import json
from typing import Any

import pytest

from kernel.app import Kernel
from kernel.store import history
from tests.conftest import Call, Clock
from tests.unit.handlers.scopes.conftest import Do, Places, Storm, refused
from tests.unit.handlers.scopes.test_entry_tools import named

NOW = "2026-01-02T03:04:05.678Z"
PREDEFINED = {
    "language": ["python", "typescript", "javascript", "rust", "go", "sql", "bash"],
    "domain": ["web", "cli", "api", "database", "ml", "devops", "security", "testing"],
    "category": ["code_style", "architecture", "behavior", "performance", "error_handling", "logging"],
    "meta": ["deprecated", "experimental", "stable", "required", "optional"],
}


def test_a_tag_is_made_once_whatever_it_is_asked_for_again(do: Do, clock: Clock) -> None:
    made = do("memory_tag", "create", name="mine", category="domain", description="My own")
    again = do("memory_tag", "create", name="mine", category="meta")

    tag = {
        "id": "tag_1",
        "name": "mine",
        "category": "domain",
        "isPredefined": False,
        "description": "My own",
        "createdAt": NOW,
    }
    assert made == {"success": True, "tag": tag, "existed": False}
    assert again == {"success": True, "tag": tag, "existed": True}
    assert do("memory_tag", "create", name="Mine", category=None)["tag"]["category"] == "custom"


def test_a_store_begins_with_the_predefined_tags(do: Do) -> None:
    def names(**which: Any) -> list[str]:
        found = do("memory_tag", "list", **which)
        assert found["meta"] == {"returnedCount": len(found["tags"])}
        assert all(tag["isPredefined"] and tag["description"] for tag in found["tags"])
        return [tag["name"] for tag in found["tags"]]

    everything = [name for names in PREDEFINED.values() for name in names]
    assert names(limit=100) == names(limit=100, isPredefined=True) == everything
    assert names() == everything[:20]
    assert {category: names(category=category) for category in PREDEFINED} == PREDEFINED
    assert names(isPredefined=False) == names(category="custom") == []
    assert do("memory_tag", "create", name="python")["tag"]["id"] == "tag_python"


def test_a_tag_is_put_on_an_entry_once_and_by_a_name_that_may_be_new(do: Do, places: Places, clock: Clock) -> None:
    do("memory_guideline", "add", **named("guideline", "g"))
    mark = {"entryType": "guideline", "entryId": "gl_1"}
    put = do("memory_tag", "attach", **mark, tagName="python")

    entry_tag = {"id": "et_4", **mark, "tagId": "tag_python", "createdAt": NOW}
    assert put == {"success": True, "entryTag": entry_tag}
    clock.move(hours=1)
    assert do("memory_tag", "attach", **mark, tagId="tag_python") == put
    assert do("memory_tag", "attach", **mark, tagName="fresh")["success"]
    found = do("memory_tag", "for_entry", **mark)
    assert list(found) == ["tags"]
    assert [(tag["name"], tag["category"]) for tag in found["tags"]] == [("python", "language"), ("fresh", "custom")]
    assert do("memory_tag", "attach", entryType="project", entryId=places.project, tagName="fresh")["success"]


def test_a_tag_is_taken_off_by_id_or_name_and_the_history_knows(
    kernel: Kernel, do: Do, places: Places, clock: Clock
) -> None:
    mark = {"entryType": "project", "entryId": places.project}
    put = do("memory_tag", "attach", **mark, tagName="python")["entryTag"]
    do("memory_tag", "attach", **mark, tagName="rust")

    assert do("memory_tag", "detach", **mark, tagId="tag_go") == {"success": False}
    assert do("memory_tag", "detach", **mark, tagId="tag_python") == {"success": True}
    assert do("memory_tag", "detach", **mark, tagId="tag_python") == {"success": False}
    assert do("memory_tag", "detach", **mark, tagName="rust") == {"success": True}
    assert do("memory_tag", "detach", **mark, tagName="nobody") == {"success": False}
    assert do("memory_tag", "for_entry", **mark) == {"tags": []}
    (event,) = kernel.store.read_sync(lambda tx: history.read(tx, "scopes:tags", put["id"]))
    assert (event.operation, json.loads(event.before or "")) == ("detached", put)


@pytest.mark.parametrize("action", ["attach", "for_entry"])
@pytest.mark.parametrize(
    ("entry_type", "label"),
    [("tool", "Tool"), ("guideline", "Guideline"), ("knowledge", "Knowledge entry"), ("project", "Project")],
)
def test_what_is_marked_has_to_exist(do: Do, unchanged: Call, action: str, entry_type: str, label: str) -> None:
    other = "guideline" if entry_type == "tool" else "tool"
    stranger = do(f"memory_{other}", "add", **named(other, "a"))[other]["id"]
    more = {"tagName": "fresh"} if action == "attach" else {}
    for nobody in ("nobody", stranger):
        assert refused(unchanged("memory_tag", action=action, entryType=entry_type, entryId=nobody, **more)) == (
            "not_found",
            "E2000",
            f"{label} not found: {nobody}",
            {"resource": label.lower(), "identifier": nobody, "field": "entryId"},
        )


def test_a_tag_that_is_put_on_has_to_be_named_and_to_exist(unchanged: Call, places: Places) -> None:
    mark = {"entryType": "project", "entryId": places.project}
    for action in ("attach", "detach"):
        assert refused(unchanged("memory_tag", action=action, **mark)) == (
            "invalid",
            "E1000",
            "Validation error: tagId - either tagId or tagName is required",
            {"field": "tagId"},
        )
    assert refused(unchanged("memory_tag", action="attach", **mark, tagId="ghost")) == (
        "not_found",
        "E2000",
        "Tag not found: ghost",
        {"resource": "tag", "identifier": "ghost", "field": "tagId"},
    )


def test_of_a_hundred_tags_of_one_name_one_is_made_and_all_agree(storm: Storm, places: Places) -> None:
    made = [json.loads(reply.body) for reply in storm([("memory_tag", {"action": "create", "name": "new"})] * 100)]
    assert sorted(said["existed"] for said in made) == [False, *[True] * 99]
    assert len({said["tag"]["id"] for said in made}) == 1

    mark = {"action": "attach", "entryType": "project", "entryId": places.project, "tagName": "newer"}
    marks = {reply.body for reply in storm([("memory_tag", mark)] * 100)}
    assert len(marks) == 1
