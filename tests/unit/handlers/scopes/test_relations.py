"""Relations are unique, need existing ends, and are deleted by id or by all their fields."""

import json
from typing import Any

import pytest

from kernel.server.app import Kernel
from kernel.store import history
from tests.conftest import Call, Clock
from tests.support.handlers_scopes_entry_tools import named
from tests.unit.handlers.scopes.conftest import Concurrently, Do, ScopeIds, refused

NOW = "2026-01-02T03:04:05.678Z"
FIELDS = ("sourceType", "sourceId", "targetType", "targetId", "relationType")
Link = dict[str, str]


@pytest.fixture
def link(do: Do, scope_ids: ScopeIds) -> Link:
    """A guideline that applies to a project."""
    source = do("memory_guideline", "add", **named("guideline", "g"))["guideline"]["id"]
    return dict(zip(FIELDS, ("guideline", source, "project", scope_ids.project, "applies_to"), strict=True))


def test_create_is_idempotent(do: Do, link: Link, clock: Clock) -> None:
    made = do("memory_relation", "create", **link, createdBy="ada")
    clock.move(hours=1)

    relation = {"id": "rel_1", **link, "createdAt": NOW, "createdBy": "ada"}
    assert made == {"success": True, "relation": relation}
    assert do("memory_relation", "create", **link, createdBy="bob") == made
    assert do("memory_relation", "create", **{**link, "relationType": "related_to"})["relation"]["id"] == "rel_3"


def test_list_filters_by_any_field(do: Do, link: Link, scope_ids: ScopeIds) -> None:
    tool = do("memory_tool", "add", **named("tool", "t"))["tool"]["id"]
    links = [
        link,
        {**link, "relationType": "related_to"},
        {**link, "targetType": "tool", "targetId": tool, "relationType": "depends_on"},
        {**link, "sourceType": "tool", "sourceId": tool},
    ]
    made = [do("memory_relation", "create", **one)["relation"] for one in links]

    def listed(**which: Any) -> list[int]:
        found = do("memory_relation", "list", **which)
        assert found["meta"]["returnedCount"] == len(found["relations"])
        return [made.index(relation) for relation in found["relations"]]

    assert listed() == [0, 1, 2, 3]
    assert listed(sourceId=link["sourceId"]) == listed(sourceType="guideline", sourceId=link["sourceId"]) == [0, 1, 2]
    assert listed(targetId=scope_ids.project) == listed(targetType="project") == [0, 1, 3]
    assert listed(sourceId=link["sourceId"], targetId=tool) == listed(relationType="depends_on") == [2]
    assert listed(targetId=tool, relationType="applies_to") == []
    assert listed(sourceType="tool") == listed(targetId=scope_ids.project, sourceType="tool") == [3]
    assert listed(limit=2, offset=1) == [1, 2]
    assert listed(sourceId=link["sourceId"], limit=1, offset=1) == [1]
    assert listed(targetId=scope_ids.project, limit=1, offset=2) == [3]


def test_delete_by_id_or_by_all_fields_writes_history(kernel: Kernel, do: Do, link: Link) -> None:
    first = do("memory_relation", "create", **link)["relation"]
    assert do("memory_relation", "delete", **link) == {"success": True}
    second = do("memory_relation", "create", **link)["relation"]
    assert do("memory_relation", "delete", id=second["id"]) == {"success": True}
    assert do("memory_relation", "list")["relations"] == []
    for relation in (first, second):
        (event,) = kernel.store.read_sync(lambda tx, key=relation["id"]: history.read(tx, "scopes:relations", key))
        assert (event.operation, json.loads(event.before or "")) == ("deleted", relation)


@pytest.mark.parametrize("field", FIELDS)
def test_delete_by_id_refuses_another_value_of_a_field(
    do: Do, unchanged: Call, link: Link, scope_ids: ScopeIds, field: str
) -> None:
    key = do("memory_relation", "create", **link)["relation"]["id"]
    other = {"sourceType": "tool", "targetType": "knowledge", "relationType": "related_to"}.get(field, "ghost")
    assert refused(unchanged("memory_relation", action="delete", id=key, **{**link, field: other})) == (
        "invalid",
        "E1000",
        f"Validation error: {field} - is not that of {key}, which is {link[field]}. "
        "Suggestion: give id, or all five fields",
        {"field": field, "suggestion": "give id, or all five fields"},
    )
    assert do("memory_relation", "delete", id=key, **link) == {"success": True}


@pytest.mark.parametrize("left_out", [*FIELDS, None])
def test_delete_needs_an_id_or_every_field(unchanged: Call, link: Link, left_out: str | None) -> None:
    given = {name: value for name, value in link.items() if left_out not in (name, None)}
    assert refused(unchanged("memory_relation", action="delete", **given)) == (
        "invalid",
        "E1000",
        "Validation error: id - either id or all of sourceType, sourceId, targetType, targetId and relationType are "
        "required",
        {"field": "id"},
    )


@pytest.mark.parametrize(("field", "label"), [("sourceId", "Guideline"), ("targetId", "Project")])
def test_both_ends_have_to_exist(unchanged: Call, link: Link, field: str, label: str) -> None:
    assert refused(unchanged("memory_relation", action="create", **{**link, field: "ghost"})) == (
        "not_found",
        "E2000",
        f"{label} not found: ghost",
        {"resource": label.lower(), "identifier": "ghost", "field": field},
    )


def test_a_hundred_concurrent_creates_make_one_relation(concurrently: Concurrently, do: Do, link: Link) -> None:
    made = {reply.body for reply in concurrently([("memory_relation", {"action": "create", **link})] * 100)}
    assert len(made) == 1
    assert do("memory_relation", "list")["meta"] == {"totalCount": 1, "returnedCount": 1, "hasMore": False}
