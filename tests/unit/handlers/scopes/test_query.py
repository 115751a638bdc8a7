"""The results of memory_query: entries, versions, scopes, times, totals, and errors."""

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import Call, Clock
from tests.unit.handlers.scopes.conftest import (
    KINDS,
    MANY,
    NOW,
    Add,
    Do,
    ScopeIds,
    heading,
    inside,
    refused,
    relate,
    scopes,
    tag,
)


def test_a_result_holds_entry_version_and_tags(clock: Clock, do: Do, add: Add) -> None:
    entry_id = add("guideline", "sql", "Use parameters", priority=95, category="security")
    tag(do, "guideline", entry_id, "security")

    answer = do("memory_query", "search")

    entry = do("memory_guideline", "get", id=entry_id)["guideline"]
    assert answer == {
        "results": [
            {
                "type": "guideline",
                "id": entry_id,
                "scopeType": "global",
                "score": 3.925,
                "tags": [{"id": "tag_security", "name": "security"}],
                "guideline": {
                    "id": entry_id,
                    "name": "sql",
                    "category": "security",
                    "priority": 95,
                    "createdAt": entry["createdAt"],
                },
                "version": {"id": entry["currentVersionId"], "versionNum": 1, "content": "Use parameters"},
            }
        ],
        "meta": {"totalCount": 1, "returnedCount": 1, "truncated": False, "hasMore": False},
    }


def test_compact_results_have_no_versions(do: Do, add: Add, search: Callable[..., Any]) -> None:
    ids = {
        "tool": add("tool", "t", category="cli"),
        "guideline": add("guideline", "g", category="x", priority=7),
        "knowledge": add("knowledge", "k", category="fact"),
    }
    tag(do, "tool", ids["tool"], "python")

    results = {result["type"]: result for result in search(compact=True, includeVersions=True)["results"]}

    assert {kind: result[kind] for kind, result in results.items()} == {
        "tool": {"name": "t", "category": "cli"},
        "guideline": {"name": "g", "category": "x", "priority": 7},
        "knowledge": {"title": "k", "category": "fact"},
    }
    assert {kind: (result["id"], result.get("tags")) for kind, result in results.items()} == {
        "tool": (ids["tool"], ["python"]),
        "guideline": (ids["guideline"], None),
        "knowledge": (ids["knowledge"], None),
    }
    assert [set(result) - {"tags"} for result in results.values()] == [
        {"type", "id", "scopeType", "score", kind} for kind in results
    ]


def test_include_versions_returns_versions_newest_first(do: Do, add: Add, search: Callable[..., Any]) -> None:
    entry_id = add("tool", "t", "one")
    do("memory_tool", "update", id=entry_id, description="two")
    other = add("knowledge", "k", "alone")

    results = {result["id"]: result for result in search(includeVersions=True)["results"]}

    assert results[entry_id]["versions"] == do("memory_tool", "history", id=entry_id)["versions"]
    assert [version["description"] for version in results[entry_id]["versions"]] == ["two", "one"]
    assert [version["id"] for version in results[other]["versions"]] == [results[other]["version"]["id"]]


def test_a_result_has_what_differs_from_the_defaults(clock: Clock, do: Do, add: Add, scope_ids: ScopeIds) -> None:
    where = {"scopeType": "project", "scopeId": scope_ids.project}
    number = add("knowledge", "k", "one", confidence=0.5, createdBy="ada", **where)
    do("memory_knowledge", "update", id=number, content="two", changeReason="r", updatedBy="bob")
    do("memory_knowledge", "deactivate", id=number)
    ((result),) = do("memory_query", "search", includeInactive=True, **inside("project", scope_ids.project))["results"]
    del result["score"], result["version"]["id"]
    assert result == {
        "type": "knowledge",
        "id": number,
        "scopeType": "project",
        "scopeId": scope_ids.project,
        "tags": [],
        "knowledge": {"id": number, "title": "k", "isActive": False, "createdAt": NOW, "createdBy": "ada"},
        "version": {
            "versionNum": 2,
            "content": "two",
            "confidence": 0.5,
            "createdBy": "bob",
            "changeReason": "r",
            "conflictFlag": True,
        },
    }


