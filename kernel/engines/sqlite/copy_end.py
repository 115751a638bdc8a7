"""A file of SQLite as the source or the target of a copy."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kernel.engines.sqlite.connection import Connection
from kernel.engines.sqlite.schema_tables import schema_tables
from kernel.store.tenant_copy import Row, Table

_OTHERS = ("sqlite_", "doc_fts", "doc_part", "doc_term", "doc_dropped")  # derived, or of the engine itself
_REBUILT = ("kernel.consistency.rebuild_full_text", "kernel.consistency.rebuild_parts", "kernel.dropped.forget_all")
_VISIBLE = 0  # of a column in PRAGMA table_xinfo; generated columns have 2 or 3


class FileEnd:
    """A connection in a transaction."""

    def __init__(self, db: Connection) -> None:
        self._db = db

    def tables(self) -> Mapping[str, Table]:
        return {name: self._table(name) for name in sorted(schema_tables().names()) if not name.startswith(_OTHERS)}

    def _table(self, name: str) -> Table:
        columns = self._db.values(f'PRAGMA table_xinfo("{name}")')
        key = sorted((column[5], column[1]) for column in columns if column[5])
        return Table(tuple(column[1] for column in columns if column[6] == _VISIBLE), tuple(part for _, part in key))

    def rows(self, name: str, table: Table) -> Iterator[Row]:
        text = f'SELECT {_list(table.columns)} FROM "{name}" ORDER BY {_list(table.key)}'
        yield from self._db.execute(text, None)

    def replace(self, name: str, table: Table, rows: Iterable[Row]) -> None:
        self._db.values(f'DELETE FROM "{name}"')
        marks = ", ".join(f":{column}" for column in table.columns)
        text = f'INSERT INTO "{name}" ({_list(table.columns)}) VALUES ({marks})'
        for row in rows:
            self._db.execute(text, dict(zip(table.columns, row, strict=True)))

    def last_ids(self) -> Mapping[str, int]:
        ours = schema_tables().names()
        return {name: last for name, last in self._db.values("SELECT name, seq FROM sqlite_sequence") if name in ours}

    def set_last_ids(self, ids: Mapping[str, int]) -> None:
        for name, last in ids.items():
            params: dict[str, Any] = {"name": name, "last": last}
            self._db.values("DELETE FROM sqlite_sequence WHERE name = :name", {"name": name})
            self._db.values("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :last)", params)

    def rebuild(self) -> None:
        for name in _REBUILT:
            self._db.values(self._db.context.statements[name])


def _list(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
