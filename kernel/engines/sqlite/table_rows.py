"""Whole rows of any table, in the order of their keys, read and written; the tables as sql/schema makes them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, cast

import apsw

from kernel.store.context import Cursor, Params
from kernel.store.statements import migrations

Value = str | int | float | None
_DERIVED = ("doc_fts", "doc_part", "doc_term", "doc_dropped")


class TableRows:
    """The ordinary tables of a database. Names of tables and columns are those of its own schema, never input."""

    def __init__(self, execute: Callable[[str, Params | None], Cursor]) -> None:
        self._execute = execute
        self._columns: dict[str, list[tuple[str, int]]] = {}

    def names(self) -> list[str]:
        """Return the names of the tables, each after those that it refers to, so that its rows can be undone before
        theirs.
        """
        rows = self._execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name", None)
        waiting = {name: self._parents(name) - {name} for (name,) in rows if not name.startswith("sqlite_")}
        names: dict[str, None] = {}
        while waiting:
            ready = [name for name, parents in waiting.items() if parents.isdisjoint(waiting)]
            names |= dict.fromkeys(ready or waiting)  # tables that refer to each other are left in their order
            waiting = {name: parents for name, parents in waiting.items() if name not in names}
        return list(names)

    def columns(self, table: str) -> list[str]:
        """Return the columns that hold values, without those that are computed."""
        return [name for name, _ in self._described(table)]

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Return every row, in the order of the primary key."""
        order = quoted(*self.key(table))
        return iter(self._execute(f"SELECT {quoted(*columns)} FROM {quoted(table)} ORDER BY {order}", None))

    def found(self, table: str, row: dict[str, Value]) -> dict[str, Value] | None:
        """Return the row with the same primary key, with the same columns; None if there is none."""
        key = self.key(table)
        where = " AND ".join(f"{quoted(name)} = :k{at}" for at, name in enumerate(key))
        values = {f"k{at}": row.get(name) for at, name in enumerate(key)}
        rows = self._execute(f"SELECT {quoted(*row)} FROM {quoted(table)} WHERE {where}", values).fetchall()
        return dict(zip(row, rows[0], strict=True)) if rows else None

    def put(self, table: str, row: dict[str, Value], *, replace: bool) -> None:
        """Writes a row; a row with its primary key or with a unique value of it is in the way unless it is replaced."""
        values = ", ".join(f":v{at}" for at in range(len(row)))
        text = f"INSERT {'OR REPLACE ' * replace}INTO {quoted(table)} ({quoted(*row)}) VALUES ({values})"
        self._execute(text, {f"v{at}": value for at, value in enumerate(row.values())}).fetchall()

    def copied(self) -> Mapping[str, Sequence[str]]:
        """Return the columns of the tables of the schema, without those that another program has added."""
        names = sorted(name for name in schema_tables().names() if not name.startswith(_DERIVED))
        return {name: self.columns(name) for name in names}

    def replace_all(self, table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
        self._execute(f"DELETE FROM {quoted(table)}", None).fetchall()
        values = ", ".join(f":{name}" for name in columns)
        text = f"INSERT INTO {quoted(table)} ({quoted(*columns)}) VALUES ({values})"
        for row in rows:
            self._execute(text, dict(zip(columns, row, strict=True)))

    def last_ids(self) -> Mapping[str, int]:
        ours = schema_tables().names()
        rows = self._execute("SELECT name, seq FROM sqlite_sequence", None)
        return {name: last for name, last in rows if name in ours}

    def set_last_ids(self, ids: Mapping[str, int]) -> None:
        for name, last in ids.items():
            self._execute("DELETE FROM sqlite_sequence WHERE name = :name", {"name": name}).fetchall()
            text = "INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :last)"
            self._execute(text, {"name": name, "last": last}).fetchall()

    def _parents(self, table: str) -> set[str]:
        rows = self._execute('SELECT DISTINCT "table" FROM pragma_foreign_key_list(:table)', {"table": table})
        return {str(name) for (name,) in rows}

    def _described(self, table: str) -> list[tuple[str, int]]:
        if table not in self._columns:
            rows = self._execute("SELECT name, pk FROM pragma_table_info(:table)", {"table": table})
            self._columns[table] = [(name, part) for name, part in rows]
        return self._columns[table]

    def key(self, table: str) -> list[str]:
        return [name for name, part in sorted(self._described(table), key=lambda column: column[1]) if part]


def quoted(*names: str) -> str:
    """Return names as SQL has them in a list."""
    return ", ".join('"' + name.replace('"', '""') + '"' for name in names)


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
