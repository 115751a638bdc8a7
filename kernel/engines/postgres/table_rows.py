"""Whole rows of any table of a tenant, in the order in which a file of SQLite has tables, columns and rows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kernel.engines.postgres.driver import escape
from kernel.engines.postgres.statements import Statement
from kernel.engines.sqlite import table_rows
from kernel.engines.sqlite.table_rows import schema_tables

if TYPE_CHECKING:
    from kernel.engines.postgres.connection import Connection

Value = table_rows.Value
PAGE = 200  # rows of a result that is read as it is needed


class TableRows:
    """The tables of a tenant. Names of tables and columns are those of the schema, never input."""

    def __init__(self, db: "Connection") -> None:
        self._db = db
        self._unique: dict[str, list[list[str]]] = {}
        self._counted: dict[str, str] = {}

    def names(self) -> list[str]:
        return schema_tables().names()

    def columns(self, table: str) -> list[str]:
        return schema_tables().columns(table)

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        order = table_rows.quoted(*schema_tables().key(table))
        text = f"SELECT {table_rows.quoted(*columns)} FROM {_view(table)} ORDER BY {order}"
        return self._db.stream(text, PAGE)

    def found(self, table: str, row: dict[str, Value]) -> dict[str, Value] | None:
        key = schema_tables().key(table)
        text = f"SELECT {table_rows.quoted(*row)} FROM {_view(table)} WHERE {_equal(key)}"
        rows = self._db.execute(Statement(text, key), {name: row.get(name) for name in key}).fetchall()
        return dict(zip(row, rows[0], strict=True)) if rows else None

    def put(self, table: str, row: dict[str, Value], *, replace: bool) -> None:
        self._describe(table)
        for key in self._unique[table] if replace else ():
            if all(row.get(name) is not None for name in key):
                self._db.execute(Statement(f"DELETE FROM {_view(table)} WHERE {_equal(key)}", key), row)
        places = ", ".join(f"${at}" for at in range(1, len(row) + 1))
        text = f"INSERT INTO {_view(table)} ({table_rows.quoted(*row)}) VALUES ({places})"
        self._db.execute(Statement(text, [*row]), row)
        if (number := row.get(self._counted[table])) is not None:
            self._db.query("engine.rows.give", table=table, id=number)

    def copied(self) -> Mapping[str, Sequence[str]]:
        columns: dict[str, list[str]] = {}
        for table, column in self._db.query("engine.copy.columns"):
            columns.setdefault(table, []).append(column)
        return columns

    def replace_all(self, table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
        self._db.command(f"DELETE FROM {_view(table)}")
        values = (tuple(escape(value) if isinstance(value, str) else value for value in row) for row in rows)
        target = f"quipu_data.{table_rows.quoted(table)}"
        self._db.copy_in(f"COPY {target} ({table_rows.quoted(*columns)}) FROM STDIN", values)

    def last_ids(self) -> Mapping[str, int]:
        return dict(self._db.query("engine.copy.last_ids"))

    def set_last_ids(self, ids: Mapping[str, int]) -> None:
        for name, last in ids.items():
            self._db.query("engine.copy.set_last_id", name=name, last=last)

    def _describe(self, table: str) -> None:
        if table not in self._unique:
            self._unique[table] = [text.split() for (text,) in self._db.query("engine.rows.unique_keys", table=table)]
            self._counted[table] = next((name for (name,) in self._db.query("engine.rows.counted", table=table)), "")


def _view(table: str) -> str:
    return f"quipu.{table_rows.quoted(table)}"


def _equal(names: Sequence[str]) -> str:
    return " AND ".join(f"{table_rows.quoted(name)} = ${at}" for at, name in enumerate(names, 1))
