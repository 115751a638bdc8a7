"""A tenant in PostgreSQL as the source or the target of a copy, and its copy in a file of SQLite."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kernel.engines.migrations import migrate
from kernel.engines.postgres.driver import escape
from kernel.engines.sqlite.connection import Connection as FileConnection
from kernel.engines.sqlite.copy_end import FileEnd
from kernel.engines.sqlite.unfinished import finish, unfinished
from kernel.store.context import StoreContext
from kernel.store.statements import load
from kernel.store.tenant_copy import Row, Table, copy
from kernel.store.transaction import Tx

if TYPE_CHECKING:
    from kernel.engines.postgres.connection import Connection

_PAGE = 100  # rows of which each may be a megabyte


class TenantEnd:
    """A connection in a transaction; a copy compares its tables with those of a file."""

    def __init__(self, db: "Connection") -> None:
        self._db = db

    def tables(self) -> Mapping[str, Table]:
        columns: dict[str, list[str]] = {}
        keys: dict[str, list[str]] = {}
        for name, column, is_key in self._db.query("engine.copy.columns"):
            columns.setdefault(name, []).append(column)
            if is_key:
                keys.setdefault(name, []).append(column)
        return {name: Table(tuple(names), tuple(keys.get(name, ()))) for name, names in columns.items()}

    def rows(self, name: str, table: Table) -> Iterator[Row]:
        text = f'SELECT {_list(table.columns)} FROM quipu."{name}" ORDER BY {_list(table.key)}'
        yield from self._db.stream(text, _PAGE)

    def replace(self, name: str, table: Table, rows: Iterable[Row]) -> None:
        self._db.command(f'DELETE FROM quipu."{name}"')
        values = (tuple(escape(value) if isinstance(value, str) else value for value in row) for row in rows)
        self._db.copy_in(f'COPY quipu_data."{name}" ({_list(table.columns)}) FROM STDIN', values)

    def last_ids(self) -> Mapping[str, int]:
        return dict(self._db.query("engine.copy.last_ids"))

    def set_last_ids(self, ids: Mapping[str, int]) -> None:
        """Set the counters of tables that never give an id twice."""
        for name, last in ids.items():
            self._db.query("engine.copy.set_last_id", name=name, last=last)

    def rebuild(self) -> None:
        for name in ("kernel.consistency.rebuild_full_text", "kernel.consistency.rebuild_parts"):
            self._db.execute(self._db.context.statements[name], {})


def _list(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def copy_to_file(tx: Tx, db: "Connection", target: Path, progress: Callable[[int, int], None] | None) -> None:
    """Copy the rows that the connection sees; the file appears when it is whole."""
    tx.one("kernel.setting.count_migrations", int)  # takes the snapshot
    texts = {name: statement.text for name, statement in load().items()}
    copied_rows = 0

    def report(_table: str, rows: int) -> None:
        nonlocal copied_rows
        copied_rows += rows
        if progress is not None:
            progress(copied_rows, copied_rows)

    with unfinished(target) as part:
        part.touch(mode=0o600)
        file = FileConnection(part, StoreContext(texts), readonly=False)
        try:
            migrate(file)
            with file.writing():
                copy(TenantEnd(db), FileEnd(file), report)
            file.pragma("journal_mode", "delete")
        finally:
            file.close()
        finish(part, target)
