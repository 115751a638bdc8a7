"""A tenant in PostgreSQL as the source or the target of a copy."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from kernel.engines.postgres.driver import escape
from kernel.store.tenant_copy import Row, Table

if TYPE_CHECKING:
    from kernel.engines.postgres.connection import Connection

_PAGE = 100  # rows of which each may be a megabyte


class TenantEnd:
    """A connection in a transaction; its tables are compared with those of a file, which knows what belongs to one."""

    def __init__(self, db: "Connection") -> None:
        self._db = db

    def tables(self) -> Mapping[str, Table]:
        """Return the tables of the tenant, and the columns of their keys that exist."""
        columns: dict[str, list[str]] = {}
        keys: dict[str, list[str]] = {}
        for name, column, is_key in self._db.query("engine.copy.columns"):
            columns.setdefault(name, []).append(column)
            if is_key:
                keys.setdefault(name, []).append(column)
        return {name: Table(tuple(found), tuple(keys.get(name, ()))) for name, found in columns.items()}

    def rows(self, name: str, table: Table) -> Iterator[Row]:
        """Yield the rows in pages."""
        text = f'SELECT {_list(table.columns)} FROM quipu."{name}" ORDER BY {_list(table.key)}'
        yield from self._db.stream(text, _PAGE)

    def replace(self, name: str, table: Table, rows: Iterable[Row]) -> None:
        """Writes rows as a stream."""
        self._db.command(f'DELETE FROM quipu."{name}"')
        escaped = (tuple(escape(one) if isinstance(one, str) else one for one in row) for row in rows)
        self._db.copy_in(f'COPY quipu_data."{name}" ({_list(table.columns)}) FROM STDIN', escaped)

    def last_ids(self) -> Mapping[str, int]:
        """Return the counters of the tenant."""
        return dict(self._db.query("engine.copy.last_ids"))

    def set_last_ids(self, ids: Mapping[str, int]) -> None:
        """Of tables that never give an id twice."""
        for name, last in ids.items():
            self._db.query("engine.copy.set_last_id", name=name, last=last)

    def rebuild(self) -> None:
        """Makes full text from the documents."""
        for name in ("kernel.consistency.rebuild_full_text", "kernel.consistency.rebuild_parts"):
            self._db.execute(self._db.context.statements[name], {})


def _list(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
