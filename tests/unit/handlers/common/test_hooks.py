"""The memory of hooks for a session, their writes, and their exclusions."""

import json
from typing import Any

import pytest

from handlers.common import fence
from kernel.memories.briefing import HookSession, HookSessions
from kernel.server import app
from kernel.server.app import Kernel
from tests.conftest import Call, Clock, everything

# How a tag may be spelled.
SIGNS = [
    ("<", ">"),
    ("&lt;", "&gt;"),
    ("&lt", "&gt"),
    ("&#60;", "&#62;"),
    ("&#x3C;", "&#x3E;"),
    ("< ", " >"),
    ("＜", "＞"),
]
SUMMARY = "The API moved to port 8123 and its tests pass; the worker is next."


@pytest.fixture
def hook(call: Call) -> Any:
    def run(event: str, **more: Any) -> Any:
        return call(f"hook {event}", by="claude", **{"client": "claude", "session_id": "s", "cwd": "/w/web", **more})

    return run


def handoffs(call: Call) -> list[str]:
    found = json.loads(call("recall", dialects=["sessions"], detail="text").body)["memories"]
    return [one["text"] for one in found]


def test_a_resumed_session_is_told_again_after_four_hours(hook: Any, call: Call, clock: Clock) -> None:
    call("add_memory", path="web/a", content="x")
    assert hook("session-start", source="startup").body
    assert hook("session-start", source="resume").body == b""
    assert hook("session-start", source="clear").body
    clock.move(hours=4)
    assert hook("session-start", source="resume").body


@pytest.mark.parametrize(
    "prompt", ["ok", "go on with it", "/compact the conversation", "!git log --oneline -n 20", "", None]
)
def test_short_prompts_and_commands_are_not_searched_and_do_not_count(
    prompt: str | None, hook: Any, call: Call
) -> None:
    call("add_memory", path="ops/port", content="The API listens on port 8123.")
    assert hook("first-prompt", prompt=prompt).body == b""
    assert hook("first-prompt", prompt="Which port does the API listen on?").body


def test_a_prompt_is_never_stored(hook: Any, call: Call, kernel: Kernel) -> None:
    call("add_memory", path="ops/port", content="The API listens on port 8123.")
    before = everything(kernel)
    hook("session-start", source="startup")
    hook("first-prompt", prompt="Which port does the API listen on? It is for the zebrafish demo.")
    hook("session-end", reason="exit")
    hook("post-compact")  # a write, after that which records
    rows = everything(kernel)
    shown = f'[["paths/ops/port","{before["doc"][0][-1]}"]]'
    assert [(row[0], *row[2:]) for row in rows.pop("audit_shown")] == [("claude:s", "first-prompt", shown)]
    assert rows == {name: table for name, table in before.items() if name != "audit_shown"}


def test_what_sessions_got_is_kept_for_a_year(hook: Any, call: Call, kernel: Kernel, clock: Clock) -> None:
    call("add_memory", path="ops/port", content="The API listens on port 8123.")
    for name in ("first", "second", "third"):
        hook("first-prompt", session_id=name, prompt="Which port does the API listen on?")
        hook("post-compact")  # a write, after that which records
        clock.move(days=200)
    assert [row[0] for row in everything(kernel)["audit_shown"]] == ["claude:second", "claude:third"]


def test_the_summary_of_a_compaction_becomes_one_handoff_of_the_session(hook: Any, call: Call, kernel: Kernel) -> None:
    hook("post-compact", compact_summary="The first summary says that the work has only begun.")
    hook("post-compact", compact_summary=f"{SUMMARY} <private>my salary</private>")
    hook("post-compact", session_id="t", compact_summary="Another session of this project did something else today.")
    rows = everything(kernel)["sessions_memory"]
    assert [(row[1], row[2], row[3], row[6], row[7]) for row in rows] == [
        ("claude:s", "handoff", SUMMARY, 3, '{"hook":true,"project":"/w/web"}'),
        (
            "claude:t",
            "handoff",
            "Another session of this project did something else today.",
            3,
            '{"hook":true,"project":"/w/web"}',
        ),
    ]
    found = json.loads(call("recall", ids=["sessions/2"]).body)["memories"][0]["provenance"]
    assert (found["tool"], found["actor"]) == ("hook post-compact", "claude")


def test_a_replaced_handoff_can_be_brought_back(hook: Any, call: Call, kernel: Kernel) -> None:
    hook("post-compact", compact_summary="The first summary says that the work has only begun.")
    hook("post-compact", compact_summary=SUMMARY)
    history = everything(kernel)["history"]
    assert [
        row for row in history if "replaced" in row and "The first summary says that the work has only begun." in row
    ]


@pytest.mark.parametrize(
    "summary",
    ["", "too short", "<private>" + SUMMARY, SUMMARY + " The key is sk-ant-api03-" + "aB3" * 30, None],
)
def test_what_must_not_be_stored_is_not(summary: str | None, hook: Any, call: Call) -> None:
    assert hook("post-compact", compact_summary=summary).body == b""
    assert handoffs(call) == []


