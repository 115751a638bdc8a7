"""The actions of memory_tool, memory_guideline and memory_knowledge follow the contract."""

from typing import Any

from tests.conftest import Call, Clock
from tests.support.handlers_scopes_entry_tools import CHANGE, HEADING, kinds, named
from tests.unit.handlers.scopes.conftest import Do, ScopeIds, refused, result_of

NOW = "2026-01-02T03:04:05.678Z"
LATER = "2026-01-02T04:04:05.678Z"
TOOL: dict[str, Any] = {
    "scopeType": "global",
    "name": "git_commit",
    "category": "cli",
    "description": "Commit staged changes",
    "parameters": {"message": {"type": "string", "required": True}},
    "examples": [{"message": "feat: add login"}],
    "constraints": "Only when tests pass",
    "createdBy": "ada",
}
GUIDELINE: dict[str, Any] = {
    "scopeType": "global",
    "name": "error-handling",
    "category": "code_style",
    "priority": 80,
    "content": "Always use try-catch",
    "rationale": "No unhandled rejections",
    "examples": {"good": ["try {}"], "bad": ["await fetch()"]},
    "createdBy": "ada",
}
KNOWLEDGE: dict[str, Any] = {
    "scopeType": "global",
    "title": "API Rate Limits",
    "category": "fact",
    "content": "1000 requests per minute",
    "source": "API documentation",
    "confidence": 0.5,
    "validUntil": "2027-12-31T23:59:59+02:00",
    "createdBy": "ada",
}
HEADS = {"tool": ("tool", "tv"), "guideline": ("gl", "gv"), "knowledge": ("kn", "kv")}
EXAMPLES = {"tool": TOOL, "guideline": GUIDELINE, "knowledge": KNOWLEDGE}
CHANGES_NOTHING: dict[str, dict[str, Any]] = {
    "tool": dict.fromkeys(["description", "parameters", "examples", "constraints"]),
    "guideline": dict.fromkeys(["category", "priority", "content", "rationale", "examples"]),
    "knowledge": dict.fromkeys(["category", "content", "source", "confidence", "validUntil"]),
}
MANY = {"tool": "tools", "guideline": "guidelines", "knowledge": "knowledge"}


def first(kind: str) -> dict[str, Any]:
    """The example of a kind after it was added, with the first id of the store."""
    prefix, version = HEADS[kind]
    given = dict(EXAMPLES[kind])
    row = {name: given.pop(name) for name in ("scopeType", HEADING[kind], "category")}
    row |= {"priority": given.pop("priority")} if kind == "guideline" else {}
    given |= {"validUntil": "2027-12-31T21:59:59.000Z"} if kind == "knowledge" else {}
    return {
        "id": f"{prefix}_1",
        "scopeType": "global",
        "scopeId": None,
        **row,
        "currentVersionId": f"{version}_2",
        "isActive": True,
        "createdAt": NOW,
        "createdBy": "ada",
        "currentVersion": {
            "id": f"{version}_2",
            f"{kind}Id": f"{prefix}_1",
            "versionNum": 1,
            **given,
            "createdAt": NOW,
            "changeReason": "Initial version",
            "conflictFlag": False,
        },
    }


@kinds
def test_an_entry_is_added_and_read(do: Do, clock: Clock, kind: str) -> None:
    added = do(f"memory_{kind}", "add", **EXAMPLES[kind])

    assert added == {"success": True, kind: first(kind)}
    assert do(f"memory_{kind}", "get", id=first(kind)["id"]) == {kind: first(kind)}
    by_name = {HEADING[kind]: EXAMPLES[kind][HEADING[kind]], "scopeType": "global"}
    assert do(f"memory_{kind}", "get", **by_name) == {kind: first(kind)}
    assert do(f"memory_{kind}", "list") == {
        MANY[kind]: [first(kind)],
        "meta": {"totalCount": 1, "returnedCount": 1, "hasMore": False},
    }
    assert do(f"memory_{kind}", "history", id=first(kind)["id"]) == {"versions": [first(kind)["currentVersion"]]}


def test_omitted_fields_are_null_or_default(do: Do) -> None:
    for kind in ("tool", "guideline", "knowledge"):
        entry = do(f"memory_{kind}", "add", **named(kind, "bare"))[kind]
        version = entry.pop("currentVersion")
        nulls = {name for name, value in {**entry, **version}.items() if value is None}
        assert (
            nulls
            == {
                "tool": {"scopeId", "category", "createdBy", "description", "parameters", "examples", "constraints"},
                "guideline": {"scopeId", "category", "createdBy", "rationale", "examples"},
                "knowledge": {"scopeId", "category", "createdBy", "source", "validUntil"},
            }[kind]
        )
        assert entry.get("priority", 50) == 50
        assert version.get("confidence", 1.0) == 1.0


