"""The calls about tools, guidelines and knowledge on which agent-memory and the dialect `scopes` are compared."""

from collections.abc import Iterator

from tests.originals.originals import Call
from tests.originals.scopes_calls import IN_PROJECT, UNKNOWN, acts, kept


def entries(tool: str, row: str, label: str, text: str) -> Iterator[Call]:
    """Every action of one of the three kinds of entries: `label` is its name or title, `text` the field of its text."""
    whole = {**IN_PROJECT, label: f"{row} one", text: f"The {row} of the project", "createdBy": "ada"}
    yield kept(tool, "add", f"{row}1", f"{row}.id", **whole)
    yield kept(tool, "add", f"{row}2", f"{row}.id", scopeType="global", **{label: f"{row} two", text: "For everybody"})
    yield kept(
        tool, "add", f"{row}3", f"{row}.id", scopeType="org", scopeId="$org", **{label: f"{row} three", text: "Of org"}
    )
    yield kept(
        tool,
        "add",
        f"{row}4",
        f"{row}.id",
        scopeType="session",
        scopeId="$session",
        **{label: f"{row} four", text: "Now"},
    )
    yield from acts(
        tool,
        "add",
        whole,
        {},
        {"scopeType": "project", label: "x", text: "y"},
        {"scopeType": "global", text: "y"},
        {"scopeType": "global", label: "", text: "y"},
        {"scopeType": "global", label: 5, text: "y"},
    )
    yield from acts(
        tool,
        "get",
        {"id": f"${row}1"},
        {"id": f"${row}3"},
        {label: f"{row} one", **IN_PROJECT},
        {label: f"{row} two", **IN_PROJECT},
        {label: f"{row} two", **IN_PROJECT, "inherit": False},
        {label: f"{row} two", "scopeType": "global"},
        {label: f"{row} three", **IN_PROJECT},
        {label: f"{row} ONE", **IN_PROJECT},
        {label: f"{row} one"},
        {label: "nothing", "scopeType": "global"},
        {"id": UNKNOWN},
        {},
    )
    yield from acts(
        tool,
        "list",
        {},
        {"scopeType": "global"},
        {"scopeType": "project"},
        IN_PROJECT,
        {**IN_PROJECT, "limit": 0},
        {**IN_PROJECT, "limit": -1},
        {**IN_PROJECT, "limit": 100000},
        {**IN_PROJECT, "offset": 5},
        {"limit": 1, "offset": 1},
        {"category": "nothing"},
        {"limit": "two"},
    )
    yield from acts(
        tool,
        "update",
        {"id": f"${row}1", text: "The second version", "changeReason": "clearer", "updatedBy": "bob"},
        {"id": f"${row}1"},
        {"id": f"${row}1", text: None},
        {"id": UNKNOWN, text: "y"},
        {text: "y"},
    )
    yield from acts(tool, "history", {"id": f"${row}1"}, {"id": f"${row}2"}, {"id": UNKNOWN}, {})
    yield from acts(tool, "get", {"id": f"${row}1"})
    yield from acts(tool, "deactivate", {"id": f"${row}4"}, {"id": f"${row}4"}, {"id": UNKNOWN}, {})
    yield from acts(
        tool, "get", {"id": f"${row}4"}, {label: f"{row} four", "scopeType": "session", "scopeId": "$session"}
    )
    yield from acts(tool, "list", {"scopeType": "session", "scopeId": "$session"})
    yield from acts(tool, "list", {"scopeType": "session", "scopeId": "$session", "includeInactive": True})
    yield from acts(tool, "explode", {})
    yield Call(tool)


def strays(tool: str, row: str, label: str, text: str) -> Iterator[Call]:
    """Return the writes that either the original or `scopes` refuses."""
    plain = {label: "x", text: "y"}
    yield from acts(
        tool,
        "add",
        {"scopeType": "project", "scopeId": UNKNOWN, **plain},
        {"scopeType": "galaxy", "scopeId": "$project", **plain},
        {"scopeType": "global", label: "typo", text: "y", "colour": "red"},
        {"scopeType": "global", label: f"{row} two", text: "y"},
        {"scopeType": "session", "scopeId": "$session", label: f"{row} four", text: "y"},
    )
    yield from acts(tool, "update", {"id": f"${row}2", text: 5})


ENTRIES = (
    *entries("memory_tool", "tool", "name", "description"),
    kept(
        "memory_tool",
        "add",
        "rich",
        "tool.id",
        scopeType="global",
        name="commit",
        category="cli",
        description="Commits",
        parameters={"message": {"type": "string"}},
        examples=[{"message": "fix"}],
        constraints="tests pass",
    ),
    *entries("memory_guideline", "guideline", "name", "content"),
    kept(
        "memory_guideline",
        "add",
        "rule",
        "guideline.id",
        **IN_PROJECT,
        name="errors",
        category="security",
        priority=90,
        content="Catch errors",
        rationale="Prevents crashes",
        examples={"good": ["try"], "bad": ["no try"]},
    ),
    *acts("memory_guideline", "update", {"id": "$rule", "priority": 95, "category": "style"}),
    *acts("memory_guideline", "list", {"category": "style"}, IN_PROJECT),
    *entries("memory_knowledge", "knowledge", "title", "content"),
    kept(
        "memory_knowledge",
        "add",
        "fact",
        "knowledge.id",
        **IN_PROJECT,
        title="Rate limit",
        category="fact",
        content="1000 requests per minute",
        source="API documentation",
        confidence=0.5,
        validUntil="2099-12-31T23:59:59Z",
    ),
    *acts(
        "memory_knowledge", "update", {"id": "$fact", "confidence": 0.25, "source": "mail", "validUntil": "2098-01-01"}
    ),
)

STRAYS = (
    *acts("memory_org", "create", {"name": 5}, {"name": "Typo", "colour": "red"}),
    *acts("memory_project", "create", {"name": "Typo", "colour": 1}, {"name": "LOOSE"}, {"name": "Loose"}),
    *acts("memory_session", "start", {"name": 5}),
    *acts("memory_session", "end", {"id": "$session2", "status": "odd"}),
    *strays("memory_tool", "tool", "name", "description"),
    *strays("memory_guideline", "guideline", "name", "content"),
    *strays("memory_knowledge", "knowledge", "title", "content"),
    *acts("memory_guideline", "add", {"scopeType": "global", "name": "p", "content": "c", "priority": 150}),
    *acts("memory_knowledge", "add", {"scopeType": "global", "title": "c", "content": "c", "confidence": 7}),
    *acts(
        "memory_tag",
        "attach",
        {"entryType": "guideline", "entryId": UNKNOWN, "tagName": "python"},
        {"entryType": "planet", "entryId": "$rule", "tagName": "python"},
    ),
    *acts("memory_tag", "create", {"name": "PYTHON"}),
    *acts("memory_tag", "detach", {"entryType": "guideline", "entryId": "$rule", "tagName": "fresh"}),
    *(
        Call("memory_relation", {"action": "create", "sourceType": "guideline", "sourceId": "$rule", **end})
        for end in (
            {"targetType": "tool", "targetId": UNKNOWN, "relationType": "related_to"},
            {"targetType": "tool", "targetId": "$tool1", "relationType": "loves"},
        )
    ),
    *acts(
        "memory_file_lock",
        "checkout",
        {"file_path": "/srv/d.py", "agent_id": "one", "expires_in": -5},
        {"file_path": "/srv/a..b", "agent_id": "one"},
        {"file_path": "/srv/c.py", "agent_id": "one"},
    ),
)
