"""Every list states how many rows match and whether more follow; a search and a context can be read page by page."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.handlers.scopes.conftest import Add, Do, ScopeIds, heading, inside, relate

Prepare = Callable[[Do, Add, ScopeIds], dict[str, Any]]


def orgs(do: Do, add: Add, scope_ids: ScopeIds) -> dict[str, Any]:
    for number in range(4):
        do("memory_org", "create", name=f"O{number}")
    return {}


def projects(do: Do, add: Add, scope_ids: ScopeIds) -> dict[str, Any]:
    for number in range(4):
        do("memory_project", "create", name=f"P{number}", orgId=scope_ids.org)
    do("memory_project", "create", name="apart")
    return {"orgId": scope_ids.org}


def sessions(do: Do, add: Add, scope_ids: ScopeIds) -> dict[str, Any]:
    for _ in range(4):
        do("memory_session", "start", projectId=scope_ids.project)
    do("memory_session", "end", id=do("memory_session", "start", projectId=scope_ids.project)["session"]["id"])
    do("memory_session", "start")
    return {"projectId": scope_ids.project, "status": "active"}


def tags(do: Do, add: Add, scope_ids: ScopeIds) -> dict[str, Any]:
    for number in range(5):
        do("memory_tag", "create", name=f"t{number}")
    return {"isPredefined": False}


def relations_of(field: str) -> Prepare:
    def prepare(do: Do, add: Add, scope_ids: ScopeIds) -> dict[str, Any]:
        end = add("tool", "end")
        for number in range(5):
            one, other = ("tool", end), ("tool", add("tool", f"t{number}"))
            source, target = (one, other) if field == "sourceId" else (other, one)
            relate(do, source, target, "related_to")
        return {field: end} if field else {"relationType": "related_to"}

    return prepare


def conflicts(do: Do, add: Add, scope_ids: ScopeIds) -> dict[str, Any]:
    number = add("tool", "t")
    for text in "abcde":
        do("memory_tool", "update", id=number, description=text)
    return {"entryType": "tool"}


def entries(**which: Any) -> Prepare:
    def prepare(do: Do, add: Add, scope_ids: ScopeIds) -> dict[str, Any]:
        where = {"scopeType": "project", "scopeId": scope_ids.project}
        for number in range(5):
            add("knowledge", f"k{number}", **where)
        add("knowledge", "k0")
        do("memory_knowledge", "deactivate", id=add("knowledge", "gone", **where))
        return where | which if which != {"scopeType": "project"} else which

    return prepare


@pytest.mark.parametrize(
    ("tool", "rows", "prepare"),
    [
        ("memory_org", "organizations", orgs),
        ("memory_project", "projects", projects),
        ("memory_session", "sessions", sessions),
        ("memory_tag", "tags", tags),
        ("memory_relation", "relations", relations_of("")),
        ("memory_relation", "relations", relations_of("sourceId")),
        ("memory_relation", "relations", relations_of("targetId")),
        ("memory_conflict", "conflicts", conflicts),
        ("memory_knowledge", "knowledge", entries()),
        ("memory_knowledge", "knowledge", entries(inherit=True)),
        ("memory_knowledge", "knowledge", entries(scopeType="project")),
    ],
)
def test_a_list_states_its_total_and_whether_more_follow(
    do: Do, add: Add, scope_ids: ScopeIds, tool: str, rows: str, prepare: Prepare
) -> None:
    given = prepare(do, add, scope_ids)
    pages = [do(tool, "list", **given, limit=2, offset=offset) for offset in (0, 2, 4, 6)]
    assert [page["meta"] for page in pages] == [
        {"totalCount": 5, "returnedCount": count, "hasMore": more}
        for count, more in ((2, True), (2, True), (1, False), (0, False))
    ]
    everything = do(tool, "list", **given)
    assert everything["meta"] == {"totalCount": 5, "returnedCount": 5, "hasMore": False}
    assert [row for page in pages for row in page[rows]] == everything[rows]
    assert do(tool, "list", **given, limit=0)["meta"] == {"totalCount": 5, "returnedCount": 0, "hasMore": True}


@pytest.mark.parametrize(
    "more", [{}, {"search": "cords"}, {"search": "cords", "compact": True}, {"asOf": "2100-01-01"}]
)
def test_a_search_is_read_page_by_page(do: Do, add: Add, scope_ids: ScopeIds, more: dict[str, Any]) -> None:
    for number in range(5):
        add("guideline", f"g{number}", f"Knotted cords {number}", priority=number * 10)
    pages = [do("memory_query", "search", limit=2, offset=offset, **more) for offset in (0, 2, 4, 6)]
    assert [page["meta"] for page in pages] == [
        {"totalCount": 5, "returnedCount": count, "truncated": False, "hasMore": following}
        for count, following in ((2, True), (2, True), (1, False), (0, False))
    ]
    found = [heading(one) for page in pages for one in page["results"]]
    assert found == [heading(one) for one in do("memory_query", "search", **more)["results"]]
    assert len(set(found)) == 5


def test_a_context_skips_as_many_of_each_type(do: Do, add: Add, scope_ids: ScopeIds) -> None:
    for number in range(3):
        add("guideline", f"g{number}", priority=90 - number)
    add("tool", "t", scopeType="project", scopeId=scope_ids.project)
    where = {"scopeType": "project", "scopeId": scope_ids.project, "limit": 2}
    first, second = (do("memory_query", "context", **where, offset=offset) for offset in (0, 2))
    assert [[heading(one) for one in page["guidelines"] + page["tools"]] for page in (first, second)] == [
        ["g0", "g1", "t"],
        ["g2"],
    ]
    assert [page["meta"]["hasMore"] for page in (first, second)] == [True, False]
    assert do("memory_query", "search", **inside("project", scope_ids.project), offset=3)["meta"]["returnedCount"] == 1
