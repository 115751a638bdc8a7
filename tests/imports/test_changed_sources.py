"""A changed source updates the imported memories, as a version with history, unless somebody edited it here."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernel.calls.dispatch import Dispatch
from kernel.server import app
from tests.imports.harness import Shell
from tests.imports.sources import COGX_ROWS, ROWS, json_file, text_files, written

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


def rows_of(kind: str, numbers: list[int]) -> list[Any]:
    """The rows of an export of this kind, under their numbers."""
    rows = COGX_ROWS if kind == "cogx" else ROWS[kind]
    return [rows[number] for number in numbers]


def export(kind: str, folder: Path, numbers: list[int]) -> Path:
    if kind != "cogx":
        (folder / "export.json").write_text(written(kind, rows_of(kind, numbers)), encoding="utf-8")
        return folder / "export.json"
    manifest = json.dumps({"cogx_version": "0.1", "source_system": "zep"})
    return text_files("cogx", {"manifest.json": manifest, "memories.jsonl": written(kind, rows_of(kind, numbers))})(
        folder
    )


@pytest.mark.parametrize("kind", [*ROWS, "cogx"])
def test_a_row_that_an_export_no_longer_holds_is_out_of_force(kind: str, shell: Shell, tmp_path: Path) -> None:
    both(shell, kind, export(kind, tmp_path, [0, 1, 2]))
    before = active(shell)
    assert len(before) == 3
    counts = both(shell, kind, export(kind, tmp_path, [0, 2]))
    assert counts == {"archived": 1, "already there": 2}
    assert active(shell) == [before[0], before[2]]
    assert both(shell, kind, export(kind, tmp_path, [0, 2])) == {"already there": 2}
    shell.run("undo", str(shell.audit()[0]["id"]))
    assert active(shell) == before
    both(shell, kind, export(kind, tmp_path, [0, 2]))
    both(shell, kind, export(kind, tmp_path, [0, 1, 2]))
    assert active(shell) == before
    shell.run("check")


def test_rows_of_another_file_and_of_a_damaged_one_are_kept_and_named(shell: Shell, tmp_path: Path) -> None:
    for name in ("old", "new", "bob"):
        (tmp_path / name).mkdir()
    both(shell, "mem0", export("mem0", tmp_path / "old", [0, 1]))
    done = shell.bring_kind("mem0", export("mem0", tmp_path / "new", [0, 2]))
    assert done["counts"] == {"memories": 1, "already there": 1, "left out": 0}
    assert done["remarks"] == ["not in this source: 1 Fact 1.: kept, since another file brought them"]
    bob = json_file("export.json", [{"id": "b", "memory": "Bob's."}])(tmp_path / "bob")
    assert shell.bring_kind("mem0", bob)["remarks"] == []
    others = json_file("export.json", [{"id": "c", "memory": "Cy's."}])(tmp_path / "bob")
    remarks = shell.bring_kind("mem0", others)["remarks"]
    assert remarks == ["not in this source: 1 Bob's.: kept, since nothing is in it of an earlier import"]
    cut = tmp_path / "old" / "export.json"
    cut.write_text('[{"id": "0", "memory": "Fact 0."}, {"id": "1", "mem', encoding="utf-8")
    remarks = shell.bring_kind("mem0", cut)["remarks"]
    assert "not in this source: 1 Fact 1.: kept, since parts of the source are damaged" in remarks
    assert len(active(shell)) == 5


def test_a_row_that_is_gone_but_was_edited_here_is_kept_and_named(
    shell: Shell, tmp_path: Path, caller: Callable[[Dispatch], Callable[..., Any]]
) -> None:
    both(shell, "mem0", export("mem0", tmp_path, [0, 1]))
    lines = [json.loads(line) for line in shell.export().read_text(encoding="utf-8").splitlines()]
    number = next(line["row"]["id"] for line in lines if line.get("row", {}).get("content") == "Fact 1.")
    kernel = app.open_kernel(shell.config, app.DIALECTS)
    assert caller(kernel.dispatch)("update_memory", db="core", id=number, content="Mine.").fault is None
    kernel.store.close()
    done = shell.bring_kind("mem0", export("mem0", tmp_path, [0]))
    assert done["remarks"] == ["left out: 1 Mine.: gone at the source, and edited here since"]
    assert active(shell) == ["Fact 0.", "Mine."]


@pytest.mark.parametrize("kind", ["engram", "mem0", "mcp-memory-service", "claude-mem"])
def test_a_deletion_that_another_file_tells_holds_for_what_is_here(kind: str, shell: Shell, tmp_path: Path) -> None:
    both(shell, kind, export(kind, tmp_path, [0, 1]))
    before = active(shell)
    gone = {**rows_of(kind, [1])[0], "deleted_at": "2026-02-01T00:00:00Z"}
    if kind == "mem0":
        gone["state"] = "deleted"
    (tmp_path / "later.json").write_text(written(kind, [gone, *rows_of(kind, [2])]), encoding="utf-8")
    assert both(shell, kind, tmp_path / "later.json") == {"archived": 1, "memories": 1}
    assert len(active(shell)) == 2
    assert before[1] not in active(shell)
    assert both(shell, kind, tmp_path / "later.json") == {"already there": 1, "left out": 1}


def test_a_deletion_in_a_chunk_of_engram_holds_for_an_earlier_import(shell: Shell, tmp_path: Path) -> None:
    row = {"sync_id": "o1", "session_id": "s", "content": "The port is 80.", "created_at": "2026-01-01T00:00:00Z"}
    both(shell, "engram", json_file("a.json", {"observations": [row]})(tmp_path))
    change = {"entity": "observation", "entity_key": "o1", "op": "delete", "occurred_at": "2026-01-02T00:00:00Z"}
    assert both(shell, "engram", json_file("b.json", {"mutations": [change]})(tmp_path)) == {"archived": 1}
    assert active(shell) == []


def test_a_text_that_changed_back_is_in_force_again(shell: Shell, tmp_path: Path) -> None:
    for text in ("Tea.", "Milk.", "Tea."):
        row = {"sync_id": "o1", "session_id": "s", "content": text, "created_at": "2026-01-01T00:00:00Z"}
        both(shell, "engram", json_file("a.json", {"observations": [row]})(tmp_path))
        assert active(shell) == [text]


def test_a_rule_below_another_heading_has_its_name(shell: Shell, tmp_path: Path) -> None:
    def rules(text: str) -> Path:
        return text_files("web", {"AGENTS.md": text})(tmp_path)

    def names() -> list[str]:
        lines = [json.loads(line) for line in shell.export().read_text(encoding="utf-8").splitlines()]
        return [line["row"]["name"] for line in lines if line.get("table") == "scopes_entry"]

    both(shell, "rules", rules("# Do\n## Push\nRun it.\n# Other\n## Push\nRun.\n"))
    assert both(shell, "rules", rules("# Never do\n## Push\nRun it.\n# Other\n## Push\nRun.\n")) == {
        "updated": 1,
        "already there": 1,
    }
    assert names() == ["AGENTS.md: Never do > Push", "AGENTS.md: Other > Push"]
    assert both(shell, "rules", rules("# Other\n## Push\nRun it.\n# Never do\n## Push\nRun.\n")) == {"updated": 2}
    assert sorted(names()) == ["AGENTS.md: Never do > Push", "AGENTS.md: Other > Push"]
    shell.run("undo", str(shell.audit()[0]["id"]))
    assert names() == ["AGENTS.md: Never do > Push", "AGENTS.md: Other > Push"]
    shell.run("check")


def test_rules_of_a_file_that_is_gone_are_out_of_force(shell: Shell, tmp_path: Path) -> None:
    files = {"AGENTS.md": "Use tabs.\n", "api/CLAUDE.md": "Use spaces.\n", "lib/AGENTS.md": "Use none.\n"}
    web = text_files("web", {**files, "api/more.md": "More.\n"})(tmp_path)
    (web / "AGENTS.md").write_text("Use tabs.\n@api/more.md\n")
    both(shell, "rules", web / "lib")
    both(shell, "rules", web)
    (web / "lib" / ".git").mkdir()  # another repository from now on: its rules are its own
    assert both(shell, "rules", web) == {"archived": 1, "already there": 3, "left out": 1}
    for name in ("api/CLAUDE.md", "api/more.md"):
        (web / name).unlink()
    (web / "CLAUDE.md").mkdir()
    assert both(shell, "rules", web) == {"archived": 2, "already there": 1, "left out": 2}
    assert active(shell) == ["Use none.", "Use tabs.\n@api/more.md"]
    both(shell, "rules", web / "AGENTS.md")
    assert len(active(shell)) == 2
    (web / "api" / "CLAUDE.md").write_text("Use spaces.\n")
    assert both(shell, "rules", web) == {"updated": 1, "already there": 1, "left out": 2}
    assert active(shell) == ["Use none.", "Use spaces.", "Use tabs.\n@api/more.md"]
    shell.run("undo", str(shell.audit()[0]["id"]))
    assert len(active(shell)) == 2
    shell.run("check")


def test_a_section_that_is_back_is_in_force_unless_somebody_has_deactivated_it(
    shell: Shell, tmp_path: Path, caller: Callable[[Dispatch], Callable[..., Any]]
) -> None:
    def rules(*words: str) -> Path:
        return text_files("web", {"AGENTS.md": "".join(f"# {word}\nUse {word}.\n" for word in words)})(tmp_path)

    both(shell, "rules", rules("tabs", "make"))
    assert both(shell, "rules", rules("make")) == {"archived": 1, "already there": 1}
    assert both(shell, "rules", rules("tabs", "make")) == {"updated": 1, "already there": 1}
    assert active(shell) == ["Use make.", "Use tabs."]
    assert both(shell, "rules", rules("tabs", "make")) == {"already there": 2}
    kernel = app.open_kernel(shell.config, app.DIALECTS)
    lines = [json.loads(line) for line in shell.export().read_text(encoding="utf-8").splitlines()]
    number = next(line["row"]["id"] for line in lines if line.get("table") == "scopes_entry")
    assert caller(kernel.dispatch)("memory_guideline", action="deactivate", id=number).fault is None
    kernel.store.close()
    assert both(shell, "rules", rules("tabs", "make")) == {"deleted here": 1, "already there": 1}
    assert active(shell) == ["Use make."]
    shell.run("check")


def test_a_memory_that_its_source_sets_aside_is_archived_and_comes_back(shell: Shell, tmp_path: Path) -> None:
    def memory(**members: Any) -> Path:
        rows = [{"id": "1", "memory": "Tea.", **members}, {"id": "2", "memory": "Milk."}]
        return json_file("a.json", {"results": rows})(tmp_path)

    assert both(shell, "mem0", memory(state="active")) == {"memories": 2}
    for _ in range(2):
        assert both(shell, "mem0", memory(state="archived")) == {"updated": 1, "already there": 1}
        assert both(shell, "mem0", memory(state="archived")) == {"already there": 2}
        assert active(shell) == ["Milk."]
        assert both(shell, "mem0", memory(state="active")) == {"updated": 1, "already there": 1}
        assert active(shell) == ["Milk.", "Tea."]
    shell.run("check")


def test_tags_that_changed_in_the_source_are_updated_unless_somebody_set_others(
    shell: Shell, tmp_path: Path, caller: Callable[[Dispatch], Callable[..., Any]]
) -> None:
    def memory(*tags: str) -> Path:
        return json_file("a.json", {"results": [{"id": "1", "memory": "Tea.", "categories": tags}]})(tmp_path)

    def stored() -> dict[str, Any]:
        lines = [json.loads(line) for line in shell.export().read_text(encoding="utf-8").splitlines()]
        return next(line["row"] for line in lines if line.get("table") == "brain_memory")

    both(shell, "mem0", memory("drink"))
    assert both(shell, "mem0", memory("drink", "hot")) == {"updated": 1}
    assert json.loads(stored()["tags"]) == ["drink", "hot"]
    kernel = app.open_kernel(shell.config, app.DIALECTS)
    reply = caller(kernel.dispatch)("update_memory", db="core", id=stored()["id"], tags=["mine"])
    assert reply.fault is None
    kernel.store.close()
    assert both(shell, "mem0", memory("drink", "cold")) == {"already there": 1}
    assert json.loads(stored()["tags"]) == ["mine"]


def test_a_conversation_of_which_only_the_last_change_has_a_time_is_updated(shell: Shell, tmp_path: Path) -> None:
    def chat(answer: str, at: float) -> Path:
        mapping = {
            "q": {"children": ["a"], "message": {"author": {"role": "user"}, "content": {"parts": ["Tea?"]}}},
            "a": {"parent": "q", "message": {"author": {"role": "assistant"}, "content": {"parts": [answer]}}},
        }
        return json_file("c.json", [{"id": "c", "update_time": at, "mapping": mapping, "current_node": "a"}])(tmp_path)

    assert both(shell, "chatgpt", chat("Green.", 1.6e9)) == {"memories": 1}
    assert both(shell, "chatgpt", chat("Green.", 1.7e9)) == {"already there": 1}
    assert both(shell, "chatgpt", chat("Black.", 1.8e9)) == {"updated": 1}
    assert active(shell) == ["Question: Tea?\n\nAnswer: Black."]
    shell.run("undo", str(shell.audit()[0]["id"]))
    assert active(shell) == ["Question: Tea?\n\nAnswer: Green."]


@pytest.mark.parametrize("kind", ["mem0", "obsidian", "rules"])
def test_a_change_beside_a_text_that_was_edited_here_is_named(
    kind: str, shell: Shell, tmp_path: Path, caller: Callable[[Dispatch], Callable[..., Any]]
) -> None:
    def source(owner: str) -> Path:
        if kind == "mem0":
            return json_file("a.json", {"results": [{**TEA, "metadata": {"owner": owner}}]})(tmp_path)
        name = ".cursor/rules/a.mdc" if kind == "rules" else "a.md"
        return text_files("s", {name: PAGE.replace("Ann", owner)})(tmp_path)

    both(shell, kind, source("Ann"))
    kernel = app.open_kernel(shell.config, app.DIALECTS)
    call = caller(kernel.dispatch)
    table = {"mem0": "brain_memory", "obsidian": "brain_note", "rules": "scopes_entry"}[kind]
    number = row_of(shell, table)["id"]
    if kind == "rules":
        reply = call("memory_guideline", action="update", id=number, content="Mine.", changeReason="better")
    else:
        reply = call("update_memory" if kind == "mem0" else "update_note", db="core", id=number, content="Mine.")
    assert reply.fault is None, reply.body
    kernel.store.close()
    assert both(shell, kind, source("Ann")) == {"already there": 1}
    done = shell.bring_kind(kind, source("Bob"))
    assert done["counts"] == {"already there": 0, "left out": 1}
    title = {"mem0": "Tea.", "obsidian": "a", "rules": ".cursor/rules/a.mdc"}[kind]
    assert done["remarks"] == [f"left out: 1 {title}: {EDITED}"]
    assert "Mine." in live(shell) + active(shell)


def row_of(shell: Shell, table: str) -> dict[str, Any]:
    lines = [json.loads(line) for line in shell.export().read_text(encoding="utf-8").splitlines()]
    return next(line["row"] for line in lines if line.get("table") == table)


FACT = {"uuid": "f", "fact": "Ann works at Acme.", "valid_at": "2024-01-01T00:00:00Z", "invalid_at": None}
NODE = {"uuid": "n", "name": "Ann", "labels": ["Person"], "summary": "An engineer."}
TEA = {
    "id": "1",
    "memory": "Tea.",
    "categories": ["drink"],
    "expiration_date": "2030-01-01",
    "metadata": {"at": "five"},
}
PAGE = "---\ntags: [drink]\nowner: Ann\n---\nTea.\n"
CHAT = {**ROWS["chatgpt"][0], "title": "Tea", "create_time": 1.6e9, "update_time": 1.7e9}
PORT = {"sync_id": "o", "type": "fact", "title": "Port", "content": "It is 80.", "topic_key": "net", "project": "web"}
# Of each change beside the text of a memory: the kind, the source before and after, the table, and the new values.
BESIDE_THE_TEXT: dict[str, tuple[str, Any, Any, str, dict[str, Any]]] = {
    "a fact that ended": (
        "graphiti",
        {"facts": [FACT]},
        {"facts": [{**FACT, "invalid_at": "2025-01-01T00:00:00Z"}]},
        "brain_memory",
        {"valid_until": "2025-01-01T00:00:00.000Z"},
    ),
    "the summary of a node": (
        "graphiti",
        {"nodes": [NODE]},
        {"nodes": [{**NODE, "summary": "A manager."}]},
        "brain_entity",
        {"description": "A manager."},
    ),
    "the title of a conversation": (
        "chatgpt",
        [CHAT],
        [{**CHAT, "title": "Green tea", "update_time": 1.8e9}],
        "sessions_memory",
        {"summary": "Green tea"},
    ),
    "the project of an observation": (
        "engram",
        {"observations": [PORT]},
        {"observations": [{**PORT, "project": "api", "type": "decision"}]},
        "sessions_memory",
        {"tags": "net, api", "kind": "decision"},
    ),
    "a later end": (
        "mem0",
        [TEA],
        [{**TEA, "expiration_date": "2031-01-01"}],
        "brain_memory",
        {"valid_until": "2031-01-01T00:00:00.000Z"},
    ),
    "no end": ("mem0", [TEA], [{**TEA, "expiration_date": None}], "brain_memory", {"valid_until": None}),
    "no tags": ("mem0", [TEA], [{**TEA, "categories": []}], "brain_memory", {"tags": None}),
    "a member of the metadata": (
        "mem0",
        [TEA],
        [{**TEA, "metadata": {"at": "six"}}],
        "brain_memory",
        {"metadata": '{"at":"six","from":{"system":"mem0","id":"1","file":"a"}}'},
    ),
    "a value of front matter": (
        "obsidian",
        PAGE,
        PAGE.replace("Ann", "Bob"),
        "brain_note",
        {"key_points": '["source: obsidian a.md","owner: Bob"]'},
    ),
    "no tags of front matter": ("obsidian", PAGE, PAGE.replace("[drink]", "[]"), "brain_note", {"tags": None}),
}


@pytest.mark.parametrize("title", BESIDE_THE_TEXT)
def test_a_change_beside_the_text_is_an_update_too(title: str, shell: Shell, tmp_path: Path) -> None:
    kind, before, after, table, values = BESIDE_THE_TEXT[title]

    def source(value: Any) -> Path:
        return text_files("s", {"a.md": value})(tmp_path) if isinstance(value, str) else json_file("a", value)(tmp_path)

    both(shell, kind, source(before))
    old = row_of(shell, table)
    assert both(shell, kind, source(after)) == {"updated": 1}
    new = row_of(shell, table)
    assert {name: new[name] for name in values} == values
    assert both(shell, kind, source(after)) == {"already there": 1}
    shell.run("undo", str(shell.audit()[0]["id"]))
    assert row_of(shell, table) == old
    shell.run("check")


@pytest.mark.parametrize("kind", ["obsidian", "basic-memory", "okf", "codex", "claude-code"])
def test_a_file_that_is_gone_or_renamed_is_out_of_force(kind: str, shell: Shell, tmp_path: Path) -> None:
    def notes() -> list[str]:
        return sorted(text for text in live(shell) if "bus" in text or "tram" in text)

    source = changed(kind, tmp_path, "The bus.")
    name, _ = SOURCES[kind]
    other = source / Path(name).parent / "O.md"
    other.write_text("The tram.\n", encoding="utf-8")
    both(shell, kind, source)
    other.rename(other.with_name("P.md"))
    counts = both(shell, kind, source)
    assert (counts["archived"], counts["notes"]) == (1, 1)
    assert notes() == ["# Style\n\nThe bus.", "The tram."]
    other.with_name("P.md").unlink()
    assert both(shell, kind, source)["archived"] == 1
    assert notes() == ["# Style\n\nThe bus."]
    other.write_text("The tram, again.\n", encoding="utf-8")
    assert both(shell, kind, source)["notes"] == 1
    assert notes() == ["# Style\n\nThe bus.", "The tram, again."]
    shell.run("undo", str(shell.audit()[0]["id"]))
    assert notes() == ["# Style\n\nThe bus."]
    shell.run("check")


def test_a_note_whose_file_is_gone_stays_if_it_was_edited_here(
    shell: Shell, tmp_path: Path, caller: Callable[[Dispatch], Callable[..., Any]]
) -> None:
    source = text_files("vault", {".obsidian/app.json": "{}", "A.md": "Tea.\n", "B.md": "Milk.\n"})(tmp_path)
    shell.bring(source)
    kernel = app.open_kernel(shell.config, app.DIALECTS)
    number = next(row["id"] for row in [row_of(shell, "brain_note")])
    assert caller(kernel.dispatch)("update_note", db="core", id=number, content="Mine.").fault is None
    kernel.store.close()
    title = row_of(shell, "brain_note")["title"]
    (source / f"{title}.md").unlink()
    assert shell.bring(source)["remarks"] == [f"left out: 1 {title}: gone at the source, and edited here since"]
    assert "Mine." in live(shell)


def test_an_observation_whose_page_is_gone_is_archived_once(shell: Shell, tmp_path: Path) -> None:
    files = {".obsidian/app.json": "{}", "A.md": "- [port] It is 80.\n", "B.md": "- [port] It is 90.\n"}
    source = text_files("vault", files)(tmp_path)
    both(shell, "obsidian", source)
    (source / "A.md").unlink()
    assert both(shell, "obsidian", source) == {"archived": 2, "already there": 4}
    assert active(shell) == ["It is 90."]


def test_rules_in_two_places_stay_in_both(shell: Shell, tmp_path: Path) -> None:
    source = text_files("web", {"CLAUDE.md": "# Style\nUse tabs.\n# Tests\nRun them.\n"})(tmp_path)
    for place in ([], ["--into", "site"], ["--into", "shop"]):
        assert shell.bring(source, *place)["counts"] == {"guidelines": 2, "already there": 0, "left out": 0}
    text_files("web", {"CLAUDE.md": "# Style\nUse tabs.\n"})(tmp_path)
    for place in ([], ["--into", "site"], ["--into", "shop"]):
        assert shell.bring(source, *place)["counts"] == {"archived": 1, "already there": 1, "left out": 0}
    assert active(shell) == ["Use tabs."] * 3


@pytest.mark.parametrize("path", ["a.json", "b.json"])
@pytest.mark.parametrize("text", ["Use tabs.", "Use spaces."])
def test_an_observation_that_moved_to_another_session_is_no_second_memory(
    text: str, path: str, shell: Shell, tmp_path: Path
) -> None:
    def export(name: str, session: str, content: str) -> Path:
        row = {"sync_id": "o1", "session_id": session, "title": "Style", "content": content, "topic_key": "t"}
        return json_file(name, {"observations": [row]})(tmp_path)

    shell.bring_kind("engram", export("a.json", "s1", "Use tabs."))
    assert both(shell, "engram", export(path, "s2", text)) == {"archived": 1, "memories": 1}
    assert active(shell) == [f"Style\n\n{text}"]
    assert both(shell, "engram", tmp_path / path) == {"already there": 1}
    shell.run("undo", str(shell.audit()[0]["id"]))
    assert active(shell) == ["Style\n\nUse tabs."]