@kinds
def test_update_keeps_omitted_fields_in_the_new_version(do: Do, clock: Clock, kind: str) -> None:
    before = do(f"memory_{kind}", "add", **EXAMPLES[kind])[kind]
    clock.move(hours=1)
    change = {"tool": {"constraints": ""}, "guideline": {"rationale": "New"}, "knowledge": {"confidence": 0.9}}[kind]

    after = do(f"memory_{kind}", "update", id=before["id"], changeReason="Clarified", updatedBy="bob", **change)

    version = {
        **before["currentVersion"],
        **change,
        "id": f"{HEADS[kind][1]}_3",
        "versionNum": 2,
        "createdAt": LATER,
        "createdBy": "bob",
        "changeReason": "Clarified",
    }
    entry = {**before, "currentVersionId": version["id"], "currentVersion": version}
    assert after == {"success": True, kind: entry}
    assert do(f"memory_{kind}", "get", id=before["id"]) == {kind: entry}
    assert do(f"memory_{kind}", "history", id=before["id"]) == {"versions": [version, before["currentVersion"]]}


def test_category_and_priority_belong_to_the_entry(do: Do) -> None:
    guideline = do("memory_guideline", "add", **GUIDELINE)["guideline"]
    after = do("memory_guideline", "update", id=guideline["id"], priority=90, category="security")["guideline"]
    assert (after["priority"], after["category"], after["currentVersion"]["versionNum"]) == (90, "security", 2)

    fact = do("memory_knowledge", "add", **KNOWLEDGE)["knowledge"]
    after = do("memory_knowledge", "update", id=fact["id"], category="decision")["knowledge"]
    assert (after["category"], after["currentVersion"]["content"]) == ("decision", KNOWLEDGE["content"])


@kinds
def test_an_update_that_names_no_field_to_change_is_refused(do: Do, unchanged: Call, kind: str) -> None:
    entry = do(f"memory_{kind}", "add", **EXAMPLES[kind])[kind]["id"]
    for about in ({}, {"changeReason": "r", "updatedBy": "bob", "expectedVersion": 1}, CHANGES_NOTHING[kind]):
        fault, code, message, context = refused(unchanged(f"memory_{kind}", action="update", id=entry, **about))
        first, *others = CHANGES_NOTHING[kind]
        said = f"Validation error: {first} - is needed, or another field to change: {', '.join(others)}"
        assert (fault, code, message, context) == ("invalid", "E1000", said, {"field": first})


@kinds
def test_a_deactivated_entry_is_read_by_id_only(do: Do, call: Call, clock: Clock, kind: str) -> None:
    entry = do(f"memory_{kind}", "add", **EXAMPLES[kind])[kind]
    for _ in range(2):
        assert do(f"memory_{kind}", "deactivate", id=entry["id"]) == {"success": True}

    away = {**entry, "isActive": False}
    by_name = {HEADING[kind]: entry[HEADING[kind]], "scopeType": "global"}
    assert do(f"memory_{kind}", "get", id=entry["id"]) == {kind: away}
    assert refused(call(f"memory_{kind}", action="get", **by_name))[:2] == ("not_found", "E2000")
    assert do(f"memory_{kind}", "list")[MANY[kind]] == []
    assert do(f"memory_{kind}", "list", includeInactive=True)[MANY[kind]] == [away]
    assert do(f"memory_{kind}", "history", id=entry["id"])["versions"] == [entry["currentVersion"]]
    assert (
        do(f"memory_{kind}", "update", id=entry["id"], changeReason="late", **CHANGE[kind])[kind]["isActive"] is False
    )


@kinds
def test_get_by_name_returns_the_nearest_entry(do: Do, call: Call, scope_ids: ScopeIds, kind: str) -> None:
    tool, heading = f"memory_{kind}", HEADING[kind]
    scopes = {"global": None, "org": scope_ids.org, "project": scope_ids.project, "session": scope_ids.session}

    def seen(scope: str, **more: Any) -> str | None:
        reply = call(tool, action="get", scopeType=scope, scopeId=scopes[scope], **{heading: "style"}, **more)
        return result_of(reply)[kind]["scopeType"] if reply.fault is None else None

    assert [seen(scope) for scope in scopes] == [None] * 4
    expected = dict.fromkeys(scopes)
    for place, scope in enumerate(scopes):
        do(tool, "add", **named(kind, "style", scopeType=scope, scopeId=scopes[scope]))
        expected |= dict.fromkeys([*scopes][place:], scope)
        assert {scope: seen(scope) for scope in scopes} == expected
    assert seen("session", inherit=False) == "session"
    entry = do(tool, "get", scopeType="project", scopeId=scope_ids.project, inherit=None, **{heading: "style"})[kind]
    do(tool, "deactivate", id=entry["id"])
    assert (seen("project"), seen("project", inherit=False), seen("session")) == ("org", None, "session")


