"""Tags are unique by name, attached to entries and projects, and detached."""

import json
from typing import Any

import pytest

from kernel.operations import consistency
from kernel.search import index
from kernel.server import app
from kernel.server.app import Kernel
from kernel.store import history
from tests.conftest import Call, Clock
from tests.support.handlers_scopes_entry_tools import named
from tests.support.operations_undo import last_call, online
from tests.unit.handlers.scopes.conftest import Concurrently, Do, ScopeIds, exported, refused

NOW = "2026-01-02T03:04:05.678Z"
PREDEFINED = {
    "language": ["python", "typescript", "javascript", "rust", "go", "sql", "bash"],
    "domain": ["web", "cli", "api", "database", "ml", "devops", "security", "testing"],
    "category": ["code_style", "architecture", "behavior", "performance", "error_handling", "logging"],
    "meta": ["deprecated", "experimental", "stable", "required", "optional"],
}


def test_create_returns_the_existing_tag(do: Do, clock: Clock) -> None:
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
    assert do("memory_tag", "create", name="fresh", category=None)["tag"]["category"] == "custom"


def test_a_new_store_has_the_predefined_tags(do: Do) -> None:
    def names(**which: Any) -> list[str]:
        found = do("memory_tag", "list", **which)
        assert found["meta"]["returnedCount"] == len(found["tags"])
        assert all(tag["isPredefined"] and tag["description"] for tag in found["tags"])
        return [tag["name"] for tag in found["tags"]]

    everything = [name for names in PREDEFINED.values() for name in names]
    assert names(limit=100) == names(limit=100, isPredefined=True) == everything
    assert names() == everything[:20]
    assert {category: names(category=category) for category in PREDEFINED} == PREDEFINED
    assert names(isPredefined=False) == names(category="custom") == []
    assert do("memory_tag", "create", name="python")["tag"]["id"] == "tag_python"


def test_attach_is_idempotent_and_creates_tags_by_name(do: Do, scope_ids: ScopeIds, clock: Clock) -> None:
    do("memory_guideline", "add", **named("guideline", "g"))
    mark = {"entryType": "guideline", "entryId": "gl_1"}
    put = do("memory_tag", "attach", **mark, tagName="python")

    entry_tag = {"id": "et_3", **mark, "tagId": "tag_python", "createdAt": NOW}
    assert put == {"success": True, "entryTag": entry_tag}
    clock.move(hours=1)
    assert do("memory_tag", "attach", **mark, tagId="tag_python") == put
    assert do("memory_tag", "attach", **mark, tagName="fresh")["success"]
    found = do("memory_tag", "for_entry", **mark)
    assert list(found) == ["tags"]
    assert [(tag["name"], tag["category"]) for tag in found["tags"]] == [("python", "language"), ("fresh", "custom")]
    assert do("memory_tag", "attach", entryType="project", entryId=scope_ids.project, tagName="fresh")["success"]


def test_detach_by_id_or_name_writes_history(kernel: Kernel, do: Do, scope_ids: ScopeIds, clock: Clock) -> None:
    mark = {"entryType": "project", "entryId": scope_ids.project}
    put = do("memory_tag", "attach", **mark, tagName="python")["entryTag"]
    do("memory_tag", "attach", **mark, tagName="rust")

    assert do("memory_tag", "detach", **mark, tagId="tag_python") == {"success": True}
    assert do("memory_tag", "detach", **mark, tagName="rust") == {"success": True}
    assert do("memory_tag", "for_entry", **mark) == {"tags": []}
    (event,) = kernel.store.read_sync(lambda tx: history.read(tx, "scopes:tags", put["id"]))
    assert (event.operation, json.loads(event.before or "")) == ("detached", put)


@pytest.mark.parametrize("action", ["attach", "for_entry"])
@pytest.mark.parametrize(
    ("entry_type", "label"),
    [("tool", "Tool"), ("guideline", "Guideline"), ("knowledge", "Knowledge entry"), ("project", "Project")],
)
def test_the_tagged_entry_has_to_exist(do: Do, unchanged: Call, action: str, entry_type: str, label: str) -> None:
    other = "guideline" if entry_type == "tool" else "tool"
    other_kind_id = do(f"memory_{other}", "add", **named(other, "a"))[other]["id"]
    more = {"tagName": "fresh"} if action == "attach" else {}
    for unknown_id in ("unknown", other_kind_id):
        assert refused(unchanged("memory_tag", action=action, entryType=entry_type, entryId=unknown_id, **more)) == (
            "not_found",
            "E2000",
            f"{label} not found: {unknown_id}",
            {"resource": label.lower(), "identifier": unknown_id, "field": "entryId"},
        )


def test_attach_needs_an_existing_tag_id_or_a_name(unchanged: Call, scope_ids: ScopeIds) -> None:
    mark = {"entryType": "project", "entryId": scope_ids.project}
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


def hits(call: Call, query: str) -> list[str]:
    return [memory["id"] for memory in json.loads(call("recall", query=query).body)["memories"]]


def whole_index(kernel: Kernel) -> list[index.Document]:
    return list(kernel.store.read_sync(lambda tx: index.documents(tx, [1, 2, 3])).values())


