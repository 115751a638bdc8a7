"""Parts of sources that are easily lost, mixed up or let through."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handlers.importers import IMPORTS, records
from kernel.calls.dispatch import Dispatch
from kernel.cli import agent_commands
from kernel.cli.main import parser
from kernel.core.errors import Fault
from kernel.memories import json_rows
from kernel.memories.import_records import stable_id
from kernel.operations import okf_export, portable_import
from kernel.server import app
from kernel.store import long_work
from tests.imports.harness import Shell
from tests.imports.sources import json_file


def folder(root: Path, **files: str) -> Path:
    """A folder with these Markdown files."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / f"{name}.md").write_text(text)
    return root


def test_private_text_over_several_items_or_sections_is_left_out_of_each(shell: Shell, tmp_path: Path) -> None:
    text = "# Public\n\n<private>\n\n## Pin\n\n- [pin] It is 4711 #pin\n- knows [[Jane Roe]]\n\n</private>\n\nEnd.\n"
    shell.bring(folder(tmp_path / "vault", note=text))
    shell.bring(folder(tmp_path / "project", AGENTS=text))
    exported = shell.export().read_bytes()
    assert (b"Public" in exported, b" 4711" in exported, b"Jane Roe" in exported) == (True, False, False)


def test_files_of_one_name_in_two_folders_are_two_notes(shell: Shell, tmp_path: Path) -> None:
    for name in ("home", "work"):
        done = shell.bring(folder(tmp_path / name, inbox=f"What is open at {name}."))
        assert done["counts"] == {"notes": 1, "already there": 0, "left out": 0}


def test_an_observation_that_is_added_above_others_is_the_only_new_one(shell: Shell, tmp_path: Path) -> None:
    shell.bring(folder(tmp_path / "vault", note="- [fact] first\n- [fact] second"))
    done = shell.bring(folder(tmp_path / "vault", note="- [fact] new\n- [fact] first\n- [fact] second"))
    assert done["counts"] == {"links": 1, "memories": 1, "updated": 1, "already there": 5, "left out": 0}
    assert shell.export().read_bytes().count(b'"content":"second"') == 1


def test_a_list_of_memories_with_facts_of_its_own_is_a_note(shell: Shell, tmp_path: Path) -> None:
    lines = "# Memory\n\n## Style\n- [style](style.md) - four spaces\n- Deploy with `make ship` only.\n"
    source = folder(tmp_path / "web" / "memory", MEMORY=lines, style="We indent by four spaces.")
    done = shell.bring(source)
    assert (done["counts"]["notes"], done["counts"]["left out"]) == (2, 0)
    assert "Deploy with `make ship` only." in shell.run("recall", "deploy with make ship")
    assert shell.bring(source)["counts"].keys() <= {"already there", "repeated", "left out"}


def test_what_a_source_names_twice_is_not_counted_as_there_before(shell: Shell, tmp_path: Path) -> None:
    vault = folder(tmp_path / "vault", a="[[Ada]] wrote it.", b="[[Ada]] read it.", c="Ask [[Ada]].")
    done = shell.bring(vault)
    assert done["counts"]["already there"] == 0
    assert shell.bring(vault)["counts"]["already there"] == sum(
        count for name, count in done["counts"].items() if name not in {"repeated", "left out"}
    )


def test_numbers_in_lists_that_no_importer_reads_are_no_damage(shell: Shell, tmp_path: Path) -> None:
    agent = {"agent_type": "memgpt_agent", "core_memory": [{"label": "human", "value": "Ada likes tea."}]}
    (tmp_path / "ada.af").write_text(json.dumps({**agent, "messages": [], "in_context_message_indices": [0, 1, "2"]}))
    done = shell.bring(tmp_path / "ada.af", "--strict")
    assert done["counts"] == {"memory blocks": 1, "already there": 0, "left out": 3}
    assert done["remarks"] == ["left out: 3 of the member in_context_message_indices"]


def test_one_project_of_claude_code_is_the_same_by_itself_and_with_all_others(shell: Shell, tmp_path: Path) -> None:
    project = (
        folder(
            tmp_path / "claude", **{"projects/-work-app/memory/MEMORY": "# Memory\n- [style](style.md) - four spaces"}
        )
        / "projects"
        / "-work-app"
    )
    folder(project / "memory", style="We indent by four spaces.")
    assert shell.bring(project / "memory")["counts"]["notes"] == 1
    for again in (project, tmp_path / "claude"):
        assert shell.bring(again)["counts"] == {"already there": 1, "left out": 1}


