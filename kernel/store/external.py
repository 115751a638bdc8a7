"""Reads the SQLite file of another program from a copy, so that the original is never changed."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kernel.errors import Fault
from kernel.store.context import StoreContext
from kernel.store.sqlite.connection import Connection
from kernel.store.sqlite.errors import DAMAGED

_MAGIC = b"SQLite format 3\0"


class ExternalDatabase:
    """The tables of the file, by name."""

    def __init__(self, db: Connection) -> None:
        self._db = db

    def tables(self) -> list[str]:
        """The names of the ordinary tables; virtual ones may need a module that is not loaded."""
        found = self._db.values(
            "SELECT name FROM sqlite_schema "
            "WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND sql NOT LIKE 'CREATE VIRTUAL TABLE%'"
        )
        return [name for (name,) in found]

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Every row in rowid order, as column name to value; empty for a table that does not exist."""
        columns = [name for (name,) in self._db.values("SELECT name FROM pragma_table_info(:table)", {"table": table})]
        if not columns:
            return []
        quoted = table.replace('"', '""')
        return [dict(zip(columns, row, strict=True)) for row in self._db.values(f'SELECT * FROM "{quoted}"')]  # noqa: S608


@contextmanager
def open_external(path: Path) -> Generator[ExternalDatabase]:
    """Opens a copy of the file and of its write-ahead log; raises Fault("invalid") for a file that is not sound."""
    try:
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise Fault("invalid", f"{path.name} is not a SQLite database.")
    except OSError as error:
        raise Fault("invalid", f"Cannot read {path.name}: {error.strerror}.") from None
    with TemporaryDirectory(prefix="quipu-") as folder:
        try:
            db = Connection(_copy(path, Path(folder)), StoreContext({}), readonly=False)
        except DAMAGED as error:
            raise Fault("invalid", f"{path.name} is damaged: {error}") from None
        try:
            if damage := db.integrity_errors():
                raise Fault("invalid", f"{path.name} is damaged: {damage[0]}")
            yield ExternalDatabase(db)
        finally:
            db.close()


def _copy(path: Path, folder: Path) -> Path:
    copy = folder / "copy.db"
    shutil.copyfile(path, copy)
    log = path.with_name(f"{path.name}-wal")
    if log.is_file():
        shutil.copyfile(log, folder / "copy.db-wal")
    return copy