@pytest.mark.parametrize(("count", "whole", "compact"), [(13, 5_000, 2_200), (60, 25_000, 8_000)])
def test_a_context_of_small_entries_is_short(call: Call, add: Add, count: int, whole: int, compact: int) -> None:
    for number in range(count):
        add(KINDS[number % 3], f"entry-number-{number}", "One sentence of fifty-eight characters, as rules often are.")
    for given, most in (({}, whole), ({"compact": True}, compact)):
        body = call("memory_query", action="context", scopeType="global", **given).body
        assert len(json.loads(body)["guidelines"]) == count // 3
        assert len(body) <= most


@pytest.mark.parametrize(
    ("types", "wanted"),
    [
        (None, {"t", "g", "k"}),
        ([], {"t", "g", "k"}),
        (["tools"], {"t"}),
        (["knowledge", "guidelines", "knowledge"], {"g", "k"}),
    ],
)
@pytest.mark.parametrize("text", [None, "cords", " "])
def test_types_limits_the_kinds(
    add: Add, found: Callable[..., list[str]], types: list[str] | None, wanted: set[str], text: str | None
) -> None:
    for kind in KINDS:
        add(kind, kind[0], "Knotted cords")

    assert set(found(types=types, search=text)) == wanted


def test_a_scope_sees_itself_and_its_parents_only(
    do: Do, add: Add, scope_ids: ScopeIds, found: Callable[..., list[str]]
) -> None:
    beside = do("memory_project", "create", name="Beside", orgId=scope_ids.org)["project"]["id"]
    add("tool", "beside", "Knotted cords", scopeType="project", scopeId=beside)
    for scope, scope_id in scopes(scope_ids):
        add("tool", scope, "Knotted cords", scopeType=scope, scopeId=scope_id)

    names = [scope for scope, _ in scopes(scope_ids)]
    for depth, (scope, scope_id) in enumerate(scopes(scope_ids)):
        assert found(**inside(scope, scope_id)) == names[depth:]
        assert set(found(**inside(scope, scope_id), search="cords")) == set(names[depth:])
        assert found(**inside(scope, scope_id, inherit=False)) == [scope]
        assert found(**inside(scope, scope_id, inherit=False), search="cords") == [scope]
    assert found() == found(scope={}) == ["global"]


def test_a_search_sees_the_previous_write(do: Do, add: Add, found: Callable[..., list[str]]) -> None:
    assert found(search="cords") == found() == []
    entry_id = add("tool", "quipu", "Knotted cords")
    assert found(search="cords") == found() == ["quipu"]
    do("memory_tool", "update", id=entry_id, description="Woven baskets")
    assert found(search="knotted cords", semanticSearch=False) == []
    assert found(search="baskets") == ["quipu"]
    do("memory_tool", "deactivate", id=entry_id)
    assert found(search="baskets") == found() == []


@pytest.mark.parametrize("text", [None, "cords"])
def test_inactive_entries_need_include_inactive(do: Do, add: Add, search: Callable[..., Any], text: str | None) -> None:
    do("memory_tool", "deactivate", id=add("tool", "old", "Knotted cords"))
    add("tool", "new", "Knotted cords")
    do("memory_tool", "deactivate", id=add("tool", "other", "Baskets"))

    answer = search(search=text, includeInactive=True)
    seen = {heading(result): result["tool"].get("isActive", True) for result in answer["results"]}
    assert seen == {"old": False, "new": True} | ({} if text else {"other": False})
    assert answer["meta"]["totalCount"] == len(seen)
    assert [heading(result) for result in search(search=text)["results"]] == ["new"]


