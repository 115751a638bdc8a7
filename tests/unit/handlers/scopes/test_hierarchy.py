"""The actions of memory_org and memory_project follow the contract."""

import json
from typing import Any

from kernel.server.app import Kernel
from kernel.store import history
from tests.conftest import Call, Clock
from tests.unit.handlers.scopes.conftest import Concurrently, Do, ScopeIds, refused, result_of

NOW = "2026-01-02T03:04:05.678Z"
LATER = "2026-01-02T04:04:05.678Z"


def test_an_organization_is_created_and_listed(do: Do, clock: Clock) -> None:
    made = do("memory_org", "create", name="My Company", metadata={"plan": "enterprise"})
    plain = do("memory_org", "create", name="My Company")

    org = {"id": "org_1", "name": "My Company", "createdAt": NOW, "metadata": {"plan": "enterprise"}}
    assert made == {"success": True, "organization": org}
    assert plain["organization"] == {**org, "id": "org_2", "metadata": None}
    assert do("memory_org", "list") == {
        "organizations": [org, plain["organization"]],
        "meta": {"totalCount": 2, "returnedCount": 2, "hasMore": False},
    }


def test_organizations_are_listed_in_order_at_most_a_hundred_per_page(do: Do) -> None:
    for number in range(103):
        do("memory_org", "create", name=str(number))

    def names(**page: Any) -> list[str]:
        found = do("memory_org", "list", **page)
        assert found["meta"]["returnedCount"] == len(found["organizations"])
        return [org["name"] for org in found["organizations"]]

    everybody = [str(number) for number in range(103)]
    assert names() == names(limit=None, offset=None) == everybody[:50]
    assert names(limit=1000) == everybody[:100]
    assert names(limit=2, offset=101) == everybody[101:]
    assert names(limit=0) == names(offset=103) == []


def test_a_project_is_created_found_updated_and_listed(do: Do, clock: Clock) -> None:
    do("memory_org", "create", name="Org")
    made = do(
        "memory_project",
        "create",
        name="My Project",
        orgId="org_1",
        description="A sample",
        rootPath="/path",
        metadata={"goals": ["ship"]},
    )
    clock.move(hours=1)
    changed = do("memory_project", "update", id="proj_2", description="Updated", metadata={"status": "active"})

    project = {
        "id": "proj_2",
        "orgId": "org_1",
        "name": "My Project",
        "description": "A sample",
        "rootPath": "/path",
        "createdAt": NOW,
        "updatedAt": NOW,
        "metadata": {"goals": ["ship"]},
    }
    assert made == {"success": True, "project": project}
    after = {**project, "description": "Updated", "metadata": {"status": "active"}, "updatedAt": LATER}
    assert changed == {"success": True, "project": after}
    assert do("memory_project", "get", id="proj_2") == {"project": after}
    assert do("memory_project", "list", orgId="org_1") == {
        "projects": [after],
        "meta": {"totalCount": 1, "returnedCount": 1, "hasMore": False},
    }


def test_project_updates_are_in_the_history(kernel: Kernel, do: Do, scope_ids: ScopeIds, clock: Clock) -> None:
    before = do("memory_project", "get", id=scope_ids.project)["project"]
    after = do("memory_project", "update", id=scope_ids.project, name="Other")["project"]

    (event,) = kernel.store.read_sync(lambda tx: history.read(tx, "scopes:projects", scope_ids.project))
    assert (event.operation, event.at) == ("updated", NOW)
    assert (json.loads(event.before or ""), json.loads(event.after or "")) == (before, after)


def test_projects_are_found_by_name_in_any_case(do: Do, call: Call) -> None:
    first, second = (do("memory_org", "create", name=name)["organization"]["id"] for name in "ab")
    ids = {
        org: do("memory_project", "create", name="Straße", **({"orgId": org} if org else {}))["project"]["id"]
        for org in (first, second, None)
    }
    alone = do("memory_project", "create", name="alone", orgId=first)["project"]["id"]

    def found(name: str, **more: Any) -> str:
        return do("memory_project", "get", name=name, **more)["project"]["id"]

    assert found("STRASSE", orgId=first) == ids[first]
    assert found("straße", orgId=second) == ids[second]
    assert found("Strasse") == ids[None]
    assert found("Alone") == alone
    assert refused(call("memory_project", action="get", name="alone", orgId=second))[:2] == ("not_found", "E2000")


def test_an_ambiguous_project_name_needs_an_organization(do: Do, call: Call) -> None:
    for name in "ab":
        org = do("memory_org", "create", name=name)["organization"]["id"]
        do("memory_project", "create", name="Same", orgId=org)

    assert refused(call("memory_project", action="get", name="same")) == (
        "invalid",
        "E1000",
        "Validation error: orgId - is needed: 2 organizations have a project same",
        {"field": "orgId"},
    )


def test_project_names_are_unique_per_organization(do: Do, scope_ids: ScopeIds, unchanged: Call) -> None:
    outside = do("memory_project", "create", name="PROJECT")["project"]["id"]

    assert refused(unchanged("memory_project", action="create", name="pRoject", orgId=scope_ids.org)) == (
        "conflict",
        "E2001",
        f"Project already exists: pRoject in org:{scope_ids.org}",
        {"resource": "project", "identifier": "pRoject", "field": "name", "id": scope_ids.project},
    )
    assert refused(unchanged("memory_project", action="create", name="project")) == (
        "conflict",
        "E2001",
        "Project already exists: project in no organization",
        {"resource": "project", "identifier": "project", "field": "name", "id": outside},
    )


def test_renaming_a_project_to_a_taken_name_is_refused(do: Do, scope_ids: ScopeIds, unchanged: Call) -> None:
    other = do("memory_project", "create", name="Other", orgId=scope_ids.org)["project"]["id"]

    assert refused(unchanged("memory_project", action="update", id=other, name="PROJECT"))[:3] == (
        "conflict",
        "E2001",
        f"Project already exists: PROJECT in org:{scope_ids.org}",
    )
    assert do("memory_project", "update", id=other, name="OTHER")["project"]["name"] == "OTHER"
    assert do("memory_project", "get", name="other", orgId=scope_ids.org)["project"]["id"] == other


def test_a_hundred_concurrent_creates_of_a_name_make_one_project(concurrently: Concurrently, do: Do) -> None:
    for org in (None, do("memory_org", "create", name="Org")["organization"]["id"]):
        replies = concurrently([("memory_project", {"action": "create", "name": "Same", "orgId": org})] * 100)

        assert sorted(reply.fault or "" for reply in replies) == ["", *["conflict"] * 99]
    assert do("memory_project", "list", limit=100)["meta"] == {"totalCount": 2, "returnedCount": 2, "hasMore": False}


def test_an_unknown_organization_is_refused(unchanged: Call) -> None:
    assert refused(unchanged("memory_project", action="create", name="P", orgId="ghost")) == (
        "not_found",
        "E2000",
        "Organization not found: ghost",
        {"resource": "organization", "identifier": "ghost", "field": "orgId"},
    )


def test_reads_write_nothing(unchanged: Call, scope_ids: ScopeIds) -> None:
    for tool, more in (
        ("memory_org", {"action": "list"}),
        ("memory_project", {"action": "list"}),
        ("memory_project", {"action": "get", "id": scope_ids.project}),
    ):
        result_of(unchanged(tool, **more))
