"""An import belongs to its root, not to the name of its folder: sources of one name stay apart, in `prime` too."""

import json
from pathlib import Path
from typing import Any
from unicodedata import is_normalized, normalize

import apsw
import pytest

from kernel.cli import agent_commands
from kernel.cli.main import parser
from tests.imports.harness import Shell, contents, rows
from tests.imports.sources import ZERO, json_file, text_files

VAULT = {
    "obsidian": {".obsidian/app.json": "{}"},
    "basic-memory": {"more.md": "---\npermalink: more\n---\nMore.\n"},
    "okf": {"index.md": "---\nokf_version: '0.2'\n---\n"},
}


def project(folder: Path, rule: str) -> Path:
    return text_files(folder.name, {"CLAUDE.md": f"## Style\n{rule}\n"})(folder.parent)


def primed(shell: Shell, folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The rules that a session in a folder is given."""
    capsys.readouterr()
    assert agent_commands.prime(parser().parse_args(["prime", "--project", str(folder)]), shell.config) == 0
    lines = capsys.readouterr().out.splitlines()
    return [line.partition(" [")[0] for line in lines if line.startswith("- ")]


def test_projects_in_folders_of_one_name_keep_their_rules(
    shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = {name: project(tmp_path / name / "api", f"Use {name}.") for name in ("tabs", "spaces")}
    for folder in folders.values():
        assert shell.bring(folder)["counts"] == {"guidelines": 1, **ZERO}
    after = shell.export().read_bytes()
    for folder in (*folders.values(), folders["tabs"] / "CLAUDE.md"):
        assert shell.bring(folder)["counts"] == {"already there": 1, "left out": 0}
    assert shell.export().read_bytes() == after
    for name, folder in folders.items():
        assert primed(shell, folder, capsys) == [f"- CLAUDE.md: Style: Use {name}."]
    (tmp_path / "other" / "api").mkdir(parents=True)
    assert primed(shell, tmp_path / "other" / "api", capsys) == []
    assert [(row["name"], row["root_path"]) for row in rows(shell, "scopes_project")] == [
        ("api", str(folder)) for folder in folders.values()
    ]


def test_projects_of_one_name_may_be_put_into_one(shell: Shell, tmp_path: Path) -> None:
    for name in ("tabs", "spaces"):
        done = shell.bring(project(tmp_path / name / "api", f"Use {name}."), "--into", "all")
        assert done["counts"] == {"guidelines": 1, **ZERO}
    assert [row["name"] for row in rows(shell, "scopes_project")] == ["all"]


def test_a_project_without_a_root_gets_that_of_the_first_import(
    shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [project(tmp_path / name / "api", f"Use {name}.") for name in ("tabs", "spaces")]
    shell.bring(folders[0])
    db = apsw.Connection(str(shell.config.file))
    db.execute("UPDATE scopes_project SET root_path = NULL")
    db.close()
    assert primed(shell, folders[1], capsys) == primed(shell, folders[0], capsys) == ["- CLAUDE.md: Style: Use tabs."]
    (folders[0] / "AGENTS.md").write_text("## Tests\nRun them.\n")
    assert shell.bring(folders[0])["counts"] == {"guidelines": 1, "already there": 1, "left out": 0}
    assert [row["root_path"] for row in rows(shell, "scopes_project")] == [str(folders[0])]
    shell.bring(folders[1])
    assert primed(shell, folders[1], capsys) == ["- CLAUDE.md: Style: Use spaces."]


def worktree(repository: Path, folder: Path) -> Path:
    """A linked worktree of a repository, as git makes it."""
    own = repository / ".git" / "worktrees" / folder.name
    own.mkdir(parents=True)
    (own / "commondir").write_text("../..\n")
    (own / "gitdir").write_text(f"{folder / '.git'}\n")
    folder.mkdir()
    (folder / ".git").write_text(f"gitdir: {own}\n")
    return folder


def test_worktrees_of_a_repository_are_one_project(
    shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    web = project(tmp_path / "web", "Use tabs.")
    fix = worktree(web, tmp_path / "fix")
    project(fix, "Use tabs.")
    (fix / "AGENTS.md").write_text("## Tests\nRun them.\n")
    (tmp_path / "link").symlink_to(web)
    assert shell.bring(web)["counts"] == {"guidelines": 1, **ZERO}
    assert shell.bring(fix)["counts"] == {"guidelines": 1, "already there": 1, "left out": 0}
    assert shell.bring(tmp_path / "link")["counts"] == {"already there": 1, "left out": 0}
    assert [row["root_path"] for row in rows(shell, "scopes_project")] == [str(web)]
    given = primed(shell, web, capsys)
    assert given == ["- CLAUDE.md: Style: Use tabs.", "- AGENTS.md: Tests: Run them."]
    assert primed(shell, fix, capsys) == primed(shell, tmp_path / "link", capsys) == given


@pytest.mark.parametrize("kind", VAULT)
def test_vaults_in_folders_of_one_name_are_imported_whole(kind: str, shell: Shell, tmp_path: Path) -> None:
    vaults = [
        text_files(
            "notes",
            {**VAULT[kind], "README.md": f"# Boiler\n\n- [code] The code is {code} #boiler\n- for [[House]]\n"},
        )(tmp_path / name)
        for name, code in {"home": "4711", "work": "0815"}.items()
    ]
    counts = [shell.bring(vault)["counts"] for vault in vaults]
    assert counts[0] == counts[1]
    assert counts[0].get("already there") == 0
    exported = shell.export().read_bytes()
    for vault in vaults:
        again = shell.bring(vault)["counts"]
        assert {name for name, count in again.items() if count} <= {"already there", "left out"}
    assert shell.export().read_bytes() == exported
    assert sorted(row["content"] for row in rows(shell, "brain_memory")) == [
        "The code is 0815 #boiler",
        "The code is 4711 #boiler",
    ]
    roots = {row["project_id"] for row in rows(shell, "brain_note") if row["title"] == "Boiler"}
    assert roots == {*map(str, vaults)}


def test_memories_in_projects_of_one_name_are_imported_whole(shell: Shell, tmp_path: Path) -> None:
    for place in ("home", "work"):
        files = {"api/memory/MEMORY.md": "- [Port](port.md)\n", "api/memory/port.md": f"The port of {place}.\n"}
        folder = text_files(place, files)(tmp_path)
        counts = {"notes": 1, "already there": 0, "left out": 1}
        assert shell.bring(folder / "api" / "memory")["counts"] == counts
        assert shell.bring(folder / "api")["counts"] == {"already there": 1, "left out": 1}
    notes = {row["content"]: row["project_id"] for row in rows(shell, "brain_note")}
    assert notes == {f"The port of {place}.": str(tmp_path / place / "api") for place in ("home", "work")}


def test_folders_of_codex_and_rules_of_users_stay_apart(shell: Shell, tmp_path: Path) -> None:
    for name in ("one", "two"):
        codex = text_files("memories", {"memory_summary.md": "-", "MEMORY.md": f"Use {name}.\n"})(tmp_path / name)
        home = text_files(".claude", {"CLAUDE.md": f"## Style\nUse {name}.\n", "projects/a/memory/MEMORY.md": "-"})
        assert shell.bring(codex)["counts"] == {"notes": 1, "already there": 0, "left out": 1}
        assert shell.bring(home(tmp_path / name))["counts"] == {"guidelines": 1, "already there": 0, "left out": 1}


def test_what_was_imported_before_roots_were_kept_is_there_already(shell: Shell, tmp_path: Path) -> None:
    web = project(tmp_path / "web", "Use tabs.")
    home = text_files(".claude", {"CLAUDE.md": "## Style\nUse tabs.\n", "projects/a/memory/MEMORY.md": "-"})(tmp_path)
    vault = text_files("notes", {".obsidian/a": "", "README.md": "- [code] It is 4711 #boiler\n- for [[House]]\n"})
    sources = [web, home, vault(tmp_path)]
    before = [shell.bring(source)["counts"] for source in sources]
    db = apsw.Connection(str(shell.config.file))
    db.execute(
        "UPDATE scopes_version SET change_reason = 'CLAUDE.md';"
        "UPDATE brain_note SET project_id = NULL; UPDATE brain_memory SET project_id = NULL;"
        "UPDATE brain_entity SET metadata = json_remove(metadata, '$.root')"
    )
    db.close()
    exported = shell.export().read_bytes()
    for source, counts in zip(sources, before, strict=True):
        assert shell.bring(source)["counts"] == {
            "already there": sum(counts.values()) - counts["left out"],
            "left out": counts["left out"],
        }
    assert shell.export().read_bytes() == exported
    other = text_files("notes", {".obsidian/a": "", "README.md": "Another text.\n"})(tmp_path / "other")
    assert shell.bring(other)["counts"]["notes"] == 1


@pytest.mark.parametrize("name", ["café", "cafe\u0301", "й", "서울", "plain"])
def test_a_graph_with_a_name_in_both_normal_forms_has_one_entity(name: str, shell: Shell, tmp_path: Path) -> None:
    twin = normalize("NFD" if is_normalized("NFC", name) else "NFC", name)
    lines = [
        {"type": kind, **row, "observations" if kind == "entity" else "to": value}
        for form, value in ((name, ["opens"]), (twin, ["opens", "closes"]))
        for kind, row, value in (
            ("entity", {"name": form, "entityType": "place"}, value),
            ("relation", {"from": form, "relationType": "in"}, "Bern"),
        )
    ]
    source = tmp_path / "memory.jsonl"
    source.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    counts = {"entities": 1, "observations": 2, "relations": 1}
    assert shell.bring(source, "--dry-run")["counts"] == counts
    assert shell.bring(source)["counts"] == counts
    assert shell.bring(source)["counts"] == dict.fromkeys(counts, 0)
    exported = [json.loads(line) for line in shell.export("graph").read_text(encoding="utf-8").splitlines()]
    assert exported == [{**lines[0], "observations": ["opens", "closes"]}, lines[1]]


NAMESPACES: list[Any] = [
    {"namespace": ["a", "b"], "key": "c"},
    {"namespace": ["a"], "key": "b/c"},
    {"namespace": ["a/b"], "key": "c"},
    {"namespace": ["a%2Fb"], "key": "c"},
    {"namespace": "a,b", "key": "c"},
    {"namespace": "a.b", "key": "c"},
    {"namespace": [1], "key": "c"},
    {"namespace": [2], "key": "c"},
    {"namespace": [], "key": "c"},
    {"namespace": [""], "key": "c"},
]


def test_items_of_a_store_of_langgraph_are_apart_whatever_their_namespaces_hold(shell: Shell, tmp_path: Path) -> None:
    items = [{**item, "value": {"content": f"Cup {number}."}} for number, item in enumerate(NAMESPACES)]
    source = json_file("store.json", items)(tmp_path)
    done = shell.bring_kind("langgraph", source)
    assert sorted(contents(shell, "brain_memory")) == sorted(item["value"]["content"] for item in items)
    assert done["counts"] == {"memories": len(items), "already there": 0, "left out": 0}
    assert shell.bring_kind("langgraph", source)["counts"] == {"already there": len(items), "left out": 0}


def test_lists_by_namespace_name_the_namespaces_of_their_items(shell: Shell, tmp_path: Path) -> None:
    lists = {name: [{"key": "tea", "value": {"content": f"{name} drinks tea."}}] for name in ("Ada", "Ben")}
    shell.bring_kind("langgraph", json_file("store.json", lists)(tmp_path))
    assert sorted(contents(shell, "brain_memory")) == ["Ada drinks tea.", "Ben drinks tea."]
