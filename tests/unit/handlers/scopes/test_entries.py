"""Names are unique, versions are gapless, no update is lost, and the index holds the active entries."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.scopes import entries, entry_requests
from kernel.search import index
from kernel.server.app import Kernel
from kernel.store import history
from tests.conftest import Call, Clock, everything
from tests.support.handlers_scopes_entry_tools import CHANGE, HEADING, kinds, named
from tests.unit.handlers.scopes.conftest import Concurrently, Do, ScopeIds, refused

MOMENTS = st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1)).map(  # noqa: DTZ001
    lambda moment: f"{moment.isoformat(timespec='milliseconds')}Z"
)


@kinds
def test_names_are_unique_within_a_scope_including_global(
    do: Do, unchanged: Call, scope_ids: ScopeIds, kind: str
) -> None:
    for scope, scope_id in (("global", None), ("org", scope_ids.org), ("project", scope_ids.project)):
        asked = named(kind, "Same", scopeType=scope, scopeId=scope_id)
        holder = do(f"memory_{kind}", "add", **asked)[kind]["id"]

        label = "Knowledge entry" if kind == "knowledge" else kind.capitalize()
        where = "global" if scope == "global" else f"{scope}:{scope_id}"
        assert refused(unchanged(f"memory_{kind}", action="add", **asked)) == (
            "conflict",
            "E2001",
            f"{label} already exists: Same in {where}",
            {"resource": label.lower(), "identifier": "Same", "field": HEADING[kind], "id": holder},
        )
    do(f"memory_{kind}", "add", **named(kind, "same"))


def test_the_three_kinds_do_not_share_names(do: Do) -> None:
    for kind in ("tool", "guideline", "knowledge"):
        do(f"memory_{kind}", "add", **named(kind, "same"))


def test_deactivation_frees_the_name(do: Do) -> None:
    first = do("memory_tool", "add", **named("tool", "again"))["tool"]["id"]
    do("memory_tool", "deactivate", id=first)
    second = do("memory_tool", "add", **named("tool", "again"))["tool"]["id"]

    assert do("memory_tool", "get", name="again", scopeType="global")["tool"]["id"] == second
    listed = do("memory_tool", "list", includeInactive=True)["tools"]
    assert [(entry["id"], entry["isActive"]) for entry in listed] == [(first, False), (second, True)]


@kinds
def test_a_hundred_concurrent_adds_of_a_name_make_one_entry(
    kernel: Kernel, concurrently: Concurrently, kind: str
) -> None:
    replies = concurrently([(f"memory_{kind}", {"action": "add", **named(kind, "same")})] * 100)

    assert sorted(reply.fault or "" for reply in replies) == ["", *["conflict"] * 99]
    rows = everything(kernel)
    assert {table: len(rows[table]) for table in ("scopes_entry", "scopes_version", "doc", "history")} == dict.fromkeys(
        ("scopes_entry", "scopes_version", "doc", "history"), 1
    )


def test_one_of_many_updates_that_expect_the_same_version_succeeds(concurrently: Concurrently, do: Do) -> None:
    entry = do("memory_tool", "add", **named("tool", "counter", description="0"))["tool"]["id"]
    update = {"action": "update", "id": entry, "expectedVersion": 1, "description": "1"}
    replies = concurrently([("memory_tool", update)] * 100)

    assert sorted(reply.fault or "" for reply in replies) == ["", *["conflict"] * 99]
    assert len(do("memory_tool", "history", id=entry)["versions"]) == 2


@pytest.mark.slow
def test_compare_and_set_loses_no_update(concurrently: Concurrently, do: Do) -> None:
    """Ten agents append to a text a few times each; an agent that is refused reads again."""
    entry = do("memory_knowledge", "add", **named("knowledge", "list", content="0"))["knowledge"]["id"]
    left = dict.fromkeys(range(10), 3)
    while any(left.values()):
        current = do("memory_knowledge", "get", id=entry)["knowledge"]["currentVersion"]
        agents = [agent for agent in left if left[agent]]
        update = {"action": "update", "id": entry, "expectedVersion": current["versionNum"]}
        replies = concurrently(
            [("memory_knowledge", {**update, "content": f"{current['content']} {agent}"}) for agent in agents]
        )
        for agent, reply in zip(agents, replies, strict=True):
            left[agent] -= reply.fault is None
    versions = do("memory_knowledge", "history", id=entry)["versions"]
    assert [version["versionNum"] for version in versions] == [*range(31, 0, -1)]
    assert sorted(versions[0]["content"].split()[1:]) == sorted(str(agent) for agent in range(10) for _ in range(3))
    assert do("memory_conflict", "list")["conflicts"] == []


def test_an_update_with_a_stale_expected_version_is_refused(do: Do, unchanged: Call) -> None:
    entry = do("memory_tool", "add", **named("tool", "a"))["tool"]
    for expected in (2, 2**53):
        assert refused(unchanged("memory_tool", action="update", id=entry["id"], expectedVersion=expected)) == (
            "conflict",
            "E2002",
            f"Version conflict: expectedVersion is {expected}, the current version is 1",
            {
                "field": "expectedVersion",
                "expectedVersion": expected,
                "currentVersion": 1,
                "currentVersionId": entry["currentVersionId"],
            },
        )


@pytest.mark.parametrize(("seconds", "clash"), [(0, True), (4.999, True), (5, False), (3600, False), (-1, True)])
def test_an_update_within_five_seconds_is_recorded_as_a_conflict(
    do: Do, clock: Clock, seconds: float, clash: bool
) -> None:
    do("memory_tool", "add", **named("tool", "a"))
    clock.move(seconds=seconds)
    version = do("memory_tool", "update", id="tool_1", description="new")["tool"]["currentVersion"]

    assert (version["conflictFlag"], version["versionNum"], version["description"]) == (clash, 2, "new")
    conflict = {
        "id": "conf_4",
        "entryType": "tool",
        "entryId": "tool_1",
        "versionAId": "tv_2",
        "versionBId": "tv_3",
        "detectedAt": clock.now,
        "resolved": False,
        "resolution": None,
        "resolvedAt": None,
        "resolvedBy": None,
    }
    assert do("memory_conflict", "list")["conflicts"] == ([conflict] if clash else [])


def test_an_update_with_expected_version_is_no_conflict(do: Do, clock: Clock) -> None:
    do("memory_tool", "add", **named("tool", "a"))
    version = do("memory_tool", "update", id="tool_1", expectedVersion=1, description="new")["tool"]["currentVersion"]

    assert version["conflictFlag"] is False
    assert do("memory_conflict", "list")["conflicts"] == []


IN_A_TIME_ZONE = """
import sys
from handlers.scopes.entries import within_conflict_window
print(within_conflict_window("2026-01-02T03:04:05.000Z", "2026-01-02T03:04:09.999Z"))
print(within_conflict_window("2026-03-29T00:59:58.000Z", "2026-03-29T01:00:03.000Z"))
"""


@pytest.mark.slow
@pytest.mark.parametrize("zone", ["Europe/Berlin", "UTC", "America/New_York", "Asia/Kathmandu"])
def test_the_conflict_window_is_the_same_in_every_time_zone(zone: str) -> None:
    root = Path(__file__).resolve().parents[4]
    done = subprocess.run(
        [sys.executable, "-c", IN_A_TIME_ZONE], cwd=root, env={**os.environ, "TZ": zone}, capture_output=True, text=True
    )
    assert done.stdout.split() == ["True", "False"], done.stderr


@given(MOMENTS, st.integers(0, 10_000))
def test_the_conflict_window_is_five_seconds_in_either_direction(moment: str, milliseconds: int) -> None:
    later = Clock(moment).move(milliseconds=milliseconds)
    assert (
        entries.within_conflict_window(moment, later)
        == entries.within_conflict_window(later, moment)
        == (milliseconds < 5000)
    )


def found(kernel: Kernel, words: str, within: list[tuple[str, str | None]] | None = None) -> set[tuple[str, str]]:
    hits = kernel.store.read_sync(lambda tx: index.search(tx, words, within=within, semantic=False))
    return {(hit.space, hit.id) for hit in hits}


def test_active_entries_are_found_by_their_current_version(
    kernel: Kernel, do: Do, scope_ids: ScopeIds, clock: Clock
) -> None:
    project = {"scopeType": "project", "scopeId": scope_ids.project}
    do("memory_tool", "add", name="hammer", description="nails", constraints="thumbs", examples=["zebra"], **project)
    do("memory_guideline", "add", name="style", content="commas", rationale="clarity", scopeType="global")
    do("memory_knowledge", "add", title="limit", content="quota", source="handbook", scopeType="global")
    tool, guideline, fact = ("scopes:tools", "tool_1"), ("scopes:guidelines", "gl_3"), ("scopes:knowledge", "kn_5")

    words = ("hammer", "nails", "thumbs", "zebra", "style", "commas", "clarity", "limit", "quota", "handbook")
    assert [found(kernel, word) for word in words] == [
        {tool},
        {tool},
        {tool},
        {tool},
        {guideline},
        {guideline},
        {guideline},
        {fact},
        {fact},
        {fact},
    ]
    assert found(kernel, "hammer", [("scopes:tools", f"project:{scope_ids.project}")]) == {tool}
    assert found(kernel, "hammer", [("scopes:tools", "global")]) == set()

    do("memory_tool", "update", id="tool_1", description="screws")
    assert [found(kernel, word) for word in ("nails", "screws")] == [set(), {tool}]
    do("memory_tool", "deactivate", id="tool_1")
    assert found(kernel, "screws") == set()
    do("memory_tool", "update", id="tool_1", description="bolts")
    assert found(kernel, "bolts") == set()


def test_index_sources_equal_the_index(kernel: Kernel, do: Do, scope_ids: ScopeIds) -> None:
    for kind in ("tool", "guideline", "knowledge"):
        for scope, scope_id in (("global", None), ("session", scope_ids.session)):
            more = {"description": "d"} if kind == "tool" else {}
            entry = do(f"memory_{kind}", "add", **named(kind, "日本", scopeType=scope, scopeId=scope_id), **more)
            do(f"memory_{kind}", "update", id=entry[kind]["id"], changeReason="again", **CHANGE[kind])
    gone = do("memory_tool", "add", **named("tool", "gone"))["tool"]["id"]
    do("memory_tool", "deactivate", id=gone)

    sources = kernel.store.read_sync(lambda tx: list(entries.sources(tx)))
    documents = kernel.store.read_sync(lambda tx: index.documents(tx, [*range(99)]))
    held = [(doc.space, doc.key, doc.scope, doc.text) for doc in documents.values()]
    assert sorted(held) == sorted(source[:4] for source in sources)
    assert sorted((source.space, source.scope, source.text) for source in sources) == sorted(
        (space, scope, text)
        for space, text in (
            ("scopes:tools", "日本\nnew"),
            ("scopes:guidelines", "日本\nnew"),
            ("scopes:knowledge", "日本\nnew"),
        )
        for scope in ("global", f"session:{scope_ids.session}")
    )


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (entry_requests.AddTool("global", "a", description="b", constraints="c"), "a\nb\nc"),
        (entry_requests.AddGuideline("global", "a", "b", rationale="c"), "a\nb\nc"),
        (entry_requests.AddKnowledge("global", "a", "b", source="c"), "a\nb\nc"),
        (entry_requests.AddTool("global", "a", description=""), "a"),
        (entry_requests.UpdateTool("tool_1", description="b"), None),
        (entry_requests.DeactivateEntry("tool_1"), None),
    ],
)
def test_texts_to_embed_equal_the_indexed_text(request_: Any, text: str | None) -> None:
    assert entries.texts_to_embed(request_) == ([] if text is None else [text])


def test_the_history_holds_the_text_before_and_after(kernel: Kernel, do: Do, call: Call, clock: Clock) -> None:
    do("memory_tool", "add", **named("tool", "a", description="one"), by="ann")
    do("memory_tool", "update", id="tool_1", description="two", changeReason="better", by="bob")
    call("memory_tool", action="update", id="tool_1", expectedVersion=9)
    do("memory_tool", "deactivate", id="tool_1", by="cat")
    do("memory_tool", "deactivate", id="tool_1", by="dan")

    events = kernel.store.read_sync(lambda tx: history.read(tx, "scopes:tools", "tool_1"))
    assert [(event.operation, event.before, event.after, event.reason, event.actor) for event in events] == [
        ("added", None, "a\none", None, "ann"),
        ("updated", "a\none", "a\ntwo", "better", "bob"),
        ("deactivated", "a\ntwo", None, None, "cat"),
    ]


HOSTILE: list[Callable[[], str]] = [
    lambda: "'; DROP TABLE scopes_entry; --",
    lambda: '{"$.name": 1}',
    lambda: "\u202e\u2066\ufeff",
    lambda: "😀" * 300,
    lambda: "a\r\n\tb",
    lambda: "%_*?",
    lambda: "\x1b[31m",
    lambda: "NULL",
    lambda: "\ufffe\uffff",
    lambda: "ß ẞ İ",
]


@pytest.mark.parametrize("make", HOSTILE, ids=[ascii(make())[:20] for make in HOSTILE])
def test_hostile_text_is_returned_unchanged(do: Do, make: Callable[[], str]) -> None:
    text = make()
    deep = {text: [text, {text: text}], "": None, "n": 2**64 + 1, "f": 1.5}
    tool = do("memory_tool", "add", **named("tool", text, description=text, parameters=deep, examples=[deep]))["tool"]
    assert do("memory_tool", "get", name=text, scopeType="global")["tool"] == tool
    version = tool["currentVersion"]
    assert (tool["name"], version["description"], version["parameters"]) == (text.replace("\ufeff", ""), text, deep)
    assert version["examples"] == [deep]
    assert json.loads(json.dumps(tool)) == tool
