"""Agent files of Letta: known again after a change, told apart from other agents, and all that is left out named."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernel.calls.dispatch import Dispatch
from kernel.server import app
from tests.imports.harness import Shell


def agent(path: Path, name: str, text: str, **message: Any) -> Path:
    """An agent file with the ids that Letta gives, which count within the file."""
    messages = [{"id": "message-0", "role": "user", "content": text, **message}]
    document = {
        "agents": [{"id": "agent-0", "name": name, "block_ids": ["block-0"], "messages": messages}],
        "blocks": [{"id": "block-0", "label": "human", "value": f"Block: {text}"}],
        "passages": [{"id": "passage-0", "text": f"Passage: {text}"}],
    }
    path.write_text(json.dumps(document))
    return path


def test_an_agent_file_that_is_encoded_twice_is_known_and_read(shell: Shell, tmp_path: Path) -> None:
    path = agent(tmp_path / "a.af", "Ada", "The old town.")
    path.write_text(json.dumps(json.dumps(json.loads(path.read_text()), indent=2)))
    done = shell.bring(path)
    assert (done["kind"], done["counts"]["left out"], live(shell, "The old town.")) == ("letta", 0, True)


def live(shell: Shell, text: str) -> bool:
    rows = [json.loads(line) for line in shell.export().read_text(encoding="utf-8").splitlines()]
    return any(row.get("row", {}).get("content") == text for row in rows if row.get("table") == "sessions_memory")


def talk(path: Path, *messages: dict[str, Any]) -> Path:
    """An agent file of messages alone."""
    path.write_text(json.dumps({"agents": [{"id": "agent-0", "name": "Ada", "messages": messages}]}))
    return path


def test_a_message_with_neither_id_nor_time_follows_the_text_before_it(shell: Shell, tmp_path: Path) -> None:
    said = [{"role": role, "content": text} for role, text in (("user", "One?"), ("assistant", "Two."))]
    more = [{"role": "user", "content": "One?"}, {"role": "assistant", "content": "Three."}]
    shell.bring(talk(tmp_path / "a.af", *said, *more))
    done = shell.bring(talk(tmp_path / "a.af", said[0], {**said[1], "content": "Two and a half."}, *more))
    assert {name: count for name, count in done["counts"].items() if count} == {
        "updated": 1,
        "repeated": 1,
        "already there": 2,
    }
    texts = [text for text in ("One?", "Two.", "Two and a half.", "Three.") if live(shell, text)]
    assert texts == ["One?", "Two and a half.", "Three."]
    cut = shell.bring(talk(tmp_path / "a.af", *more))  # an older part of the talk may be gone
    assert cut["counts"] == {"already there": 2, "left out": 0}


def test_an_agent_answers_by_a_tool_and_the_server_writes_events(shell: Shell, tmp_path: Path) -> None:
    call = {"id": "c", "function": {"name": "send_message", "arguments": json.dumps({"message": "Hello."})}}
    search = {"id": "d", "function": {"name": "archival_memory_search", "arguments": "{}"}}
    done = shell.bring(
        talk(
            tmp_path / "a.af",
            {"id": "m1", "role": "user", "content": json.dumps({"type": "login", "last_login": "Never"})},
            {"id": "m2", "role": "user", "content": json.dumps({"type": "user_message", "message": "Hi."})},
            {"id": "m3", "role": "assistant", "content": "I am to greet.", "tool_calls": [call]},
            {"id": "m4", "role": "assistant", "content": [{"type": "text", "text": "Well."}], "tool_calls": [search]},
            {"id": "m5", "role": "user", "content": json.dumps({"type": ["note"], "text": "JSON of mine"})},
        )
    )
    assert done["counts"] == {"memories": 4, "already there": 0, "left out": 3}
    assert sorted(done["remarks"]) == [
        "left out: 1 a call of a tool",
        "left out: 1 a notice of the program",
        "left out: 1 a thought",
    ]
    texts = ("Hi.", "Hello.", "Well.", '{"type": ["note"], "text": "JSON of mine"}')
    assert [live(shell, text) for text in (*texts, "I am to greet.")] == [True, True, True, True, False]


@pytest.mark.parametrize(
    "times", [{}, {"created_at": "2026-01-01T00:00:00Z"}, {"id": None, "created_at": "2026-01-01"}]
)
def test_a_message_that_has_changed_is_no_second_memory(times: dict[str, Any], shell: Shell, tmp_path: Path) -> None:
    shell.bring(agent(tmp_path / "a.af", "Ada", "The old town.", **times))
    done = shell.bring(agent(tmp_path / "a.af", "Ada", "The new town.", **times))
    assert done["counts"]["updated"] == 3
    assert (live(shell, "The old town."), live(shell, "The new town.")) == (False, True)


def test_two_agents_whose_ids_are_equal_are_two(shell: Shell, tmp_path: Path) -> None:
    for name in ("Ada", "Bob"):
        done = shell.bring(agent(tmp_path / f"{name}.af", name, f"Hello from {name}."))
        assert done["counts"] == {"memories": 2, "memory blocks": 1, "already there": 0, "left out": 0}


def test_the_system_prompt_and_other_members_of_an_old_agent_are_named(shell: Shell, tmp_path: Path) -> None:
    old = {
        "name": "Ada",
        "version": "0.6.47",
        "created_at": "04/01/2025, 03:47:12",
        "system": "You are Ada, a helper.",
        "llm_config": {"model": "m"},
        "tools": [{"name": "t"}],
        "core_memory": [{"label": "human", "value": "Likes tea."}],
        "messages": [{"id": None, "role": "user", "text": "Hi.", "created_at": "2025-04-01T03:47:12"}],
    }
    (tmp_path / "old.af").write_text(json.dumps(old))
    done = shell.bring(tmp_path / "old.af")
    assert done["counts"] == {"memories": 1, "memory blocks": 1, "already there": 0, "left out": 3}
    assert sorted(done["remarks"]) == [
        f"left out: 1 of the member {name}" for name in ("llm_config", "system", "tools")
    ]


def test_a_talk_that_has_lost_its_beginning_keeps_what_was_imported(shell: Shell, tmp_path: Path) -> None:
    said = [{"role": "user", "content": "Ok."}, {"role": "assistant", "content": "One."}]
    more = [{"role": "user", "content": "Ok."}, {"role": "assistant", "content": "Two."}]
    last = [{"role": "user", "content": "Ok."}, {"role": "assistant", "content": "Three."}]
    shell.bring(talk(tmp_path / "a.af", *said, *more))
    done = shell.bring(talk(tmp_path / "a.af", *more, *last))
    assert done["counts"] == {"memories": 1, "repeated": 1, "already there": 2, "left out": 0}
    assert [live(shell, text) for text in ("Ok.", "One.", "Two.", "Three.")] == [True] * 4


def blocks(path: Path, *values: str) -> Path:
    """An agent file of nothing but blocks."""
    parts = [
        {"id": f"block-{number}", "label": f"label{number}", "value": value} for number, value in enumerate(values)
    ]
    path.write_text(json.dumps({"agents": [], "blocks": parts}))
    return path


def test_a_block_that_was_emptied_goes_and_comes_back_with_its_text(shell: Shell, tmp_path: Path) -> None:
    shell.bring(blocks(tmp_path / "a.af", "Likes tea."))
    done = shell.bring(blocks(tmp_path / "b.af", "  "))
    assert (done["counts"], done["remarks"]) == (
        {"archived": 1, "already there": 0, "left out": 0},
        ["archived: 1 label0: gone at the source"],
    )
    done = shell.bring(blocks(tmp_path / "b.af", " "))
    assert (done["counts"], done["remarks"]) == ({"already there": 0, "left out": 1}, ["left out: 1 label0: empty"])
    assert shell.bring(blocks(tmp_path / "a.af", "Likes coffee."))["counts"] == {
        "memory blocks": 1,
        "already there": 0,
        "left out": 0,
    }
    assert [json.loads(line)["text"] for line in shell.run("list", "--json").splitlines()] == [
        "agents/agent/label0 Likes coffee."
    ]


def test_a_block_that_was_edited_here_stays_when_the_source_has_emptied_it(
    shell: Shell, tmp_path: Path, caller: Callable[[Dispatch], Callable[..., Any]]
) -> None:
    shell.bring(blocks(tmp_path / "a.af", "Likes tea.", "Cat."))
    kernel = app.open_kernel(shell.config, app.DIALECTS)
    reply = caller(kernel.dispatch)("replace_memory", path="agents/agent/label0", content="Likes mate.")
    assert reply.fault is None
    kernel.store.close()
    done = shell.bring(blocks(tmp_path / "a.af", "", "Cat."))
    assert done["remarks"] == ["left out: 1 label0: gone at the source, and edited here since"]
    assert "Likes mate." in shell.run("list")


def test_a_passage_and_a_message_that_are_deleted_there_are_not_here(shell: Shell, tmp_path: Path) -> None:
    path = agent(tmp_path / "a.af", "Ada", "The old town.")
    shell.bring(path)
    document = json.loads(path.read_text())
    for row in (document["agents"][0]["messages"][0], document["passages"][0], document["blocks"][0]):
        row["is_deleted"] = True
    path.write_text(json.dumps(document))
    done = shell.bring(path)
    assert (done["counts"], sorted(done["remarks"])) == (
        {"archived": 2, "already there": 0, "left out": 1},
        [
            "archived: 2 human, Passage: The old town.: gone at the source",
            "left out: 1 message-0: deleted there",
        ],
    )
