"""Rules files wherever a project has them: in its folders, and in those of every program that reads some."""

import json
from pathlib import Path

import pytest

from handlers.importers import rules
from tests.imports.harness import Shell, rows
from tests.imports.sources import ZERO, text_files


@pytest.mark.parametrize(
    "name",
    [
        "packages/api/AGENTS.md",
        "src/app/home/CLAUDE.md",
        "a/b/c/d/GEMINI.md",
        "web/.cursor/rules/py.mdc",
        "web/.github/instructions/a.md",
        ".kiro/steering/product.md",
        ".amazonq/rules/a.md",
        ".roo/rules/a.md",
        ".roo/rules-code/a.md",
        ".junie/guidelines.md",
        ".windsurf/rules/a.md",
        ".clinerules/a.md",
        ".continue/rules/a.md",
        "QWEN.md",
        ".roo/rules-reviewer/a.md",
        "web/.kilocode/rules-test/a.md",
        ".roorules-docs",
        ".rules",
        "AGENT.md",
        "WARP.md",
        ".cursor/BUGBOT.md",
        ".idx/airules.md",
        ".openhands/microagents/repo.md",
        ".qoder/rules/a.md",
        ".augment-guidelines",
        "claude.md",
        "web/Agents.md",
        "collected/py.mdc",
    ],
)
def test_rules_are_read_in_each_folder_and_of_each_program(name: str, shell: Shell, tmp_path: Path) -> None:
    project = text_files("web", {name: "# Style\nUse tabs.\n", "README.md": "Not a rule.\n"})(tmp_path)
    done = json.loads(shell.run("import", "rules", str(project), "--json"))
    assert done["counts"] == {"guidelines": 1, **ZERO}
    assert [row["name"] for row in rows(shell, "scopes_entry")] == [f"{name}: Style"]


def test_a_page_of_documentation_about_agents_is_no_rule(shell: Shell, tmp_path: Path) -> None:
    pages = ("docs/agents.md", "docs/en/providers/gemini.md", "Website/Claude.md")
    files = {"CLAUDE.md": "# Style\nUse tabs.\n", "docs/AGENTS.md": "# Style\nWrite plainly.\n"}
    done = shell.bring(text_files("web", {**files, **dict.fromkeys(pages, "# Hooks\nA client asks.\n")})(tmp_path))
    assert [row["name"] for row in rows(shell, "scopes_entry")] == ["CLAUDE.md: Style", "docs/AGENTS.md: Style"]
    left = "Website/Claude.md, docs/agents.md, docs/en/providers/gemini.md"
    assert done["remarks"] == [f"left out: 3 {left}: is a page of documentation, and not spelled as a rules file"]


def test_rules_of_a_folder_say_that_they_are_of_it(shell: Shell, tmp_path: Path) -> None:
    files = {
        "AGENTS.md": "# Style\nUse tabs.\n",
        "packages/api/AGENTS.md": "# Style\nUse spaces.\n",
        "packages/api/.kiro/steering/a.md": "---\ninclusion: fileMatch\nfileMatchPattern: '*.sql'\n---\nName them.\n",
    }
    shell.bring(text_files("web", files)(tmp_path))
    names = {row["current_version_id"]: row["name"] for row in rows(shell, "scopes_entry")}
    assert {names[row["id"]]: row["rationale"] for row in rows(shell, "scopes_version")} == {
        "AGENTS.md: Style": None,
        "packages/api/AGENTS.md: Style": "folder: packages/api",
        "packages/api/.kiro/steering/a.md": "folder: packages/api; inclusion: fileMatch; fileMatchPattern: *.sql",
    }


def test_members_of_front_matter_stay_with_a_rule(shell: Shell, tmp_path: Path) -> None:
    head = "---\ndescription: Of queries\nauthor: Ada\nversion: 2\nglobs: ['*.sql', '*.py']\nempty:\n---\n"
    shell.bring(text_files("web", {".cursor/rules/a.mdc": f"{head}Name them.\n"})(tmp_path))
    assert [row["rationale"] for row in rows(shell, "scopes_version")] == [
        "Of queries. author: Ada; version: 2; globs: *.sql, *.py"
    ]


def test_front_matter_that_is_no_yaml_is_kept_whole(shell: Shell, tmp_path: Path) -> None:
    head = '---\ndescription: "Of Vue & Nuxt, ! too"\nglobs: **/*\nalways: !!bool yes\n---\n'
    shell.bring(text_files("web", {".cursor/rules/a.mdc": f"{head}Name them.\n"})(tmp_path))
    assert [row["rationale"] for row in rows(shell, "scopes_version")] == [
        "Of Vue & Nuxt, ! too. always: yes; globs: **/*"
    ]


def test_no_link_leads_out_and_other_repositories_keep_their_rules(shell: Shell, tmp_path: Path) -> None:
    rule = "# Style\nUse tabs.\n"
    outside = text_files("outside", {"AGENTS.md": "CANARY", "rules/a.md": "CANARY"})(tmp_path)
    files = {
        "AGENTS.md": rule,
        "vendor/lib/.git/HEAD": "ref: refs/heads/main\n",
        "vendor/lib/AGENTS.md": "CANARY",
        ".worktrees/fix/AGENTS.md": "CANARY",
        "node_modules/x/AGENTS.md": "CANARY",
        "web/a.txt": "",
    }
    project = text_files("project", files)(tmp_path)
    (project / "linked").symlink_to(outside)
    (project / "web" / "AGENTS.md").symlink_to(outside / "AGENTS.md")
    (project / "web" / ".clinerules").symlink_to(outside / "rules")
    done = shell.bring(project)
    assert (done["counts"], sorted(done["remarks"])) == (
        {"guidelines": 1, "already there": 0, "left out": 3},
        ["left out: 1 vendor/lib/: another repository", "left out: 2 web/AGENTS.md, web/.clinerules: a link"],
    )
    assert b"CANARY" not in shell.export().read_bytes()


