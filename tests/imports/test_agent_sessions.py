"""Sessions of agents of which a part was taken back: what holds is imported, and the rest is named."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.imports.harness import Shell, contents

TAKEN_BACK = "of a branch that was given up"


def said(number: str, parent: str | None, text: Any, **more: Any) -> dict[str, Any]:
    """A record of Claude Code: of a person, if its number begins with q, else of the agent."""
    role = "user" if number.startswith("q") else "assistant"
    at = f"2026-05-01T08:00:{len(number) + ord(number[-1]) % 50:02}Z"
    names = {"uuid": number, "parentUuid": parent, "sessionId": "s1", "timestamp": at}
    return {"type": role, **names, "message": {"role": role, "content": text}, **more}


def called(number: str, parent: str) -> dict[str, Any]:
    return said(number, parent, [{"type": "tool_use", "name": "Read"}])


def answered(number: str, parent: str) -> dict[str, Any]:
    return said(number, parent, [{"type": "tool_result", "content": "ok"}])


BEGUN = [said("q1", None, "Which tea?"), said("a1", "q1", "Sencha.")]


@pytest.mark.parametrize(
    ("records", "texts", "left_out"),
    [
        pytest.param(
            [*BEGUN, said("q2", "a1", "Hot?"), said("a2", "q2", "Boiling."), said("q3", "a1", "How hot?")],
            ["Question: How hot?", "Question: Which tea?\n\nAnswer: Sencha."],
            [f"left out: 2 {TAKEN_BACK}"],
            id="words that were taken back, with their answer",
        ),
        pytest.param(
            [*BEGUN, said("q2", "a1", "Hot?"), said("q3", "a1", "Hott?"), said("q4", "a1", "Warm?")],
            ["Question: Warm?", "Question: Which tea?\n\nAnswer: Sencha."],
            [f"left out: 2 {TAKEN_BACK}"],
            id="words that were changed twice before an answer",
        ),
        pytest.param(
            [
                *BEGUN,
                *(said(f"q{n}", parent, f"Cup {n}?") for n, parent in ((2, "a1"), (3, "q2"), (4, "q3"))),
                said("q5", "q2", "Pot?"),
            ],
            ["Question: Cup 2?", "Question: Pot?", "Question: Which tea?\n\nAnswer: Sencha."],
            [f"left out: 2 {TAKEN_BACK}"],
            id="several questions that were taken back at once",
        ),
        pytest.param(
            [said("h0", None, "", type="attachment"), said("q1", "h0", "Tee?"), said("q2", "h0", "Tea?")],
            ["Question: Tea?"],
            ["left out: 1 a record of the program", f"left out: 1 {TAKEN_BACK}"],
            id="the first words",
        ),
        pytest.param(
            [
                *BEGUN,
                *(called(f"b{n}", "a1" if n == 1 else "b1") for n in (1, 2)),
                *(answered(f"q-{n}", f"b{n}") for n in (2, 1)),
                said("a3", "q-1", "Both are green."),
                said("q4", "a3", "And?"),
            ],
            ["Question: And?", "Question: Which tea?\n\nAnswer: Sencha.\n\nBoth are green."],
            ["left out: 4 a call of a tool, or a thought"],
            id="but not calls of tools beside each other",
        ),
        pytest.param(
            [*BEGUN, said("q2", "gone", "Where is it?"), said("q3", None, "Compacted?"), said("q4", "a1", "Milk?")],
            [
                "Question: Compacted?",
                "Question: Milk?",
                "Question: Where is it?",
                "Question: Which tea?\n\nAnswer: Sencha.",
            ],
            [],
            id="but not what follows no other record",
        ),
        pytest.param(
            [row for record in [*BEGUN, said("q2", "a1", "Hot?")] for row in (record, {**record, "forkedFrom": {}})],
            ["Question: Hot?", "Question: Which tea?\n\nAnswer: Sencha."],
            ["left out: 3 repeated"],
            id="but records that were copied are read once",
        ),
    ],
)
def test_words_that_were_taken_back_in_a_session_of_claude_code_are_left_out(
    records: Sequence[Mapping[str, Any]], texts: list[str], left_out: list[str], shell: Shell, tmp_path: Path
) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    done = shell.bring(path)
    assert (sorted(contents(shell)), sorted(done["remarks"])) == (texts, left_out)
    assert done["counts"] == {
        "memories": len(texts),
        "already there": 0,
        "left out": sum(int(line.split()[2]) for line in left_out),
    }


@pytest.mark.parametrize("turns", [1, 2, 9, 0, -1, None, "1"])
def test_turns_that_were_taken_back_in_a_session_of_codex_are_left_out(
    turns: Any, shell: Shell, tmp_path: Path
) -> None:
    def record(role: str, text: str) -> dict[str, Any]:
        message = {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}
        return {"type": "response_item", "timestamp": "2026-05-01T08:00:00Z", "payload": message}

    rollback = {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": turns}}
    asked = [record(role, f"{role} {n}") for n in (1, 2) for role in ("user", "assistant")]
    lines = [{"type": "session_meta", "payload": {"id": "s9"}}, *asked, rollback, record("user", "user 3")]
    path = tmp_path / "rollout-s9.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    kept = max(0, 2 - turns) if isinstance(turns, int) and turns > 0 else 2
    done = shell.bring(path)
    whole = [f"Question: user {n}\n\nAnswer: assistant {n}" for n in range(1, kept + 1)]
    assert sorted(contents(shell)) == [*whole, "Question: user 3"]
    assert done["counts"] == {"memories": kept + 1, "already there": 0, "left out": 2 + 2 * (2 - kept)}
