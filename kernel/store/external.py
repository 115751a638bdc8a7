"""Reads the SQLite file of another program from a copy, so that the original is never changed.

The file may be hostile: only what stands in its tables is read, without views, triggers and computed columns.
"""

import shutil
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kernel.errors import Fault
from kernel.store.context import StoreContext
from kernel.store.sqlite.connection import Connection
from kernel.store.sqlite.errors import SQLITE_ERRORS

_MAGIC = b"SQLite format 3\0"
_SIDE_FILES = ("-wal", "-journal")  # committed pages that are not in the file; pages that were there before a commit
_STATEMENT_SECONDS = 300.0  # of processor time; a check of a file of 10 GB takes a third of it


class ExternalRow(dict[str, Any]):
    """One row, as column name to value; a missing column that is needed is a Fault that names it."""

    def __init__(self, source: str, columns: Sequence[str], values: Sequence[Any]) -> None:
        super().__init__(zip(columns, values, strict=True))
        self._source = source

    def __missing__(self, column: str) -> Any:
        raise Fault("invalid", f"{self._source} has no column {column}.")


class ExternalDatabase:
    """The tables of the file, by name."""

    def __init__(self, db: Connection, name: str) -> None:
        self._db = db
        self._name = name

    def tables(self) -> list[str]:
        """The names of the ordinary tables; virtual ones may need a module that is not loaded."""
        return [name for name, kind in self._kinds() if kind == "table" and not name.startswith("sqlite_")]

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Every row in rowid order; empty for a table that does not exist, a Fault for what is no ordinary table."""
        kind = dict(self._kinds()).get(table)
        if kind is None:
            return []
        source = f"{self._name}: the table {table}"
        if kind != "table":
            raise Fault("invalid", f"{self._name}: {table} is a {kind}, not a table; only tables are imported.")
        described = self._values("SELECT name FROM pragma_table_info(:table)", source, {"table": table})
        columns = [str(name) for (name,) in described]
        try:
            found = self._read(table, columns, source)
        except UnicodeDecodeError:
            column = next(name for name in columns if not self._is_text(table, name, source))
            raise Fault("invalid", f"{source}: its column {column} holds text that is not UTF-8.") from None
        return [ExternalRow(source, columns, row) for row in found]

    def _kinds(self) -> list[tuple[str, str]]:
        """The name of each table, virtual table and view, and which of them it is."""
        found = self._values(
            "SELECT name, CASE WHEN sql LIKE 'CREATE VIRTUAL%' THEN 'virtual table' ELSE type END "
            "FROM sqlite_schema WHERE type IN ('table', 'view')",
            f"{self._name}: its schema",
        )
        return [(str(name), str(kind)) for name, kind in found]

    def _is_text(self, table: str, column: str, source: str) -> bool:
        try:
            self._read(table, [column], source)
        except UnicodeDecodeError:
            return False
        return True

    def _read(self, table: str, columns: Sequence[str], source: str) -> list[tuple[Any, ...]]:
        names = ", ".join(_quoted(name) for name in columns)
        return self._values(f"SELECT {names} FROM {_quoted(table)}", source)  # noqa: S608

    def _values(self, text: str, source: str, params: dict[str, object] | None = None) -> list[tuple[Any, ...]]:
        try:
            with self._db.limited(_STATEMENT_SECONDS):
                return self._db.values(text, params)
        except SQLITE_ERRORS as error:
            raise Fault("invalid", f"{source} cannot be read: {error}.") from None


@contextmanager
def open_external(path: Path) -> Generator[ExternalDatabase]:
    """Opens a copy of the file, with its log replayed and an unfinished transaction rolled back.

    Raises Fault("invalid") for a file that is not sound.
    """
    try:
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise Fault("invalid", f"{path.name} is not a SQLite database.")
    except OSError as error:
        raise Fault("invalid", f"Cannot read {path.name}: {error.strerror}.") from None
    with TemporaryDirectory(prefix="quipu-") as folder:
        db = _open_sound(_copy(path, Path(folder)), path.name)
        try:
            yield ExternalDatabase(db, path.name)
        finally:
            db.close()


def _open_sound(copy: Path, name: str) -> Connection:
    db: Connection | None = None
    try:
        db = Connection(copy, StoreContext({}), readonly=False)
        with db.limited(_STATEMENT_SECONDS):
            db.pragma("cell_size_check", 1)
            damage = db.integrity_errors()
    except SQLITE_ERRORS as error:
        damage = [str(error)]
    if db is None or damage:
        if db is not None:
            db.close()
        raise Fault("invalid", f"{name} is damaged: {damage[0]}")
    return db


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _copy(path: Path, folder: Path) -> Path:
    copy = folder / "copy.db"
    shutil.copyfile(path, copy)
    for end in _SIDE_FILES:
        beside = path.with_name(path.name + end)
        if beside.is_file():
            shutil.copyfile(beside, folder / f"copy.db{end}")
    return copy