def assert_consistent(kernel: Kernel) -> None:
    assert consistency.check(kernel.config.file, kernel.store.context, app.DIALECTS) == []


@pytest.mark.quick
def test_an_entry_is_a_hit_for_the_names_of_its_tags(do: Do, call: Call, kernel: Kernel, clock: Clock) -> None:
    do("memory_guideline", "add", **named("guideline", "g"))
    guideline = {"entryType": "guideline", "entryId": "gl_1"}
    before = whole_index(kernel)
    assert hits(call, "zebrafish") == []

    clock.move(hours=1)
    do("memory_tag", "attach", **guideline, tagName="zebrafish")
    do("memory_tag", "attach", **guideline, tagName="python")
    assert hits(call, "zebrafish") == ["scopes:guidelines/gl_1"]
    assert whole_index(kernel) == before  # authors and times stay
    assert_consistent(kernel)

    do("memory_guideline", "update", id="gl_1", content="Another text.")
    assert hits(call, "zebrafish") == ["scopes:guidelines/gl_1"]
    assert_consistent(kernel)

    do("memory_tag", "detach", **guideline, tagName="zebrafish")
    assert hits(call, "zebrafish") == []
    assert_consistent(kernel)


@pytest.mark.quick
def test_an_undo_of_a_detachment_brings_the_words_of_the_tag_back(do: Do, call: Call, kernel: Kernel) -> None:
    number = do("memory_guideline", "add", **named("guideline", "g"))["guideline"]["id"]
    guideline = {"entryType": "guideline", "entryId": number}
    do("memory_tag", "attach", **guideline, tagName="zebrafish")
    before = whole_index(kernel)
    do("memory_tag", "detach", **guideline, tagName="zebrafish")

    online(kernel, last_call(kernel).id)

    assert hits(call, "zebrafish") == [f"scopes:guidelines/{number}"]
    assert whole_index(kernel) == before
    assert_consistent(kernel)


@pytest.mark.parametrize(("field", "value"), [("tagId", "tag_rust"), ("tagName", "rust"), ("tagName", "nothing")])
def test_detach_of_a_tag_that_is_not_attached_names_the_parameter(
    unchanged: Call, scope_ids: ScopeIds, field: str, value: str
) -> None:
    mark = {"entryType": "project", "entryId": scope_ids.project}
    resource = f"Tag of project {scope_ids.project}"
    assert refused(unchanged("memory_tag", action="detach", **mark, **{field: value})) == (
        "not_found",
        "E2000",
        f"{resource} not found: {value}",
        {"resource": resource.lower(), "identifier": value, "field": field},
    )
    assert refused(unchanged("memory_tag", action="detach", **{**mark, "entryId": "ghost"}, **{field: value})) == (
        "not_found",
        "E2000",
        "Project not found: ghost",
        {"resource": "project", "identifier": "ghost", "field": "entryId"},
    )


def test_a_hundred_concurrent_creates_of_a_name_return_one_tag(concurrently: Concurrently, scope_ids: ScopeIds) -> None:
    made = [
        json.loads(reply.body) for reply in concurrently([("memory_tag", {"action": "create", "name": "new"})] * 100)
    ]
    assert sorted(answer["existed"] for answer in made) == [False, *[True] * 99]
    assert len({answer["tag"]["id"] for answer in made}) == 1

    mark = {"action": "attach", "entryType": "project", "entryId": scope_ids.project, "tagName": "newer"}
    marks = {reply.body for reply in concurrently([("memory_tag", mark)] * 100)}
    assert len(marks) == 1


@pytest.mark.parametrize("name", ["PYTHON", "Python", " python\t"])
def test_a_tag_name_in_another_case_is_the_existing_tag(do: Do, scope_ids: ScopeIds, name: str) -> None:
    mark = {"entryType": "project", "entryId": scope_ids.project}
    assert do("memory_tag", "attach", **mark, tagName=name)["entryTag"]["tagId"] == "tag_python"
    assert [tag["name"] for tag in do("memory_tag", "for_entry", **mark)["tags"]] == ["python"]
    assert do("memory_tag", "create", name=name)["existed"]
    assert do("memory_tag", "list", isPredefined=False)["tags"] == []
    assert do("memory_tag", "detach", **mark, tagName=name) == {"success": True}


@pytest.mark.quick
def test_an_undo_of_an_import_takes_the_words_of_its_tags_back(do: Do, call: Call, kernel: Kernel) -> None:
    do("memory_guideline", "add", **named("guideline", "g"))
    document = exported(do)
    document["entries"]["guidelines"][0]["tags"] = ["zebrafish"]
    before = whole_index(kernel)

    do("memory_import", "import", content=json.dumps(document), conflictStrategy="update")
    [number] = hits(call, "zebrafish")
    assert whole_index(kernel) == before
    assert_consistent(kernel)

    online(kernel, last_call(kernel).id)
    assert (number, hits(call, "zebrafish")) == (f"scopes:guidelines/{before[0].key}", [])
    assert whole_index(kernel) == before
    assert_consistent(kernel)
