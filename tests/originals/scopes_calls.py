"""The calls on which agent-memory and the dialect `scopes` are compared."""

from collections.abc import Mapping
from typing import Any

from tests.originals.originals import Call

IN_PROJECT = {"scopeType": "project", "scopeId": "$project"}
UNKNOWN = "00000000-0000-4000-8000-000000000000"


def acts(tool: str, action: str, *arguments: Mapping[str, Any]) -> tuple[Call, ...]:
    return tuple(Call(tool, {"action": action, **given}) for given in arguments)


def kept(tool: str, action: str, keep: str, path: str, /, **arguments: Any) -> Call:
    return Call(tool, {"action": action, **arguments}, {keep: path})


SCOPES = (
    kept("memory_org", "create", "org", "organization.id", name="Acme"),
    kept("memory_org", "create", "org2", "organization.id", name="Other", metadata={"plan": "free", "seats": [1, 2]}),
    *acts("memory_org", "create", {}, {"name": ""}, {"name": None}),
    *acts(
        "memory_org", "list", {"limit": 1}, {"limit": 2, "offset": 1}, {"limit": 0}, {"limit": -1}, {"limit": 100000}
    ),
    *acts("memory_org", "explode", {}),
    Call("memory_org"),
    kept(
        "memory_project", "create", "project", "project.id", name="Site", orgId="$org", description="d", rootPath="/srv"
    ),
    kept("memory_project", "create", "project2", "project.id", name="Loose", metadata={"goals": ["ship"]}),
    *acts(
        "memory_project",
        "create",
        {},
        {"name": "Site", "orgId": "$org"},
        {"name": "Nowhere", "orgId": UNKNOWN},
    ),
    *acts("memory_project", "list", {}, {"orgId": "$org"}, {"orgId": UNKNOWN}, {"limit": 1}, {"offset": 1, "limit": 5}),
    *acts(
        "memory_project",
        "get",
        {"id": "$project"},
        {"name": "Loose"},
        {"name": "LOOSE"},
        {"name": "Site"},
        {"name": "Site", "orgId": "$org"},
        {"name": "nothing"},
        {"id": UNKNOWN},
        {},
    ),
    *acts(
        "memory_project",
        "update",
        {"id": "$project", "description": "e", "metadata": {"status": "active"}},
        {"id": "$project", "name": "Site", "rootPath": "/srv/www"},
        {"id": UNKNOWN, "name": "x"},
        {"name": "x"},
    ),
    kept(
        "memory_session",
        "start",
        "session",
        "session.id",
        projectId="$project",
        name="Login",
        purpose="build",
        agentId="a",
        metadata={"mode": "tdd"},
    ),
    kept("memory_session", "start", "session2", "session.id"),
    *acts("memory_session", "start", {"projectId": UNKNOWN}),
    *acts(
        "memory_session", "list", {}, {"projectId": "$project"}, {"status": "active"}, {"status": "odd"}, {"limit": 1}
    ),
    *acts("memory_session", "list", {"projectId": UNKNOWN}),
    *acts(
        "memory_session", "end", {"id": "$session2"}, {"id": "$session2", "status": "discarded"}, {"id": UNKNOWN}, {}
    ),
)

