"""Category and priority as of a time: the answers of `get`, searches, contexts and histories after a change."""

import json
from typing import Any

import pytest

from tests.conftest import Clock
from tests.unit.handlers.scopes.conftest import Add, Do, exported

BORN = "2026-01-02T03:04:05.678Z"


def changed(do: Do, add: Add, clock: Clock) -> str:
    """A guideline whose category and priority were changed an hour after it was added, and its text another hour on."""
    entry = add("guideline", "tabs", "Use tabs", category="style", priority=50)
    clock.move(hours=1)
    do("memory_guideline", "update", id=entry, priority=90, category="layout", changeReason="it matters more")
    clock.move(hours=1)
    do("memory_guideline", "update", id=entry, content="Use blanks")
    return entry


def standing(found: dict[str, Any]) -> tuple[str | None, int]:
    return found["category"], found["priority"]


def test_get_tells_category_and_priority_of_the_time(do: Do, add: Add, clock: Clock) -> None:
    entry = changed(do, add, clock)
    by_id = [do("memory_guideline", "get", id=entry, asOf=at)["guideline"] for at in (BORN, "2026-01-02T04:30:00Z")]
    named = {"name": "tabs", "scopeType": "global"}
    by_name = [do("memory_guideline", "get", asOf=at, **named)["guideline"] for at in (BORN, "2026-01-02T04:30:00Z")]
    assert [standing(one) for one in by_id] == [standing(one) for one in by_name] == [("style", 50), ("layout", 90)]
    assert standing(do("memory_guideline", "get", id=entry)["guideline"]) == ("layout", 90)


@pytest.mark.parametrize("kind", ["guideline", "knowledge"])
def test_history_tells_the_category_of_each_version_where_it_was_changed(
    do: Do, add: Add, clock: Clock, kind: str
) -> None:
    entry, other = add(kind, "one", "text", category="a"), add(kind, "other", "text", category="a")
    clock.move(hours=1)
    do(f"memory_{kind}", "update", id=entry, category="b")
    do(f"memory_{kind}", "update", id=other, content="new")
    versions = do(f"memory_{kind}", "history", id=entry)["versions"]
    assert [(one["versionNum"], one["category"]) for one in versions] == [(2, "b"), (1, "a")]
    unchanged = do(f"memory_{kind}", "history", id=other)["versions"]
    assert ["category" in one or "priority" in one for one in unchanged] == [False, False]


def test_history_tells_the_priority_of_each_version(do: Do, add: Add, clock: Clock) -> None:
    entry = changed(do, add, clock)
    versions = do("memory_guideline", "history", id=entry)["versions"]
    assert [standing(one) for one in versions] == [("layout", 90), ("layout", 90), ("style", 50)]


@pytest.mark.parametrize("asked", [{}, {"search": "tabs"}, {"search": "rule"}], ids=["all", "name", "text"])
def test_a_search_ranks_by_the_priority_of_the_time(do: Do, add: Add, clock: Clock, asked: dict[str, Any]) -> None:
    low, high = (
        add("guideline", f"tabs {name}", "rule of tabs", priority=priority) for name, priority in (("a", 10), ("b", 60))
    )
    clock.move(hours=1)
    do("memory_guideline", "update", id=low, priority=100)

    def first(**more: Any) -> str:
        found = do("memory_query", "search", types=["guidelines"], limit=1, **asked, **more)["results"]
        return found[0]["guideline"]["id"]

    assert (first(), first(asOf=BORN)) == (low, high)


@pytest.mark.slow
def test_a_context_ranks_by_the_priority_of_the_time(do: Do, add: Add, clock: Clock) -> None:
    rules = [add("guideline", f"rule {number}", priority=number) for number in range(30)]
    clock.move(hours=1)
    for number, rule in enumerate(rules):
        do("memory_guideline", "update", id=rule, priority=29 - number)

    def first(**more: Any) -> list[str]:
        found = do("memory_query", "context", scopeType="global", limit=5, **more)["guidelines"]
        return [one["guideline"]["id"] for one in found]

    assert (first(), first(asOf=BORN)) == (rules[:5], rules[:-6:-1])


def test_an_import_that_changes_the_priority_keeps_that_before_it(do: Do, add: Add, clock: Clock) -> None:
    entry = add("guideline", "tabs", "Use tabs", category="style", priority=50)
    document = exported(do)
    document["entries"]["guidelines"][0] |= {"priority": 70, "category": "layout"}
    clock.move(hours=1)
    do("memory_import", "import", content=json.dumps(document), conflictStrategy="replace")
    now, then = (do("memory_guideline", "get", id=entry, **at)["guideline"] for at in ({}, {"asOf": BORN}))
    assert (standing(now), standing(then)) == (("layout", 70), ("style", 50))


def test_a_reset_forgets_what_entries_were(do: Do, add: Add, clock: Clock) -> None:
    changed(do, add, clock)
    do("memory_init", "reset", confirm=True)
    assert do("memory_guideline", "list")["guidelines"] == []
