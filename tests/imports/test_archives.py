"""ZIP archives of folders, and archives of which a part is damaged."""

import json
import stat
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kernel.core.errors import Fault
from tests.imports.harness import Shell
from tests.imports.sources import SOURCES, ZERO, text_files

TALKS = [{"uuid": "u", "name": "n", "chat_messages": [{"sender": "human", "text": "Which tea?"}]}]
ZOO = [{"uuid": "p", "name": "Zoo", "description": "Cats and dogs"}]
ENTITIES = [{"type": "entity", "name": name, "entityType": "t", "observations": ["x"]} for name in "AB"]


def archive(path: Path, members: Mapping[str, str], change: Callable[[bytes], bytes] = bytes) -> Path:
    """A ZIP archive without compression, changed afterwards."""
    with zipfile.ZipFile(path, "w") as target:
        for name, text in members.items():
            target.writestr(name, text)
    path.write_bytes(change(path.read_bytes()))
    return path


@pytest.mark.parametrize(
    ("members", "kind", "counts"),
    [
        (
            {"v/.obsidian/app.json": "{}", "v/a.md": "See [[B: x]].", "v/B: x.md": "Beta.", "v/p.png": "-"},
            "obsidian",
            2,
        ),
        ({"a.md": "Alpha.", "__MACOSX/._a.md": "\0\1"}, "obsidian", 1),
        ({"index.md": "---\nokf_version: '0.2'\n---\n", "a.md": "---\ntype: t\n---\nAlpha."}, "okf", 1),
        ({"a.md": "---\npermalink: a\n---\nAlpha.", "b/c.md": "Beta."}, "basic-memory", 2),
        (
            {"web-main/CLAUDE.md": "# A\nUse tabs.\n", "web-main/.cursorrules": "Be kind.", "web-main/a.py": ""},
            "rules",
            2,
        ),
    ],
)
def test_an_archive_of_a_folder_is_taken_as_the_folder(
    members: dict[str, str], kind: str, counts: int, shell: Shell, tmp_path: Path
) -> None:
    done = shell.bring(archive(tmp_path / "v.zip", members))
    assert done["kind"] == kind
    assert counts == done["counts"].get("notes", 0) + done["counts"].get("guidelines", 0)
    assert [remark.partition(" (")[0] for remark in done["remarks"]] in (
        [],
        ["left out: 1 p.png: is no Markdown file"],
        ["left out: 1 index.md: a list of other pages"],
    )


def test_an_archive_beside_its_folder_brings_nothing_twice(shell: Shell, tmp_path: Path) -> None:
    files = {"a.md": "Alpha.", "sub/b.md": "Beta."}
    folder = text_files("notes", files)(tmp_path)
    assert shell.bring_kind("obsidian", folder)["counts"] == {"notes": 2, **ZERO}
    path = archive(tmp_path / "notes.zip", {f"notes/{name}": text for name, text in files.items()})
    assert shell.bring_kind("obsidian", path)["counts"] == {"already there": 2, "left out": 0}


def test_a_damaged_note_of_an_archive_costs_no_other(shell: Shell, tmp_path: Path) -> None:
    path = archive(
        tmp_path / "v.zip", {"a.md": "Alpha.", "b.md": "Beta."}, lambda data: data.replace(b"Alpha", b"Alphx")
    )
    done = shell.bring(path)
    assert (done["counts"]["notes"], done["remarks"]) == (
        1,
        ["left out: 1 a.md: cannot be unpacked: Bad CRC-32 for file 'a.md'"],
    )
    with pytest.raises(Fault, match=r"a\.md: cannot be unpacked"):
        shell.bring(path, "--strict")


