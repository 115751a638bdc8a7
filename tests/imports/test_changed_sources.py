"""A changed source updates the imported memories, as a version with history, unless somebody edited it here."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernel.calls.dispatch import Dispatch
from kernel.server import app
from tests.imports.harness import Shell
from tests.imports.sources import json_file, text_files

EDITED = "changed in the source, and edited here since"
# Of each kind: the file that changes, and those beside it.
SOURCES = {
    "obsidian": ("N.md", {".obsidian/app.json": "{}"}),
    "basic-memory": ("N.md", {"more.md": "---\npermalink: more\n---\nMore.\n"}),
    "okf": ("N.md", {"index.md": "---\nokf_version: '0.2'\n---\n"}),
    "codex": ("rollout_summaries/N.md", {"memory_summary.md": "-"}),
    "claude-code": ("web/memory/N.md", {"web/memory/MEMORY.md": "- [N](N.md)\n"}),
    "rules": ("packages/api/AGENTS.md", {"AGENTS.md": "# Build\nUse make.\n"}),
}


def changed(kind: str, folder: Path, text: str) -> Path:
    name, others = SOURCES[kind]
    return text_files("source", {**others, name: f"# Style\n\n{text}\n"})(folder)


def live(shell: Shell) -> list[str]:
    """The texts of notes and guidelines as they are now."""
    lines = [json.loads(line) for line in shell.export().read_text(encoding="utf-8").splitlines()]
    rows = [(line["table"], line["row"]) for line in lines if "table" in line]
    current = {row["current_version_id"] for table, row in rows if table == "scopes_entry"}
    return [row["content"] for table, row in rows if table == "brain_note" or row.get("id") in current]


@pytest.mark.parametrize("kind", SOURCES)
def test_a_changed_source_updates_what_it_brought(kind: str, shell: Shell, tmp_path: Path) -> None:
    first = shell.bring_kind(kind, changed(kind, tmp_path, "Use tabs."))["counts"]
    source = changed(kind, tmp_path, "Use spaces.")
    dry = json.loads(shell.run("import", kind, str(source), "--dry-run", "--json"))
    done = shell.bring_kind(kind, source)
    assert dry == {**done, "dry_run": True}
    there = sum(first.values()) - first["left out"] - 1
    assert done["counts"] == {"updated": 1, "already there": there, "left out": first["left out"]}
    texts = [text for text in live(shell) if "Use" in text and "make" not in text]
    assert [text.rpartition("\n")[2] for text in texts] == ["Use spaces."]
    again = shell.bring_kind(kind, source)["counts"]
    assert {name for name, count in again.items() if count} <= {"already there", "left out"}
    history = shell.export().read_text(encoding="utf-8")
    assert "Use tabs." in history
    shell.run("check")


@pytest.mark.parametrize("kind", ["obsidian", "rules"])
def test_what_a_person_has_edited_is_kept_and_named(
    kind: str, shell: Shell, tmp_path: Path, caller: Callable[[Dispatch], Callable[..., Any]]
) -> None:
    shell.bring_kind(kind, changed(kind, tmp_path, "Use tabs."))
    lines = [json.loads(line) for line in shell.export().read_text(encoding="utf-8").splitlines()]
    rows = [line["row"] for line in lines if line.get("table") in {"brain_note", "scopes_entry"}]
    number = next(row["id"] for row in rows if "Style" in (row.get("title") or row.get("name") or ""))
    kernel = app.open_kernel(shell.config, app.DIALECTS)
    call = caller(kernel.dispatch)
    if kind == "rules":
        reply = call("memory_guideline", action="update", id=number, content="Mine.", changeReason="better")
    else:
        reply = call("update_note", db="core", id=number, content="Mine.")
    assert reply.fault is None
    kernel.store.close()
    unchanged = shell.bring_kind(kind, tmp_path / "source")
    assert (unchanged["counts"].get("updated"), unchanged["remarks"]) == (None, [])
    done = shell.bring_kind(kind, changed(kind, tmp_path, "Use spaces."))
    title = "packages/api/AGENTS.md: Style" if kind == "rules" else "Style"
    assert done["remarks"] == [f"left out: 1 {title}: {EDITED}"]
    assert [text for text in live(shell) if "Use make" not in text] == ["Mine."]


def active(shell: Shell) -> list[str]:
    """The texts of memories, guidelines and sessions that are in force."""
    lines = [json.loads(line) for line in shell.export().read_text(encoding="utf-8").splitlines()]
    rows = [(line["table"], line["row"]) for line in lines if "table" in line]
    current = {
        row["current_version_id"] for table, row in rows if table == "scopes_entry" and not row["deactivated_at"]
    }
    texts = [row["content"] for table, row in rows if table == "brain_memory" and row["status"] == "active"]
    texts += [row["content"] for table, row in rows if table in {"sessions_memory", "paths_memory"}]
    return sorted(texts + [row["content"] for _, row in rows if row.get("id") in current])


def both(shell: Shell, kind: str, source: Path) -> Any:
    """The counts of an import, which its dry run told."""
    dry = json.loads(shell.run("import", kind, str(source), "--dry-run", "--json"))
    done = shell.bring_kind(kind, source)
    assert dry == {**done, "dry_run": True}
    return {name: count for name, count in done["counts"].items() if count}


@pytest.mark.parametrize("kind", ["obsidian", "basic-memory", "okf"])
def test_an_observation_that_changed_replaces_the_old(kind: str, shell: Shell, tmp_path: Path) -> None:
    both(shell, kind, changed(kind, tmp_path, "- [port] It is 80.\n- [host] It is a.example."))
    counts = both(shell, kind, changed(kind, tmp_path, "- [port] It is 81.\n- [host] It is a.example."))
    assert (counts["archived"], counts["memories"], counts["updated"]) == (1, 1, 1)
    assert active(shell) == ["It is 81.", "It is a.example."]
    assert both(shell, kind, tmp_path / "source").keys() <= {"already there", "left out"}
    shell.run("undo", str(shell.audit()[0]["id"]))
    assert active(shell) == ["It is 80.", "It is a.example."]
    shell.run("check")


def test_a_rule_under_another_heading_replaces_the_old(shell: Shell, tmp_path: Path) -> None:
    def rules(text: str) -> Path:
        return text_files("web", {"CLAUDE.md": text})(tmp_path)

    both(shell, "rules", rules("# Style\nUse tabs.\n# Tests\nRun them.\n"))
    counts = both(shell, "rules", rules("# Layout\nUse spaces.\n# Tests\nRun them.\n"))
    assert counts == {"archived": 1, "guidelines": 1, "already there": 1}
    assert active(shell) == ["Run them.", "Use spaces."]
    assert both(shell, "rules", tmp_path / "web") == {"already there": 2}


def test_an_agent_file_that_changed_updates_blocks_passages_and_messages(shell: Shell, tmp_path: Path) -> None:
    def agent(word: str) -> Path:
        messages = [{"id": "m1", "role": "user", "content": f"I like {word}.", "created_at": "2026-01-01T00:00:00Z"}]
        value = {
            "agents": [{"id": "a", "name": "Helper", "block_ids": ["b1"], "messages": messages}],
            "blocks": [{"id": "b1", "label": "human", "value": f"She likes {word}."}],
            "passages": [{"id": "p1", "text": f"Ada likes {word}."}],
            "tools": [{"id": "t1"}],
        }
        return json_file("helper.af", value)(tmp_path)

    both(shell, "letta", agent("tea"))
    assert both(shell, "letta", agent("milk")) == {"updated": 3, "left out": 1}
    assert active(shell) == ["Ada likes milk.", "I like milk.", "She likes milk."]
    done = shell.bring_kind("letta", tmp_path / "helper.af")
    assert done["remarks"] == ["left out: 1 of the member tools"]


@pytest.mark.parametrize("kind", ["chatgpt", "claude"])
def test_a_conversation_that_went_on_updates_its_exchanges(kind: str, shell: Shell, tmp_path: Path) -> None:
    def conversation(*answers: str) -> Path:
        said = [("user", "Which tea?"), *(("assistant", answer) for answer in answers)]
        if kind == "claude":
            rows = [
                {"uuid": str(at), "sender": role, "text": text, "created_at": f"2026-01-01T00:00:0{at}Z"}
                for at, (role, text) in enumerate(said)
            ]
            value: Any = {"uuid": "c1", "name": "Tea", "chat_messages": rows, "updated_at": f"2026-01-0{len(said)}"}
        else:
            nodes = {
                str(at): {
                    "parent": str(at - 1),
                    "message": {"author": {"role": role}, "content": {"parts": [text]}, "create_time": 1.8e9 + at},
                }
                for at, (role, text) in enumerate(said)
            }
            value = {"id": "c1", "title": "Tea", "mapping": nodes, "current_node": str(len(said) - 1)}
        return json_file("conversations.json", [value])(tmp_path)

    both(shell, kind, conversation("Sencha."))
    assert both(shell, kind, conversation("Sencha.", "Or Assam.")) == {"updated": 1}
    assert active(shell) == ["Question: Which tea?\n\nAnswer: Sencha.\n\nOr Assam."]
    if kind == "claude":
        both(shell, kind, conversation("Sencha."))
        assert active(shell) == ["Question: Which tea?\n\nAnswer: Sencha.\n\nOr Assam."]
