"""A source that has changed updates what was imported, as a version with history, unless somebody edited it here."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernel.calls.dispatch import Dispatch
from kernel.server import app
from tests.imports.harness import Shell
from tests.imports.sources import text_files

EDITED = "changed in the source, and edited here since"
# Of each kind: the file that changes, and those beside it.
SOURCES = {
    "obsidian": ("N.md", {".obsidian/app.json": "{}"}),
    "basic-memory": ("N.md", {"more.md": "---\npermalink: more\n---\nMore.\n"}),
    "okf": ("N.md", {"index.md": "---\nokf_version: '0.2'\n---\n"}),
    "codex": ("rollout_summaries/N.md", {"memory_summary.md": "-"}),
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
