"""Secrets in Markdown of other programs: the value is left out, its section is kept, and the import says which."""

import json
from pathlib import Path

import pytest

from tests.imports.harness import Shell, rows
from tests.imports.sources import text_files

GRAPHQL = "mutation Login($email: String!, $password: String!) { login }"
REAL = "Tr0ub4dor&3"
PAGE = f"# Login\n\n{GRAPHQL}\n\n## Staging\n\nUse this:\n\npassword: {REAL}\n\n## Style\n\nUse tabs.\n"


def test_a_rule_keeps_all_but_the_secret_in_it(shell: Shell, tmp_path: Path) -> None:
    done = shell.bring(text_files("web", {"CLAUDE.md": PAGE})(tmp_path))
    assert (done["counts"], done["remarks"]) == (
        {"guidelines": 3, "already there": 0, "left out": 1},
        ["left out: 1 CLAUDE.md: Staging: a password or key"],
    )
    assert [row["content"] for row in rows(shell, "scopes_version")] == [
        GRAPHQL,
        "Use this:\n\npassword: [redacted]",
        "Use tabs.",
    ]


@pytest.mark.parametrize(
    ("kind", "files", "name"),
    [
        ("obsidian", {".obsidian/app.json": "{}", "ops/Login.md": PAGE}, "ops/Login.md"),
        ("okf", {"index.md": "---\nokf_version: '0.2'\n---\n", "a.md": f"---\ntype: note\n---\n{PAGE}"}, "a.md"),
        ("basic-memory", {"a.md": f"---\npermalink: a\n---\n{PAGE}"}, "a.md"),
        ("codex", {"memory_summary.md": "-", "rollout_summaries/a.md": PAGE}, "rollout_summaries/a.md"),
        ("claude-code", {"memory/MEMORY.md": "-", "memory/a.md": PAGE}, "source/a.md"),
    ],
)
def test_a_note_keeps_all_but_the_secret_in_it(
    kind: str, files: dict[str, str], name: str, shell: Shell, tmp_path: Path
) -> None:
    done = shell.bring(text_files("source", files)(tmp_path))
    assert (done["kind"], done["counts"]["notes"]) == (kind, 1)
    assert f"left out: 1 {name}: Staging: a password or key" in done["remarks"]
    (note,) = rows(shell, "brain_note")
    assert note["content"] == PAGE.replace(REAL, "[redacted]").strip()


@pytest.mark.parametrize("member", ["api_key: {}", "summary: x\ndescription: 'password: {}'", "tags: ['password={}']"])
def test_a_secret_in_front_matter_is_left_out(member: str, shell: Shell, tmp_path: Path) -> None:
    key = "kX9mQ2vLpR7tW4yZ8bN3"
    page = f"---\ntitle: Login\n{member.format(key)}\n---\nUse tabs.\n"
    done = shell.bring(text_files("vault", {"a.md": page})(tmp_path))
    assert (done["counts"]["notes"], done["remarks"]) == (1, ["left out: 1 a.md: a password or key"])
    assert key not in shell.export().read_text(encoding="utf-8")


def test_the_name_of_an_entity_holds_no_secret(shell: Shell, tmp_path: Path) -> None:
    name = "password: kQ9x!vR2mL"
    rows = [
        {"type": "entity", "name": name, "entityType": "login", "observations": ["Of the shop."]},
        {"type": "relation", "from": name, "to": "shop", "relationType": "opens"},
    ]
    (tmp_path / "memory.jsonl").write_text("\n".join(map(json.dumps, rows)))
    done = shell.bring(tmp_path / "memory.jsonl")
    assert done["counts"] == {"entities": 1, "observations": 1, "relations": 1, "left out": 1}
    assert done["remarks"] == ["left out: 1 line 1: password: [redacted]: a password or key"]
    assert "kQ9x" not in shell.export().read_text(encoding="utf-8")