@pytest.mark.parametrize("text", [None, "cords"])
def test_expired_knowledge_is_counted_and_shown_last_on_request(
    clock: Clock, add: Add, search: Callable[..., Any], text: str | None
) -> None:
    add("knowledge", "gone", "Knotted cords", validUntil="2026-01-02T03:04:05.678Z")
    add("knowledge", "lasting", "Knotted cords and much that is said besides", validUntil="2026-01-02T03:04:05.679Z")
    for number in range(3):
        add("tool", f"tool {number}", "A long text about many things, one of them being cords, knotted ones at times")

    def shown(**more: Any) -> tuple[list[bool | None], int, int | None]:
        answer = search(search=text, **more)
        flags, meta = [result.get("expired") for result in answer["results"]], answer["meta"]
        return flags, meta["totalCount"], meta.get("expiredCount")

    assert shown(limit=10) == ([None] * 4, 4, 1)
    assert shown(limit=1) == ([None], 4, 1)
    assert shown(types=["tools"]) == ([None] * 3, 3, None)
    assert heading(search(search=text, includeExpired=True)["results"][-1]) == "gone"
    assert shown(includeExpired=True, limit=10) == ([None] * 4 + [True], 5, None)
    clock.move(seconds=1)
    assert shown(limit=10) == ([None] * 3, 3, 2)
    assert shown(includeExpired=True, limit=10) == ([None] * 3 + [True] * 2, 5, None)


@pytest.mark.parametrize("text", [None, "cords"])
@pytest.mark.parametrize("later", [None, "2026-01-02T03:04:06Z"])
def test_knowledge_whose_end_is_no_time_never_expires(
    clock: Clock, do: Do, search: Callable[..., Any], text: str | None, later: str | None
) -> None:
    entry = {"title": "fact", "content": "Knotted cords", "validUntil": "12/31/2027"}
    do("memory_import", "import", content=json.dumps({"entries": {"knowledge": [entry]}}))
    clock.move(seconds=10)
    (found,), meta = search(search=text, asOf=later).values()
    shown = (found["version"]["validUntil"], found.get("expired"), meta.get("expiredCount"))
    assert shown == ("12/31/2027", None, None)
    listed = do("memory_knowledge", "list")["knowledge"][0]
    assert listed == do("memory_knowledge", "get", id=listed["id"])["knowledge"]
    assert "expired" not in listed


def test_a_result_leaves_out_a_confidence_of_one(add: Add, search: Callable[..., Any]) -> None:
    add("knowledge", "sure", "Knotted cords")
    add("knowledge", "likely", "Knotted cords", confidence=0.5)
    versions = {heading(result): result["version"] for result in search()["results"]}
    assert {name: version.get("confidence") for name, version in versions.items()} == {"sure": None, "likely": 0.5}


def test_as_of_returns_the_entries_and_versions_of_that_time(
    clock: Clock, do: Do, add: Add, search: Callable[..., Any]
) -> None:
    changed = add("knowledge", "changed", "Knotted cords", validUntil="2026-01-03")
    steady = add("knowledge", "steady", "Cords, knotted")
    dropped = add("knowledge", "dropped", "Cords, knotted thrice")
    before = clock.now
    clock.move(days=2)
    do("memory_knowledge", "update", id=changed, content="Woven baskets", validUntil="2030-01-01")
    do("memory_knowledge", "deactivate", id=dropped)
    add("knowledge", "later", "Knotted cords")

    def seen(text: str | None, **more: Any) -> dict[str, str]:
        results = search(search=text, semanticSearch=False, **more)["results"]
        return {heading(result): result["version"]["content"] for result in results}

    there = {"changed": "Knotted cords", "steady": "Cords, knotted", "dropped": "Cords, knotted thrice"}
    assert seen("knotted cords", asOf=before) == seen(None, asOf=before) == there
    assert seen("baskets", asOf=before) == {}
    assert seen("knotted") == {"steady": "Cords, knotted", "later": "Knotted cords"}
    assert seen(None, asOf="2020-01-01") == {}
    results = {result["id"]: result for result in search(asOf=before, includeVersions=True)["results"]}
    assert [len(results[key]["versions"]) for key in (changed, steady)] == [1, 1]
    assert [results[key]["score"] for key in (changed, steady)] == [2.5, 2.5]
    assert (results[dropped]["knowledge"].get("isActive", True), results[changed].get("expired")) == (True, None)
    assert [version["id"] for version in results[changed]["versions"]] == [results[changed]["version"]["id"]]
    later = search(asOf="2026-01-04T02:00:00+01:00")
    assert {heading(result) for result in later["results"]} == {"steady", "dropped"}
    assert (later["meta"]["totalCount"], later["meta"]["expiredCount"]) == (2, 1)
    every = search(asOf="2026-01-04T02:00:00+01:00", includeExpired=True)["results"]
    assert {heading(result): result.get("expired") for result in every} == {
        "changed": True,
        "steady": None,
        "dropped": None,
    }


