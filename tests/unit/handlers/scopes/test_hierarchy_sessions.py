"""The actions of memory_session follow the contract."""

from typing import Any

import pytest

from tests.conftest import Call, Clock
from tests.unit.handlers.scopes.conftest import Do, ScopeIds, refused, result_of

NOW = "2026-01-02T03:04:05.678Z"
LATER = "2026-01-02T04:04:05.678Z"


def test_a_session_is_started_listed_and_ended(do: Do, scope_ids: ScopeIds, clock: Clock) -> None:
    started = do(
        "memory_session",
        "start",
        projectId=scope_ids.project,
        name="Feature",
        purpose="Login",
        agentId="claude",
        metadata={"mode": "tdd"},
    )
    session = {
        "id": "sess_1",
        "projectId": scope_ids.project,
        "name": "Feature",
        "purpose": "Login",
        "agentId": "claude",
        "status": "active",
        "startedAt": NOW,
        "endedAt": None,
        "metadata": {"mode": "tdd"},
    }
    assert started == {"success": True, "session": session}
    clock.move(hours=1)
    ended = {**session, "status": "completed", "endedAt": LATER}
    assert do("memory_session", "end", id="sess_1") == {"success": True, "session": ended}


def test_sessions_are_listed_by_project_and_by_status(do: Do, scope_ids: ScopeIds) -> None:
    other = do("memory_session", "start")["session"]["id"]
    gone = do("memory_session", "start", projectId=scope_ids.project)["session"]["id"]
    do("memory_session", "end", id=gone, status="discarded")

    def ids(**which: Any) -> list[str]:
        return [session["id"] for session in do("memory_session", "list", **which)["sessions"]]

    assert ids() == [scope_ids.session, other, gone]
    assert ids(projectId=scope_ids.project) == [scope_ids.session, gone]
    assert ids(projectId=scope_ids.project, status="active") == [scope_ids.session]
    assert ids(status="discarded") == [gone]
    assert ids(status="completed") == []
    assert ids(limit=1, offset=1) == [other]


@pytest.mark.parametrize(
    ("action", "status", "choices"),
    [("end", "active", "completed, discarded"), ("list", "over", "active, completed, discarded")],
)
def test_a_wrong_status_is_told_those_of_its_action(
    unchanged: Call, scope_ids: ScopeIds, action: str, status: str, choices: str
) -> None:
    more = {"id": scope_ids.session} if action == "end" else {}
    reply = unchanged("memory_session", action=action, status=status, **more)
    assert refused(reply)[2] == f"Validation error: status - invalid enum value '{status}', choose from {choices}"


def test_a_session_ends_once(do: Do, unchanged: Call, scope_ids: ScopeIds, clock: Clock) -> None:
    do("memory_session", "end", id=scope_ids.session, status="discarded")
    clock.move(hours=1)
    for status in ("discarded", "completed", None):
        assert refused(unchanged("memory_session", action="end", id=scope_ids.session, status=status)) == (
            "conflict",
            "E2002",
            f"Session {scope_ids.session} was ended before: discarded at {NOW}",
            {"field": "id", "status": "discarded", "endedAt": NOW},
        )


def test_an_unknown_project_is_refused(unchanged: Call) -> None:
    assert refused(unchanged("memory_session", action="start", projectId="ghost")) == (
        "not_found",
        "E2000",
        "Project not found: ghost",
        {"resource": "project", "identifier": "ghost", "field": "projectId"},
    )


def test_a_list_writes_nothing(unchanged: Call, scope_ids: ScopeIds) -> None:
    assert result_of(unchanged("memory_session", action="list"))["meta"] == {
        "totalCount": 1,
        "returnedCount": 1,
        "hasMore": False,
    }