def test_a_rules_file_that_is_a_link_to_another_is_read_once(shell: Shell, tmp_path: Path) -> None:
    project = folder(tmp_path / "project", AGENTS="# Style\n\nUse tabs.")
    (project / "CLAUDE.md").symlink_to("AGENTS.md")
    assert shell.bring(project)["counts"] == {"guidelines": 1, "already there": 0, "left out": 1}
    assert shell.bring(project / "CLAUDE.md")["counts"] == {"already there": 1, "left out": 0}


@pytest.mark.parametrize("kind", sorted(found.kind for found in IMPORTS))
def test_a_source_that_is_missing_or_a_folder_is_refused_in_a_sentence(kind: str, shell: Shell, tmp_path: Path) -> None:
    with pytest.raises(Fault, match=r"There is no file|cannot be read|No such file|is no (folder|rules)"):
        shell.run("import", kind, str(tmp_path / "none"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        Fault, match=r"cannot be read: Is a directory|nothing that can be imported|holds no (manifest|conv)"
    ):
        shell.run("import", kind, str(tmp_path / "empty"))


def test_a_vault_with_a_folder_of_projects_is_not_taken_for_claude_code(shell: Shell, tmp_path: Path) -> None:
    done = shell.bring(folder(tmp_path / "vault", **{"projects/house": "Paint it.", "daily": "Rain."}))
    assert (done["kind"], done["counts"]["notes"]) == ("obsidian", 2)


def test_blocks_of_one_name_or_label_are_all_kept(shell: Shell, tmp_path: Path) -> None:
    labels = ["persona", "persona", "a/b/c", "a/b/d", "to do", "to-do"]
    blocks = [{"id": f"b{at}", "label": label, "value": f"text {at}"} for at, label in enumerate(labels)]
    agents = [{"id": f"a{at}", "name": "bot", "block_ids": [f"b{at}"]} for at in range(len(labels))]
    (tmp_path / "bots.af").write_text(json.dumps({"agents": agents, "blocks": blocks}))
    for counts in ({"memory blocks": 6, "already there": 0, "left out": 0}, {"already there": 6, "left out": 0}):
        assert shell.bring(tmp_path / "bots.af")["counts"] == counts


def test_a_row_of_many_values_is_refused_before_it_fills_the_memory(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_rows, "MAX_PARTS", 1000)
    (tmp_path / "wide.json").write_bytes(b'[{"id": "1", "memory": "x", "metadata": {"a": [' + b"1," * 1001)
    with pytest.raises(Fault, match=r"near byte 1: has more than 64 MB or 1,000 values\."):
        shell.run("import", "mem0", str(tmp_path / "wide.json"))


@pytest.mark.parametrize("form", [lambda row: [row], lambda row: row, lambda row: {**row, "metadata": [1] * 9000}])
def test_a_long_text_is_one_memory_in_each_form(form: Callable[[Any], Any], shell: Shell, tmp_path: Path) -> None:
    text = "The bus leaves. " * 40_000
    row = form({"id": "1", "memory": text, "user_id": "ann"})
    assert shell.bring(json_file("long.json", row)(tmp_path))["counts"]["memories"] == 1
    longer = json.dumps({"id": "2", "memory": text * 2})
    (tmp_path / "lines.jsonl").write_text(f'{longer}\n{{"id": "3", "memory": "Tea."}}\n')
    done = shell.bring(tmp_path / "lines.jsonl")
    assert (done["counts"]["memories"], done["remarks"][0]) == (1, "left out: 1 2: larger than a memory may be")


def test_memories_by_their_ids_are_memories(shell: Shell, tmp_path: Path) -> None:
    rows = {"m1": {"memory": "Tea.", "user_id": "ann"}, "m2": {"memory": "Milk."}, "m3": {"other": 1}}
    done = shell.bring(json_file("by-id.json", rows)(tmp_path))
    assert done["counts"] == {"memories": 2, "already there": 0, "left out": 1}
    assert done["remarks"] == ["left out: 1 line 1, m3: has none of memory, text, data, content"]
    ids = shell.bring(json_file("list.json", [{"id": "m1", "memory": "Tea."}])(tmp_path))["counts"]
    assert ids["already there"] + ids.get("updated", 0) == 1


def test_a_line_of_a_million_blanks_is_read_at_once(shell: Shell, tmp_path: Path) -> None:
    blanks = " " * 900_000
    done = shell.bring(folder(tmp_path / "vault", note=f"- [fact] one{blanks}two (the context)"))
    assert done["counts"]["memories"] == 1
    assert rb"\"context\":\"the context\"" in shell.export().read_bytes()


def test_names_of_a_bundle_are_different_for_a_hundred_thousand_memories() -> None:
    names = {okf_export.safe_name("\u65e5\u672c\u8a9e", always=f"brain:core/{number}") for number in range(100_000)}
    assert len(names) == 100_000


def everything(target: Path, *values: dict[str, Any]) -> Path:
    """A file as `quipu export jsonl` writes it."""
    data = b"".join(json.dumps(value).encode() + b"\n" for value in ({"quipu": "memories", "version": 1}, *values))
    end = {"end": data.count(b"\n"), "sha256": hashlib.sha256(data).hexdigest()}
    target.write_bytes(data + json.dumps(end).encode())
    return target


def test_an_import_of_everything_that_was_killed_goes_on_within_the_history(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    who = {"dialect": "paths", "tool": "add_memory", "actor": "local", "at": "2026-01-01T00:00:00.000Z"}
    texts = {"space": "paths", "before": None, "after": "x", "reason": None}
    rows = [{"history": {"key": f"k{n % 30}", "operation": f"{n}", **texts, **who}} for n in range(90)]
    path, left = everything(tmp_path / "all.jsonl", *rows), [2]

    def batches(path: Path) -> Any:
        for batch in original(path):
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            yield batch

    original = portable_import._batches
    monkeypatch.setattr(portable_import, "_batches", batches)
    monkeypatch.setattr(long_work, "SLICE_SECONDS", 0)
    with pytest.raises(KeyboardInterrupt):
        shell.run("import", "jsonl", str(path))
    left[0] = 99
    shell.run("import", "jsonl", str(path))
    exported = [json.loads(line) for line in shell.export().read_bytes().splitlines()]
    assert [line for line in exported if "history" in line] == rows


def test_what_a_person_has_deleted_is_not_imported_again(
    shell: Shell, tmp_path: Path, caller: Callable[[Dispatch], Callable[..., Any]]
) -> None:
    (tmp_path / "mem0.json").write_text(json.dumps([{"id": "1", "memory": "wrong"}, {"id": "2", "memory": "right"}]))
    blocks = [{"id": "b1", "label": "persona", "value": "a bot"}]
    (tmp_path / "bot.af").write_text(
        json.dumps({"agents": [{"id": "a1", "name": "bot", "block_ids": ["b1"]}], "blocks": blocks})
    )
    session = {"observations": [{"id": 1, "memory_session_id": "s1", "title": "Fixed", "narrative": "A bug."}]}
    (tmp_path / "mem.json").write_text(json.dumps({"totalObservations": 1, **session}))
    sources = [tmp_path / "mem0.json", tmp_path / "bot.af", tmp_path / "mem.json"]
    for source in sources:
        shell.bring(source)
    rows = [json.loads(line).get("row", {}) for line in shell.export().read_bytes().splitlines()]
    number = next(row["id"] for row in rows if row.get("content") == "wrong")
    kernel = app.open_kernel(shell.config, app.DIALECTS)
    call = caller(kernel.dispatch)
    assert call("delete_memory", db="core", id=number).fault is None
    assert call("drop_memory", path="agents/bot/persona").fault is None
    assert call("maintenance", action="purge_session", session_id="claude-mem:s1", confirm=True).fault is None
    kernel.store.close()
    deleted = shell.export().read_bytes()
    counts = [shell.bring(source)["counts"] for source in sources]
    assert counts == [{"deleted here": 1, "already there": there, "left out": 0} for there in (1, 0, 0)]
    assert shell.export().read_bytes() == deleted


def test_what_was_undone_can_be_imported_again(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "mem0.json").write_text(json.dumps([{"id": "1", "memory": "one"}]))
    for _ in range(2):
        assert shell.bring(tmp_path / "mem0.json")["counts"]["memories"] == 1
        shell.run("undo", str(shell.audit()[0]["id"]))


def test_a_dry_run_counts_repeated_turns_and_links_as_the_import_does(shell: Shell, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "manifest.json").write_text(json.dumps({"cogx_version": "0.1", "source_system": "zep"}))
    turns = [{"role": "user", "content": "yes" if number % 2 else f"turn {number}"} for number in range(60)]
    (source / "episodes.jsonl").write_text(json.dumps({"kind": "episode", "external_id": "e", "turns": turns}))
    fact = {"kind": "fact", "subject_ref": "a", "predicate": "knows", "object_ref": "b"}
    facts = [{**fact, "external_id": f"f{number}", "fact_text": f"A knew B in {number}"} for number in range(40)]
    (source / "facts.jsonl").write_text("\n".join(map(json.dumps, facts)))
    dry = json.loads(shell.run("import", str(source), "--dry-run", "--json"))
    done = shell.bring(source)
    assert dry == {**done, "dry_run": True}
    assert done["counts"] == {"links": 1, "memories": 71, "repeated": 68, "already there": 0, "left out": 0}


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (2024, "2024-01-01T00:00:00.000Z"),
        ("2024", "2024-01-01T00:00:00.000Z"),
        (202405, "2024-05-01T00:00:00.000Z"),
        ("2024-05", "2024-05-01T00:00:00.000Z"),
        (7, ""),
        (3000, ""),
        (99_999_999, ""),
        (100_000_000, "1973-03-03T09:46:40.000Z"),
        (20240115, "2024-01-15T00:00:00.000Z"),
        ("202401151230", "2024-01-15T12:30:00.000Z"),
        (20240115123045, "2024-01-15T12:30:45.000Z"),
        (946684800000, "2000-01-01T00:00:00.000Z"),
        (1700000000, "2023-11-14T22:13:20.000Z"),
        ("1700000000123", "2023-11-14T22:13:20.123Z"),
        (float("inf"), ""),
        (float("-inf"), ""),
        (float("nan"), ""),
        ("9" * 400, ""),
    ],
)
def test_a_date_as_one_number_is_no_number_of_seconds(given: str | float, found: str) -> None:
    assert records.utc_of(given) == found


