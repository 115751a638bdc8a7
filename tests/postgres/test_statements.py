"""Every statement of `sql/` prepares on PostgreSQL, on tables with the columns that SQLite's have."""

import apsw
import pytest

from kernel.engines.postgres import driver
from kernel.engines.postgres.database import pool_of, texts
from kernel.engines.postgres.statements import Statement, statements, translate
from kernel.store.statements import ROOT, load, migrations
from tests.postgres import stores

pytestmark = pytest.mark.postgres
DERIVED = ("sqlite_", "doc_dropped", "doc_fts", "doc_part", "doc_term")
OF_POSTGRES = {"tenant", "position"}  # columns that only PostgreSQL has


def test_every_statement_prepares(address: str) -> None:
    pool = pool_of(address)
    refused: dict[str, str] = {}
    db = pool.take()
    for name, text in texts().items():
        assert isinstance(text, Statement)
        if text.answered is None:
            try:
                with db.transaction():  # for which a pooler keeps the session
                    for setting in driver.transaction_settings(db):
                        db.execute(setting)
                    db.execute(f"PREPARE tried AS {text}", prepare=False)
                    db.execute("DEALLOCATE tried")
            except Exception as error:
                refused[name] = str(error)
    pool.give(db)
    assert refused == {}, refused


def test_tables_have_the_columns_of_those_in_sqlite(address: str) -> None:
    pool_of(address)
    db = apsw.Connection(":memory:")
    for file in migrations():
        db.execute(file.read_text(encoding="utf-8")).fetchall()
    names = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    wanted = {
        name: {row[1] for row in db.execute(f'PRAGMA table_xinfo("{name}")')}
        for name in names
        if not name.startswith(DERIVED)
    }
    with stores.connect(address) as other:
        rows = other.execute(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'quipu_data'"
        ).fetchall()
    held = {name: {column for table, column in rows if table == name} - OF_POSTGRES for name in wanted}
    assert held == wanted


@stores.WITHOUT_POOLER
def test_a_query_that_looks_at_json_is_not_parallel(address: str) -> None:
    pool_of(address)
    with stores.connect(address) as db:
        always = "debug_parallel_query" if db.info.server_version >= 160000 else "force_parallel_mode"
        db.execute(f"SET {always} = on")
        rows = db.execute("SELECT quipu.json_valid(nspname) FROM pg_namespace WHERE nspname = 'quipu'").fetchall()
    assert rows == [(False,)]


def test_most_statements_have_one_text_for_both_engines() -> None:
    own = {name for name in load(ROOT / "postgres") if not name.startswith("engine.")}

    assert len(own) * 10 < len(load())


def test_a_text_of_its_own_stands_for_a_statement() -> None:
    with pytest.raises(ValueError, match=r"PostgreSQL has texts for kernel\.no\.such, which sql/ has not"):
        statements({"kernel.no.such": lambda _db, _params: []})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT a FROM t WHERE b = :b AND c = :c AND d = :b", "SELECT a FROM t WHERE b = $1 AND c = $2 AND d = $3"),
        ("SELECT ':no' -- :no\nFROM t", "SELECT ':no' \nFROM t"),
        (
            "SELECT 1 FROM a CROSS JOIN b AS c ON c.x IN (1) WHERE y",
            "SELECT 1 FROM a CROSS JOIN LATERAL (SELECT * FROM b AS c WHERE c.x IN (1) OFFSET 0) AS c WHERE y",
        ),
        ("a IS NOT :a OR :a IS NULL", "a IS DISTINCT FROM $1 OR CAST($2 AS text) IS NULL"),
        ("x NOT IN (SELECT value FROM json_each(:x))", "x <> ALL (items($1))"),
    ],
)
def test_translation(text: str, expected: str) -> None:
    assert str(translate(text)) == expected


@pytest.mark.parametrize("text", ["", "a", "\0", "\ue000", "\ue0000", "a\0b\ue000\0", "\ue0001\0"])
def test_text_with_any_character_comes_back(text: str) -> None:
    escaped = driver.escape(text)

    assert "\0" not in escaped
    assert driver.unescape(escaped) == text
