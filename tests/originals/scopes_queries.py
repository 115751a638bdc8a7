"""The calls on which agent-memory and the dialect `scopes` are compared: queries, exports, administration."""

import json

from tests.originals.originals import Call
from tests.originals.scopes_calls import IN_PROJECT, UNKNOWN, acts

PROJECT = {"type": "project", "id": "$project"}
DOCUMENT = {
    "version": "1.0",
    "entries": {
        "tools": [
            {"scopeType": "global", "name": "imported", "currentVersion": {"description": "d"}, "tags": ["python"]}
        ],
        "guidelines": [],
        "knowledge": [{"scopeType": "global", "title": "imported", "currentVersion": {"content": "c"}}],
    },
}
CONTENT = json.dumps(DOCUMENT)

QUERIES = (
    *acts(
        "memory_query",
        "search",
        {"types": ["guidelines"], "scope": {**PROJECT, "inherit": False}},
        {"types": ["guidelines"], "scope": PROJECT, "search": "Catch errors", "semanticSearch": False},
        {"types": ["guidelines"], "scope": PROJECT, "search": "Catch errors", "compact": True, "semanticSearch": False},
        {"types": ["knowledge"], "scope": PROJECT, "search": "requests per", "includeVersions": True},
        {"scope": PROJECT, "search": "nothingness"},
        {"scope": PROJECT, "tags": {"include": ["payments"]}},
        {"scope": PROJECT, "tags": {"require": ["payments", "python"]}},
        {"scope": PROJECT, "tags": {"exclude": ["payments"]}, "types": ["guidelines"]},
        {"scope": PROJECT, "relatedTo": {"type": "project", "id": "$project"}},
        {"scope": PROJECT, "relatedTo": {"type": "project", "id": "$project", "relation": "depends_on"}},
        {"scope": PROJECT, "relatedTo": {"type": "project", "id": UNKNOWN}},
        {"scope": PROJECT, "limit": 1, "types": ["tools"]},
        {"scope": PROJECT, "limit": 0, "types": ["tools"]},
        {"scope": PROJECT, "limit": -1, "types": ["tools"]},
        {"scope": {"type": "session", "id": "$session"}, "includeInactive": True, "types": ["tools"]},
        {"scope": {"type": "project", "id": UNKNOWN}},
        {"scope": {"type": "project"}},
        {"scope": {"type": "galaxy"}},
        {"types": ["planets"]},
        {"types": "tools"},
        {"scope": PROJECT, "semanticThreshold": 2},
        {"colour": "red"},
    ),
    *acts(
        "memory_query",
        "context",
        IN_PROJECT,
        {**IN_PROJECT, "compact": True},
        {**IN_PROJECT, "inherit": False},
        {**IN_PROJECT, "limit": 1},
        {"scopeType": "global"},
        {"scopeType": "project"},
        {"scopeType": "project", "scopeId": UNKNOWN},
        {},
    ),
    *acts("memory_query", "explode", {}),
    Call("memory_query"),
)

ADMINISTRATION = (
    Call("memory_conflict", {"action": "list"}, {"conflict": "conflicts.0.id"}),
    *acts("memory_conflict", "list", {"entryType": "tool"}, {"entryType": "planet"}, {"resolved": True}, {"limit": 1}),
    *acts(
        "memory_conflict",
        "resolve",
        {"id": "$conflict", "resolution": "kept the second", "resolvedBy": "ada"},
        {"id": "$conflict", "resolution": "again"},
        {"id": "$conflict"},
        {"id": UNKNOWN, "resolution": "x"},
        {"resolution": "x"},
    ),
    *acts("memory_conflict", "list", {}, {"resolved": False}, {"resolved": True}),
    Call("memory_health"),
    Call("memory_health", {"verbose": True}),
    *acts("memory_init", "status", {}),
    *acts("memory_init", "init", {}),
    *acts("memory_init", "reset", {}, {"confirm": False}),
    *acts(
        "memory_export",
        "export",
        {"types": ["knowledge"], **IN_PROJECT},
        {"types": ["guidelines"], **IN_PROJECT, "includeVersions": True},
        {"types": ["guidelines"], **IN_PROJECT, "format": "markdown"},
        {"types": ["guidelines"], **IN_PROJECT, "format": "yaml"},
        {"tags": ["payments"], **IN_PROJECT},
        {"tags": ["nothing"], **IN_PROJECT},
        {"scopeType": "project", "types": ["knowledge"]},
        {"scopeType": "project", "scopeId": UNKNOWN},
        {"types": ["planets"]},
        {"format": "xml"},
    ),
    *acts(
        "memory_import",
        "import",
        {"importedBy": "ada", "content": CONTENT},
    ),
    *acts("memory_tool", "get", {"name": "imported", "scopeType": "global"}),
    *acts(
        "memory_import",
        "import",
        {"conflictStrategy": "skip", "content": CONTENT},
        {"conflictStrategy": "update", "content": CONTENT},
        {"conflictStrategy": "replace", "content": CONTENT},
        {"conflictStrategy": "error", "content": CONTENT},
        {"conflictStrategy": "odd", "content": CONTENT},
        {"generateNewIds": True, "content": CONTENT},
        {"scopeMapping": {"global:": {"type": "project", "id": "$project"}}, "content": CONTENT},
        {"scopeMapping": {"org:x": {"type": "project", "id": "$project"}}, "content": CONTENT},
        {"format": "markdown", "content": CONTENT},
        {"format": "yaml", "content": CONTENT},
        {"content": "{broken"},
        {"content": "{}"},
        {"content": ""},
        {},
    ),
    *acts("memory_tool", "get", {"name": "imported", **IN_PROJECT}),
)

END = (
    *acts("memory_init", "init", {"force": True}),
    *acts("memory_init", "reset", {"confirm": True}),
    Call("memory_health"),
    Call("no_such_tool"),
)
