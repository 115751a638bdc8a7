"""Calls that change nothing, or say half, are no silent success: each names the undone part."""

from typing import Any

import msgspec
import pytest

from tests.conftest import Call, Clock


def said(reply: Any) -> Any:
    """The answer of a call that succeeds."""
    assert reply.fault is None, reply.body
    return msgspec.json.decode(reply.body)


def refusal(reply: Any) -> str:
    """The text of a call that is refused."""
    assert reply.fault is not None, reply.body
    return reply.body.decode()


@pytest.fixture
def guideline(call: Call) -> str:
    """The id of a guideline."""
    added = call("memory_guideline", action="add", name="style", scopeType="global", content="Use tabs.")
    return said(added)["guideline"]["id"]


def test_a_relation_and_a_tag_that_are_not_there_cannot_be_taken_away(call: Call, guideline: str) -> None:
    entry = {"entryType": "guideline", "entryId": guideline}
    assert "Relation not found: rel_nope" in refusal(call("memory_relation", action="delete", id="rel_nope"))
    ends = {"sourceType": "guideline", "sourceId": guideline, "targetType": "guideline", "targetId": guideline}
    wrong = call("memory_relation", action="delete", relationType="related_to", **ends)
    assert f"Relation not found: {guideline} related_to {guideline}" in refusal(wrong)
    assert "Tag not found: tag_nope" in refusal(call("memory_tag", action="detach", **entry, tagId="tag_nope"))
    absent = call("memory_tag", action="detach", **entry, tagName="python")
    assert f"Tag of guideline {guideline} not found: python" in refusal(absent)


@pytest.mark.parametrize("action", ["attach", "detach"])
def test_a_tag_by_id_and_name_is_the_same_tag(call: Call, guideline: str, action: str) -> None:
    entry = {"entryType": "guideline", "entryId": guideline}
    two = call("memory_tag", action=action, **entry, tagId="tag_python", tagName="security")
    assert "tagName - is not the name of tag_python, which is python" in refusal(two)
    said(call("memory_tag", action="attach", **entry, tagId="tag_python", tagName="Python"))
    said(call("memory_tag", action="detach", **entry, tagId="tag_python", tagName="Python"))


def test_a_resolved_conflict_marks_no_version(call: Call, guideline: str) -> None:
    said(call("memory_guideline", action="update", id=guideline, content="Use spaces."))
    (conflict,) = said(call("memory_conflict", action="list"))["conflicts"]
    said(call("memory_conflict", action="resolve", id=conflict["id"], resolution="kept the second"))
    current = said(call("memory_guideline", action="get", id=guideline))["guideline"]["currentVersion"]
    assert (current["content"], current["conflictFlag"]) == ("Use spaces.", False)


def test_priority_and_category_are_those_of_the_time_that_is_asked_for(call: Call, clock: Clock) -> None:
    rule = {"name": "tabs", "scopeType": "global", "content": "Use tabs.", "priority": 50, "category": "a"}
    key = said(call("memory_guideline", action="add", **rule))["guideline"]["id"]
    then = clock.now
    clock.move(days=1)
    said(call("memory_guideline", action="update", id=key, priority=90, category="b"))

    got = said(call("memory_guideline", action="get", id=key, asOf=then))["guideline"]
    (found,) = said(call("memory_query", action="search", search="tabs", asOf=then))["results"]
    versions = said(call("memory_guideline", action="history", id=key))["versions"]

    assert [(row["priority"], row["category"]) for row in (got, found["guideline"], *versions)] == [
        (50, "a"),
        (50, "a"),
        (90, "b"),
        (50, "a"),
    ]


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ('{"entries": {"gidelines": [{"name": "x", "content": "y"}]}}', "entries.gidelines"),
        ('{"version": "9.0", "entries": {"guidelines": [{"name": "x", "content": "y"}]}}', "version"),
    ],
)
def test_an_import_names_what_it_cannot_read(call: Call, document: str, problem: str) -> None:
    refused = said(call("memory_import", action="import", content=document))
    assert (refused["success"], refused["created"], refused["errors"][0]["entry"]) == (False, 0, problem)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("memory_guideline", {"action": "add", "name": "a", "scopeType": "global", "content": " "}),
        ("memory_knowledge", {"action": "add", "title": "a", "scopeType": "global", "content": "\n"}),
        ("save_memory", {"db": "core", "category": "fact", "content": "\0"}),
        ("save_memory", {"db": "core", "category": "fact", "content": "a\0b"}),
        ("save_note", {"db": "core", "title": "a", "content": "a\0b"}),
        ("remember", {"session_id": "s", "content": " "}),
    ],
)
def test_a_text_that_says_nothing_or_holds_nul_is_refused_by_name(
    call: Call, tool: str, arguments: dict[str, Any]
) -> None:
    assert "content" in refusal(call(tool, **arguments))


