"""The schema of a database, which its tenants share, with the tables and indexes of `sql/schema` translated."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kernel.core.errors import Fault
from kernel.core.ids import utc_now
from kernel.engines.postgres.driver import Pool, as_fault, load_driver, transaction
from kernel.engines.sqlite.changesets import is_recorded
from kernel.engines.sqlite.table_rows import schema_definitions
from kernel.store.statements import ROOT, migrations

_LOCK = "SELECT pg_advisory_xact_lock(0x51554950, 0)"
_CLAIM = (
    "CREATE SCHEMA IF NOT EXISTS quipu; "
    "CREATE TABLE IF NOT EXISTS quipu.applied ("
    "name text PRIMARY KEY, sha256 text NOT NULL, applied_at text NOT NULL); "
    # The migrations of sql/schema that the tables here correspond to, for the statements that list them.
    "CREATE TABLE IF NOT EXISTS quipu.migration ("
    'name text COLLATE "C" PRIMARY KEY, sha256 text NOT NULL, applied_at text NOT NULL)'
)
_NOTE_APPLIED = "INSERT INTO quipu.applied (name, sha256, applied_at) VALUES (%s, %s, %s)"
_NOTE_MIGRATION = (
    "INSERT INTO quipu.migration (name, sha256, applied_at) VALUES (%s, %s, %s) ON CONFLICT (name) DO NOTHING"
)
_NOTE_REFERENCE = (
    "INSERT INTO quipu.reference (source, source_column, target, target_column) VALUES (%s, %s, %s, %s) "
    "ON CONFLICT DO NOTHING"
)
_TABLES = "0002_tables"
_TABLES_AS_OF = 21  # the last migration of sql/schema that _TABLES corresponds to; later migrations have counterparts
# Digests of earlier texts with the same effect, in which tables and references were written out.
_EARLIER = {
    "0002_tables": "84078e50cb4b57afc87264a43f06416d2135f606f6b8567d62ef9c022965ae8b",
    "0003_undo": "ebd71fa831bfc9e93112b6e5e88205c81a1aec5c14a543d2031c59cf0baac193",
}
_ENCODING = (
    "The database has the encoding {}, and UTF8 is needed: make another by "
    "`createdb --template template0 --encoding UTF8 NAME`."
)
_OLDEST = 150000  # PostgreSQL 15
_TYPES = {"INTEGER": "bigint", "TEXT": 'text COLLATE "C"', "REAL": "double precision", "BLOB": "bytea"}
_TABLE = re.compile(r'CREATE TABLE "?(\w+)"? \((.*)\) STRICT(?:, WITHOUT ROWID)?', re.DOTALL)
_INDEX = re.compile(r"CREATE (UNIQUE )?INDEX (\w+)\s+ON (\w+)\s*\((.*)\)(\s+WHERE.*)?", re.DOTALL)
_COLUMN = re.compile(r"(\w+) (INTEGER|TEXT|REAL|BLOB)(.*)", re.DOTALL)
_REFERENCE = re.compile(r" REFERENCES (\w+) \((\w+)\)")
_TENANT_COLUMN = "tenant integer NOT NULL DEFAULT quipu.tenant()"


def migrate(pool: Pool, root: Path = ROOT) -> int:
    """Applies the missing migrations of `sql/postgres/schema` in one transaction; returns how many.

    Raises Fault("storage") for a PostgreSQL that is too old, for an encoding other than UTF8, and for a schema that
    this program does not know.
    """
    connection = pool.take()
    psycopg = load_driver()
    try:
        if connection.info.server_version < _OLDEST:
            raise Fault("storage", "PostgreSQL 15 or newer is needed.")
        if (encoding := connection.info.parameter_status("server_encoding")) != "UTF8":
            raise Fault("storage", _ENCODING.format(encoding))
        with transaction(connection, "SET LOCAL lock_timeout = 60000"):
            return _migrate(connection, root)
    except psycopg.Error as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise as_fault(error) or Fault("storage", f"Cannot make the schema: {reason}") from error
    finally:
        pool.give(connection)


def _migrate(connection: Any, root: Path) -> int:
    files = {file.stem: file.read_text(encoding="utf-8") for file in migrations(root / "postgres")}
    if not _missing(connection, files):
        return 0
    connection.execute(_LOCK.replace("0x51554950", str(0x51554950)))
    connection.execute(_CLAIM, prepare=False)
    missing = _missing(connection, files)
    if not missing:  # another process has applied them meanwhile
        return 0
    for name in missing:
        if name == _TABLES:
            connection.execute(_tables(), prepare=False)
        connection.execute(files[name], prepare=False)
        _note(connection, _NOTE_APPLIED, name, files[name])
    connection.execute("SELECT quipu.make_views(), quipu.make_triggers()")
    for reference in _references(root):
        connection.execute(_NOTE_REFERENCE, reference)
    for file in migrations(root):
        _note(connection, _NOTE_MIGRATION, file.stem, file.read_text(encoding="utf-8"))
    return len(missing)


def _missing(connection: Any, files: Mapping[str, str]) -> list[str]:
    """Return the migrations that are not applied; raises Fault for an applied migration that is not among the files."""
    digests = _applied(connection)
    for name in _differences(digests, files):
        raise Fault("storage", f"Migration {name} of this database is not one that this program knows.")
    return [name for name in files if name not in digests]


def _tables() -> str:
    return "\n".join(
        translate_table(sql) if kind == "table" else translate_index(sql)
        for kind, _, sql in schema_definitions(_TABLES_AS_OF)
    )


def _references(root: Path) -> list[tuple[str, str, str, str]]:
    definitions = schema_definitions(len(migrations(root)))
    tables = [(name, sql) for kind, name, sql in definitions if kind == "table" and is_recorded(name)]
    return [reference for name, sql in tables for reference in references(name, sql)]


def _differences(digests: Mapping[str, str], files: Mapping[str, str]) -> list[str]:
    return [
        name
        for name, digest in digests.items()
        if name not in files or digest not in (_digest(files[name]), _EARLIER.get(name))
    ]


def _applied(connection: Any) -> dict[str, str]:
    if connection.execute("SELECT to_regclass('quipu.applied')::text").fetchone()[0] is None:
        return {}
    return dict(connection.execute("SELECT name, sha256 FROM quipu.applied").fetchall())


def _note(connection: Any, statement: str, name: str, text: str) -> None:
    connection.execute(statement, (name, _digest(text), utc_now()))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def translate_table(text: str) -> str:
    """Return a `CREATE TABLE` of SQLite with the tenant first in each key, without its references.

    Text is compared byte by byte, as SQLite does. An integer key is numbered per tenant, as a rowid is per file.
    """
    match = _TABLE.fullmatch(text)
    assert match is not None, text
    table, columns, keys = match[1], [_TENANT_COLUMN], list[str]()
    for item in _items(match[2]):
        if item.startswith(("PRIMARY KEY", "UNIQUE")):
            keys.append(item.replace("(", "(tenant, ", 1))
        elif item.startswith("CHECK"):
            columns.append(item)
        else:
            columns.append(_column(table, item, keys))
    return f"CREATE TABLE quipu_data.{table} ({', '.join([*columns, *keys])});"


def translate_index(text: str) -> str:
    """Return a `CREATE INDEX` of SQLite with the tenant first."""
    match = _INDEX.fullmatch(text)
    assert match is not None, text
    unique, name, table, columns, condition = match.groups("")
    columns = re.sub(r"\b(\w++) COLLATE NOCASE", r"lower(\1)", columns.strip())
    return f"CREATE {unique}INDEX {name} ON quipu_data.{table} (tenant, {columns}){condition};"


def references(table: str, text: str) -> Iterator[tuple[str, str, str, str]]:
    match = _TABLE.fullmatch(text)
    assert match is not None, text
    for item in _items(match[2]):
        if reference := _REFERENCE.search(item):
            yield table, item.split(" ", 1)[0], reference[1], reference[2]


def _column(table: str, text: str, keys: list[str]) -> str:
    """Translate a column, and add the keys that it declares."""
    match = _COLUMN.fullmatch(text)
    assert match is not None, text
    name, rest = match[1], _REFERENCE.sub("", match[3])
    if " PRIMARY KEY" in rest:
        keys.insert(0, f"PRIMARY KEY (tenant, {name})")
        if match[2] == "INTEGER":
            number = f"next_id('{table}')" if "AUTOINCREMENT" in rest else f"next_row('{table}', '{name}')"
            rest = rest.replace(" NOT NULL", "") + f" DEFAULT quipu.{number}"
        rest = " NOT NULL" + rest.replace(" PRIMARY KEY", "").replace(" AUTOINCREMENT", "").replace(" NOT NULL", "")
    if " UNIQUE" in rest:
        keys.append(f"UNIQUE (tenant, {name})")
    if "GENERATED ALWAYS" in rest:
        rest = rest.replace(" NOT NULL", "").replace("VIRTUAL", "STORED").replace("julianday", "quipu.julianday")
    return f"{name} {_TYPES[match[2]]}{rest.replace(' UNIQUE', '')}"


def _items(body: str) -> Iterator[str]:
    depth = start = 0
    for at, character in enumerate(body):
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            yield body[start:at].strip()
            start = at + 1
    yield body[start:].strip()
