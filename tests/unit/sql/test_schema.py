"""Every released schema upgrades to the newest one with its rows; the newest one follows the rules."""

import io
import re
import shutil
from pathlib import Path
from typing import Any

import apsw
import apsw.shell
import pytest

from kernel.engines.migrations import migrate
from kernel.engines.sqlite.connection import Connection
from kernel.store import statements
from kernel.store.context import StoreContext

HERE = Path(__file__).resolve().parent
MIGRATIONS = statements.migrations()
RELEASED = sorted((HERE / "released").glob("*.sql"))
ROW = "INSERT INTO setting (name, value) VALUES ('kept', 'through every upgrade')"


def shape(file: Path) -> list[tuple[Any, ...]]:
    """Every table, index, view and trigger with its columns and its SQL."""
    db = apsw.Connection(str(file))
    try:
        found = db.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name").fetchall()
        columns = [
            (name, *row)
            for kind, name, _, _ in found
            if kind == "table"
            for row in db.execute("SELECT * FROM pragma_table_xinfo(?)", (name,))
        ]
        return [*found, *columns, ("version", db.pragma("user_version")), ("mark", db.pragma("application_id"))]
    finally:
        db.close()


def upgrade(file: Path, root: Path = statements.ROOT) -> int:
    db = Connection(file, StoreContext({}), readonly=False)
    try:
        return migrate(db, root)
    finally:
        db.close()


def dump(file: Path) -> str:
    """The database as SQL text that rebuilds it, for `released/`; without the header, which names user and host."""
    db, out = apsw.Connection(str(file)), io.StringIO()
    apsw.shell.Shell(db=db, stdout=out).process_command(".dump")
    db.close()
    return out.getvalue().partition("\n\n")[2]


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Any, ...]]:
    """The shape of a new database."""
    file = tmp_path_factory.mktemp("fresh") / "quipu.db"
    upgrade(file)
    return shape(file)


def test_migrations_have_rising_numbers_and_names_in_snake_case() -> None:
    numbers = [int(file.stem.partition("_")[0]) for file in MIGRATIONS]
    assert numbers == sorted({*numbers})
    assert [file.stem for file in MIGRATIONS if not re.fullmatch(r"\d{4}(_[a-z0-9]+)+", file.stem)] == []


def test_every_table_is_strict_and_every_name_is_snake_case(migrated: apsw.Connection) -> None:
    loose = migrated.execute(
        "SELECT name FROM pragma_table_list "
        "WHERE schema = 'main' AND type = 'table' AND NOT strict AND name NOT LIKE 'sqlite_%'"
    ).fetchall()
    assert loose == []
    columns: list[Any] = migrated.execute(
        "SELECT t.name, c.name FROM pragma_table_list AS t, pragma_table_xinfo(t.name) AS c "
        "WHERE t.schema = 'main' AND t.type IN ('table', 'view') AND t.name NOT LIKE 'sqlite_%'"
    ).fetchall()
    assert [pair for pair in columns if not all(re.fullmatch(r"[a-z][a-z0-9_]*", name) for name in pair)] == []


def test_schema_has_no_triggers(migrated: apsw.Connection) -> None:
    assert migrated.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall() == []


@pytest.mark.slow
@pytest.mark.parametrize("done", range(1, len(MIGRATIONS) + 1))
def test_file_with_rows_upgrades_from_every_migration(done: int, tmp_path: Path, fresh: list[tuple[Any, ...]]) -> None:
    """One migration at a time, with a row written in between: the end is a fresh schema and the row is there."""
    root, file = tmp_path / "sql", tmp_path / "quipu.db"
    (root / "schema").mkdir(parents=True)
    for number, migration in enumerate(MIGRATIONS, start=1):
        shutil.copy(migration, root / "schema")
        assert upgrade(file, root) == 1
        if number == done:
            db = Connection(file, StoreContext({}), readonly=False)
            db.script(ROW)
            db.close()
    assert shape(file) == fresh
    assert kept(file) == [("kept", "through every upgrade")]


def kept(file: Path) -> list[Any]:
    db = apsw.Connection(str(file))
    try:
        return db.execute("SELECT name, value FROM setting WHERE name = 'kept'").fetchall()
    finally:
        db.close()


def build(text: str, file: Path) -> None:
    """A database from a dump."""
    db = apsw.Connection(str(file))
    db.execute(text)
    db.close()


def dumped(file: Path) -> str:
    """A dump of the newest schema with a row in a few tables."""
    upgrade(file)
    db = apsw.Connection(str(file))
    db.execute(ROW)
    db.execute("INSERT INTO doc_place (space, scope) VALUES ('it''s', 'two\nlines')")
    db.execute(
        "INSERT INTO doc (space, key, place, text, grams, dialect, tool, actor, created_at, updated_at) "
        "VALUES ('s', 'k', 1, 'knotted cord', '', 'd', 't', 'a', 'now', 'now')"
    )
    db.execute("INSERT INTO doc_fts (doc_fts) VALUES ('rebuild')")
    db.close()
    return dump(file)


@pytest.mark.parametrize("released", [*RELEASED, None], ids=lambda file: file.stem if file else "today")
def test_every_released_schema_upgrades_and_keeps_its_rows(
    released: Path | None, tmp_path: Path, fresh: list[tuple[Any, ...]]
) -> None:
    file = tmp_path / "quipu.db"
    number = int(released.stem) if released else len(MIGRATIONS)
    build(released.read_text(encoding="utf-8") if released else dumped(tmp_path / "today.db"), file)
    assert upgrade(file) == len(MIGRATIONS) - number
    assert shape(file) == fresh
    assert kept(file) == [("kept", "through every upgrade")]


@pytest.mark.slow
def test_dump_is_complete_and_independent_of_the_machine(tmp_path: Path) -> None:
    text = dumped(tmp_path / "first.db")
    assert tmp_path.name not in text
    build(text, tmp_path / "second.db")
    assert dump(tmp_path / "second.db") == text
    again = apsw.Connection(str(tmp_path / "second.db"))
    assert again.execute("SELECT rowid FROM doc_fts WHERE doc_fts MATCH 'cords'").fetchall() == [(1,)]
    again.close()
