"""Reads the SQLite file of another program from a copy, so that the original is never changed.

The file may be hostile: only what stands in its tables is read, without views, triggers and computed columns.
"""

import shutil
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kernel.core.errors import Fault
from kernel.engines.sqlite.connection import Connection
from kernel.engines.sqlite.errors import SQLITE_ERRORS
from kernel.engines.sqlite.table_rows import quoted
from kernel.store.context import StoreContext

_MAGIC = b"SQLite format 3\0"
_SIDE_FILES = ("-wal", "-journal")  # committed pages that are not in the file; pages that were there before a commit
_CHECK_SECONDS = 300.0  # of processor time; a check of a file of 10 GB takes a third of it

Row = dict[str, Any]


def text_of(row: Mapping[str, Any], column: str) -> str | None:
    """Return a column as text, whatever it holds; None if it is null or missing."""
    value = row.get(column)
    return value.decode(errors="replace") if isinstance(value, bytes) else None if value is None else str(value)


class ExternalDatabase:
    """The tables of the copy, by name. Rows are read one by one, so that a table may be larger than memory."""

    def __init__(self, db: Connection, name: str) -> None:
        self._db = db
        self._name = name
        self._stored: dict[str, list[str]] = {}

    def tables(self) -> list[str]:
        """Return the names of the ordinary tables; virtual tables may need a module that is not loaded."""
        return [name for name, kind in self._kinds() if kind == "table" and not name.startswith("sqlite_")]

    def check(self, tables: Mapping[str, Sequence[str]]) -> None:
        """Reads these tables to their end, before anything is imported from them.

        Raises Fault("invalid") for a table that cannot be read or lacks a column that is needed, and for what is no
        ordinary table; a table may be missing.
        """
        for table, required in tables.items():
            columns = self._columns(table)
            source = f"{self._name}: the table {table}"
            for column in required if columns else ():
                if column not in columns:
                    raise Fault("invalid", f"{source} has no column {column}.")
            try:
                self._read(table, columns)
            except UnicodeDecodeError:
                column = next(name for name in columns if not self._is_text(table, name))
                raise Fault("invalid", f"{source}: its column {column} holds text that is not UTF-8.") from None
            except SQLITE_ERRORS as error:
                raise Fault("invalid", f"{source} cannot be read: {error}.") from None

    def count(self, table: str) -> int:
        """Return the number of rows; 0 for a table that does not exist."""
        is_there = table in dict(self._kinds())
        return self._db.values(f"SELECT count(*) FROM {quoted(table)}")[0][0] if is_there else 0

    def rows(self, table: str, order_by: str = "") -> Iterator[Row]:
        """Return every row, in rowid order if no other is given; none for a table that does not exist."""
        columns = self._columns(table)
        order = f" ORDER BY {quoted(order_by)}" if order_by in columns else ""
        return self._rows(table, columns, order)

    def index(self, table: str, column: str) -> None:
        if column in self._columns(table):
            name = quoted(f"quipu {table} {column}")
            with self._db.limited(_CHECK_SECONDS):
                self._db.script(
                    f"CREATE INDEX {name} ON {quoted(table)} ({_as_text(column)}) WHERE {_is_no_blob(column)}"
                )

    def rows_with(self, table: str, column: str, value: object) -> Iterator[Row]:
        """Return the rows with this value of a column, a text or a value that reads as this text, in rowid order.

        With None those in which it is NULL.
        """
        columns = self._columns(table)
        condition = (
            f"{_as_text(column)} IS CAST(:value AS TEXT) AND {_is_no_blob(column)}" if column in columns else "false"
        )
        return self._rows(table, columns, f" WHERE {condition}", {"value": value})

    def values(self, table: str, column: str) -> Iterator[str | None]:
        """Yield the different values of an indexed column, as texts; None for NULL."""
        if column in self._columns(table):
            text = f"SELECT DISTINCT {_as_text(column)} FROM {quoted(table)} WHERE {_is_no_blob(column)}"
            for (value,) in self._db.execute(text, None):
                yield value

    def _columns(self, table: str) -> list[str]:
        if table not in self._stored:
            self._stored[table] = self._read_columns(table)
        return self._stored[table]

    def _read_columns(self, table: str) -> list[str]:
        kind = dict(self._kinds()).get(table)
        if kind is None:
            return []
        if kind != "table":
            raise Fault("invalid", f"{self._name}: {table} is a {kind}, not a table; only tables are imported.")
        columns = self._schema("SELECT name FROM pragma_table_info(:table)", {"table": table})
        return [str(name) for (name,) in columns]

    def _kinds(self) -> list[tuple[str, str]]:
        tables = self._schema(
            "SELECT name, CASE WHEN sql LIKE 'CREATE VIRTUAL%' THEN 'virtual table' ELSE type END "
            "FROM sqlite_schema WHERE type IN ('table', 'view')"
        )
        return [(str(name), str(kind)) for name, kind in tables]

    def _schema(self, text: str, params: dict[str, str] | None = None) -> list[tuple[Any, ...]]:
        try:
            return self._db.values(text, params)
        except UnicodeDecodeError:  # SQLite stores any bytes as a name
            raise Fault("invalid", f"{self._name}: its schema holds names that are not UTF-8.") from None
        except SQLITE_ERRORS as error:
            raise Fault("invalid", f"{self._name}: its schema cannot be read: {error}.") from None

    def _rows(
        self, table: str, columns: Sequence[str], rest: str = "", params: dict[str, object] | None = None
    ) -> Iterator[Row]:
        if columns:
            for values in self._db.execute(f"{_selection(table, columns)}{rest}", params):
                yield dict(zip(columns, values, strict=True))

    def _is_text(self, table: str, column: str) -> bool:
        try:
            self._read(table, [column])
        except UnicodeDecodeError:
            return False
        return True

    def _read(self, table: str, columns: Sequence[str]) -> None:
        with self._db.limited(_CHECK_SECONDS):
            for _ in self._rows(table, columns):
                pass