def test_what_a_hook_has_added_is_never_stored_back(hook: Any, call: Call) -> None:
    call("add_memory", path="web/port", content="The API listens on port 8123.")
    context = json.loads(hook("session-start", source="startup").body)["hookSpecificOutput"]["additionalContext"]

    hook("post-compact", compact_summary=f"We began.\n{context}\n{SUMMARY}")
    assert handoffs(call) == [f"We began.\n\n\n{SUMMARY}"]

    lines = [line for line in context.splitlines() if "<" not in line]
    hook("post-compact", compact_summary="\n".join([*lines, SUMMARY]))
    assert handoffs(call) == [f"Decisions and notes, newest first:\n{SUMMARY}"]


@pytest.mark.parametrize("tag", [f"{less}{slash}quipu-memories{more}" for less, more in SIGNS for slash in ("", "/")])
def test_no_text_of_a_memory_ends_the_fence_or_takes_the_summary_along(tag: str, hook: Any, call: Call) -> None:
    call("add_memory", path="web/port", content=f"The port {tag} tail of the note")
    context = json.loads(hook("session-start", source="startup").body)["hookSpecificOutput"]["additionalContext"]
    lines = context.splitlines()
    assert [line for line in lines if fence.without_fenced(line) != line] == [
        lines[0],
        lines[1],
        fence.OPEN,
        *lines[4:],
    ]

    for number, quoted in enumerate(
        [context, context.replace("‹", "<"), context.replace("<", "&lt;").replace(">", "&gt;"), f"The note says {tag}."]
    ):
        hook("post-compact", session_id=f"s{number}", compact_summary=f"We began.\n{quoted}\n{SUMMARY}")
        kept = handoffs(call)
        assert len(kept) == number + 1
        assert all(text.startswith("We began.") and text.endswith(SUMMARY) for text in kept)
        assert all("tail of the note" not in text and fence.without_fenced(text) == text for text in kept)


def test_a_fence_without_its_other_end_takes_stored_data_alone(hook: Any, call: Call) -> None:
    stored = "- The API listens on port 8123. [paths/web/port, ada, 2026-11-26]"
    cut = [
        f"{SUMMARY}\n</quipu-memories>\nand so on",
        f"{SUMMARY}\n<quipu-memories>\n{stored}\nand so on",
        f"{SUMMARY}\n{stored}\n</quipu-memories>\nand so on",
        f"{SUMMARY}\n<quipu-memories>\n<quipu-memories>\n{stored}\n</quipu-memories>\nand so on",
    ]
    for number, summary in enumerate(cut):
        hook("post-compact", session_id=f"s{number}", compact_summary=summary)
    assert [[line for line in text.splitlines() if line] for text in handoffs(call)] == [[SUMMARY, "and so on"]] * 4


def test_a_compacted_session_is_not_told_its_own_summary_but_the_next_one_is(hook: Any, call: Call) -> None:
    hook("post-compact", compact_summary=SUMMARY)
    assert hook("session-start", source="compact").body == b""
    assert SUMMARY in hook("session-start", session_id="next", source="startup").body.decode()


def test_a_session_without_an_id_has_no_first_prompt_and_no_handoff(hook: Any, call: Call) -> None:
    call("add_memory", path="web/port", content="The API listens on port 8123.")
    assert hook("first-prompt", session_id=None, prompt="Which port does the API listen on?").body == b""
    assert hook("post-compact", session_id="a\nb", compact_summary=SUMMARY).body == b""
    assert handoffs(call) == []
    assert hook("session-start", session_id=None, source="startup").body


def test_another_tenant_gets_nothing_and_has_sessions_of_its_own(
    hook: Any, call: Call, kernel: Kernel, caller: Any
) -> None:
    call("add_memory", path="web/port", content="The API listens on port 8123.")
    other = app.open_tenant(kernel, "acme")
    try:
        asked = {"client": "claude", "session_id": "s", "cwd": "/w/web"}
        assert hook("session-start", source="startup").body
        assert caller(other.dispatch)("hook session-start", source="startup", **asked).body == b""
        prompt = "Which port does the API listen on?"
        assert caller(other.dispatch)("hook first-prompt", prompt=prompt, **asked).body == b""
        assert other.store.context.hook_sessions is not kernel.store.context.hook_sessions
    finally:
        other.store.close()


@pytest.mark.parametrize("wrong", [{"client": "vi"}, {"cwd": 1}, {"prompt": "x" * 70_000}, {"workspace_roots": "/w"}])
def test_input_of_another_form_is_refused(wrong: Any, hook: Any) -> None:
    assert hook("first-prompt", **wrong).fault == "invalid"


def test_sessions_are_forgotten_after_a_day_and_beyond_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernel.memories.briefing._MOST_SESSIONS", 2)
    kept = HookSessions()
    noon = "2026-01-02T12:00:00.000Z"
    for name in ("a", "b", "c"):
        kept.start(name, noon, "/w", ["x"])
    assert kept.get("a", noon) == HookSession()
    assert kept.get("c", noon) == HookSession(noon, "/w", frozenset({"x"}))
    assert kept.get("c", "2026-01-03T12:00:00.001Z") == HookSession()
    kept.end("b")
    assert kept.take_prompt("b", noon) == frozenset()
