"""Forms around a source: archives in archives, TAR archives, single texts, JSON in a block of code, and plain texts."""

import io
import json
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from kernel.core.errors import Fault
from tests.imports.harness import Shell, rows
from tests.imports.sources import CLAUDE, CLAUDE_MEM, LETTA, OBSIDIAN, RULES, ZERO, json_file, text_files

TALKS = json.dumps(CLAUDE).encode()


def tar(path: Path, members: Mapping[str, bytes | None]) -> Path:
    """A TAR archive, compressed if its name says so; a member without content is a link."""
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.mtime, info.size = 1_700_000_000, len(data or b"")
            if data is None:
                info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(info, io.BytesIO(data or b""))
    return path


def zipped(members: Mapping[str, bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return data.getvalue()


def texts(files: Mapping[str, str]) -> dict[str, bytes]:
    return {f"top/{name}": text.encode() for name, text in files.items()}


@pytest.mark.parametrize("ending", [".tar", ".tar.gz", ".tgz"])
@pytest.mark.parametrize(
    ("members", "kind", "counts"),
    [
        (texts(OBSIDIAN), "obsidian", {"entities": 2, "links": 2, "memories": 1, "notes": 2, **ZERO}),
        (texts(RULES), "rules", {"guidelines": 5, **ZERO}),
        ({"conversations.json": TALKS}, "claude", {"memories": 2, **ZERO}),
        ({"a.af": json.dumps(LETTA).encode()}, "letta", {"memories": 3, "memory blocks": 2, **ZERO, "left out": 1}),
        ({"e.json": json.dumps(CLAUDE_MEM).encode()}, "claude-mem", {"memories": 2, **ZERO, "left out": 1}),
        (
            {"memory.jsonl": b'{"type":"entity","name":"A","entityType":"t","observations":["x"]}\n'},
            "server-memory",
            None,
        ),
    ],
)
def test_a_tar_archive_is_taken_as_what_it_holds(
    members: dict[str, bytes],
    kind: str,
    counts: Mapping[str, int] | None,
    ending: str,
    shell: Shell,
    tmp_path: Path,
) -> None:
    path = tar(tmp_path / f"all{ending}", members)
    dry = json.loads(shell.run("import", str(path), "--dry-run", "--json"))
    done = shell.bring(path)
    assert dry == {**done, "dry_run": True}
    assert (done["kind"], done["counts"]) == (kind, counts or {"entities": 1, "observations": 1, "relations": 0})
    assert {name for name, count in shell.bring(path)["counts"].items() if count} <= {"already there", "left out"}


def test_links_and_members_of_one_name_of_a_tar_archive_cost_no_other(shell: Shell, tmp_path: Path) -> None:
    path = tar(tmp_path / "v.tar", {"v/a.md": b"Alpha.", "v/b.md": None, "v/c.md": b"Gamma."})
    with tarfile.open(path, "a") as archive:
        info = tarfile.TarInfo("v/a.md")
        info.size = 3
        archive.addfile(info, io.BytesIO(b"New"))
    done = shell.bring(path)
    assert done == {
        "kind": "obsidian",
        "counts": {"notes": 2, "already there": 0, "left out": 2},
        "remarks": ["left out: 1 v/b.md: a link", "left out: 1 v/a.md: a later member has its name"],
    }
    text = shell.export().read_text(encoding="utf-8")
    assert ("New" in text, "Alpha" in text, "2023-11-14T22:13:20" in text) == (True, False, True)


def test_a_tar_archive_beside_its_folder_brings_nothing_twice(shell: Shell, tmp_path: Path) -> None:
    shell.bring_kind("obsidian", text_files("notes", {"a.md": "Alpha.", "b.md": "Beta."})(tmp_path))
    path = tar(tmp_path / "notes.tar.gz", {"notes/a.md": b"Alpha.", "notes/b.md": b"Beta!"})
    assert shell.bring_kind("obsidian", path)["counts"] == {"already there": 1, "updated": 1, "left out": 0}


def test_a_later_archive_of_an_export_archives_what_is_gone(shell: Shell, tmp_path: Path) -> None:
    rows = [{"id": name, "memory": f"Fact {name}."} for name in "ab"]
    shell.bring(tar(tmp_path / "m.tgz", {"memories.json": json.dumps(rows).encode()}))
    done = shell.bring(tar(tmp_path / "m.tgz", {"memories.json": json.dumps(rows[:1]).encode()}))
    assert (done["counts"], done["remarks"]) == (
        {"archived": 1, "already there": 1, "left out": 0},
        ["archived: 1 Fact b.: gone at the source"],
    )


def test_an_archive_of_exports_is_taken_as_what_they_hold(shell: Shell, tmp_path: Path) -> None:
    part = zipped({"conversations.json": TALKS, "users.json": b"[]"})
    (tmp_path / "all.zip").write_bytes(zipped({"data.zip": part, "again.zip": part}))
    done = shell.bring(tmp_path / "all.zip")
    assert done == {
        "kind": "claude",
        "counts": {"memories": 2, "already there": 0, "left out": 3},
        "remarks": [
            "left out: 2 conversations.json, users.json: cannot be unpacked: File exists",
            "left out: 1 users.json: is no file with memories",
        ],
    }
    with pytest.raises(Fault, match=r"conversations\.json: cannot be unpacked: File exists"):
        shell.bring(tmp_path / "all.zip", "--strict")
    (tmp_path / "deep.zip").write_bytes(zipped({"all.zip": (tmp_path / "all.zip").read_bytes()}))
    with pytest.raises(
        Fault, match=r"^deep\.zip: holds archives of archives: unpack it first\. Nothing was imported\.$"
    ):
        shell.bring(tmp_path / "deep.zip")


@pytest.mark.parametrize(
    ("name", "text", "counts"),
    [
        ("a.jsonl", '"Likes tea."\n\n"Has a cat."\n', {"memories": 2, **ZERO}),
        (
            "a.json",
            '{"work": ["Uses vim.", "Likes tea."], "home": ["Likes tea."], "none": []}',
            {"memories": 3, **ZERO},
        ),
        ("a.md", '```json\n[{"id": "1", "memory": "Likes tea."}]\n```\n', {"memories": 1, **ZERO}),
        ("a.txt", '\ufeff\r\n```\r\n{"work": ["Uses vim."]}\r\n```\r\n', {"memories": 1, **ZERO}),
    ],
)
def test_plain_texts_and_blocks_of_code_are_memories(
    name: str, text: str, counts: Mapping[str, int], shell: Shell, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    done = shell.bring(tmp_path / name)
    assert done == {"kind": "mem0", "counts": counts, "remarks": []}
    assert shell.bring(tmp_path / name)["counts"] == {"already there": counts["memories"], "left out": 0}


def test_lists_of_texts_have_their_categories(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"work": ["Uses vim.", 5], "home": ["Likes tea."]}')
    done = shell.bring(tmp_path / "a.json")
    assert done["remarks"] == ["left out: 1 line 1, work: is no text"]
    rows = [json.loads(line).get("row", {}) for line in shell.export().read_text(encoding="utf-8").splitlines()]
    pairs = {(row["category"], row["content"]) for row in rows if "category" in row and "content" in row}
    assert pairs == {("work", "Uses vim."), ("home", "Likes tea.")}


def test_damaged_lines_of_texts_cost_no_other(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('"Likes tea."\nnull\n{"memory": "Has a cat."}\n"Uses vim."\n"cut')
    done = shell.bring(tmp_path / "a.jsonl")
    assert (done["counts"]["memories"], done["remarks"]) == (
        3,
        ["left out: 1 line 2: is no JSON object", "left out: 1 line 5: was cut off"],
    )


def test_the_text_around_a_block_of_code_is_named(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text('Your memories:\n```json\n[{"id": "1", "memory": "Likes tea."}]\n```\nMore?')
    assert shell.bring(path)["remarks"] == ["left out: 1 a.md: the text around a block of code"]
    path.write_text(
        '# Tea\n\nA long text, of which the example is the smaller part.\n\n```json\n{"memory": "x"}\n```\n'
    )
    assert (shell.bring(path)["kind"], shell.bring_kind("okf", path)["counts"]["notes"]) == ("obsidian", 1)


def test_a_single_text_is_a_vault_of_one_note(shell: Shell, tmp_path: Path) -> None:
    folder = text_files(
        "vault", {"a.md": "# Alpha\n\n- [fact] Tea is green #tea\n", "b.txt": "Beta.\n", "c.md": "C.\n"}
    )(tmp_path)
    assert shell.bring(folder / "a.md")["counts"] == {"entities": 1, "links": 1, "memories": 1, "notes": 1, **ZERO}
    assert shell.bring(folder / "b.txt")["counts"] == {"notes": 1, **ZERO}
    assert shell.bring_kind("obsidian", folder)["counts"] == {"notes": 1, "already there": 4, "left out": 1}
    (folder / "a.md").write_text("# Alpha\n\nNo tea.\n")
    done = shell.bring(folder / "a.md")
    assert done["counts"] == {"archived": 1, "updated": 1, "already there": 0, "left out": 0}


def test_a_file_that_an_agent_keeps_in_a_store_as_lines_is_one_text(shell: Shell, tmp_path: Path) -> None:
    value = {"content": ["# Tea", "", "Green."], "tags": ["a", "b"]}
    source = json_file("store.json", [{"namespace": ["files"], "key": "/tea.md", "value": value}])(tmp_path)
    shell.bring(source)
    (row,) = rows(shell, "brain_memory")
    metadata = json.loads(row["metadata"])
    assert (row["content"], metadata["tags"]) == ("# Tea\n\nGreen.", ["a", "b"])


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        ("It rains.\ue200cite\ue202turn0search3\ue202turn1view0\ue201 Often.", "It rains. Often."),
        ('Ask \ue200entity\ue202["people", "Ada Ray", 0]\ue201 soon.', "Ask Ada Ray soon."),
        ("Ask \ue200entity\ue202[broken\ue201 soon.", "Ask  soon."),
        ("No end \ue200cite\ue202turn0", "No end \ue200cite\ue202turn0"),
    ],
)
def test_marks_in_answers_of_chatgpt_are_no_text(answer: str, kept: str, shell: Shell, tmp_path: Path) -> None:
    nodes = {
        "q": {"parent": None, "message": {"author": {"role": "user"}, "content": {"parts": ["Weather?"]}}},
        "a": {"parent": "q", "message": {"author": {"role": "assistant"}, "content": {"parts": [answer]}}},
    }
    shell.bring(json_file("conversations.json", [{"id": "c", "mapping": nodes, "current_node": "a"}])(tmp_path))
    (row,) = rows(shell, "sessions_memory")
    assert row["content"] == f"Question: Weather?\n\nAnswer: {kept}"
