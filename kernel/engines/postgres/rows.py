"""The rows of a statement, and the other requests of a transaction to a connection."""

from collections.abc import Iterator
from typing import Any

Row = tuple[Any, ...]


class Rows:
    """The rows of a statement."""

    __slots__ = ("_rows",)

    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def fetchall(self) -> list[Row]:
        return self._rows


class Pages:
    """The rows of a statement as they are read."""

    __slots__ = ("_rows",)

    def __init__(self, rows: Iterator[Row]) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[Row]:
        return self._rows

    def fetchall(self) -> list[Row]:
        return list(self._rows)


NO_ROWS = Rows([])


class Budget:
    """PostgreSQL's statement_timeout limits calls."""

    new_statement = False
    streamed = False
