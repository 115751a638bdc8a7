"""Sessions of agents of which a part was taken back: what holds is imported, and the rest is named."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from kernel.core.errors import Fault
from tests.imports.harness import Shell, contents, rows
from tests.imports.sources import HEADS, json_file

GONE = ": gone at the source"
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


def at_leaf(number: str) -> dict[str, Any]:
    return {"type": "last-prompt", "lastPrompt": "Tea?", "leafUuid": number, "sessionId": "s1"}


BEGUN = [said("q1", None, "Which tea?"), said("a1", "q1", "Sencha.")]


@pytest.mark.parametrize(
    ("records", "texts", "left_out"),
    [
        pytest.param(
            [*BEGUN, said("q2", "a1", "Hot?"), said("a2", "q2", "Boiling."), said("q3", "a1", "How hot?")],
            ["Question: How hot?", "Question: Which tea?\n\nAnswer: Sencha."],
            [f"left out: 2 Hot?, 1 more: {TAKEN_BACK}"],
            id="words that were taken back, with their answer",
        ),
        pytest.param(
            [*BEGUN, said("q2", "a1", "Hot?"), said("q3", "a1", "Hott?"), said("q4", "a1", "Warm?")],
            ["Question: Warm?", "Question: Which tea?\n\nAnswer: Sencha."],
            [f"left out: 2 Hot?, Hott?: {TAKEN_BACK}"],
            id="words that were changed twice before an answer",
        ),
        pytest.param(
            [
                *BEGUN,
                *(said(f"q{n}", parent, f"Cup {n}?") for n, parent in ((2, "a1"), (3, "q2"), (4, "q3"))),
                said("q5", "q2", "Pot?"),
            ],
            ["Question: Cup 2?", "Question: Pot?", "Question: Which tea?\n\nAnswer: Sencha."],
            [f"left out: 2 Cup 3?, Cup 4?: {TAKEN_BACK}"],
            id="several questions that were taken back at once",
        ),
        pytest.param(
            [said("h0", None, "", type="attachment"), said("q1", "h0", "Tee?"), said("q2", "h0", "Tea?")],
            ["Question: Tea?"],
            [f"left out: 1 Tee?: {TAKEN_BACK}", "left out: 1 a record of the program"],
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
        pytest.param(
            [*BEGUN, said("q2", None, "Which cup?"), said("a2", "q2", "A bowl."), at_leaf("a2")],
            ["Question: Which cup?\n\nAnswer: A bowl."],
            ["left out: 1 a record of the program", f"left out: 2 Which tea?, 1 more: {TAKEN_BACK}"],
            id="all words before the first of a session that began anew",
        ),
        pytest.param(
            [*BEGUN, said("q2", "a1", "Hot?"), said("a2", "q2", "Boiling."), at_leaf("a1")],
            ["Question: Which tea?\n\nAnswer: Sencha."],
            ["left out: 1 a record of the program", f"left out: 2 Hot?, 1 more: {TAKEN_BACK}"],
            id="words that were taken back without others in their place",
        ),
        pytest.param(
            [*BEGUN, at_leaf("a1"), said("q2", "a1", "Hot?"), said("q3", None, "Compacted?")],
            ["Question: Compacted?", "Question: Hot?", "Question: Which tea?\n\nAnswer: Sencha."],
            ["left out: 1 a record of the program"],
            id="but not what comes after the program said where it is",
        ),
        pytest.param(
            [
                *[*BEGUN, said("q2", "a1", "Tee?"), said("q3", "a1", "Hot?"), said("q4", None, "Where?")],
                said("c1", None, "", type="system", logicalParentUuid="q3"),
                *[said("q5", "c1", "Milk?"), at_leaf("q5")],
            ],
            ["Question: Hot?", "Question: Milk?", "Question: Which tea?\n\nAnswer: Sencha."],
            [f"left out: 2 Tee?, Where?: {TAKEN_BACK}", "left out: 2 a record of the program"],
            id="but not what was compacted before them",
        ),
        pytest.param(
            [*BEGUN, said("q2", "a1", "Hot?"), at_leaf("gone"), {"type": "summary", "leafUuid": "a1"}],
            ["Question: Hot?", "Question: Which tea?\n\nAnswer: Sencha."],
            ["left out: 2 a record of the program"],
            id="but not by a leaf that is not there, or of another record",
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


def session_of_claude_code(texts: Sequence[str], folder: Path) -> Path:
    """A session that began with each of the texts in turn."""
    records = [said(f"q{at}", None, text) for at, text in enumerate(texts)]
    answers = [said(f"a{at}", f"q{at}", f"{text} Yes.") for at, text in enumerate(texts)]
    lines = [row for pair in zip(records, answers, strict=True) for row in pair]
    lines.append(at_leaf(answers[-1]["uuid"]))
    (folder / "s1.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return folder / "s1.jsonl"


def session_of_codex(texts: Sequence[str], folder: Path) -> Path:
    lines: list[Any] = [{"type": "session_meta", "payload": {"id": "s9"}}]
    for at, text in enumerate(texts):
        for role, words in (("user", text), ("assistant", f"{text} Yes.")):
            message = {"type": "message", "role": role, "content": [{"type": "input_text", "text": words}]}
            lines.append({"type": "response_item", "timestamp": f"2026-05-01T08:0{at}:00Z", "payload": message})
        lines.append({"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}})
    (folder / "rollout-s9.jsonl").write_text("\n".join(map(json.dumps, lines[:-1])), encoding="utf-8")
    return folder / "rollout-s9.jsonl"


def chat_of_chatgpt(texts: Sequence[str], folder: Path) -> Path:
    nodes: dict[str, Any] = {"root": {"parent": None, "message": None}}
    for at, text in enumerate(texts):
        for number, parent, role, words in (
            (f"q{at}", "root", "user", text),
            (f"a{at}", f"q{at}", "assistant", f"{text} Yes."),
        ):
            said_by = {"author": {"role": role}, "content": {"parts": [words]}, "create_time": 1.7e9 + at}
            nodes[number] = {"parent": parent, "message": said_by}
    row = {"id": "c", "title": "Tea", "create_time": 1.7e9, "update_time": 1.8e9 + len(texts), "mapping": nodes}
    return json_file("conversations.json", [{**row, "current_node": f"a{len(texts) - 1}"}])(folder)


def chat_of_claude(texts: Sequence[str], folder: Path) -> Path:
    messages = [
        {
            "uuid": f"{sender[0]}{at}",
            "parent_message_uuid": f"h{at}" if sender == "assistant" else "root",
            "sender": sender,
            "text": words,
            "created_at": f"2026-05-01T08:0{at}:00Z",
        }
        for at, text in enumerate(texts)
        for sender, words in (("human", text), ("assistant", f"{text} Yes."))
    ]
    row = {"uuid": "c", "name": "Tea", "chat_messages": messages, "updated_at": f"2026-05-02T08:0{len(texts)}:00Z"}
    return json_file("conversations.json", [row])(folder)


def session_of_gemini(texts: Sequence[str], folder: Path) -> Path:
    """A session in one document, of which a rewind leaves nothing."""
    row = {**HEADS["gemini-cli"], "messages": gemini_messages(texts)[-2:]}
    return json_file("session-s1.json", row)(folder)


def gemini_messages(texts: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {"id": f"{role}{at}", "type": role, "content": words, "timestamp": f"2026-05-01T08:0{at}:00Z"}
        for at, text in enumerate(texts)
        for role, words in (("user", text), ("gemini", f"{text} Yes."))
    ]


def lines_of_gemini(texts: Sequence[str], folder: Path) -> Path:
    lines: list[Any] = [HEADS["gemini-cli"]]
    for row in gemini_messages(texts):
        lines += [{"$rewindTo": "unknown"}, row] if row["type"] == "user" else [row]
    (folder / "session-s1.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return folder / "session-s1.jsonl"


def chat_of_copilot(texts: Sequence[str], folder: Path) -> Path:
    at = len(texts)
    answer = [{"value": f"{texts[-1]} "}, {"value": "Yes."}]
    request = {"requestId": f"r{at}", "message": {"text": texts[-1]}, "timestamp": 1_780_000_000_000 + at}
    return json_file("chat.json", {**HEADS["copilot-chat"], "requests": [{**request, "response": answer}]})(folder)


MAKES = [
    *(session_of_claude_code, session_of_codex, chat_of_chatgpt, chat_of_claude),
    *(session_of_gemini, lines_of_gemini, chat_of_copilot),
]


@pytest.mark.parametrize("make", MAKES)
def test_an_exchange_that_was_taken_back_after_its_import_goes_out_of_force(
    make: Callable[[Sequence[str], Path], Path], shell: Shell, tmp_path: Path
) -> None:
    def exchange(text: str) -> str:
        return f"Question: {text}\n\nAnswer: {text} Yes."

    shell.bring(make(["Tea?"], tmp_path))
    source = make(["Tea?", "Tea? Hot?"], tmp_path)
    dry = json.loads(shell.run("import", str(source), "--dry-run", "--json"))
    done = shell.bring(source)
    assert dry == {**done, "dry_run": True}
    assert (done["counts"]["memories"], done["counts"]["archived"]) == (1, 1)
    titles = {"Tea", "Tea?", "Question: Tea?"}
    assert titles & {remark.removeprefix("archived: 1 ").removesuffix(GONE) for remark in done["remarks"]}
    assert contents(shell) == [exchange("Tea? Hot?")]
    again = shell.bring(source)["counts"]
    assert {"already there"} <= {name for name, count in again.items() if count} <= {"already there", "left out"}
    shell.run("undo", str(shell.audit()[0]["id"]))
    assert contents(shell) == [exchange("Tea?")]
    shell.run("check")


def test_the_log_of_a_chat_in_vs_code_is_refused_with_the_way_out(shell: Shell, tmp_path: Path) -> None:
    row = {"kind": 0, "v": {"responderUsername": "GitHub Copilot", "requests": []}}
    (tmp_path / "s.jsonl").write_text(json.dumps(row), encoding="utf-8")
    with pytest.raises(Fault, match=r"line 1: is a log of changes: write the chat to a file by `Chat: Export Chat"):
        shell.bring(tmp_path / "s.jsonl")


def test_what_an_import_has_done_is_told_by_memories(shell: Shell, tmp_path: Path) -> None:
    for texts, told in ((["Tea?"], "imported 1 memory"), (["Tea?", "Hot?"], "imported 1 memory, archived 1 memory")):
        assert f"{told}; `quipu undo" in shell.run("import", str(session_of_codex(texts, tmp_path)))
    for content, told in (("It is 80.", "imported 1 memory"), ("It is 81.", "updated 1 memory")):
        source = json_file("a.json", {"observations": [{"sync_id": "o", "content": content}]})(tmp_path)
        assert f"{told}; `quipu undo" in shell.run("import", str(source)).splitlines()[-1][: len(told) + 13]


def test_a_damaged_line_is_named_by_its_file_in_a_folder_of_sessions(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    for name in ("a", "b"):
        lines = [*map(json.dumps, BEGUN), "no JSON" * (name == "b")]
        (tmp_path / "web" / f"{name}.jsonl").write_text("\n".join([*lines, ""]), encoding="utf-8")
    done = shell.bring(tmp_path / "web")
    assert done["remarks"] == ["left out: 1 b.jsonl, line 3: is no JSON object"]
    assert done["counts"] == {"memories": 1, "already there": 0, "repeated": 1, "left out": 1}


@pytest.mark.parametrize("place", [".claude/projects/-web", "backup/-web", "-web"])
def test_sessions_are_taken_from_the_folder_of_a_user_and_from_copies(shell: Shell, tmp_path: Path, place: str) -> None:
    (tmp_path / place).mkdir(parents=True)
    (tmp_path / place / "a.jsonl").write_text("\n".join([*map(json.dumps, BEGUN), ""]), encoding="utf-8")
    shell.bring(tmp_path / place.partition("/")[0])
    assert contents(shell) == ["Question: Which tea?\n\nAnswer: Sencha."]


@pytest.mark.parametrize("place", ["sessions/2026/05/01", "archived_sessions"])
def test_sessions_of_codex_are_taken_from_the_folder_of_a_user(shell: Shell, tmp_path: Path, place: str) -> None:
    home = tmp_path / ".codex"
    for folder in (place, "memories"):
        (home / folder).mkdir(parents=True)
    session_of_codex(["Tea?"], home / place)
    (home / "memories" / "MEMORY.md").write_text("# Tea", encoding="utf-8")
    done = shell.bring(home)
    assert contents(shell) == ["Question: Tea?\n\nAnswer: Tea? Yes."]
    assert done["remarks"] == [
        "left out: 1 a record of the program",
        "left out: 1 memories/MEMORY.md: a memory, which is imported with its folder",
    ]


def resumed_session(number: str, folder: Path, *records: Mapping[str, Any]) -> Path:
    """A file that begins with the records of other sessions, each in the name of this one."""
    path = folder / f"{number}.jsonl"
    path.write_text("\n".join(json.dumps({**row, "sessionId": number}) for row in records), encoding="utf-8")
    return path


def test_exchanges_that_a_program_copies_into_a_resumed_session_are_imported_once(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "projects").mkdir()
    first, later = BEGUN, [said("q2", "a1", "Hot?"), said("a2", "q2", "Boiling.")]
    shell.bring(resumed_session("s5", tmp_path / "projects", *first))
    resumed_session("s1", tmp_path / "projects", *first, *later)  # it sorts before the session that it goes on with
    texts = ["Question: Hot?\n\nAnswer: Boiling.", "Question: Which tea?\n\nAnswer: Sencha."]
    expected = [{"memories": 1, "already there": 1, "repeated": 1}, {"already there": 2, "repeated": 1}]
    for counts in expected:
        assert shell.bring(tmp_path / "projects")["counts"] == {**counts, "left out": 0}
        assert sorted(contents(shell)) == texts
    assert {row["session_id"] for row in rows(shell, "sessions_memory")} == {"claude-code:s1", "claude-code:s5"}
    assert shell.bring(tmp_path / "projects", "--into", "work")["counts"]["memories"] == 2  # another place


def test_an_exchange_that_was_deleted_stays_so_if_a_resumed_session_brings_it_again(
    shell: Shell, tmp_path: Path
) -> None:
    shell.bring(resumed_session("s1", tmp_path, *BEGUN))
    shell.run("forget", "sessions/1", "--yes")
    again = {**BEGUN[0], "uuid": "q7", "timestamp": "2026-06-01T08:00:00Z"}  # the same words, another day
    done = shell.bring(resumed_session("s2", tmp_path, *BEGUN, again, {**BEGUN[1], "uuid": "a7", "parentUuid": "q7"}))
    assert done["counts"] == {"memories": 1, "already there": 0, "deleted here": 1, "left out": 0}


def test_a_session_is_that_of_its_file_even_if_the_program_wrote_another_into_it(shell: Shell, tmp_path: Path) -> None:
    path = resumed_session("s1", tmp_path, *BEGUN)
    stray = {**said("q9", "a1", "Whose?"), "sessionId": "s2"}
    path.write_text(f"{path.read_text(encoding='utf-8')}\n{json.dumps(stray)}", encoding="utf-8")
    shell.bring(path)
    assert {row["session_id"] for row in rows(shell, "sessions_memory")} == {"claude-code:s1"}


PROMPTS = {
    "codex": {"session_id": "s1", "ts": 1_760_000_000, "text": "Fix the tests"},
    "claude": {"display": "Fix the tests", "pastedContents": {}, "timestamp": 1_760_000_000_000, "project": "/web"},
}


@pytest.mark.parametrize(("program", "folder"), [("codex", "~/.codex/sessions"), ("claude", "~/.claude/projects")])
def test_a_history_of_prompts_is_refused_with_the_folder_of_the_sessions(
    program: str, folder: str, shell: Shell, tmp_path: Path
) -> None:
    path = json_file("history.jsonl", PROMPTS[program])(tmp_path)
    with pytest.raises(Fault, match=f"^history.jsonl: holds prompts without their answers: import .* `{folder}`"):
        shell.bring(path)


@pytest.mark.parametrize("path", [".codex", ".codex/memories"])
def test_a_list_alone_is_a_memory_of_codex(path: str, shell: Shell, tmp_path: Path) -> None:
    (tmp_path / ".codex" / "memories").mkdir(parents=True)
    (tmp_path / ".codex" / "memories" / "MEMORY.md").write_text("The database is on port 5433.", encoding="utf-8")
    done = shell.bring(tmp_path / path)
    assert (done["kind"], done["counts"]) == ("codex", {"notes": 1, "already there": 0, "left out": 0})