@pytest.mark.parametrize("created", ["2024", "2024-05", "'2024'"])
def test_a_bare_year_of_front_matter_is_the_beginning_of_it(created: str, shell: Shell, tmp_path: Path) -> None:
    shell.bring(folder(tmp_path / "vault", note=f"---\ncreated: {created}\n---\nA note."))
    month = "05" if created == "2024-05" else "01"
    rows = [json.loads(line).get("row", {}) for line in shell.export().read_bytes().splitlines()]
    assert [row["created_at"] for row in rows if "title" in row] == [f"2024-{month}-01T00:00:00.000Z"]


def rows_and_documents(shell: Shell) -> list[bytes]:
    """Return the content of an export without the history, in which an undone change stays."""
    return [line for line in shell.export().read_bytes().splitlines() if line.startswith((b'{"table"', b'{"doc"'))]


def test_a_note_that_was_changed_after_its_import_is_updated_and_taken_back(shell: Shell, tmp_path: Path) -> None:
    shell.bring(folder(tmp_path / "vault", note="First."))
    before = rows_and_documents(shell)
    assert shell.bring(folder(tmp_path / "vault", note="Second."))["counts"]["updated"] == 1
    shell.run("undo", str(next(row["id"] for row in shell.audit() if row["outcome"] == "done")))
    assert rows_and_documents(shell) == before
    assert shell.bring(tmp_path / "vault")["counts"]["updated"] == 1


