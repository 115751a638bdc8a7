"""An export holds the selected entries completely, with their scopes and tags."""

from typing import Any

import pytest

from tests.conftest import Call, Clock
from tests.support.handlers_scopes_export import add, names
from tests.unit.handlers.scopes.conftest import Do, ScopeIds, exported, refused

NOW = "2026-01-02T03:04:05.678Z"
LATER = "2026-01-02T03:05:05.678Z"


@pytest.fixture
def filled(do: Do, scope_ids: ScopeIds) -> dict[str, str]:
    """Entries of every kind in every scope; their ids by name."""
    ids = {
        "t": add(do, "tool", "t"),
        "g": add(do, "guideline", "g", ("org", scope_ids.org)),
        "k": add(do, "knowledge", "k", ("project", scope_ids.project)),
        "s": add(do, "knowledge", "s", ("session", scope_ids.session)),
        "gone": add(do, "tool", "gone"),
    }
    do("memory_tool", "deactivate", id=ids["gone"])
    do("memory_tag", "attach", entryType="tool", entryId=ids["t"], tagName="Pythonic")
    do("memory_tag", "attach", entryType="guideline", entryId=ids["g"], tagName="python")
    do("memory_tag", "attach", entryType="guideline", entryId=ids["g"], tagName="mine")
    return ids


def test_a_document_holds_everything(do: Do, clock: Clock) -> None:
    org = do("memory_org", "create", name="Org", metadata={"a": 1})["organization"]
    project = do("memory_project", "create", name="P", orgId=org["id"], rootPath="/p")["project"]
    session = do("memory_session", "start", projectId=project["id"], agentId="ada")["session"]
    rule = add(do, "guideline", "g", ("project", project["id"]), priority=80, category="style", createdBy="ada")
    clock.move(minutes=1)
    do("memory_guideline", "update", id=rule, content="new", rationale="r", changeReason="why", updatedBy="bob")
    tag = do("memory_tag", "create", name="mine", category="custom", description="d")["tag"]
    do("memory_tag", "attach", entryType="guideline", entryId=rule, tagName="mine")
    do("memory_tag", "attach", entryType="project", entryId=project["id"], tagName="python")
    link = do(
        "memory_relation",
        "create",
        sourceType="guideline",
        sourceId=rule,
        targetType="project",
        targetId=project["id"],
        relationType="applies_to",
        createdBy="ada",
    )["relation"]
    versions = do("memory_guideline", "history", id=rule)["versions"]

    assert exported(do) == {
        "version": "1.0",
        "metadata": {"types": ["tools", "guidelines", "knowledge"]},
        "entries": {
            "tools": [],
            "guidelines": [
                {
                    "id": rule,
                    "scopeType": "project",
                    "scopeId": project["id"],
                    "name": "g",
                    "category": "style",
                    "priority": 80,
                    "currentVersionId": versions[0]["id"],
                    "isActive": True,
                    "createdAt": NOW,
                    "createdBy": "ada",
                    "currentVersion": versions[0],
                    "deactivatedAt": None,
                    "versions": [versions[1], versions[0]],
                    "tags": ["mine"],
                    "relations": [
                        {
                            "targetType": "project",
                            "targetId": project["id"],
                            "relationType": "applies_to",
                            "id": link["id"],
                            "createdAt": LATER,
                            "createdBy": "ada",
                        }
                    ],
                }
            ],
            "knowledge": [],
        },
        "scopes": {
            "organizations": [org],
            "projects": [{**project, "tags": ["python"], "relations": []}],
            "sessions": [session],
        },
        "tags": [tag],
    }


def test_versions_and_inactive_entries_are_optional(do: Do, filled: dict[str, str]) -> None:
    plain = exported(do, includeVersions=False, includeInactive=False)
    assert names(plain) == ["t", "g", "k", "s"]
    assert "versions" not in plain["entries"]["tools"][0]
    assert names(exported(do, includeVersions=False)) == ["t", "gone", "g", "k", "s"]
    gone = exported(do)["entries"]["tools"][1]
    assert (gone["isActive"], gone["deactivatedAt"] >= gone["createdAt"]) == (False, True)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"types": ["knowledge", "tools"]}, ["t", "k", "s"]),
        ({"types": []}, ["t", "g", "k", "s"]),
        ({"scopeType": "global"}, ["t"]),
        ({"scopeType": "session"}, ["s"]),
        ({"scopeType": "project", "scopeId": "{project}"}, ["k"]),
        ({"scopeId": "{project}"}, ["k"]),
        ({"tags": ["PYTHONIC", "Python"]}, ["t", "g"]),
        ({"tags": ["mine", "bash"]}, ["g"]),
        ({"tags": []}, ["t", "g", "k", "s"]),
        ({"tags": ["bash"]}, []),
        ({"tags": [" Mine "]}, ["g"]),
        ({"types": ["tools"], "tags": ["mine"]}, []),
    ],
)
def test_filters_combine(
    do: Do, filled: dict[str, str], scope_ids: ScopeIds, given: dict[str, Any], expected: list[str]
) -> None:
    given = {
        key: value.format(**scope_ids._asdict()) if isinstance(value, str) else value for key, value in given.items()
    }
    assert names(exported(do, includeInactive=False, **given)) == expected


def test_unknown_tag_is_refused(call: Call, filled: dict[str, str]) -> None:
    reply = call("memory_export", action="export", tags=["mine", "nothing"])

    context = {"resource": "tag", "identifier": "nothing", "field": "tags"}
    assert refused(reply) == ("not_found", "E2000", "Tag not found: nothing", context)


def test_a_filtered_export_holds_its_scopes_and_their_parents(
    do: Do, filled: dict[str, str], scope_ids: ScopeIds
) -> None:
    def scopes(**given: Any) -> list[list[str]]:
        found = exported(do, **given)["scopes"]
        return [[one["id"] for one in found[many]] for many in ("organizations", "projects", "sessions")]

    other = do("memory_project", "create", name="Other")["project"]["id"]
    assert scopes() == [[scope_ids.org], [scope_ids.project, other], [scope_ids.session]]
    assert scopes(types=["tools"]) == [[scope_ids.org], [scope_ids.project, other], [scope_ids.session]]
    assert scopes(scopeType="session", scopeId=scope_ids.session) == [
        [scope_ids.org],
        [scope_ids.project],
        [scope_ids.session],
    ]
    assert scopes(scopeType="project") == [[scope_ids.org], [scope_ids.project], []]
    assert scopes(scopeType="global") == scopes(scopeType="project", scopeId=other) == [[], [], []]


def test_a_filtered_export_holds_its_custom_tags(do: Do, filled: dict[str, str]) -> None:
    do("memory_tag", "create", name="alone")

    assert [tag["name"] for tag in exported(do)["tags"]] == ["Pythonic", "alone", "mine"]
    assert [tag["name"] for tag in exported(do, types=["tools"], scopeType="global")["tags"]] == ["Pythonic"]


@pytest.mark.slow
def test_every_outgoing_relation_is_exported(do: Do) -> None:
    source = add(do, "tool", "source")
    targets = [add(do, "tool", f"target {number}") for number in range(30)]
    for target in reversed(targets):
        do(
            "memory_relation",
            "create",
            sourceType="tool",
            sourceId=source,
            targetType="tool",
            targetId=target,
            relationType="related_to",
        )

    found = exported(do)["entries"]["tools"]
    assert [link["targetId"] for link in found[0]["relations"]] == targets[::-1]
    assert [item["relations"] for item in found[1:]] == [[]] * 30
