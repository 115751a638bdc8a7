"""A scope inherits from its project, its organization and global, nearest first."""

from typing import Any

import pytest

from handlers.scopes.inheritance import required_scope_id, scope_chain, scope_key
from kernel.core.errors import Fault
from kernel.server.app import Kernel
from tests.conftest import Call
from tests.unit.handlers.scopes.conftest import Do, ScopeIds, refused


def test_a_chain_leads_from_the_session_to_global(kernel: Kernel, scope_ids: ScopeIds) -> None:
    session, project, org = f"session:{scope_ids.session}", f"project:{scope_ids.project}", f"org:{scope_ids.org}"

    def scopes(scope_type: str, scope_id: str | None, *, inherit: bool = True) -> list[str]:
        return kernel.store.read_sync(lambda tx: scope_chain(tx, scope_type, scope_id, inherit=inherit))

    assert scopes("session", scope_ids.session) == [session, project, org, "global"]
    assert scopes("project", scope_ids.project) == [project, org, "global"]
    assert scopes("org", scope_ids.org) == [org, "global"]
    assert scopes("global", None) == scopes("global", "whatever") == ["global"]
    assert scopes("session", scope_ids.session, inherit=False) == [session]
    assert scopes("global", None, inherit=False) == ["global"]


def test_a_chain_skips_missing_parents(kernel: Kernel, do: Do) -> None:
    project = do("memory_project", "create", name="Alone")["project"]["id"]
    within = do("memory_session", "start", projectId=project)["session"]["id"]
    free = do("memory_session", "start")["session"]["id"]

    def scopes(scope_type: str, scope_id: str | None) -> list[str]:
        return kernel.store.read_sync(lambda tx: scope_chain(tx, scope_type, scope_id))

    assert scopes("session", within) == [f"session:{within}", f"project:{project}", "global"]
    assert scopes("session", free) == [f"session:{free}", "global"]
    assert scopes("project", project) == [f"project:{project}", "global"]
    for scope_type in ("session", "project", "org"):
        assert scopes(scope_type, "unknown") == [f"{scope_type}:unknown", "global"]
        assert scopes(scope_type, None) == [scope_type, "global"]


def test_a_scope_has_one_key() -> None:
    assert [scope_key("global", None), scope_key("global", "x"), scope_key("org", "a"), scope_key("project", None)] == [
        "global",
        "global",
        "org:a",
        "project",
    ]
    assert (required_scope_id("global", None), required_scope_id("org", "a")) == (None, "a")
    with pytest.raises(Fault, match="scopeId is required for non-global scope"):
        required_scope_id("session", None)


@pytest.mark.parametrize(
    ("scope_type", "resource"), [("org", "Organization"), ("project", "Project"), ("session", "Session")]
)
def test_an_unknown_scope_is_refused(unchanged: Call, scope_type: str, resource: str) -> None:
    reply = unchanged("memory_tool", action="add", scopeType=scope_type, scopeId="ghost", name="a")

    assert refused(reply) == (
        "not_found",
        "E2000",
        f"{resource} not found: ghost",
        {"resource": resource.lower(), "identifier": "ghost", "field": "scopeId"},
    )


READS: list[tuple[str, str, dict[str, Any]]] = [
    ("memory_query", "context", {}),
    ("memory_tool", "get", {"name": "a"}),
    ("memory_guideline", "get", {"name": "a", "inherit": False}),
    ("memory_knowledge", "get", {"title": "a"}),
    ("memory_tool", "list", {}),
    ("memory_guideline", "list", {"inherit": True}),
    ("memory_knowledge", "list", {}),
    ("memory_export", "export", {}),
]


@pytest.mark.parametrize(("tool", "action", "more"), READS)
@pytest.mark.parametrize(
    ("scope_type", "resource"), [("org", "Organization"), ("project", "Project"), ("session", "Session")]
)
def test_an_unknown_scope_id_is_refused_by_every_read(
    unchanged: Call, tool: str, action: str, more: dict[str, Any], scope_type: str, resource: str
) -> None:
    assert refused(unchanged(tool, action=action, scopeType=scope_type, scopeId="ghost", **more)) == (
        "not_found",
        "E2000",
        f"{resource} not found: ghost",
        {"resource": resource.lower(), "identifier": "ghost", "field": "scopeId"},
    )


@pytest.mark.parametrize("scope_type", ["org", "project", "session"])
def test_an_unknown_scope_id_is_refused_by_a_search(unchanged: Call, scope_type: str) -> None:
    scope = {"type": scope_type, "id": "ghost"}
    resource = {"org": "Organization", "project": "Project", "session": "Session"}[scope_type]
    for more in ({}, {"search": "a"}):
        assert refused(unchanged("memory_query", action="search", scope=scope, **more)) == (
            "not_found",
            "E2000",
            f"{resource} not found: ghost",
            {"resource": resource.lower(), "identifier": "ghost", "field": "scope.id"},
        )