@pytest.mark.parametrize(
    ("files", "into", "found"),
    [
        (
            {"vault/note": "- [fact] one #a\n- knows [[Jane]]"},
            "ops",
            {"brain_note.db", "brain_memory.db", "brain_link.db"},
        ),
        ({"project/AGENTS": "# Style\n\nUse tabs."}, "House 7", {"scopes_project.name"}),
        ({"chat": "a question"}, "old chats", {"sessions_memory.session_id"}),
    ],
)
def test_memories_go_into_the_place_that_is_named(
    files: dict[str, str], into: str, found: set[str], shell: Shell, tmp_path: Path
) -> None:
    shell.config = shell.config._replace(environment={"QUIPU_BRAIN_DATABASES": "core,ops"})
    folder(tmp_path, **files)
    turn = {"uuid": "m", "sender": "human", "text": "a question", "created_at": "2026-01-01T00:00:00Z"}
    (tmp_path / "chat.json").write_text(json.dumps([{"uuid": "c", "name": "chat", "chat_messages": [turn]}]))
    source = tmp_path / "chat.json" if "chat" in files else tmp_path / next(iter(files)).partition("/")[0]
    dry = shell.bring(source, "--into", into, "--dry-run")
    assert {**shell.bring(source, "--into", into), "dry_run": True} == dry
    lines = [json.loads(line) for line in shell.export().read_bytes().splitlines()]
    places = {
        f"{line['table']}.{name}" for line in lines for name, value in line.get("row", {}).items() if value == into
    }
    assert places >= found
    assert set(shell.bring(source, "--into", into)["counts"]) == {"already there", "left out"}
    shell.run("undo", str(next(row["id"] for row in shell.audit() if row["outcome"] == "done")))
    assert shell.bring(source, "--into", into)["counts"] == dry["counts"]