@contextmanager
def open_external(path: Path, folder: Path) -> Generator[ExternalDatabase]:
    """Opens a copy of the file in `folder`, with its log replayed and an unfinished transaction rolled back.

    Raises Fault("invalid") for a file that is not sound.
    """
    try:
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise Fault("invalid", f"{path.name} is not a SQLite database.")
    except OSError as error:
        raise Fault("invalid", f"Cannot read {path.name}: {error.strerror}.") from None
    with TemporaryDirectory(dir=folder) as own:
        db = _open_sound(_copy(path, Path(own)), path.name)
        try:
            yield ExternalDatabase(db, path.name)
        finally:
            db.close()


def _open_sound(copy: Path, name: str) -> Connection:
    db: Connection | None = None
    try:
        db = Connection(copy, StoreContext({}), readonly=False)
        with db.limited(_CHECK_SECONDS):
            db.pragma("cell_size_check", 1)
            db.pragma("temp_store", "file")
            damage = db.integrity_errors()
    except SQLITE_ERRORS as error:
        damage = [str(error)]
    except UnicodeDecodeError:  # the errors show names of the file
        damage = ["it holds names that are not UTF-8"]
    if db is None or damage:
        if db is not None:
            db.close()
        raise Fault("invalid", f"{name} is damaged: {damage[0].rstrip('.')}.")
    return db


def _selection(table: str, columns: Sequence[str]) -> str:
    return f"SELECT {quoted(*columns)} FROM {quoted(table)}"


def _as_text(column: str) -> str:
    return f"CAST({quoted(column)} AS TEXT)"


def _is_no_blob(column: str) -> str:
    return f"typeof({quoted(column)}) != 'blob'"


def _copy(path: Path, folder: Path) -> Path:
    copy = folder / "copy.db"
    shutil.copyfile(path, copy)
    for end in _SIDE_FILES:
        beside = path.with_name(path.name + end)
        if beside.is_file():
            shutil.copyfile(beside, folder / f"copy.db{end}")
    return copy
