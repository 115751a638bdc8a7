"""Tables, views, triggers and indexes that another program has added to the file are left alone."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from kernel.cli.main import main
from kernel.server.app import Kernel
from tests.conftest import Call

FOREIGN = """
CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER);
INSERT INTO _litestream_seq VALUES (1, 5);
CREATE TABLE _litestream_lock (id INTEGER);
CREATE TABLE graph_cache (a PRIMARY KEY, b REFERENCES nowhere (x));
INSERT INTO graph_cache VALUES ('foreign', 2);
CREATE TABLE theirs (id INTEGER PRIMARY KEY AUTOINCREMENT, doc REFERENCES doc (id));
INSERT INTO theirs (doc) VALUES (99999);
CREATE VIEW seen AS SELECT path FROM paths_memory;
CREATE INDEX by_content ON paths_memory (content);
CREATE TRIGGER counted AFTER INSERT ON paths_memory BEGIN INSERT INTO theirs (doc) VALUES (1); END;
CREATE VIRTUAL TABLE places USING rtree (id, west, east);
"""
COMMANDS: dict[str, Callable[[Path, Path], list[str]]] = {
    "check": lambda data, _: ["check", "--data", str(data)],
    "check --repair": lambda data, _: ["check", "--repair", "--data", str(data)],
    "reindex": lambda data, _: ["reindex", "--data", str(data)],
    "compact": lambda data, _: ["compact", "--data", str(data)],
    "backup": lambda data, out: ["backup", str(out / "copy.db"), "--data", str(data)],
    "restore": lambda _, out: ["restore", str(out / "copy.db"), "--data", str(out / "restored")],
    "export jsonl": lambda data, out: ["export", "jsonl", str(out / "all.jsonl"), "--data", str(data)],
    "import": lambda _, out: ["import", str(out / "all.jsonl"), "--data", str(out / "imported")],
    "store copy": lambda data, out: ["store", "copy", str(data), str(out / "copied")],
    "add": lambda data, _: ["add", "A further one.", "--data", str(data)],
}


def test_every_command_tolerates_what_another_program_has_added(
    kernel: Kernel, call: Call, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("add_memory", path="car", content="red").fault is None
    kernel.store.close()
    db = sqlite3.connect(kernel.config.file)
    db.executescript(FOREIGN)
    db.close()
    done = {name: main(words(kernel.config.data, tmp_path)) for name, words in COMMANDS.items()}
    assert done == dict.fromkeys(COMMANDS, 0), capsys.readouterr()
    assert "foreign" not in (tmp_path / "all.jsonl").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "all.jsonl").read_text(encoding="utf-8").splitlines()[-1])["end"] > 0
    assert tables(tmp_path / "copied" / "quipu.db") & {"graph_cache", "theirs", "_litestream_seq"} == set()
    assert tables(tmp_path / "restored" / "quipu.db") >= {"graph_cache", "theirs", "_litestream_seq"}
    db = sqlite3.connect(kernel.config.file)
    assert db.execute("SELECT id, doc FROM theirs").fetchall() == [(1, 99999)]  # no trigger has run
    assert db.execute("SELECT seq FROM _litestream_seq").fetchall() == [(5,)]
    db.close()


def tables(file: Path) -> set[str]:
    """Return the names of the tables of a file."""
    db = sqlite3.connect(file)
    names = {str(name) for (name,) in db.execute("SELECT name FROM sqlite_schema")}
    db.close()
    return names
