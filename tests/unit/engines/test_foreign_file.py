"""The file of another program is read with its write-ahead log, and stays unchanged."""

import hashlib
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from kernel.core.errors import Fault
from kernel.engines.foreign_file import open_external
from tests.catalogue import Catalogue


@pytest.fixture
def copies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the copies, which is empty afterwards."""
    folder = tmp_path_factory.mktemp("copies")
    yield folder
    assert [*folder.iterdir()] == []


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


def test_tables_and_rows_are_read_and_the_files_stay_unchanged(theirs: Path, copies: Path, tmp_path: Path) -> None:
    before = {file.name: hashlib.sha256(file.read_bytes()).digest() for file in tmp_path.iterdir()}
    with open_external(theirs, copies) as opened:
        tables = opened.tables()
        rows = [*opened.rows('odd "name')]
        none = ([*opened.rows("empty")], [*opened.rows("absent")])
    assert tables == ['odd "name', "empty"]
    assert rows == [{"id": "b", "select": 1, "data": b"\0\xff"}, {"id": "a", "select": None, "data": None}]
    assert none == ([], [])
    assert {file.name: hashlib.sha256(file.read_bytes()).digest() for file in tmp_path.iterdir()} == before


def test_virtual_tables_are_left_out(tmp_path: Path, copies: Path) -> None:
    file = tmp_path / "theirs.db"
    db = apsw.Connection(str(file))
    db.execute("CREATE TABLE plain (x); CREATE VIRTUAL TABLE words USING fts5 (x, content='')")
    db.close()
    with open_external(file, copies) as opened:
        assert [name for name in opened.tables() if not name.startswith("words_")] == ["plain"]


def test_unsound_database_is_refused_by_name(theirs: Path, copies: Path, tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("hello", encoding="utf-8")
    torn = tmp_path / "torn.db"
    torn.write_bytes(b"SQLite format 3\0" + b"\xa5" * 9000)
    for file, message in (
        (tmp_path / "text.db", "text.db is not a SQLite database."),
        (tmp_path / "absent.db", "Cannot read absent.db: No such file or directory."),
        (tmp_path, f"Cannot read {tmp_path.name}: Is a directory."),
    ):
        with pytest.raises(Fault) as refused, open_external(file, copies):
            pass
        assert (refused.value.code, refused.value.message) == ("invalid", message)
    with pytest.raises(Fault, match="damaged"), open_external(torn, copies):
        pass


KILLED = """
import os, signal, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA cache_size = 5")
db.execute("CREATE TABLE memory (id INTEGER PRIMARY KEY, content TEXT)")
db.executemany("INSERT INTO memory (content) VALUES (?)", [("a text " * 100,)] * 100)
db.execute("BEGIN")
db.execute("UPDATE memory SET content = replace(content, 'a text', 'unsure')")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_transaction_that_was_not_committed_is_rolled_back_in_the_copy(
    tmp_path: Path, copies: Path, catalogue: Catalogue
) -> None:
    file = tmp_path / "theirs.db"
    assert subprocess.run([sys.executable, "-c", KILLED, str(file)], check=False).returncode == -9
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert sorted(before) == ["theirs.db", "theirs.db-journal"]
    assert b"unsure" in before["theirs.db"]
    with open_external(file, copies) as opened:
        assert [*opened.rows("memory")] == [{"id": number, "content": "a text " * 100} for number in range(1, 101)]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    catalogue("R33", injected="import of a file whose program was killed", times=1, outcome="committed rows alone")


