"""Names have one normal form, and a date of expiry counts to its end."""

from typing import Any

import pytest

from tests.conftest import Call, Clock
from tests.unit.handlers.scopes.conftest import KINDS, MANY, Add, Do, refused


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("given", "stored"), [(" naming\n", "naming"), ("cafe\u0301", "caf\u00e9"), ("na\u00adm\u200bing\ufeff", "naming")]
)
def test_a_name_is_stored_composed_and_without_blanks_at_its_ends(
    do: Do, add: Add, unchanged: Call, kind: str, given: str, stored: str
) -> None:
    number = add(kind, given)
    field = "title" if kind == "knowledge" else "name"
    (entry,) = do(f"memory_{kind}", "list")[MANY[kind]]
    assert entry[field] == stored
    for name in (given, stored):
        assert do(f"memory_{kind}", "get", scopeType="global", **{field: name})[kind]["id"] == number
        text = {} if kind == "tool" else {"content": "a"}
        reply = unchanged(f"memory_{kind}", action="add", scopeType="global", **{field: name}, **text)
        assert refused(reply)[1] == "E2001"


def test_a_name_of_characters_that_never_show_is_none(unchanged: Call) -> None:
    reply = unchanged("memory_tool", action="add", scopeType="global", name="\u00ad \u200b")
    assert refused(reply)[1:3] == ("E1000", "name is required")


def test_a_project_has_a_normal_name(do: Do, unchanged: Call) -> None:
    project = do("memory_project", "create", name=" Cafe\u0301 ")["project"]
    assert project["name"] == "Caf\u00e9"
    assert do("memory_project", "get", name="cafe\u0301")["project"]["id"] == project["id"]
    assert refused(unchanged("memory_project", action="create", name="CAF\u00c9"))[1] == "E2001"
    assert do("memory_project", "update", id=project["id"], name=" New ")["project"]["name"] == "New"
    assert do("memory_org", "create", name=" O ")["organization"]["name"] == "O"


def test_an_expiry_date_counts_to_the_end_of_that_day(do: Do, add: Add, clock: Clock) -> None:
    number = add("knowledge", "k", validUntil="2026-01-02")  # the day of the clock

    def shown() -> list[Any]:
        got = do("memory_knowledge", "get", id=number)["knowledge"]
        (listed,) = do("memory_knowledge", "list")["knowledge"]
        assert got == listed
        ((found),) = do("memory_query", "search", includeExpired=True)["results"]
        return [got["currentVersion"]["validUntil"], got.get("expired"), found.get("expired")]

    end = "2026-01-02T23:59:59.999Z"
    assert shown() == [end, None, None]
    clock.move(days=1)
    assert shown() == [end, True, True]
    before = do("memory_knowledge", "get", id=number, asOf="2026-01-02T12:00:00Z")["knowledge"]
    assert "expired" not in before
    do("memory_knowledge", "update", id=number, validUntil="2026-01-02T12:00:00Z")
    assert shown() == ["2026-01-02T12:00:00.000Z", True, True]