def test_as_of_shadows_by_the_entries_of_that_time(clock: Clock, do: Do, add: Add, scope_ids: ScopeIds) -> None:
    far = add("guideline", "same", "Tabs")
    clock.move(days=1)
    near = add("guideline", "same", "Spaces", scopeType="project", scopeId=scope_ids.project)
    between = clock.now
    clock.move(days=1)
    do("memory_guideline", "deactivate", id=near)

    def seen(at: str | None) -> list[str]:
        context = do("memory_query", "context", scopeType="project", scopeId=scope_ids.project, asOf=at)
        return [result["id"] for result in context["guidelines"]]

    assert [seen(NOW), seen(between), seen(None)] == [[far], [near], [far]]


@pytest.mark.slow
@pytest.mark.parametrize("text", [None, "cords"])
def test_total_count_covers_every_kind_and_scope(
    do: Do, add: Add, scope_ids: ScopeIds, search: Callable[..., Any], text: str | None
) -> None:
    for number in range(45):
        add("tool", f"tool {number}", "Knotted cords")
    for kind, (scope, scope_id) in itertools.product(("guideline", "knowledge"), scopes(scope_ids)):
        add(kind, f"{kind} {scope}", "Knotted cords", scopeType=scope, scopeId=scope_id)

    answer = search(search=text, **inside("session", scope_ids.session))

    assert answer["meta"] == {"totalCount": 53, "returnedCount": 20, "truncated": False, "hasMore": True}
    assert {result["type"] for result in answer["results"]} == set(KINDS)
    assert len(search(search=text, **inside("session", scope_ids.session), limit=53)["results"]) == 53


@pytest.mark.slow
def test_context_returns_the_best_of_each_kind(clock: Clock, do: Do, add: Add, scope_ids: ScopeIds) -> None:
    for number in range(45):
        add("tool", f"tool {number}")
    for number in range(12):
        add("guideline", f"g{number}", priority=number, scopeType="project", scopeId=scope_ids.project)
    add("knowledge", "k", scopeType="org", scopeId=scope_ids.org)

    answer = do("memory_query", "context", scopeType="session", scopeId=scope_ids.session, limit=10)

    assert list(answer) == ["scope", "tools", "guidelines", "knowledge", "meta"]
    assert answer["scope"] == {"type": "session", "id": scope_ids.session}
    assert [len(answer[many]) for many in MANY.values()] == [10, 10, 1]
    assert [heading(result) for result in answer["guidelines"]] == [f"g{number}" for number in range(11, 1, -1)]
    assert answer["meta"] == {"totalCount": 58, "returnedCount": 21, "truncated": False, "hasMore": True}
    whole = do("memory_query", "context", scopeType="session", scopeId=scope_ids.session)
    assert [len(whole[many]) for many in MANY.values()] == [20, 12, 1]
    alone = do("memory_query", "context", scopeType="project", scopeId=scope_ids.project, inherit=False, compact=True)
    assert (alone["tools"], alone["knowledge"], len(alone["guidelines"])) == ([], [], 12)
    assert set(alone["guidelines"][0]["guideline"]) == {"name", "priority"}
    assert do("memory_query", "context", scopeType="global")["scope"] == {"type": "global", "id": None}


def test_context_and_search_return_the_same_results(do: Do, add: Add, scope_ids: ScopeIds) -> None:
    for kind, (scope, scope_id) in itertools.product(KINDS, scopes(scope_ids)):
        add(kind, f"{kind} {scope}", scopeType=scope, scopeId=scope_id)

    context = do("memory_query", "context", scopeType="session", scopeId=scope_ids.session)
    for kind, many in MANY.items():
        searched = do("memory_query", "search", **inside("session", scope_ids.session), types=[many])
        assert context[many] == searched["results"], kind