def test_a_place_that_there_is_not_is_refused(shell: Shell, tmp_path: Path) -> None:
    source = folder(tmp_path / "vault", note="A note.")
    before = shell.export()
    refusals = {
        "nowhere": r"brain has no database nowhere: choose from core.*. Nothing was imported.",
        " core": r"--into takes at most 200 printable characters, none of them a blank at an end.",
        "x" * 201: r"--into takes at most 200",
    }
    for into, refusal in refusals.items():
        for options in (("--dry-run",), ()):
            with pytest.raises(Fault, match=refusal):
                shell.run("import", str(source), "--into", into, *options)
    with pytest.raises(Fault, match=r"--into is not for jsonl, whose memories say where they belong."):
        shell.run("import", str(before), "--into", "core")
    assert shell.export().read_bytes() == before.read_bytes()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
@pytest.mark.parametrize("kind", [(), *((found.kind,) for found in IMPORTS), ("jsonl",)])
def test_a_named_pipe_is_refused_at_once(kind: tuple[str, ...], shell: Shell, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Fault, match=r"pipe is no ordinary file and no folder. Nothing was imported."):
        shell.run("import", *kind, str(tmp_path / "pipe"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
@pytest.mark.parametrize("name", ["index.md", "note.md", "facts.jsonl", "CLAUDE.md"])
def test_a_named_pipe_in_a_folder_is_refused_at_once(name: str, shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "manifest.json").write_text('{"cogx_version": "0.1"}')
    os.mkfifo(tmp_path / "source" / name)
    for kind in ((), *((found.kind,) for found in IMPORTS)):
        with pytest.raises(Fault, match=r"is no |cannot be read|nothing that can be imported|name its kind"):
            shell.run("import", *kind, str(tmp_path / "source"))


def test_a_dry_run_of_everything_refuses_what_the_run_refuses(shell: Shell, tmp_path: Path) -> None:
    row = {"path": "a", "content": "text", "content_size": 4, "created_at": "now", "updated_at": "now"}
    other = [{**row, "path": "b"}, {**row, "path": "b", "content": "else"}]
    agent = {"id": "a1", "name": "bot", "block_ids": ["b1"]}  # with a memory, a row no longer replaces another
    blocks = [{"id": "b1", "label": "persona", "value": "a bot"}]
    (tmp_path / "bot.af").write_text(json.dumps({"agents": [agent], "blocks": blocks}))
    shell.bring(tmp_path / "bot.af")
    for rows in ([{"path": "a"}], [{**row, "content_size": "many"}], other):
        path = everything(tmp_path / "all.jsonl", *({"table": "paths_memory", "row": one} for one in rows))
        before, said = shell.export().read_bytes(), list[str]()
        for options in (("--dry-run",), ()):
            with pytest.raises(Fault) as refused:
                shell.run("import", str(path), *options)
            said.append(refused.value.message)
        assert said[0] == said[1]
        assert shell.export().read_bytes() == before


def test_an_empty_row_of_everything_is_refused(shell: Shell, tmp_path: Path) -> None:
    path = everything(tmp_path / "all.jsonl", {"table": "brain_memory", "row": {}})
    with pytest.raises(Fault, match=r"line 2: holds an empty row of brain_memory. Nothing was imported."):
        shell.run("import", str(path))


RULES = {
    "CLAUDE.md": (
        "# Never do\n\n## Force push\nPush with --force to main.\n\n"
        "# Never commit these\n- .env\n- *.pem\n\n## Keys\n@docs/keys.md\n"
    ),
    "docs/keys.md": "# Private\nid_rsa\n",
}


def rules_of(root: Path) -> Path:
    for name, text in RULES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def guidelines(shell: Shell) -> dict[str, str]:
    """The ids of the guidelines by their names."""
    rows = [json.loads(line) for line in shell.export().read_text(encoding="utf-8").splitlines()]
    found = [row["row"] for row in rows if row.get("table") == "scopes_entry"]
    return {row["name"]: row["id"] for row in found if row["kind"] == "guideline"}


def test_rules_keep_the_headings_above_them(shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = rules_of(tmp_path / "web")
    shell.run("import", "rules", str(project))
    assert sorted(guidelines(shell)) == [
        "CLAUDE.md: Never commit these",
        "CLAUDE.md: Never commit these > Keys",
        "CLAUDE.md: Never do > Force push",
        "docs/keys.md: Never commit these > Keys > Private",
    ]
    assert agent_commands.prime(parser().parse_args(["prime", "--project", str(project)]), shell.config) == 0
    printed = capsys.readouterr().out
    for line in (
        "CLAUDE.md: Never do > Force push: Push with --force to main. [",
        "CLAUDE.md: Never commit these: .env; *.pem [",
        "docs/keys.md: Never commit these > Keys > Private: id_rsa [",
    ):
        assert f"\n- {line}" in printed


FORBIDDEN = ("Das ist verboten", "C'est interdit", "Nunca en producci\u00f3n", "\u4e0d\u8981\u8fd9\u6837\u505a")
FORBIDDEN += ("\u042d\u0442\u043e \u0437\u0430\u043f\u0440\u0435\u0449\u0435\u043d\u043e",)  # Russian


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("# Rules\nDo none of these:\n\n## A\npush\n## B\ndrop\n# C\nrun\n", ["Rules > Do none of these: > A"]),
        ("**Never do this**\n\n## A\npush\n", ["Never do this > A"]),
        ("# Rules\n\n- as here:\n\n## A\npush\n", ["Rules > A"]),
        ("# Rules\nDo none of these:\n# A\npush\n", ["A"]),
        ("Some words\nNever do this\n=====\n\n## A\npush\n", ["Some words Never do this > A"]),
        ("# Rules\n<never>\n\n## A\npush\n</never>\n\n## B\nrun\n", ["Rules > never > A", "Rules > B"]),
        ("<rules kind='forbidden'>\n\n## A\npush\n</rules>\n\n## B\nrun\n", ["rules kind='forbidden' > A", "B"]),
        (
            "<details>\n<summary><b>Never</b> do</summary>\n\n## A\npush\n</details>\n\n## B\nrun\n",
            ["Never do > A", "B"],
        ),
        (
            "<details><summary>Never</summary>\n<details>\n## A\na\n</details>\n## B\nb\n</details>\n## C\nc\n",
            ["Never > A", "Never > B", "C"],
        ),
        ("<h1>Never do</h1>\n\n## A\npush\n", ["Never do > A"]),
        ("# Rules\n\u274c Off limits\n\n## A\npush\n# B\nrun\n", ["Rules > \u274c Off limits > A", "B"]),
        ("# Rules\nAll of this is forbidden.\n\n## A\npush\n", ["Rules > All of this is forbidden. > A"]),
        ("# Rules\nThese hold for all.\n\n## A\npush\n", ["Rules > A"]),
        *((f"# R\n{line}\n\n## A\npush\n", [f"R > {line} > A"]) for line in FORBIDDEN),
        ("# Never\r\r## A\rpush\r", ["Never > A"]),
        ("<br>\n<div>\n\n## A\npush\n</div>\n", ["A"]),
        ("---\ntitle: Never do\n---\n## A\npush\n", ["Never do > A"]),
        ("---\nname: never-do\n---\npush\n", ["never-do"]),
        ("**\u274c DON'T**\n\n## A\npush\n\n**\u2705 DO**\n\n## B\nrun\n", ["\u274c DON'T > A", "\u2705 DO > B"]),
        ("Never do:\n## A\npush\n\nAlways do:\n## B\nrun\n", ["Never do: > A", "Always do: > B"]),
        ("**Never**\n\n## A\npush\n\n**Not even once.**\n\n## B\nrun\n", ["Never > A", "Never > B"]),
        ("# A\nUse tabs.\n<!--\n## B\npush\n-->\n# C\nrun\n", ["A", "C"]),
    ],
)
def test_what_stands_above_a_rule_stays_with_it(text: str, names: list[str], shell: Shell, tmp_path: Path) -> None:
    shell.run("import", "rules", str(folder(tmp_path / "web", CLAUDE=text)))
    here = guidelines(shell)
    assert [name for name in names if f"CLAUDE.md: {name}" not in here] == []
    assert not here.keys() & ({"CLAUDE.md: B", "CLAUDE.md: A > B"} - {f"CLAUDE.md: {name}" for name in names})


def test_an_import_below_other_headings_is_named(shell: Shell, tmp_path: Path) -> None:
    text = "# Always\n@x.md\n# Never\n@x.md\n@CLAUDE.md\n"
    done = shell.bring(folder(tmp_path / "web", CLAUDE=text, x="Push.\n"))
    assert done["remarks"] == ["left out: 1 x.md: imported below other headings already"]
    assert "x.md: Always" in guidelines(shell)


def test_rules_keep_the_ids_that_they_had_before_they_had_paths(shell: Shell, tmp_path: Path) -> None:
    project = rules_of(tmp_path / "web")
    shell.run("import", "rules", str(project))
    before = ("CLAUDE.md#Force push", "CLAUDE.md#Never commit these", "CLAUDE.md#Keys", "docs/keys.md#Private")
    assert sorted(guidelines(shell).values()) == sorted(stable_id("gl", "web", f"rules:{key}") for key in before)
    assert shell.bring(project)["counts"] == {"already there": 4, "left out": 0}


def test_rules_of_the_user_keep_the_headings_above_them(shell: Shell, tmp_path: Path) -> None:
    home = folder(tmp_path / "claude", CLAUDE=RULES["CLAUDE.md"])
    shell.run("import", "claude-code", str(home))
    assert "CLAUDE.md: Never do > Force push" in guidelines(shell)


@pytest.mark.parametrize("link", [".claude", ".claude/rules", ".cursor/rules", ".clinerules", ".github"])
def test_a_linked_folder_of_rules_is_left_out(link: str, shell: Shell, tmp_path: Path) -> None:
    neighbour = rules_of(tmp_path / "neighbour")
    for name in ("rules/a.md", "CLAUDE.md", "copilot-instructions.md", "instructions/b.md"):
        (neighbour / name).parent.mkdir(exist_ok=True)
        (neighbour / name).write_text("# CANARY\nCANARY\n", encoding="utf-8")
    project = tmp_path / "web"
    (project / link).parent.mkdir(parents=True, exist_ok=True)
    (project / link).symlink_to(neighbour)
    (project / "AGENTS.md").write_text("# Style\nUse tabs.\n", encoding="utf-8")
    done = shell.bring(project)
    assert done["counts"] == {"guidelines": 1, "already there": 0, "left out": 1}
    assert done["remarks"] == [f"left out: 1 {link}: a link"]
    assert b"CANARY" not in shell.export().read_bytes()


def test_an_import_through_a_link_is_left_out(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "a.md").write_text("CANARY", encoding="utf-8")
    project = tmp_path / "web"
    project.mkdir()
    (project / "docs").symlink_to("../private")
    (project / "hard.md").hardlink_to(tmp_path / "private" / "a.md")
    (project / "esc.md").write_text("\x1b[2J", encoding="utf-8")
    (project / "CLAUDE.md").write_text("Read @docs/a.md @hard.md @esc.md @docs/../../private/a.md.", encoding="utf-8")
    done = shell.bring(project)
    assert done["counts"] == {"guidelines": 1, "already there": 0, "left out": 4}
    assert sorted(done["remarks"]) == [
        "left out: 1 ../private/a.md: an import from outside the project, or of a file that is not there",
        "left out: 1 docs/a.md: a link",
        "left out: 1 esc.md: a text with control characters",
        "left out: 1 hard.md: a hard link",
    ]
    assert b"CANARY" not in shell.export().read_bytes()
