"""Whole rows of any table, for the export of everything: read in the order of their keys, and written back."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kernel.store.engine_types import Cursor, Params

Value = str | int | float | None


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
        order = ", ".join(map(_quoted, self.key(table)))
        return iter(self._execute(f"SELECT {listed(columns)} FROM {_quoted(table)} ORDER BY {order}", None))

    def found(self, table: str, row: dict[str, Value]) -> dict[str, Value] | None:
        """Return the row with the same primary key, with the same columns; None if there is none."""
        key = self.key(table)
        where = " AND ".join(f"{_quoted(name)} = :k{at}" for at, name in enumerate(key))
        values = {f"k{at}": row.get(name) for at, name in enumerate(key)}
        rows = self._execute(f"SELECT {listed([*row])} FROM {_quoted(table)} WHERE {where}", values).fetchall()
        return dict(zip(row, rows[0], strict=True)) if rows else None

    def put(self, table: str, row: dict[str, Value], *, replace: bool) -> None:
        """Writes a row; a row with its primary key or with a unique value of it is in the way unless it is replaced."""
        values = ", ".join(f":v{at}" for at in range(len(row)))
        text = f"INSERT {'OR REPLACE ' * replace}INTO {_quoted(table)} ({listed([*row])}) VALUES ({values})"
        self._execute(text, {f"v{at}": value for at, value in enumerate(row.values())}).fetchall()

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


def listed(columns: Sequence[str]) -> str:
    return ", ".join(map(_quoted, columns))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