@pytest.mark.parametrize(
    ("given", "field", "message"),
    [
        (
            {"scope": {"type": "galaxy"}},
            "scope.type",
            "Validation error: scope.type - invalid enum value 'galaxy', choose from global, org, project, session",
        ),
        ({"scope": {"type": "project"}}, "scope.id", "scope.id is required for non-global scope"),
        ({"scope": {"type": "project", "id": ""}}, "scope.id", "Validation error: scope.id - must not be empty"),
        ({"scope": {"id": "x"}}, "scope.type", "scope.type is required with scope.id"),
        ({"scope": "project"}, "scope", None),
        ({"scope": {"type": "global", "inherit": "yes"}}, "scope.inherit", None),
        ({"scope": {"typo": 1}}, "scope.typo", None),
        ({"types": ["tool"]}, "types", None),
        ({"types": "tools"}, "types", None),
        ({"tags": ["python"]}, "tags", None),
        ({"tags": {"include": "python"}}, "tags.include", None),
        ({"tags": {"require": [7]}}, "tags.require", None),
        (
            {"tags": {"exclude": ["a\0b"]}},
            "tags.exclude",
            "Validation error: tags.exclude - must not hold NUL characters",
        ),
        ({"tags": {"any": []}}, "tags.any", None),
        ({"search": 7}, "search", None),
        ({"search": "a\0b"}, "search", "Validation error: search - must not hold NUL characters"),
        ({"search": "x" * 1_048_577}, "search", None),
        ({"relatedTo": {"type": "project"}}, "relatedTo.id", "relatedTo.id is required"),
        ({"relatedTo": {"id": "x"}}, "relatedTo.type", "relatedTo.type is required"),
        ({"relatedTo": {"type": "cat", "id": "x"}}, "relatedTo.type", None),
        ({"relatedTo": {"type": "tool", "id": "x", "relation": "loves"}}, "relatedTo.relation", None),
        ({"relatedTo": {"type": "tool", "id": "\0"}}, "relatedTo.id", None),
        ({"limit": 0}, "limit", None),
        ({"limit": 10_001}, "limit", None),
        ({"limit": "20"}, "limit", None),
        ({"limit": 2.5}, "limit", None),
        ({"limit": 2**70}, "limit", None),
        ({"semanticThreshold": 1.1}, "semanticThreshold", None),
        ({"semanticThreshold": -0.1}, "semanticThreshold", None),
        ({"semanticSearch": "no"}, "semanticSearch", None),
        ({"includeVersions": 1}, "includeVersions", None),
        ({"includeInactive": "x"}, "includeInactive", None),
        ({"includeShadowed": "x"}, "includeShadowed", None),
        ({"compact": []}, "compact", None),
        ({"asOf": "yesterday"}, "asOf", None),
        ({"asOf": 7}, "asOf", None),
        ({"scopeType": "global"}, "scopeType", None),
    ],
)
def test_invalid_search_arguments_are_refused_by_field(
    unchanged: Call, given: dict[str, Any], field: str, message: str | None
) -> None:
    code, label, answer, context = refused(unchanged("memory_query", action="search", **given))

    assert (code, context["field"].partition("[")[0], field in answer) == ("invalid", field, True)
    assert label == ("E1001" if field == "scope.type" and "galaxy" in answer else "E1000")
    assert message in {None, answer}


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "scopeType"),
        ({"scopeType": None}, "scopeType"),
        ({"scopeType": "galaxy"}, "scopeType"),
        ({"scopeType": "session"}, "scopeId"),
        ({"scopeType": "org", "scopeId": ""}, "scopeId"),
        ({"scopeType": "org", "scopeId": "a\0"}, "scopeId"),
        ({"scopeType": "global", "limit": 0}, "limit"),
        ({"scopeType": "global", "inherit": 1}, "inherit"),
        ({"scopeType": "global", "compact": "x"}, "compact"),
        ({"scopeType": "global", "asOf": "x"}, "asOf"),
        ({"scopeType": "global", "search": "x"}, "search"),
    ],
)
def test_invalid_context_arguments_are_refused_by_field(unchanged: Call, given: dict[str, Any], field: str) -> None:
    code, _, answer, context = refused(unchanged("memory_query", action="context", **given))

    assert (code, context["field"], field in answer) == ("invalid", field, True)