LINKS = (
    kept("memory_tag", "create", "tag", "tag.id", name="payments", category="domain", description="Money"),
    kept("memory_tag", "create", "python", "tag.id", name="python"),
    *acts("memory_tag", "create", {"name": "payments"}, {"name": "plain"}, {"name": "odd", "category": "shape"}, {}),
    *acts(
        "memory_tag", "list", {"isPredefined": False}, {"category": "language"}, {"category": "none"}, {}, {"limit": 0}
    ),
    *acts(
        "memory_tag",
        "attach",
        {"entryType": "guideline", "entryId": "$rule", "tagId": "$tag"},
        {"entryType": "guideline", "entryId": "$rule", "tagId": "$tag"},
        {"entryType": "guideline", "entryId": "$rule", "tagName": "python"},
        {"entryType": "guideline", "entryId": "$rule", "tagName": "fresh"},
        {"entryType": "project", "entryId": "$project", "tagName": "python"},
        {"entryType": "guideline", "entryId": "$rule", "tagId": UNKNOWN},
        {"entryType": "guideline", "entryId": "$rule"},
        {"entryId": "$rule", "tagName": "python"},
    ),
    *acts("memory_tag", "for_entry", {"entryType": "guideline", "entryId": "$rule"}),
    *acts("memory_tag", "for_entry", {"entryType": "tool", "entryId": UNKNOWN}, {"entryType": "tool"}),
    *acts(
        "memory_tag",
        "detach",
        {"entryType": "guideline", "entryId": "$rule", "tagId": "$python"},
        {"entryType": "guideline", "entryId": "$rule", "tagId": "$python"},
        {"entryType": "guideline", "entryId": "$rule"},
    ),
    *(
        Call(
            "memory_relation",
            {
                "action": "create",
                "sourceType": "guideline",
                "sourceId": "$rule",
                "targetType": target,
                "targetId": to,
                "relationType": kind,
            },
            {f"{target}_{kind}": "relation.id"},
        )
        for target, to, kind in (
            ("project", "$project", "applies_to"),
            ("project", "$project", "applies_to"),
            ("tool", "$rich", "related_to"),
        )
    ),
    *acts("memory_relation", "create", {}, {"sourceType": "tool", "sourceId": "$rich"}),
    *acts(
        "memory_relation",
        "list",
        {},
        {"sourceType": "guideline", "sourceId": "$rule"},
        {"relationType": "applies_to"},
        {"targetId": UNKNOWN},
        {"limit": 1},
        {"limit": -1},
    ),
    *acts("memory_relation", "delete", {"id": "$tool_related_to"}, {"id": UNKNOWN}, {}, {"sourceType": "tool"}),
)

LOCK = {"file_path": "/srv/a.py", "agent_id": "one"}
LOCKS = (
    *acts(
        "memory_file_lock",
        "checkout",
        {**LOCK, "session_id": "$session", "project_id": "$project", "metadata": {"reason": "x"}},
        {**LOCK, "agent_id": "two"},
        {"file_path": "/srv/b.py", "agent_id": "one", "expires_in": 60},
        {"file_path": "/srv/c.py", "agent_id": "one", "expires_in": 0},
        {"file_path": "/srv/d.py", "agent_id": "one", "expires_in": 86401},
        {"file_path": "/srv/e.py", "agent_id": "one", "session_id": UNKNOWN},
        {"file_path": "relative.py", "agent_id": "one"},
        {"file_path": "/srv/../etc", "agent_id": "one"},
        {"file_path": "", "agent_id": "one"},
        {"file_path": "/srv/f.py"},
        {"agent_id": "one"},
    ),
    *acts("memory_file_lock", "status", {"file_path": "/srv/a.py"}, {"file_path": "/srv/z.py"}, {"file_path": "x"}, {}),
    *acts("memory_file_lock", "list", {"agent_id": "one", "project_id": "$project"}, {"agent_id": "nobody"}),
    *acts("memory_file_lock", "list", {"session_id": "$session"}, {"project_id": UNKNOWN}),
    *acts("memory_file_lock", "checkin", {**LOCK, "agent_id": "two"}, LOCK, LOCK, {"file_path": "/srv/a.py"}),
    *acts("memory_file_lock", "force_unlock", {"file_path": "/srv/b.py", "agent_id": "admin", "reason": "crashed"}),
    *acts(
        "memory_file_lock", "force_unlock", {"file_path": "/srv/b.py", "agent_id": "admin"}, {"file_path": "/srv/c.py"}
    ),
    *acts("memory_file_lock", "status", {"file_path": "/srv/b.py"}),
)