def test_tags_of_a_note_can_be_emptied(call: Call) -> None:
    note = {"title": "Deploy", "content": "On Friday.", "memoryType": "context"}
    path = said(call("memory_remember", **note, tags=["ci"]))["filePath"]
    changed = {**note, "content": "On Monday.", "filePath": path}
    assert said(call("memory_remember", **changed))["tags"] == ["ci"]
    assert said(call("memory_remember", **changed, tags=[]))["tags"] == []


def test_a_list_that_goes_on_says_so(call: Call) -> None:
    for number in range(3):
        said(call("memory_remember", title=f"Tea {number}", content=f"Green tea, {number}.", memoryType="context"))
    first = said(call("memory_recall", isAll=True, limit=2))
    assert (first["count"], first["message"]) == (2, "There are more than these 2: a larger limit shows them.")
    assert "message" not in said(call("memory_recall", isAll=True, limit=3))


@pytest.mark.parametrize("lines", [[], [1], [1, 2, 3], [0, 1], [-1, 1], [3, 2], [1, -2]])
def test_a_range_that_is_none_is_refused(call: Call, lines: list[int]) -> None:
    call("memory", command="create", path="/memories/a", file_text="one\ntwo")
    refused = refusal(call("memory", command="view", path="/memories/a", view_range=lines))
    assert refused.startswith(f"Error: Invalid `view_range` parameter: {lines}. It should be the first line")


def test_an_entity_deleted_since_is_counted_as_unrecorded(call: Call, clock: Clock) -> None:
    clock.now = "2026-01-02T00:00:00.000Z"
    call("create_entities", entities=[{"name": "Stork", "entityType": "bird", "observations": ["on the chimney"]}])
    clock.now = "2026-01-03T00:00:00.000Z"
    call("delete_entities", entityNames=["Stork"])
    counted = {
        day: said(call("recall", query="stork", as_of=f"2026-01-0{day}T12:00:00Z"))["unrecorded"] for day in (1, 2, 3)
    }
    assert counted == {1: 0, 2: 1, 3: 0}


def test_an_id_that_names_nothing_is_not_stored(call: Call) -> None:
    fact = {"db": "core", "content": "Ports are open.", "category": "fact"}
    note = {"db": "core", "title": "Ports", "content": "They are open."}
    resource = {"db": "core", "title": "Ports"}
    for tool, arguments, name, key in (
        ("save_memory", fact, "project_id", "ent_nope"),
        ("smart_save_memory", fact, "project_id", "ent_nope"),
        ("bulk_save_memories", {"db": "core"}, "project_id", "ent_nope"),
        ("save_note", note, "project_id", "ent_nope"),
        ("save_note", note, "entity_id", "mem_nope"),
        ("save_note", note, "parent_note_id", "nope"),
        ("save_resource", resource, "project_id", "ent_nope"),
        ("save_resource", resource, "source_memory_id", "ent_nope"),
    ):
        item = (
            {"memories": [{"content": "x", "category": "fact", name: key}]} if tool.startswith("bulk") else {name: key}
        )
        said_no = refusal(call(tool, **arguments, **item))
        assert said_no.startswith("Error: ")
        assert f" '{key}' not found: {name} is the id of a stored " in said_no
    kept = said(call("save_note", **note))["id"]
    assert "Entity 'ent_nope' not found" in refusal(call("update_note", db="core", id=kept, project_id="ent_nope"))
    assert said(call("get_memories", db="core")) == said(call("get_resources", db="core")) == []


def test_an_id_of_another_database_and_the_name_of_a_project_are_stored(call: Call) -> None:
    entity = said(call("create_entity", db="dnd", name="Web", type="project"))["id"]
    for project in (entity, "web"):
        row = said(call("save_memory", db="core", content="Ports", category="fact", project_id=project))
        assert row["project_id"] == project