def test_folders_beyond_the_bounds_are_named(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "_MOST_FOLDERS", 3)
    files = {f"{name}/AGENTS.md": f"# Style\nUse {name}.\n" for name in "abcd"}
    done = shell.bring(text_files("web", {"AGENTS.md": "# Style\nUse tabs.\n", **files})(tmp_path))
    assert (done["counts"], done["remarks"]) == (
        {"guidelines": 3, "already there": 0, "left out": 2},
        ["left out: 2 c/, d/: folders beyond the first 20,000 or below 12 others"],
    )


@pytest.mark.parametrize("mark", ["\ufeff", ""])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-be", "utf-16-le"])
def test_rules_are_read_in_each_encoding_that_editors_write(
    encoding: str, mark: str, shell: Shell, tmp_path: Path
) -> None:
    (tmp_path / "CLAUDE.md").write_bytes(f"{mark}# Never\r\n\r\n## Köln 🍵\r\nUse tabs.\r\n".encode(encoding))
    assert shell.bring(tmp_path / "CLAUDE.md")["counts"] == {"guidelines": 1, **ZERO}
    assert [row["name"] for row in rows(shell, "scopes_entry")] == ["CLAUDE.md: Never > Köln 🍵"]


def test_a_rules_file_without_text_is_named(shell: Shell, tmp_path: Path) -> None:
    done = shell.bring(text_files("web", {"AGENTS.md": "# Style\n", "CLAUDE.md": "Use tabs.\n"})(tmp_path))
    assert done["remarks"] == ["left out: 1 AGENTS.md: empty"]


def test_a_heading_without_text_is_named(shell: Shell, tmp_path: Path) -> None:
    text = "# Never on Friday\n# Rules\n## Style\nUse tabs.\n## Tests\n"
    done = shell.bring(text_files("web", {"AGENTS.md": text})(tmp_path))
    assert (done["counts"]["guidelines"], done["remarks"]) == (
        1,
        ["left out: 2 AGENTS.md: Never on Friday, AGENTS.md: Tests: a heading without text"],
    )


def test_other_files_of_the_programs_are_named(shell: Shell, tmp_path: Path) -> None:
    files = {
        "CLAUDE.md": "# Style\nUse tabs.\n",
        ".cursor/rules/a.json": "{}",
        "web/.claude/commands/ship.md": "Ship it.\n",
        ".claude/skills/pdf/SKILL.md": "Read it.\n",
    }
    done = json.loads(shell.run("import", "rules", str(text_files("web", files)(tmp_path)), "--json"))
    assert done["counts"] == {"guidelines": 1, **ZERO, "left out": 3}
    called = ".claude/skills/pdf/SKILL.md, web/.claude/commands/ship.md"
    assert done["remarks"] == [
        f"left out: 2 {called}: is called by name, and no rule",
        "left out: 1 .cursor/rules/a.json: is no rules file",
    ]


def test_notes_that_an_agent_keeps_in_a_project_are_named(shell: Shell, tmp_path: Path) -> None:
    files = {"memory-bank/progress.md": "# Progress\nThe parser is done.\n", ".serena/memories/style.md": "Use tabs.\n"}
    project = text_files("web", files)(tmp_path)
    told = "2 memory-bank/progress.md, .serena/memories/style.md: is a note, which `quipu import obsidian FOLDER` takes"
    done = shell.bring_kind("rules", project)
    assert (done["counts"]["left out"], done["remarks"]) == (2, [f"left out: {told}"])
    assert shell.bring_kind("obsidian", project / "memory-bank")["counts"]["notes"] == 1


def test_an_item_that_leads_to_headings_stays_above_them(shell: Shell, tmp_path: Path) -> None:
    git = "# Git\n\n- These are forbidden:\n\n## Force push\nUse --force.\n\n"
    text = f"{git}# Style\n- Do not push.\n\n## Tabs\nUse tabs.\n"
    shell.bring_kind("rules", text_files("web", {"CLAUDE.md": text})(tmp_path))
    lines = [json.loads(line) for line in shell.export().read_text(encoding="utf-8").splitlines()]
    names = {line["row"]["name"] for line in lines if line.get("table") == "scopes_entry"}
    assert {"CLAUDE.md: Git > These are forbidden: > Force push", "CLAUDE.md: Style > Tabs"} <= names


def test_rules_that_are_nothing_but_a_description_are_that(shell: Shell, tmp_path: Path) -> None:
    files = {".cursor/rules/a.mdc": "---\ndescription: Never use tabs\nalwaysApply: true\n---\n"}
    done = shell.bring_kind("rules", text_files("web", files)(tmp_path))
    assert done["counts"] == {"guidelines": 1, "already there": 0, "left out": 0}
    assert '"content":"Never use tabs"' in shell.export().read_text(encoding="utf-8")
