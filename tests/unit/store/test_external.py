"""The file of another program is read with its write-ahead log, and stays unchanged."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from kernel.errors import Fault
from kernel.store.external import open_external


@pytest.fixture
def theirs(tmp_path: Path) -> Iterator[Path]:
    """A file of another program that is still running, with rows in its log only."""
    file = tmp_path / "theirs.db"
    db = apsw.Connection(str(file))
    db.pragma("journal_mode", "wal")
    db.execute("""CREATE TABLE "odd ""name" (id TEXT, "select" INTEGER, data BLOB); CREATE TABLE empty (x)""")
    db.execute("""INSERT INTO "odd ""name" VALUES ('b', 1, x'00ff'), ('a', NULL, NULL)""")
    yield file
    db.close()


def test_tables_and_rows_are_read_and_the_files_stay_unchanged(theirs: Path, tmp_path: Path) -> None:
    before = {file.name: hashlib.sha256(file.read_bytes()).digest() for file in tmp_path.iterdir()}
    with open_external(theirs) as opened:
        tables = opened.tables()
        rows = opened.rows('odd "name')
        none = (opened.rows("empty"), opened.rows("absent"))
    assert tables == ['odd "name', "empty"]
    assert rows == [{"id": "b", "select": 1, "data": b"\0\xff"}, {"id": "a", "select": None, "data": None}]
    assert none == ([], [])
    assert {file.name: hashlib.sha256(file.read_bytes()).digest() for file in tmp_path.iterdir()} == before


def test_virtual_tables_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "theirs.db"
    db = apsw.Connection(str(file))
    db.execute("CREATE TABLE plain (x); CREATE VIRTUAL TABLE words USING fts5 (x, content='')")
    db.close()
    with open_external(file) as opened:
        assert [name for name in opened.tables() if not name.startswith("words_")] == ["plain"]


def test_unsound_database_is_refused_by_name(theirs: Path, tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("hello", encoding="utf-8")
    torn = tmp_path / "torn.db"
    torn.write_bytes(b"SQLite format 3\0" + b"\xa5" * 9000)
    for file, message in (
        (tmp_path / "text.db", "text.db is not a SQLite database."),
        (tmp_path / "absent.db", "Cannot read absent.db: No such file or directory."),
        (tmp_path, f"Cannot read {tmp_path.name}: Is a directory."),
    ):
        with pytest.raises(Fault) as refused, open_external(file):
            pass
        assert (refused.value.code, refused.value.message) == ("invalid", message)
    with pytest.raises(Fault, match="damaged"), open_external(torn):
        pass
