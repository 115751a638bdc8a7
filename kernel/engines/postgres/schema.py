"""The schema of a database, which its tenants share."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernel.core.errors import Fault
from kernel.core.ids import utc_now
from kernel.engines.postgres.driver import as_fault, load_driver, transaction
from kernel.engines.postgres.pool import Pool
from kernel.engines.postgres.tables import references, translate_index, translate_table
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