def test_sibling_scopes_are_not_searched(do: Do, call: Call, scope_ids: ScopeIds) -> None:
    other = do("memory_project", "create", name="Other", orgId=scope_ids.org)["project"]["id"]
    do("memory_tool", "add", **named("tool", "theirs", scopeType="project", scopeId=other))

    reply = call("memory_tool", action="get", name="theirs", scopeType="session", scopeId=scope_ids.session)
    assert refused(reply) == (
        "not_found",
        "E2000",
        "Tool not found: theirs",
        {"resource": "tool", "identifier": "theirs", "field": "name"},
    )


def test_list_filters_by_scope_and_category(do: Do, scope_ids: ScopeIds) -> None:
    other = do("memory_project", "create", name="Other", orgId=scope_ids.org)["project"]["id"]
    scopes = [("global", None), ("org", scope_ids.org), ("project", scope_ids.project), ("project", other)]
    for number, (scope, scope_id) in enumerate(scopes):
        category = ("fact", "decision")[number % 2]
        do(
            "memory_knowledge",
            "add",
            **named("knowledge", f"k{number}", scopeType=scope, scopeId=scope_id),
            category=category,
        )

    def titles(**which: Any) -> list[str]:
        return [entry["title"] for entry in do("memory_knowledge", "list", **which)["knowledge"]]

    assert titles() == ["k0", "k1", "k2", "k3"]
    assert titles(scopeType="global") == titles(scopeType="global", scopeId=None) == ["k0"]
    assert titles(scopeType="project") == ["k2", "k3"]
    assert titles(scopeType="project", scopeId=other) == titles(scopeId=other) == ["k3"]
    assert titles(category="decision") == ["k1", "k3"]
    assert titles(scopeType="project", scopeId=other, category="fact") == []
    assert titles(category="nothing") == []
    assert titles(limit=2, offset=1) == ["k1", "k2"]
    assert titles(scopeType="project", limit=1) == ["k2"]
    assert titles(scopeType="project", scopeId=scope_ids.project, inherit=True) == ["k2", "k1", "k0"]
    assert titles(scopeType="project", scopeId=scope_ids.project, inherit=True, limit=1, offset=1) == ["k1"]


def test_guidelines_are_listed_by_priority_then_creation(do: Do, scope_ids: ScopeIds) -> None:
    for number, priority in enumerate((50, 90, 50, 10, 90)):
        scope = {"scopeType": "project", "scopeId": scope_ids.project} if number % 2 else {}
        do("memory_guideline", "add", **{**named("guideline", f"g{number}", priority=priority), **scope})

    def names(**which: Any) -> list[str]:
        return [entry["name"] for entry in do("memory_guideline", "list", **which)["guidelines"]]

    assert names() == ["g1", "g4", "g0", "g2", "g3"]
    assert names(scopeType="global") == ["g4", "g0", "g2"]
    assert names(scopeType="project", scopeId=scope_ids.project, inherit=True) == ["g1", "g4", "g0", "g2", "g3"]


def test_an_inherited_list_has_the_nearest_entry_of_each_name(do: Do, scope_ids: ScopeIds) -> None:
    for scope, scope_id in (("global", None), ("org", scope_ids.org), ("session", scope_ids.session)):
        do("memory_tool", "add", **named("tool", "same", scopeType=scope, scopeId=scope_id, category="cli"))
    only = do("memory_tool", "add", **named("tool", "only", scopeType="org", scopeId=scope_ids.org))["tool"]["id"]

    def seen(**which: Any) -> list[tuple[str, str]]:
        found = do("memory_tool", "list", inherit=True, **which)["tools"]
        return [(entry["name"], entry["scopeType"]) for entry in found]

    session = {"scopeType": "session", "scopeId": scope_ids.session}
    assert seen(**session) == [("same", "session"), ("only", "org")]
    assert seen(scopeType="project", scopeId=scope_ids.project) == [("same", "org"), ("only", "org")]
    do("memory_tool", "deactivate", id=only)
    assert seen(**session) == [("same", "session")]
    assert seen(**session, includeInactive=True) == [("same", "session"), ("only", "org")]


