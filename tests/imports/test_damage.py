"""Damaged and hostile sources: the parts that are whole are imported, and the others named; nothing grows without
bound.
"""

import gzip
import hashlib
import io
import json
import os
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from handlers.importers import archives, text_files
from kernel.core.errors import Fault
from kernel.store import long_work
from tests.imports.damage import places, spoiled
from tests.imports.harness import Shell, perhaps_refused
from tests.imports.sources import MEMBERS, ROWS, SOURCES, json_file, written
from tests.imports.sources import text_files as folder_of

CUTS, FLIPS = (5, 8) if "DAMAGED_IMPORTS" in os.environ else (3, 4)
FOLDERS = {
    *("basic-memory", "claude-code", "claude-code sessions", "codex", "codex sessions", "cogx folder"),
    *("gemini-cli folder", "obsidian", "okf", "rules"),
}
FILES = [name for name in SOURCES if name not in FOLDERS]


def damaged(data: bytes) -> Iterator[bytes]:
    """Copies that are cut, or have one flipped byte, at even distances."""
    for part in range(1, CUTS):
        yield data[: len(data) * part // CUTS]
    for place in range(FLIPS):
        at = len(data) * place // FLIPS
        yield data[:at] + bytes([data[at] ^ 0x5A]) + data[at + 1 :]


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_imported_but_for_what_is_told_or_refused(name: str, shell: Shell, tmp_path: Path) -> None:
    given = SOURCES[name]
    path = given.make(tmp_path)
    data, before = path.read_bytes(), shell.export().read_bytes()
    for copy in damaged(data):
        path.write_bytes(copy)
        for options in ((), ("--strict",)):
            fault = _import_and_undo(shell, given.kind, path, *options)
            if fault is not None:
                said = (fault.code, fault.message.isprintable(), fault.message[-1], path.name in fault.message)
                assert said == ("invalid", True, ".", True)
            assert shell.export().read_bytes() == before
    shell.run("check")


def _import_and_undo(shell: Shell, kind: str, path: Path, *options: str) -> Fault | None:
    """Imports a file, and takes that back; the Fault where it was refused."""
    try:
        shell.run("import", kind, str(path), *options, "--json")
    except Fault as fault:
        return fault
    last = shell.audit()[:1]
    if last and last[0]["outcome"] == "done":
        shell.run("undo", str(last[0]["id"]))
    return None


def test_a_damaged_export_of_everything_is_refused(shell: Shell, other: Shell, tmp_path: Path) -> None:
    shell.bring(SOURCES["mem0"].make(tmp_path))
    path = shell.export()
    before = other.export().read_bytes()
    data = path.read_bytes()
    for copy in damaged(data):
        path.write_bytes(copy)
        with pytest.raises(Fault, match=r"line \d+|ends before its last line"):
            other.run("import", "jsonl", str(path))
    assert other.export().read_bytes() == before


def test_what_fails_after_the_first_slice_is_taken_back(
    shell: Shell, other: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_work, "SLICE_SECONDS", -1.0)
    shell.bring(SOURCES["mem0 history"].make(tmp_path))
    shell.bring(SOURCES["rules"].make(tmp_path))
    whole = shell.export()
    row = next(line for line in whole.read_bytes().splitlines() if b'"table":"scopes_version"' in line)
    scopes = other.config.file
    other.bring(SOURCES["rules"].make(tmp_path / "again"))
    lines = [
        line.replace(b"Be kind", b"Be curt") if line == row else line for line in whole.read_bytes().splitlines()[:-1]
    ]
    assert scopes.exists()
    rewritten = tmp_path / "rewritten.jsonl"
    rewritten.write_bytes(_sealed(lines))
    before = other.export().read_bytes()
    with pytest.raises(Fault, match=r"line \d+: holds a row of scopes_\w+ that is here with another content"):
        other.run("import", str(rewritten))
    assert other.export().read_bytes() == before


ODD_VALUES = ("a b", -1.5, None, "a b", -1.5)
MOST_ODD = 3 if "DAMAGED_IMPORTS" in os.environ else 1
FILLING = ("mem0 history", "rules", "claude-mem", "server-memory", "obsidian", "letta")


def test_no_type_of_any_value_in_an_export_of_everything_raises(shell: Shell, other: Shell, tmp_path: Path) -> None:
    for name in FILLING:
        folder = tmp_path / name.replace(" ", "-")
        folder.mkdir()
        shell.bring(SOURCES[name].make(folder))
    lines = shell.export().read_bytes().splitlines()[:-1]
    before = other.export().read_bytes()
    path = tmp_path / "spoiled.jsonl"
    tried = set[tuple[Any, ...]]()
    for at, line in enumerate(lines):
        value = json.loads(line)
        for place in places(value):
            kind = (value.get("table"), *place)
            for odd in () if kind in tried else ODD_VALUES[len(tried) % 3 :][:MOST_ODD]:
                spoiled_line = json.dumps(spoiled(value, place, odd)).encode()
                path.write_bytes(_sealed([*lines[:at], spoiled_line, *lines[at + 1 :]]))
                with perhaps_refused():
                    other.run("import", "jsonl", str(path))
                    other.run("undo", str(other.audit()[0]["id"]))
            tried.add(kind)
    assert other.export().read_bytes() == before


def _sealed(lines: list[bytes]) -> bytes:
    body = b"".join(line + b"\n" for line in lines)
    return body + json.dumps({"end": len(lines), "sha256": hashlib.sha256(body).hexdigest()}).encode()


def test_an_archive_that_unpacks_to_too_much_is_refused(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MAX_MEMBER_BYTES", 10_000)
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", '[{"mapping": {}, "x": "' + "a" * 20_000 + '"}]')
    with pytest.raises(Fault, match="holds more than"):
        shell.run("import", "chatgpt", str(tmp_path / "bomb.zip"))
    with tarfile.open(tmp_path / "bomb.cogx.tar.gz", "w:gz") as tar:
        info = tarfile.TarInfo("memories.jsonl")
        info.size = 20_000
        tar.addfile(info, io.BytesIO(b"a" * 20_000))
    with pytest.raises(Fault, match="holds more than"):
        shell.run("import", "cogx", str(tmp_path / "bomb.cogx.tar.gz"))


def test_lists_and_names_that_are_larger_than_an_archive_are_refused(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "_MAX_DIRECTORY_BYTES", 1000)
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
        for number in range(100):
            archive.writestr(f"conversations-{number}.json", "[]")
    with pytest.raises(Fault, match=r"its list of members has \d+ bytes"):
        shell.run("import", "chatgpt", str(tmp_path / "many.zip"))
    with tarfile.open(tmp_path / "long.cogx.tar.gz", "w:gz", format=tarfile.GNU_FORMAT) as tar:
        tar.addfile(tarfile.TarInfo("a" * 70_000), io.BytesIO())
    with pytest.raises(Fault, match=r"its member 1 has a name of 70001 bytes"):
        shell.run("import", "cogx", str(tmp_path / "long.cogx.tar.gz"))


@pytest.mark.parametrize(
    "header",
    [b"1" * 60_000, b"12 a=%s\n", b"3 \n" * 20_000, b"4 a=\n", b"9 a=b\n", b"121 a=" + b"1" * 114 + b"\n"],
    ids=["digits", "a longer record", "no names", "a shorter record", "a wrong length", "digits in a record"],
)
def test_a_header_of_a_tar_archive_that_is_no_list_of_records_is_refused(
    header: bytes, shell: Shell, tmp_path: Path
) -> None:
    extended, member = tarfile.TarInfo("x"), tarfile.TarInfo("a.md")
    extended.type, extended.size = tarfile.XHDTYPE, len(header)
    with (tmp_path / "notes.tar").open("wb") as file:
        file.write(extended.tobuf(tarfile.USTAR_FORMAT) + header + bytes(-len(header) % 512))
        file.write(member.tobuf(tarfile.USTAR_FORMAT) + bytes(1024))

    with pytest.raises(Fault, match=r"its member 1 has a header that is none"):
        shell.run("import", "obsidian", str(tmp_path / "notes.tar"))


def test_records_in_the_headers_of_a_tar_archive_are_read(shell: Shell, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "notes.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo(f"{'ü' * 100}.md")
        info.mtime, info.size = 1_700_000_000.25, 5
        info.pax_headers = {"comment": "x=y\n5 z", "SCHILY.xattr.user.kind": "1=\0"}
        tar.addfile(info, io.BytesIO(b"Good."))

    shell.run("import", "obsidian", str(tmp_path / "notes.tar"))

    assert "Good." in shell.export().read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["../out.json", "/tmp/out.json", "a\\..\\b.json", "C:/x.json"])
def test_an_archive_whose_members_lead_out_of_it_is_refused(name: str, shell: Shell, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "out.zip", "w") as archive:
        archive.writestr("conversations.json", "[]")
        info = zipfile.ZipInfo("x")
        info.filename = name
        archive.writestr(info, "[]")
    with pytest.raises(Fault, match=r"would lead out of the archive"):
        shell.run("import", "chatgpt", str(tmp_path / "out.zip"))
    with tarfile.open(tmp_path / "out.cogx.tar.gz", "w:gz") as tar:
        tar.addfile(tarfile.TarInfo(name), io.BytesIO())
    with pytest.raises(Fault, match=r"would lead out of the archive"):
        shell.run("import", "cogx", str(tmp_path / "out.cogx.tar.gz"))


def test_links_and_devices_in_a_source_are_not_followed(shell: Shell, tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("# Secret\n")
    folder = folder_of("vault", {"a.md": "A.\n", "CLAUDE.md": "See @../secret.md and @linked.md\n"})(tmp_path)
    (folder / "linked.md").symlink_to(secret)
    assert shell.bring(folder, "--dry-run")["counts"]["left out"] == 1
    shell.run("import", "obsidian", str(folder))
    assert b"Secret" not in shell.export().read_bytes()
    with tarfile.open(tmp_path / "link.cogx.tar.gz", "w:gz") as tar:
        info = tarfile.TarInfo("memories.jsonl")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(info)
    with pytest.raises(Fault, match=r"^link\.cogx\.tar\.gz: holds no manifest\.json\. Nothing was imported\.$"):
        shell.run("import", "cogx", str(tmp_path / "link.cogx.tar.gz"))


def test_front_matter_without_bounds_is_read_as_lines(shell: Shell, tmp_path: Path) -> None:
    deep = "title: Deep\nx: " + "[" * 60 + "]" * 60
    folder = folder_of(
        "vault",
        {
            "deep.md": f"---\n{deep}\n---\nBody.\n",
            "bomb.md": "---\na: &a [x, x]\nb: [*a, *a]\n---\nBody.\n",
            "long.md": "---\nx: " + "y" * 100_000 + "\n---\nBody.\n",
            "open.md": "---\ntitle: No end\n",
        },
    )(tmp_path)
    assert json.loads(shell.run("import", "obsidian", str(folder), "--json"))["counts"]["notes"] == 4


def test_deep_json_and_huge_files_are_refused(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deep.json").write_text('[{"memory": "x", "metadata": ' + "[" * 100_000 + "]" * 100_000 + "}]")
    with pytest.raises(Fault, match=r"^deep\.json holds nothing that can be imported: near byte 1: is no JSON\.$"):
        shell.run("import", "mem0", str(tmp_path / "deep.json"))
    monkeypatch.setattr(text_files, "MAX_TEXT_BYTES", 10)
    folder = folder_of("vault", {"a.md": "A text of more than ten bytes.\n"})(tmp_path)
    with pytest.raises(Fault, match="has more than 0 MB of text"):
        shell.run("import", "obsidian", str(folder))


def test_a_line_that_cannot_be_read_is_named(shell: Shell, tmp_path: Path) -> None:
    folder = SOURCES["cogx folder"].make(tmp_path)
    with (folder / "memories.jsonl").open("a") as file:
        file.write('{"kind": "memory", "content": \n')
    with pytest.raises(Fault, match=r"^cogx: memories\.jsonl, line 4: was cut off\. Nothing was imported\.$"):
        shell.run("import", str(folder), "--strict")
    assert shell.audit() == []
    done = shell.bring(folder)
    assert done["counts"] == {**SOURCES["cogx folder"].counts, "left out": 2}
    assert "left out: 1 memories.jsonl, line 4: was cut off" in done["remarks"]


@pytest.mark.parametrize("kind", ROWS)
def test_a_row_that_is_none_costs_no_other_in_any_export(kind: str, shell: Shell, tmp_path: Path) -> None:
    first, second, third = ROWS[kind]
    texts = {
        "null": written(kind, [first, None, second, 3, third]),
        "a list": written(kind, [first, "text", second, [3], third]),
        "torn": written(kind, [first, second, third, first])[:-8],
        "two lacking a quote": written(kind, [first, {"x": "QUOTE"}, second, third]).replace('QUOTE"', ""),
        "half an emoji": written(kind, [first, {**second, "x": "HALF"}, third]).replace("HALF", "\\ud83d"),
        "Latin-1": written(kind, [first, {**second, "x": "HALF"}, third]).replace("HALF", "\udce9"),
        "a byte order mark": "\ufeff" + written(kind, [first, second, third]),
        "a text of JSON": json.dumps(written(kind, [first, second, third])),
    }
    for name, text in texts.items():
        path = tmp_path / "export.json"
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        dry = json.loads(shell.run("import", kind, str(path), "--dry-run", "--json"))
        done = shell.bring_kind(kind, path)
        assert dry == {**done, "dry_run": True}
        assert (name, done["counts"]["memories"]) == (name, 3)
        assert len(done["remarks"]) == (name in {"null", "a list", "torn", "two lacking a quote"})
        assert all(remark.startswith("left out: ") for remark in done["remarks"])
        shell.run("undo", str(shell.audit()[0]["id"]))
        if done["remarks"]:
            with pytest.raises(Fault, match=r"^export\.json: near byte \d+: .*\. Nothing was imported\.$"):
                shell.run("import", kind, str(path), "--strict")


@pytest.mark.parametrize(
    ("kind", "other"),
    [
        ("engram", "prompts"),
        ("engram", "user_prompts"),
        ("claude-mem", "summaries"),
        ("mem0", "items"),
        ("letta", "blocks"),
    ],
)
def test_a_list_that_is_null_is_no_row(kind: str, other: str, shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_text(json.dumps({MEMBERS.get(kind, "results"): ROWS[kind], other: None}), encoding="utf-8")
    done = shell.bring_kind(kind, path)
    assert (done["counts"]["memories"], done["counts"]["left out"], done["remarks"]) == (3, 0, [])


def test_an_object_that_is_cut_off_costs_no_other_laid_out_in_another_way(shell: Shell, tmp_path: Path) -> None:
    whole = [{"type": "entity", "name": name, "entityType": "t", "observations": ["Tea."]} for name in "ABC"]
    texts = [json.dumps(row, indent=2) for row in whole]
    path = tmp_path / "memory.jsonl"
    path.write_text("\n".join([texts[0], '{\n "type": "entity",\n "name": "D"', json.dumps(whole[1]), texts[2]]))
    done = shell.bring(path)
    assert (done["counts"]["entities"], done["remarks"]) == (3, ["left out: 1 near byte 95: is no JSON"])


def test_lines_of_objects_are_rows_of_mem0(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "memory.jsonl"
    path.write_text("\n".join([*(json.dumps(row) for row in ROWS["mem0"]), '{"id": "4", "mem']))
    done = shell.bring(path)
    assert (done["kind"], done["counts"]) == ("mem0", {"memories": 3, "already there": 0, "left out": 1})
    assert done["remarks"] == ["left out: 1 line 4: was cut off"]


def test_a_session_in_use_is_imported_without_the_line_that_is_half_written(shell: Shell, tmp_path: Path) -> None:
    path = SOURCES["claude-code session"].make(tmp_path)
    path.write_text(
        f'{path.read_text()}\nnull\n{{"type": "user", "sessionId": "s9", "message": {{"content": "see {{x}}'
    )
    done = shell.bring(path)
    assert done["counts"] == {"memories": 1, "already there": 0, "left out": 4}
    assert {"left out: 1 line 4: is no JSON object", "left out: 1 line 5: was cut off"} <= {*done["remarks"]}


def test_a_gzip_that_is_cut_off_is_refused(shell: Shell, tmp_path: Path) -> None:
    path = SOURCES["cogx"].make(tmp_path)
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes())[:3000]))
    with pytest.raises(Fault, match=r"is no archive that can be read|holds no manifest"):
        shell.run("import", "cogx", str(path))


def test_what_cannot_be_opened_is_refused_with_its_name(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for name, problem in {
        "none": "cannot be read: No such",
    }.items():
        with pytest.raises(Fault, match=rf"^{name}: ({problem})"):
            shell.run("import", "mem0", str(tmp_path / name))
    with pytest.raises(Fault, match=r"^folder holds nothing that can be imported"):
        shell.run("import", "mem0", str(tmp_path / "folder"))
    with pytest.raises(Fault, match=r"^none: is no folder"):
        shell.run("import", "obsidian", str(tmp_path / "none"))
    db = apsw.Connection(str(tmp_path / "view.db"))
    db.execute("CREATE TABLE sdk_sessions (x); CREATE VIEW observations AS SELECT 1 AS id")
    db.close()
    with pytest.raises(Fault, match=r"^view\.db: has no table observations"):
        shell.run("import", "claude-mem", str(tmp_path / "view.db"))


@pytest.mark.skipif(sys.platform != "linux", reason="other file systems have no names that are no text")
def test_a_name_that_is_no_text_is_refused(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    Path(os.fsdecode(os.fsencode(tmp_path / "vault") + b"/a\xff.md")).write_text("A.")
    with pytest.raises(Fault, match="has a name that is no text"):
        shell.run("import", "obsidian", str(tmp_path / "vault"))


def test_values_of_other_types_and_sizes_are_taken_or_left_out(shell: Shell, tmp_path: Path) -> None:
    rows = [
        {"id": "1", "memory": "large", "metadata": {"x": "y" * 5_000_000}},
        {"id": "2", "memory": "NUL \0 inside", "created_at": 1e308},
        {"id": 3, "memory": "numbers", "categories": 5, "metadata": [], "created_at": -1, "user_id": {"a": 1}},
        {"id": "4", "memory": {"no": "text"}},
    ]
    done = shell.bring(json_file("mem0.json", rows)(tmp_path))
    assert done["counts"] == {"memories": 3, "already there": 0, "left out": 1}
    loop = {"id": "c", "current_node": "a", "mapping": {"a": {"parent": "b"}, "b": {"parent": "a"}}}
    odd = [loop, {"mapping": [1], "current_node": ["x"]}, {"mapping": {"a": 3}, "current_node": "a", "title": {"a": 1}}]
    done = json.loads(shell.run("import", "chatgpt", str(json_file("conversations.json", odd)(tmp_path)), "--json"))
    assert done["counts"] == {"already there": 0, "left out": 3}
    shell.run("check")


def test_an_unknown_version_is_refused(shell: Shell, tmp_path: Path) -> None:
    folder = SOURCES["cogx folder"].make(tmp_path)
    (folder / "manifest.json").write_text('{"cogx_version": "1.0"}')
    with pytest.raises(Fault, match=r"is of the version 1\.0 of COGX"):
        shell.run("import", str(folder))


def test_a_list_of_no_memories_is_refused(shell: Shell, tmp_path: Path) -> None:
    for value, problem in (
        ([], r"\."),
        ({"results": []}, r"\."),
        ({"other": 1}, r": line 1: has none of memory, text, data, content\."),
        ([1], r": near byte 1: is no JSON object\."),
    ):
        path = json_file("mem0.json", value)(tmp_path)
        with pytest.raises(Fault, match=rf"^mem0\.json holds nothing that can be imported{problem}$"):
            shell.run("import", "mem0", str(path))


@pytest.mark.parametrize("kind", [[], ["mem0"]])
def test_a_table_is_refused_with_the_call_that_brings_it(kind: list[str], shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("id,memory\n1,Likes tea\n")
    with pytest.raises(Fault, match=r"m\.csv is a table.*`quipu import mem0 FILE`"):
        shell.run("import", *kind, str(tmp_path / "m.csv"))


def test_json_with_comments_is_known_and_read(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text('/* mine */\n{"results": [{"id": "a", "memory": "http://x //y",}, // b\n]}')
    assert shell.bring(tmp_path / "m.json")["counts"] == {"memories": 1, "already there": 0, "left out": 0}
    assert "http://x //y" in shell.export().read_text(encoding="utf-8")