def test_an_update_to_the_values_that_are_stored_is_no_success(call: Call) -> None:
    key = said(call("save_memory", db="core", content="Ports", category="fact", importance=4))["id"]
    for more in ({"valid_until": "2030-01-01"}, {"importance": 5}, {"tags": ["net"]}, {"valid_until": ""}):
        said(call("update_memory", db="core", id=key, **more))
        again = refusal(call("update_memory", db="core", id=key, **more))
        assert again.startswith("No fields to update"), more
    assert len(said(call("get_memory_history", memory_id=key))["history"]) == 5


def test_a_tag_is_found_in_the_other_normal_form(call: Call) -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    for stored, asked in ((composed, decomposed), (decomposed, composed)):
        key = said(call("save_memory", db="core", content=f"Beans {stored}", category="fact", tags=[stored]))["id"]
        assert key in {row["id"] for row in said(call("get_memories", db="core", tags=[asked]))}
        hits = msgspec.json.decode(call("recall", query="beans", tags=[asked], floor="none").structured or b"")
        assert f"brain:core/{key}" in {hit["id"] for hit in hits["memories"]}


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("get_links", {"source_id": "mem_nope"}, "Memory or entity 'mem_nope' not found"),
        ("get_links", {"target_id": "ent_nope"}, "Memory or entity 'ent_nope' not found"),
        ("get_memories", {"project_id": "ent_nope"}, "Entity 'ent_nope' not found: project_id is"),
        ("get_notes", {"project_id": "ent_nope"}, "Entity 'ent_nope' not found: project_id is"),
        ("get_notes", {"entity_id": "ent_nope"}, "Entity 'ent_nope' not found: entity_id is"),
        ("get_resources", {"project_id": "ent_nope"}, "Entity 'ent_nope' not found: project_id is"),
    ],
)
def test_a_filter_with_the_id_of_nothing_is_refused(
    call: Call, tool: str, arguments: dict[str, Any], told: str
) -> None:
    assert told in refusal(call(tool, db="core", **arguments))


def test_a_filter_that_no_row_passes_is_an_empty_list(call: Call) -> None:
    entity = said(call("create_entity", db="core", name="Web", type="project"))["id"]
    assert said(call("get_links", db="core", source_id=entity)) == []
    assert said(call("get_memories", db="core", project_id=entity)) == []
    assert said(call("get_notes", db="core", project_id="a name")) == []


def test_recall_names_the_ids_of_no_memory(call: Call) -> None:
    said_of = said(call("recall", ids=["brain:core/mem_nope", "paths/none"]))
    assert (said_of["memories"], said_of["message"]) == ([], "Not stored, or deleted: brain:core/mem_nope, paths/none")


def test_a_name_in_place_of_an_id_is_answered_with_the_id(call: Call, guideline: str) -> None:
    entry = {"entryType": "guideline", "entryId": "style"}
    ends = {"sourceType": "guideline", "targetType": "guideline", "targetId": guideline, "relationType": "related_to"}
    wrong = {
        "id": [call("memory_guideline", action=action, id="style") for action in ("get", "history", "deactivate")],
        "entryId": [call("memory_tag", action="attach", **entry, tagName="python")],
        "sourceId": [call("memory_relation", action="create", sourceId="style", **ends)],
    }
    for field, replies in wrong.items():
        for reply in replies:
            assert f"Guideline not found: style. Suggestion: the {field} of style is {guideline}" in refusal(reply)
    tag = call("memory_tag", action="attach", entryType="guideline", entryId=guideline, tagId="Python")
    assert "Tag not found: Python. Suggestion: the tagId of Python is tag_python" in refusal(tag)


def test_a_search_says_how_likely_each_entry_answers(call: Call) -> None:
    for name, content in (("pass", "Passwords are kept in the vault of the team."), ("auth", "Use signed cookies.")):
        said(call("memory_guideline", action="add", name=name, scopeType="global", content=content))

    def strengths(text: str) -> list[float]:
        found = said(call("memory_query", action="search", search=text, semanticThreshold=0))
        return [result["strength"] for result in found["results"]]

    assert strengths("where are the passwords kept")[0] > 0.9
    assert max(strengths("banana bread recipe")) < 0.1
    listed = said(call("memory_query", action="search"))["results"]
    assert all("strength" not in result for result in listed)