@pytest.mark.parametrize("tool", ["memory_tool", "memory_guideline", "memory_knowledge"])
def test_an_unknown_scope_id_without_a_type_is_refused(do: Do, unchanged: Call, scope_ids: ScopeIds, tool: str) -> None:
    for known in scope_ids:
        assert do(tool, "list", scopeId=known)["meta"]["returnedCount"] == 0
    assert refused(unchanged(tool, action="list", scopeId="ghost")) == (
        "not_found",
        "E2000",
        "Scope not found: ghost",
        {"resource": "scope", "identifier": "ghost", "field": "scopeId"},
    )


@pytest.mark.parametrize(
    ("tool", "action", "more"),
    [
        *READS,
        ("memory_tool", "add", {"name": "a"}),
        ("memory_guideline", "add", {"name": "a", "content": "b"}),
        ("memory_knowledge", "add", {"title": "a", "content": "b"}),
    ],
)
def test_a_scope_id_beside_global_is_refused(
    unchanged: Call, scope_ids: ScopeIds, tool: str, action: str, more: dict[str, Any]
) -> None:
    problem = f"must not be given for global scope, which has no id: {scope_ids.project}"
    advice = "leave it out, or give the scopeType that it is of"
    reply = unchanged(tool, action=action, scopeType="global", scopeId=scope_ids.project, **more)
    assert refused(reply) == (
        "invalid",
        "E1000",
        f"Validation error: scopeId - {problem}. Suggestion: {advice}",
        {"field": "scopeId", "suggestion": advice},
    )


def test_a_scope_id_beside_global_is_refused_in_a_search_and_a_mapping(unchanged: Call, scope_ids: ScopeIds) -> None:
    scope = {"type": "global", "id": scope_ids.project}
    reply = unchanged("memory_query", action="search", scope=scope)
    assert refused(reply)[3]["field"] == "scope.id"
    content = '{"entries": {"tools": [{"name": "a"}]}}'
    reply = unchanged("memory_import", action="import", content=content, scopeMapping={"global:": scope})
    assert refused(reply)[3]["field"] == "scopeMapping.global:.id"


@pytest.mark.parametrize(
    ("tool", "given", "resource"),
    [
        ("memory_relation", {"sourceId": "ghost"}, "entry"),
        ("memory_relation", {"targetId": "ghost", "targetType": "project"}, "project"),
        ("memory_relation", {"sourceId": "ghost", "sourceType": "knowledge"}, "knowledge entry"),
        ("memory_session", {"projectId": "ghost"}, "project"),
        ("memory_project", {"orgId": "ghost"}, "organization"),
    ],
)
def test_an_unknown_id_in_the_filter_of_a_list_is_refused(
    unchanged: Call, tool: str, given: dict[str, str], resource: str
) -> None:
    assert refused(unchanged(tool, action="list", **given)) == (
        "not_found",
        "E2000",
        f"{resource.capitalize()} not found: ghost",
        {"resource": resource, "identifier": "ghost", "field": next(iter(given))},
    )


def test_a_search_related_to_an_unknown_row_is_refused(unchanged: Call) -> None:
    reply = unchanged("memory_query", action="search", relatedTo={"type": "guideline", "id": "ghost"})
    assert refused(reply) == (
        "not_found",
        "E2000",
        "Guideline not found: ghost",
        {"resource": "guideline", "identifier": "ghost", "field": "relatedTo.id"},
    )


def test_entries_of_an_imported_scope_that_was_not_in_its_database_stay_readable(kernel: Kernel, do: Do) -> None:
    version = do("memory_tool", "add", scopeType="global", name="a")["tool"]["currentVersionId"]
    columns = {"category": None, "priority": None, "gone": None, "created_by": None, "now": "2026-01-01T00:00:00.000Z"}
    kernel.store.write_sync(
        lambda tx: tx.run(
            "scopes.import_merge.add_entry",
            id="b",
            kind="tool",
            scope_type="project",
            scope_id="lost",
            name="b",
            version_id=version,
            **columns,
        )
    )
    for which in ({"scopeType": "project", "scopeId": "lost"}, {"scopeId": "lost"}):
        assert [tool["name"] for tool in do("memory_tool", "list", **which)["tools"]] == ["b"]
    assert do("memory_query", "context", scopeType="project", scopeId="lost")["meta"]["totalCount"] == 1
