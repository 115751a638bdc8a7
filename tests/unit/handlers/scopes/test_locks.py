"""File locks: one holder at a time, growing fencing numbers, expiry, and a log of forced unlocks."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernel.server.app import Kernel
from tests.conftest import Call, Clock
from tests.unit.handlers.scopes.conftest import Concurrently, Do, ScopeIds, refused, result_of

NOW = "2026-01-02T03:04:05.678Z"
HOUR = "2026-01-02T04:04:05.678Z"
PATH = "/path/to/file.ts"
FILE = {"file_path": PATH}


def lock(number: int = 1, **more: Any) -> dict[str, Any]:
    """The first lock of a store, held by ada for an hour."""
    return {
        "id": "lock_1",
        "filePath": PATH,
        "checkedOutBy": "ada",
        "sessionId": None,
        "projectId": None,
        "checkedOutAt": NOW,
        "expiresAt": HOUR,
        "metadata": None,
        "fencingToken": number,
        **more,
    }


def test_checkout_status_and_checkin(do: Do, clock: Clock) -> None:
    assert do("memory_file_lock", "status", **FILE) == {"success": True, "isLocked": False, "lock": None}
    assert do("memory_file_lock", "checkout", **FILE, agent_id="ada") == {"success": True, "lock": lock()}
    assert do("memory_file_lock", "status", **FILE) == {"success": True, "isLocked": True, "lock": lock()}
    assert do("memory_file_lock", "list") == {"success": True, "locks": [lock()], "count": 1}
    assert do("memory_file_lock", "checkin", **FILE, agent_id="ada") == {
        "success": True,
        "message": f"File {PATH} checked in successfully",
    }
    assert do("memory_file_lock", "status", **FILE) == {"success": True, "isLocked": False, "lock": None}


def test_checkout_stores_its_references_and_expiry(do: Do, scope_ids: ScopeIds, clock: Clock) -> None:
    held = do(
        "memory_file_lock",
        "checkout",
        **FILE,
        agent_id="ada",
        session_id=scope_ids.session,
        project_id=scope_ids.project,
        expires_in=1.5,
        metadata={"reason": "refactoring"},
    )["lock"]
    assert held == lock(
        sessionId=scope_ids.session,
        projectId=scope_ids.project,
        expiresAt="2026-01-02T03:04:07.178Z",
        metadata={"reason": "refactoring"},
    )


@pytest.mark.parametrize(
    ("seconds", "end"), [(None, HOUR), (0, None), (86_400, "2026-01-03T03:04:05.678Z"), (3600.0, HOUR)]
)
def test_locks_expire_after_an_hour_by_default(do: Do, clock: Clock, seconds: float | None, end: str | None) -> None:
    assert do("memory_file_lock", "checkout", **FILE, agent_id="ada", expires_in=seconds)["lock"]["expiresAt"] == end


def test_a_locked_file_is_refused_to_other_agents(do: Do, unchanged: Call, clock: Clock) -> None:
    do("memory_file_lock", "checkout", **FILE, agent_id="ada")

    context = {"field": "file_path", "lockedBy": "ada", "sessionId": None, "expiresAt": HOUR}
    assert refused(unchanged("memory_file_lock", action="checkout", **FILE, agent_id="bob")) == (
        "conflict",
        "E3000",
        f"File {PATH} is already locked by agent ada",
        context,
    )
    assert refused(unchanged("memory_file_lock", action="checkin", **FILE, agent_id="bob")) == (
        "conflict",
        "E3000",
        f"File {PATH} is locked by agent ada, not bob",
        context,
    )


def test_a_second_checkout_by_the_holder_extends_the_lock(
    do: Do, call: Call, scope_ids: ScopeIds, clock: Clock
) -> None:
    do("memory_file_lock", "checkout", **FILE, agent_id="ada", session_id=scope_ids.session, metadata={"a": 1})
    clock.move(minutes=30)
    again = do("memory_file_lock", "checkout", **FILE, agent_id="ada", project_id=scope_ids.project)["lock"]

    assert again == lock(
        2,
        sessionId=scope_ids.session,
        projectId=scope_ids.project,
        expiresAt="2026-01-02T04:34:05.678Z",
        metadata={"a": 1},
    )
    assert refused(call("memory_file_lock", action="checkin", **FILE, agent_id="ada", fencing_token=1)) == (
        "conflict",
        "E2002",
        f"File {PATH} was checked out again: its fencing token is 2, not 1",
        {"field": "fencing_token", "fencingToken": 2},
    )
    assert do("memory_file_lock", "checkin", **FILE, agent_id="ada", fencing_token=2)["success"]


def test_locks_expire_by_the_server_clock(do: Do, call: Call, unchanged: Call, clock: Clock) -> None:
    do("memory_file_lock", "checkout", **FILE, agent_id="ada", expires_in=60)
    clock.move(seconds=59.999)
    assert do("memory_file_lock", "status", **FILE)["isLocked"]
    clock.move(seconds=0.001)

    assert do("memory_file_lock", "status", **FILE) == {"success": True, "isLocked": False, "lock": None}
    assert do("memory_file_lock", "list") == {"success": True, "locks": [], "count": 0}
    assert refused(unchanged("memory_file_lock", action="checkin", **FILE, agent_id="ada")) == (
        "conflict",
        "E3002",
        f"File {PATH} is not locked: the lock of agent ada expired at 2026-01-02T03:05:05.678Z",
        {"field": "file_path", "expiresAt": "2026-01-02T03:05:05.678Z"},
    )
    for action, agent in (("checkin", "bob"), ("force_unlock", "admin")):
        assert refused(unchanged("memory_file_lock", action=action, **FILE, agent_id=agent))[:2] == (
            "not_found",
            "E3001",
        )
    taken = do("memory_file_lock", "checkout", **FILE, agent_id="bob")["lock"]
    assert (taken["checkedOutBy"], taken["fencingToken"] > 1) == ("bob", True)
    assert refused(call("memory_file_lock", action="checkin", **FILE, agent_id="ada"))[1] == "E3000"


@pytest.mark.parametrize("action", ["checkin", "force_unlock"])
def test_checkin_of_an_unlocked_file_is_refused(unchanged: Call, action: str) -> None:
    assert refused(unchanged("memory_file_lock", action=action, **FILE, agent_id="ada")) == (
        "not_found",
        "E3001",
        f"File {PATH} is not locked",
        {"field": "file_path"},
    )


def test_forced_unlocks_are_logged(do: Do, clock: Clock) -> None:
    do("memory_file_lock", "checkout", **FILE, agent_id="ada")
    assert do("memory_file_lock", "force_unlock", **FILE, agent_id="admin", reason="Agent crashed") == {
        "success": True,
        "message": f"File {PATH} force unlocked by admin",
    }
    first = {"agentId": "admin", "holder": "ada", "reason": "Agent crashed", "at": NOW}
    free = {"success": True, "isLocked": False, "lock": None}
    assert do("memory_file_lock", "status", **FILE) == {**free, "forceUnlocks": [first]}
    assert do("memory_file_lock", "status", file_path="/other") == free
    clock.move(hours=1)
    do("memory_file_lock", "checkout", **FILE, agent_id="bob")
    do("memory_file_lock", "force_unlock", **FILE, agent_id="ada")
    second = {"agentId": "ada", "holder": "bob", "reason": None, "at": HOUR}
    assert do("memory_file_lock", "status", **FILE)["forceUnlocks"] == [second, first]


def test_list_filters_by_agent_session_and_project(do: Do, scope_ids: ScopeIds) -> None:
    held = {
        "/a": {"agent_id": "ada", "session_id": scope_ids.session},
        "/b": {"agent_id": "bob", "project_id": scope_ids.project},
        "/c": {"agent_id": "ada", "project_id": scope_ids.project},
    }
    for path, more in held.items():
        do("memory_file_lock", "checkout", file_path=path, **more)

    def listed(**which: str) -> str:
        found = do("memory_file_lock", "list", **which)
        assert found["count"] == len(found["locks"])
        return "".join(one["filePath"].strip("/") for one in found["locks"])

    assert (listed(), listed(agent_id="ada"), listed(project_id=scope_ids.project)) == ("abc", "ac", "bc")
    assert listed(session_id=scope_ids.session) == "a"
    assert listed(agent_id="ada", project_id=scope_ids.project) == "c"
    assert listed(agent_id="unknown") == ""


@pytest.mark.parametrize(("field", "label"), [("session_id", "Session"), ("project_id", "Project")])
def test_locks_of_an_unknown_session_or_project_are_refused(unchanged: Call, field: str, label: str) -> None:
    assert refused(unchanged("memory_file_lock", action="list", **{field: "ghost"})) == (
        "not_found",
        "E2000",
        f"{label} not found: ghost",
        {"resource": label.lower(), "identifier": "ghost", "field": field},
    )


@pytest.fixture
def sessions(do: Do) -> tuple[str, str]:
    """Two sessions."""
    return do("memory_session", "start")["session"]["id"], do("memory_session", "start")["session"]["id"]


def test_a_lock_of_a_session_is_refused_to_another_session_of_its_agent(
    do: Do, unchanged: Call, clock: Clock, sessions: tuple[str, str]
) -> None:
    mine, other = sessions
    do("memory_file_lock", "checkout", **FILE, agent_id="ada", session_id=mine)

    context = {"field": "file_path", "lockedBy": "ada", "sessionId": mine, "expiresAt": HOUR}
    assert refused(unchanged("memory_file_lock", action="checkout", **FILE, agent_id="ada", session_id=other)) == (
        "conflict",
        "E3000",
        f"File {PATH} is already locked by agent ada in session {mine}",
        context,
    )
    assert refused(unchanged("memory_file_lock", action="checkin", **FILE, agent_id="ada", session_id=other)) == (
        "conflict",
        "E3000",
        f"File {PATH} is locked by agent ada in session {mine}, not session {other}",
        context,
    )
    assert do("memory_file_lock", "checkin", **FILE, agent_id="ada", session_id=mine)["success"]


def test_the_session_of_a_lock_extends_it_and_a_checkout_without_one_too(
    do: Do, clock: Clock, sessions: tuple[str, str]
) -> None:
    mine, other = sessions
    held = [
        do("memory_file_lock", "checkout", **FILE, agent_id="ada", **given)["lock"]
        for given in ({}, {"session_id": mine}, {"session_id": mine}, {})
    ]
    assert held == [lock(1, id="lock_3"), *(lock(number, id="lock_3", sessionId=mine) for number in (2, 3, 4))]
    assert do("memory_file_lock", "checkin", **FILE, agent_id="ada")["success"]
    taken = do("memory_file_lock", "checkout", **FILE, agent_id="ada", session_id=other)["lock"]
    assert taken["sessionId"] == other


def test_checkin_after_a_forced_unlock_names_who_broke_the_lock_and_why(do: Do, unchanged: Call, clock: Clock) -> None:
    do("memory_file_lock", "checkout", **FILE, agent_id="ada")
    do("memory_file_lock", "force_unlock", **FILE, agent_id="admin", reason="Agent crashed")

    broken = {"agentId": "admin", "holder": "ada", "reason": "Agent crashed", "at": NOW}
    sentence = f"Agent admin broke your lock at {NOW}: Agent crashed"
    assert refused(unchanged("memory_file_lock", action="checkin", **FILE, agent_id="ada")) == (
        "not_found",
        "E3001",
        f"File {PATH} is not locked. {sentence}",
        {"field": "file_path", "forceUnlock": broken},
    )
    assert refused(unchanged("memory_file_lock", action="checkin", **FILE, agent_id="bob"))[2:] == (
        f"File {PATH} is not locked",
        {"field": "file_path"},
    )
    do("memory_file_lock", "checkout", **FILE, agent_id="bob")
    assert refused(unchanged("memory_file_lock", action="checkin", **FILE, agent_id="ada")) == (
        "conflict",
        "E3000",
        f"File {PATH} is locked by agent bob, not ada. {sentence}",
        {"field": "file_path", "lockedBy": "bob", "sessionId": None, "expiresAt": HOUR, "forceUnlock": broken},
    )


def test_a_forced_unlock_is_not_named_after_a_later_checkout(do: Do, unchanged: Call, clock: Clock) -> None:
    do("memory_file_lock", "checkout", **FILE, agent_id="ada")
    do("memory_file_lock", "force_unlock", **FILE, agent_id="admin")
    assert refused(unchanged("memory_file_lock", action="checkin", **FILE, agent_id="ada"))[2] == (
        f"File {PATH} is not locked. Agent admin broke your lock at {NOW}, without a reason"
    )
    do("memory_file_lock", "checkout", **FILE, agent_id="ada")
    do("memory_file_lock", "checkin", **FILE, agent_id="ada")
    assert refused(unchanged("memory_file_lock", action="checkin", **FILE, agent_id="ada"))[2] == (
        f"File {PATH} is not locked"
    )


@pytest.mark.parametrize(
    ("spellings", "form"),
    [
        (["/w//a.py", "/w/./a.py", "/w/a.py/", "/./w/a.py/.", "//w/a.py"], "/w/a.py"),
        (["C:\\w\\a.py", "c:\\w\\a.py", "C:/w/a.py", "c:/w//.\\a.py\\"], "C:/w/a.py"),
        (["c:\\", "c:/"], "C:/"),
        (["\\\\host\\share\\a", "\\\\host/share//a/", "\\\\host\\.\\share\\a"], "\\\\host\\share\\a"),
        (["/e\u0301", "/\u00e9"], "/\u00e9"),
        (["//", "/./"], "/"),
    ],
)
def test_every_spelling_of_a_path_is_one_lock(do: Do, call: Call, spellings: list[str], form: str) -> None:
    first = do("memory_file_lock", "checkout", file_path=spellings[0], agent_id="ada")["lock"]
    assert first["filePath"] == form
    for path in [form, *spellings]:
        assert do("memory_file_lock", "status", file_path=path)["lock"] == first
        assert refused(call("memory_file_lock", action="checkout", file_path=path, agent_id="bob"))[1] == "E3000"
    do("memory_file_lock", "checkin", file_path=spellings[-1], agent_id="ada")
    assert do("memory_file_lock", "list") == {"success": True, "locks": [], "count": 0}


def test_a_lock_of_an_earlier_release_is_released_under_its_own_path(do: Do, call: Call, kernel: Kernel) -> None:
    columns = dict.fromkeys(("session_id", "project_id", "expires_at", "metadata"))
    lock = {"id": "l", "file_path": "/w//a", "checked_out_by": "ada", "checked_out_at": NOW, "fencing_token": 1}
    kernel.store.write_sync(lambda tx: tx.run("scopes.import_agent_memory.add_lock", **columns, **lock))

    assert do("memory_file_lock", "status", file_path="/w//a")["lock"]["filePath"] == "/w//a"
    assert refused(call("memory_file_lock", action="checkout", file_path="/w//a", agent_id="bob"))[1] == "E3000"
    assert do("memory_file_lock", "checkin", file_path="/w//a", agent_id="ada")["success"]


@pytest.mark.parametrize("action", ["checkout", "checkin", "status", "force_unlock"])
@pytest.mark.parametrize(
    ("path", "problem", "advice"),
    [
        ("src/file.ts", "must be absolute", "give the full path from the root"),
        ("./file.ts", "must be absolute", "give the full path from the root"),
        ("C:file.ts", "must be absolute", "give the full path from the root"),
        ("/a/../b", "must not hold .. segments", "give the path it stands for"),
        ("C:\\a\\..\\b", "must not hold .. segments", "give the path it stands for"),
        ("/a/..", "must not hold .. segments", "give the path it stands for"),
        ("/a\nb", "must not hold line breaks", ""),
        ("/a\r", "must not hold line breaks", ""),
        ("/a\0b", "must not hold NUL characters", ""),
    ],
)
def test_invalid_paths_are_refused(unchanged: Call, action: str, path: str, problem: str, advice: str) -> None:
    agent = {} if action == "status" else {"agent_id": "ada"}
    hint = f". Suggestion: {advice}" if advice else ""
    assert refused(unchanged("memory_file_lock", action=action, file_path=path, **agent)) == (
        "invalid",
        "E1000",
        f"Validation error: file_path - {problem}{hint}",
        {"field": "file_path", **({"suggestion": advice} if advice else {})},
    )


@pytest.mark.parametrize("path", ["/a..b/...", "C:/src/a.py", "C:/", "\\\\host\\share", "/", "/日本/ "])
def test_absolute_paths_are_kept_unchanged(do: Do, path: str) -> None:
    assert do("memory_file_lock", "checkout", file_path=path, agent_id="ada")["lock"]["filePath"] == path
    assert do("memory_file_lock", "status", file_path=path)["isLocked"]


@pytest.mark.parametrize(("field", "label"), [("session_id", "Session"), ("project_id", "Project")])
def test_session_and_project_of_a_lock_have_to_exist(unchanged: Call, field: str, label: str) -> None:
    reply = unchanged("memory_file_lock", action="checkout", **FILE, agent_id="ada", **{field: "ghost"})
    assert refused(reply) == (
        "not_found",
        "E2000",
        f"{label} not found: ghost",
        {"resource": label.lower(), "identifier": "ghost", "field": field},
    )


def test_one_of_a_hundred_concurrent_checkouts_succeeds(concurrently: Concurrently, do: Do) -> None:
    replies = concurrently(
        [("memory_file_lock", {"action": "checkout", **FILE, "agent_id": f"agent {number}"}) for number in range(100)]
    )
    holders = [result_of(reply)["lock"]["checkedOutBy"] for reply in replies if reply.fault is None]
    assert [reply.fault for reply in replies].count("conflict") == 99
    assert [do("memory_file_lock", "status", **FILE)["lock"]["checkedOutBy"]] == holders


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["checkout", "checkin", "force_unlock", "wait"]),
        st.sampled_from(["ada", "bob"]),
        st.sampled_from([0, 1, 10]),
    ),
    max_size=30,
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_a_file_has_one_holder_and_fencing_numbers_only_grow(
    call: Call, clock: Clock, steps: list[tuple[str, str, int]]
) -> None:
    """A model of one lock: who holds it, until when."""
    call("memory_file_lock", action="checkout", file_path="/model", agent_id="ada", expires_in=0)
    call("memory_file_lock", action="force_unlock", file_path="/model", agent_id="ada")
    holder, end, highest = None, "", 0
    for action, agent, seconds in steps:
        if action == "wait":
            clock.move(seconds=seconds)
        more = {"expires_in": seconds} if action == "checkout" else {}
        active = holder is not None and (not end or clock.now < end)
        reply = call("memory_file_lock", action=action, file_path="/model", agent_id=agent, **more)
        allowed = {
            "checkout": not active or holder == agent,
            "checkin": active and holder == agent,
            "force_unlock": active,
            "wait": False,
        }[action]
        assert (reply.fault is None) == allowed
        if allowed and action == "checkout":
            taken = result_of(reply)["lock"]
            assert taken["fencingToken"] > highest
            holder, end, highest = agent, taken["expiresAt"] or "", taken["fencingToken"]
        elif allowed:
            holder = None
        active = holder is not None and (not end or clock.now < end)
        status = result_of(call("memory_file_lock", action="status", file_path="/model"))
        assert (status["isLocked"], (status["lock"] or {}).get("checkedOutBy")) == (active, holder if active else None)
    if holder is not None:
        call("memory_file_lock", action="force_unlock", file_path="/model", agent_id="ada")


@pytest.mark.parametrize("seconds", [5e-324, 1e-9, 0.0004, 0.001])
def test_the_shortest_lock_lasts_one_millisecond(do: Do, clock: Clock, seconds: float) -> None:
    held = do("memory_file_lock", "checkout", **FILE, agent_id="ada", expires_in=seconds)["lock"]
    assert held["expiresAt"] == "2026-01-02T03:04:05.679Z"
    assert do("memory_file_lock", "checkin", **FILE, agent_id="ada")["success"]


@pytest.mark.parametrize("action", ["checkout", "checkin", "force_unlock"])
def test_a_blank_agent_is_refused(unchanged: Call, action: str) -> None:
    assert refused(unchanged("memory_file_lock", action=action, **FILE, agent_id=" \t")) == (
        "invalid",
        "E1000",
        "agent_id is required",
        {"field": "agent_id"},
    )
