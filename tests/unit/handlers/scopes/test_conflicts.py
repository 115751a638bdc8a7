"""Conflicts are listed until they are resolved; resolving one changes no version."""

from typing import Any

from tests.conftest import Call, Clock
from tests.support.handlers_scopes_entry_tools import CHANGE, named
from tests.unit.handlers.scopes.conftest import Do, refused

LATER = "2026-01-02T04:04:05.678Z"


def add_conflict(do: Do, kind: str, name: str) -> str:
    """Adds an entry and updates it within the conflict window. Its id."""
    entry = do(f"memory_{kind}", "add", **named(kind, name))[kind]["id"]
    do(f"memory_{kind}", "update", id=entry, **CHANGE[kind])
    return entry


def test_list_filters_by_type_and_state_oldest_first(do: Do, clock: Clock) -> None:
    entries = []
    for kind, name in (("tool", "a"), ("guideline", "b"), ("tool", "c")):
        entries.append(add_conflict(do, kind, name))
        clock.move(hours=1)

    def listed(**which: Any) -> list[int]:
        found = do("memory_conflict", "list", **which)
        assert found["meta"]["returnedCount"] == len(found["conflicts"])
        return [entries.index(conflict["entryId"]) for conflict in found["conflicts"]]

    assert listed() == listed(resolved=False) == listed(resolved=None) == [0, 1, 2]
    assert listed(entryType="tool") == [0, 2]
    assert listed(entryType="knowledge") == listed(resolved=True) == []
    assert listed(limit=1, offset=1) == [1]
    middle = do("memory_conflict", "list", entryType="guideline")["conflicts"][0]["id"]
    do("memory_conflict", "resolve", id=middle, resolution="fine")
    assert (listed(), listed(resolved=True)) == ([0, 2], [1])


def test_resolve_stores_resolution_time_and_agent(do: Do, clock: Clock) -> None:
    entry = add_conflict(do, "tool", "a")
    before = do("memory_tool", "get", id=entry)
    (conflict,) = do("memory_conflict", "list")["conflicts"]
    clock.move(hours=1)

    resolved = do("memory_conflict", "resolve", id=conflict["id"], resolution="Kept the second", resolvedBy="ada")

    after = {
        **conflict,
        "resolved": True,
        "resolution": "Kept the second",
        "resolvedAt": LATER,
        "resolvedBy": "ada",
    }
    assert resolved == {"success": True, "conflict": after}
    assert do("memory_conflict", "list", resolved=True)["conflicts"] == [after]
    before["tool"]["currentVersion"]["conflictFlag"] = False
    assert do("memory_tool", "get", id=entry) == before
    again = do("memory_conflict", "resolve", id=conflict["id"], resolution="Kept the first")["conflict"]
    assert (again["resolution"], again["resolvedBy"]) == ("Kept the first", None)


def test_an_unknown_conflict_is_refused(unchanged: Call) -> None:
    assert refused(unchanged("memory_conflict", action="resolve", id="ghost", resolution="x")) == (
        "not_found",
        "E2000",
        "Conflict not found: ghost",
        {"resource": "conflict", "identifier": "ghost", "field": "id"},
    )
