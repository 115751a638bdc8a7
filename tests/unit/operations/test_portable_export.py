"""A row that no tool writes: an import refuses it, `check` names it, and no tool fails because of one that is there."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from kernel.calls.dispatch import Dispatch
from kernel.cli.main import main
from kernel.operations.portable_export import problem_of
from kernel.server.app import DIALECTS, Kernel, open_kernel
from tests.conftest import Call

CORPUS = Path(__file__).parents[2] / "reliability" / "corpus" / "tools.json"
BROKEN = ["x", "0000-01-01", "2026-13-45", "\x1b[31m", "9" * 30]


def fill(call: Call) -> None:
    """Calls every tool as the corpus does."""
    for name, given in json.loads(CORPUS.read_text(encoding="utf-8")).items():
        for arguments in given:
            call(name, **arguments)


def every_call(call: Call) -> list[str]:
    """The calls of the corpus that fail by a bug of ours, and searches of everything."""
    asked = json.loads(CORPUS.read_text(encoding="utf-8"))
    searches = {
        "recall": [{}, {"query": "postgres", "weights": {"recency": 1}}, {"as_of": "2030-01-01", "detail": "text"}],
        "search_memory": [{"query": "the", "session_id": "*"}],
    }
    return [
        f"{name} {arguments}"
        for found in (searches, asked)
        for name, given in found.items()
        for arguments in given
        if call(name, **arguments).fault == "internal"
    ]


def break_times(file: Path, value: str) -> int:
    """Writes a value into every column of a time; the number of columns that took it."""
    db = apsw.Connection(str(file))
    names = tuple(f"{dialect.name}_" for dialect in DIALECTS)
    done = 0
    for (table,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
        for (column,) in db.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall():
            assert isinstance(table, str)
            assert isinstance(column, str)
            if table.startswith(names) and (column == "at" or column.endswith("_at")):
                try:
                    db.execute(f'UPDATE "{table}" SET "{column}" = ?', (value,))
                    done += db.changes() > 0
                except apsw.ConstraintError:
                    continue
    db.close()
    return done


@pytest.mark.slow
@pytest.mark.parametrize("value", BROKEN)
def test_no_tool_fails_at_a_time_that_is_none_and_check_names_the_rows(
    kernel: Kernel,
    call: Call,
    caller: Callable[[Dispatch], Call],
    value: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    fill(call)
    kernel.store.close()
    assert break_times(kernel.config.file, value) > 5
    again = open_kernel(kernel.config)
    try:
        assert every_call(caller(again.dispatch)) == []
    finally:
        again.store.close()
    assert main(["check", "--data", str(kernel.config.data)]) == 1
    printed = capsys.readouterr()
    assert "which is no time" in printed.out + printed.err
    assert "\x1b" not in printed.out + printed.err
    assert "Traceback" not in printed.err


def forged(source: Path, target: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """An export with changed lines, and the checksum of its present lines."""
    lines = [json.loads(line) for line in source.read_bytes().splitlines()][:-1]
    for line in lines:
        change(line)
    data = [json.dumps(line, ensure_ascii=False).encode() for line in lines]
    digest = hashlib.sha256(b"".join(line + b"\n" for line in data)).hexdigest()
    target.write_bytes(b"\n".join([*data, json.dumps({"end": len(data), "sha256": digest}).encode()]))


def set_in(table: str, column: str, value: str) -> Callable[[dict[str, Any]], None]:
    def change(line: dict[str, Any]) -> None:
        if line.get("table") == table and line["row"].get(column) is not None:
            line["row"][column] = value

    return change


def set_of(part: str, column: str, value: str) -> Callable[[dict[str, Any]], None]:
    def change(line: dict[str, Any]) -> None:
        if part in line:
            line[part][column] = value

    return change


HOSTILE: dict[str, Callable[[dict[str, Any]], None]] = {
    "a time of a session": set_in("sessions_memory", "created_at", "x"),
    "a time of a memory": set_in("brain_memory", "updated_at", "yesterday"),
    "a path that leads out": set_in("paths_memory", "path", "../../etc/passwd"),
    "a path that deceives": set_in("paths_memory", "path", "a\u202eb"),
    "a path with orders": set_in("files_memory", "path", "/a\x1b[2Jb"),
    "a path of a file that leads out": set_in("files_memory", "path", "/../x"),
    "a time of the history": set_of("history", "at", "x"),
    "a time of the index": set_of("doc", "updated_at", "x"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_an_import_refuses_what_no_tool_writes(
    kernel: Kernel, call: Call, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call("add_memory", path="a", content="text of a")
    call("save_memory", db="core", content="a fact", category="fact")
    fill(call)
    call("add_memory", path="a", content="text of a")
    kernel.store.close()
    assert main(["add", "text", "--dialect", "files", "--data", str(kernel.config.data)]) == 0
    export, hostile = tmp_path / "export.jsonl", tmp_path / "hostile.jsonl"
    assert main(["export", "jsonl", str(export), "--data", str(kernel.config.data)]) == 0
    forged(export, hostile, HOSTILE[name])
    assert hostile.read_bytes() != export.read_bytes()
    capsys.readouterr()
    for words in (["--dry-run"], []):
        status = main(["import", "jsonl", str(hostile), "--data", str(tmp_path / "other"), *words])
        error = capsys.readouterr().err
        assert (status, "which is no " in error, "\x1b" in error) == (1, True, False)
    assert main(["import", "jsonl", str(export), "--data", str(tmp_path / "sound")]) == 0


@pytest.mark.slow
def test_an_import_refuses_a_row_that_refers_to_nothing(
    kernel: Kernel, call: Call, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call("create_entities", entities=[{"name": "a", "entityType": "b", "observations": ["c", "d"]}])
    kernel.store.close()
    export, hostile = tmp_path / "export.jsonl", tmp_path / "hostile.jsonl"
    assert main(["export", "jsonl", str(export), "--data", str(kernel.config.data)]) == 0

    def change(line: dict[str, Any]) -> None:
        if line.get("table") == "graph_observation" and line["row"]["text"] == "d":
            line["row"]["entity"] = 99

    forged(export, hostile, change)
    where = ["--data", str(tmp_path / "other")]
    capsys.readouterr()
    for words in (["--dry-run"], []):
        assert main(["import", "jsonl", str(hostile), *where, *words]) == 1
        assert "refer to a row that is not there" in capsys.readouterr().err
    assert main(["check", *where]) == 0
    assert main(["import", "jsonl", str(export), *where]) == 0
    assert main(["check", *where]) == 0


@pytest.mark.parametrize(
    ("table", "row", "wrong"),
    [
        ("brain_memory", {"created_at": "2026-01-01"}, ""),
        ("brain_memory", {"created_at": "2026-01-01 10:00:00", "content": "x"}, ""),
        ("brain_memory", {"created_at": None, "updated_at": ""}, ""),
        ("sessions_mention", {"path": "../a"}, ""),
        ("notes_file", {"path": "../a"}, ""),
        ("paths_memory", {"path": "project/\u65e5\u672c\xa0x"}, ""),
        ("paths_memory", {"path": "a\nb"}, "holds paths_memory.path a b, which is no path"),
    ],
)
def test_only_what_can_be_neither_is_wrong(table: str, row: dict[str, Any], wrong: str) -> None:
    assert problem_of(table, row) == wrong