def test_a_damaged_part_of_an_archive_of_archives_costs_no_other(shell: Shell, tmp_path: Path) -> None:
    path = SOURCES["notion"].make(tmp_path)
    with zipfile.ZipFile(path) as whole:
        parts = {name: whole.read(name) for name in whole.namelist()}
    with zipfile.ZipFile(path, "w") as whole:
        whole.writestr("ExportBlock-1-Part-1.zip", parts["ExportBlock-1-Part-1.zip"])
        whole.writestr("ExportBlock-1-Part-2.zip", parts["ExportBlock-1-Part-2.zip"][:60])
    done = shell.bring(path)
    assert (done["counts"]["notes"], done["counts"]["left out"]) == (1, 2)
    assert any("ExportBlock-1-Part-2.zip: is no ZIP archive that can be read" in remark for remark in done["remarks"])


def test_an_archive_in_a_vault_is_no_part_of_it(shell: Shell, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "v.zip", "w") as whole:
        whole.write(SOURCES["notion"].make(tmp_path), "files/old.zip")
        whole.writestr("a.md", "Alpha.")
    done = shell.bring(tmp_path / "v.zip")
    assert (done["counts"]["notes"], done["remarks"]) == (1, ["left out: 1 files/old.zip: is no Markdown file"])


def test_a_damaged_member_of_an_export_is_named(shell: Shell, tmp_path: Path) -> None:
    members = {"conversations.json": json.dumps(TALKS), "projects.json": json.dumps(ZOO)}
    done = shell.bring(archive(tmp_path / "d.zip", members, lambda data: data.replace(b"Cats and", b"Cbts and")))
    assert (done["counts"]["memories"], done["counts"]["left out"]) == (1, 1)
    assert done["remarks"][0].startswith("left out: 1 projects.json: ")


@pytest.mark.parametrize("kind", ["server-memory", "mem0"])
def test_an_archive_whose_beginning_is_damaged_is_no_lines_of_json(kind: str, shell: Shell, tmp_path: Path) -> None:
    rows: Any = ENTITIES if kind == "server-memory" else [{"id": "a", "memory": "Likes tea."}]
    names = ("memories.json", "memories.jsonl")
    members = {name: "\n".join(map(json.dumps, rows)) for name in names}
    path = archive(tmp_path / "memory.json", members, lambda data: b"----" + data[4:])
    done = shell.bring_kind(kind, path)
    assert done["counts"]["left out"] == 1
    assert done["remarks"][0].startswith("left out: 1 memories.json: ")
    assert sum(done["counts"].values()) > 1


def test_links_and_members_of_one_name_cost_no_other(shell: Shell, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "web.zip", "w") as target:
        link = zipfile.ZipInfo("AGENTS.md")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        target.writestr(link, "CLAUDE.md")
        target.writestr("CLAUDE.md", "# A\nOld.\n")
        with pytest.warns(UserWarning, match="Duplicate name"):
            target.writestr("CLAUDE.md", "# A\nNew.\n")
    done = shell.bring(tmp_path / "web.zip")
    assert done["counts"] == {"guidelines": 1, "already there": 0, "left out": 2}
    assert sorted(done["remarks"]) == [
        "left out: 1 AGENTS.md: a link",
        "left out: 1 CLAUDE.md: a later member has its name",
    ]
    assert "New." in shell.export().read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "reason"),
    [("lamp.md/below.md", "File exists"), (f"{'long' * 70}.md", "File name too long")],
)
def test_a_member_that_no_folder_can_hold_costs_no_other(name: str, reason: str, shell: Shell, tmp_path: Path) -> None:
    done = shell.bring_kind("obsidian", archive(tmp_path / "v.zip", {"lamp.md": "A lamp.", name: "A bell."}))
    assert done["counts"] == {"notes": 1, "already there": 0, "left out": 1}
    (remark,) = done["remarks"]
    assert remark.endswith(f": cannot be unpacked: {reason}")


def test_an_archive_of_nothing_but_folders_is_empty_and_not_encrypted(shell: Shell, tmp_path: Path) -> None:
    with pytest.raises(Fault, match="holds nothing that can be imported"):
        shell.bring_kind("obsidian", archive(tmp_path / "v.zip", {"notes/": ""}))