def test_as_of_returns_the_version_of_that_time(do: Do, call: Call, clock: Clock, scope_ids: ScopeIds) -> None:
    born = clock.now
    kept = do("memory_knowledge", "add", **named("knowledge", "limit", content="one"))["knowledge"]["id"]
    second = clock.move(hours=1)
    do("memory_knowledge", "update", id=kept, content="two")
    gone = clock.move(hours=1)
    do("memory_knowledge", "deactivate", id=kept)
    again = clock.move(hours=1)
    do("memory_knowledge", "add", **named("knowledge", "limit", content="three"))

    def answer(at: str | None, **which: Any) -> tuple[str, bool] | None:
        reply = call("memory_knowledge", action="get", asOf=at, **which)
        if reply.fault:
            return None
        entry = result_of(reply)["knowledge"]
        assert entry["currentVersionId"] == entry["currentVersion"]["id"]
        return entry["currentVersion"]["content"], entry["isActive"]

    by_id = {"id": kept}
    assert [answer(at, **by_id) for at in (born, second, gone, None)] == [
        ("one", True),
        ("two", True),
        ("two", False),
        ("two", False),
    ]
    by_title = {"title": "limit", "scopeType": "session", "scopeId": scope_ids.session}
    assert [answer(at, **by_title) for at in ("2026-01-02", born, second, gone, again, None)] == [
        None,
        ("one", True),
        ("two", True),
        None,
        ("three", True),
        ("three", True),
    ]
    assert answer("2026-01-02T04:04:05+01:00", **by_id) is None
    assert answer("2026-01-02T04:04:05.678+01:00", **by_id) == ("one", True)
    history = do("memory_knowledge", "history", id=kept, asOf=born)["versions"]
    assert [version["content"] for version in history] == ["one"]
    assert refused(call("memory_knowledge", action="get", id=kept, asOf="yesterday")) == (
        "invalid",
        "E1000",
        "Validation error: asOf - is not an ISO 8601 time. Suggestion: write it as 2026-01-31T12:00:00Z",
        {"field": "asOf", "suggestion": "write it as 2026-01-31T12:00:00Z"},
    )


@kinds
def test_every_action_refuses_unknown_ids(do: Do, unchanged: Call, kind: str) -> None:
    other = "tool" if kind == "knowledge" else "knowledge"
    other_kind_id = do(f"memory_{other}", "add", **EXAMPLES[other])[other]["id"]
    label = "Knowledge entry" if kind == "knowledge" else kind.capitalize()
    for action in ("update", "get", "history", "deactivate"):
        for unknown_id in ("unknown", other_kind_id):
            assert refused(unchanged(f"memory_{kind}", action=action, id=unknown_id)) == (
                "not_found",
                "E2000",
                f"{label} not found: {unknown_id}",
                {"resource": label.lower(), "identifier": unknown_id, "field": "id"},
            )


@kinds
def test_a_get_needs_an_id_or_a_name_with_its_scope(unchanged: Call, kind: str) -> None:
    heading = HEADING[kind]

    def missing(**given: Any) -> tuple[str, dict[str, Any]]:
        fault, code, message, context = refused(unchanged(f"memory_{kind}", action="get", **given))
        assert (fault, code) == ("invalid", "E1000")
        return message, context

    assert missing() == (f"Validation error: id - either id or {heading} is required", {"field": "id"})
    assert missing(**{heading: "a"}) == (
        f"Validation error: scopeType - when using {heading}, scopeType is required",
        {"field": "scopeType"},
    )
    assert missing(**{heading: "a"}, scopeType="org") == (
        "scopeId is required for non-global scope",
        {"field": "scopeId"},
    )


def test_an_inherited_list_needs_a_scope(unchanged: Call) -> None:
    reply = unchanged("memory_tool", action="list", inherit=True)
    assert refused(reply)[2:] == ("scopeType is required to inherit", {"field": "scopeType"})
    reply = unchanged("memory_tool", action="list", inherit=True, scopeType="org")
    assert refused(reply)[2:] == ("scopeId is required for non-global scope", {"field": "scopeId"})


def test_reads_write_nothing(do: Do, unchanged: Call) -> None:
    entry = do("memory_tool", "add", **TOOL)["tool"]["id"]
    for more in (
        {"action": "get", "id": entry},
        {"action": "get", "id": entry, "asOf": "2100-01-01"},
        {"action": "get", "name": "git_commit", "scopeType": "global", "asOf": "2100-01-01"},
        {"action": "list"},
        {"action": "list", "scopeType": "global", "inherit": True},
        {"action": "history", "id": entry},
    ):
        result_of(unchanged("memory_tool", **more))
