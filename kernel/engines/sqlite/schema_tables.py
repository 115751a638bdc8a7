"""The tables as sql/schema makes them, without a file."""

from collections.abc import Callable
from functools import cache
from typing import cast

import apsw

from kernel.engines.sqlite.table_rows import TableRows
from kernel.store.engine_types import Cursor, Params
from kernel.store.statements import migrations


@cache
def schema_tables() -> TableRows:
    return TableRows(cast("Callable[[str, Params | None], Cursor]", _migrated(None).execute))


def schema_definitions(migration: int) -> list[tuple[str, str, str]]:
    """List (type, name, SQL) of ordinary tables and their indexes, in the order of their creation.

    `migration` is the number of the last migration that is applied.
    """
    db = _migrated(migration)
    ordinary = {str(name) for (name,) in db.execute("SELECT name FROM pragma_table_list WHERE type = 'table'")}
    rows = db.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")
    return [(type_, name, sql) for type_, name, table, sql in rows if table in ordinary and table != "sqlite_sequence"]


def _migrated(last: int | None) -> apsw.Connection:
    db = apsw.Connection(":memory:")
    for file in migrations()[:last]:
        db.execute(file.read_text(encoding="utf-8")).fetchall()
    return db