@pytest.mark.parametrize("action", [None, "find", 7])
def test_an_unknown_action_is_refused(unchanged: Call, action: Any) -> None:
    code, label, answer, context = refused(unchanged("memory_query", action=action))

    assert (code, label, context["validActions"]) == ("invalid", "E5001", ["search", "context"])
    assert answer.startswith("Unknown action for memory_query: ")


def test_null_equals_an_omitted_argument(add: Add, search: Callable[..., Any]) -> None:
    add("tool", "t", "Knotted cords")
    names = (
        "types",
        "scope",
        "tags",
        "relatedTo",
        "limit",
        "includeVersions",
        "includeInactive",
        "includeShadowed",
        "compact",
        "semanticSearch",
        "semanticThreshold",
        "asOf",
    )

    assert search(search="cords", **dict.fromkeys(names)) == search(search="cords")


@pytest.mark.slow
def test_parts_of_words_match_only_filtered_entries_and_only_without_word_hits(
    do: Do, add: Add, found: Callable[..., list[str]]
) -> None:
    anchor, part = add("tool", "anchor"), add("tool", "part", "the barfoos xquuxx")
    for name in ("whole", "other barfoos"):
        add("tool", name, "a quux" if name == "whole" else name)
    add("guideline", "part of quux", "xquuxx")
    tag(do, "tool", part, "python")
    tag(do, "tool", anchor, "rust")
    relate(do, ("tool", anchor), ("tool", part), "related_to")
    alone = add("tool", "alone")
    words: dict[str, Any] = {"semanticSearch": False}

    for filters in (
        {"tags": {"require": ["python"]}},
        {"tags": {"include": ["python"]}},
        {"relatedTo": {"type": "tool", "id": anchor}},
    ):
        assert found(search="arfoo", **filters, **words) == ["part"]
        assert found(search="quux", **filters, **words) == []
    for filters in (
        {"tags": {"require": ["rust"]}},
        {"tags": {"include": ["sql"]}},
        {"relatedTo": {"type": "tool", "id": alone}},
    ):
        assert found(search="arfoo", **filters, **words) == []
    do("memory_tool", "deactivate", id=part)
    assert found(search="arfoo", tags={"require": ["python"]}, **words) == []
    assert found(search="barfoos", tags={"require": ["python"]}, includeInactive=True, **words) == ["part"]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"scope": {"type": "project"}}, "scope.id"),
        ({"relatedTo": {"id": "x"}}, "relatedTo.type"),
        ({"relatedTo": {"type": "tool"}}, "relatedTo.id"),
    ],
)
def test_invalid_arguments_are_reported_even_if_a_required_tag_is_unknown(
    call: Call, wrong: dict[str, Any], field: str
) -> None:
    answer = refused(call("memory_query", action="search", tags={"require": ["no such tag"]}, **wrong))
    assert (answer[0], answer[3]["field"]) == ("invalid", field)


def test_tags_of_the_filter_that_do_not_exist_are_named(do: Do, add: Add) -> None:
    entry_id = add("tool", "t")
    tag(do, "tool", entry_id, "python")

    def found(**tags: list[str]) -> tuple[list[str], list[str] | None]:
        answer = do("memory_query", "search", tags=tags)
        return [one["id"] for one in answer["results"]], answer["meta"].get("unknownTags")

    assert found(include=["Python"]) == ([entry_id], None)
    assert found(include=["Python", "pyhton"], exclude=["Old"]) == ([entry_id], ["pyhton", "Old"])
    assert found(include=["pyhton"]) == ([], ["pyhton"])
    assert found(require=["python", "pyhton"]) == ([], ["pyhton"])