ENDLESS = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x, x AS id FROM n"
HOSTILE = {
    "an endless view": (f"CREATE VIEW memory AS {ENDLESS}", "memory is a view, not a table; only tables are imported."),
    "a virtual table": (
        "CREATE VIRTUAL TABLE memory USING fts5 (x)",
        "memory is a virtual table, not a table; only tables are imported.",
    ),
    "text that is not UTF-8": (
        "CREATE TABLE memory (id, title, content); INSERT INTO memory VALUES (1, 'x', CAST(x'6166ff' AS TEXT))",
        "the table memory: its column content holds text that is not UTF-8.",
    ),
    "the name of a column that is not UTF-8": (
        "CREATE TABLE memory (id, title); PRAGMA writable_schema = ON;"
        "UPDATE sqlite_schema SET sql = replace(sql, 'title', CAST(x'74ff' AS TEXT))",
        "its schema holds names that are not UTF-8.",
    ),
    "the name of a table that is not UTF-8": (
        "CREATE TABLE memory (id); CREATE TABLE other (id); PRAGMA writable_schema = ON;"
        "UPDATE sqlite_schema SET sql = replace(sql, 'other', CAST(x'74ff' AS TEXT)), name = CAST(x'74ff' AS TEXT),"
        " tbl_name = CAST(x'74ff' AS TEXT) WHERE name = 'other'",
        "its schema holds names that are not UTF-8.",
    ),
    "a text beyond the limit of a value": (
        "CREATE TABLE memory (id, content); INSERT INTO memory VALUES (1, CAST(zeroblob(100000000) AS TEXT))",
        "the table memory cannot be read: string or blob too big.",
    ),
}


@pytest.mark.parametrize("harm", HOSTILE)
def test_hostile_file_is_refused_with_its_name_table_and_column(
    tmp_path: Path, copies: Path, harm: str, catalogue: Catalogue
) -> None:
    script, told = HOSTILE[harm]
    file = tmp_path / "theirs.db"
    db = apsw.Connection(str(file))
    db.execute(script)
    db.close()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(Fault) as refused, open_external(file, copies) as opened:
        opened.check({"memory": ()})
    assert (refused.value.code, refused.value.message.removeprefix("theirs.db: ")) == ("invalid", told)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000  # KiB
    catalogue("R33", injected=f"import of {harm}", times=1, outcome="refused in one sentence, bounded memory")


def test_computed_columns_are_not_read_and_no_trigger_or_view_runs(tmp_path: Path, copies: Path) -> None:
    file = tmp_path / "theirs.db"
    db = apsw.Connection(str(file))
    db.execute("CREATE TABLE memory (id, bomb AS (hex(zeroblob(30000000))), stored AS (id + 1) STORED)")
    db.execute(f"CREATE VIEW other AS {ENDLESS}; CREATE TRIGGER t AFTER INSERT ON memory BEGIN SELECT 1; END")
    db.execute("INSERT INTO memory (id) VALUES (1)")
    db.close()
    with open_external(file, copies) as opened:
        assert (opened.tables(), [*opened.rows("memory")]) == (["memory"], [{"id": 1}])


def test_a_missing_column_is_named_before_anything_is_read_from_the_tables(tmp_path: Path, copies: Path) -> None:
    file = tmp_path / "theirs.db"
    db = apsw.Connection(str(file))
    db.execute("CREATE TABLE memory (id); INSERT INTO memory VALUES (1)")
    db.close()
    with open_external(file, copies) as opened:
        opened.check({"memory": ("id",), "absent": ("id",)})
        with pytest.raises(Fault, match=r"^theirs\.db: the table memory has no column content\.$"):
            opened.check({"memory": ("id", "content")})


def test_rows_are_found_by_what_reads_as_a_text_and_counted(tmp_path: Path, copies: Path) -> None:
    file = tmp_path / "theirs.db"
    db = apsw.Connection(str(file))
    db.execute("CREATE TABLE event (memory, n); CREATE TABLE other (x)")
    db.execute("INSERT INTO event VALUES ('a', 1), (7, 2), (x'ff', 3), (NULL, 4), ('7', 5), ('a', 6)")
    db.close()
    with open_external(file, copies) as opened:
        opened.index("event", "memory")
        opened.index("event", "absent")
        assert {*opened.values("event", "memory")} == {None, "7", "a"}
        found = {
            key: [row["n"] for row in opened.rows_with("event", "memory", key)] for key in ("a", 7, "7", "b", None)
        }
        assert found == {"a": [1, 6], 7: [2, 5], "7": [2, 5], "b": [], None: [4]}
        assert [*opened.rows_with("event", "absent", "a")] == [*opened.values("event", "absent")] == []
        assert [row["n"] for row in opened.rows("event", "n")] == [1, 2, 3, 4, 5, 6]
        assert [opened.count(name) for name in ("event", "other", "absent")] == [6, 0, 0]
