"""Copies a tenant from one store to another, of whichever engine, and compares the copy with the original."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

from kernel.core.errors import Fault
from kernel.store.statements import table_facts

Row = tuple[Any, ...]
# Tables that can be derived, are the same in every store, or have another form in each engine, as undo data do.
LEFT_OUT = table_facts().seeded.union(
    "commit_mark counter doc_trigrams doc_words migration row_change undo undo_part".split()
)
_encode = msgspec.msgpack.Encoder().encode


class Table(NamedTuple):
    """A table: the columns that are written, and those of its primary key, by which its rows are ordered."""

    columns: tuple[str, ...]
    key: tuple[str, ...]


class End(Protocol):
    """A store in a transaction, as a copy reads or writes it."""

    def tables(self) -> Mapping[str, Table]:
        """Return the tables by name, without those derived from others."""
        ...

    def rows(self, name: str, table: Table) -> Iterator[Row]: ...

    def replace(self, name: str, table: Table, rows: Iterable[Row]) -> None:
        """Writes these rows in the place of those that are there."""
        ...

    def last_ids(self) -> Mapping[str, int]:
        """Return the last ids that tables have given, by table."""
        ...

    def set_last_ids(self, ids: Mapping[str, int]) -> None:
        """Lets the tables give ids after these."""
        ...

    def rebuild(self) -> None:
        """Makes the tables and indexes derived from rows."""
        ...


class Copied(NamedTuple):
    """The size of a copy: tables with rows, and rows."""

    tables: int
    rows: int


def copy(source: End, target: End, report: Callable[[str, int], None]) -> Copied:
    """Copies everything but undo data; `report` gets each table and its rows.

    Raises Fault if the target has memories, or if the copy differs from the original; the caller rolls back.
    """
    tables = {name: table for name, table in source.tables().items() if name not in LEFT_OUT}
    there = target.tables()
    if missing := [name for name, table in tables.items() if set(table.columns) != set(there[name].columns)]:
        raise Fault("invalid", f"The two stores have different schemas: {', '.join(missing)}.")
    if any(next(target.rows(name, tables[name]), None) for name in ("doc", "history", "audit")):
        raise Fault("invalid", "The target has memories already: copy into a new tenant or an empty folder.")
    total = filled = 0
    for name, table in tables.items():
        source_digest = _Digest()
        target.replace(name, table, source_digest.passing(source.rows(name, table)))
        target_digest = _Digest()
        for _ in target_digest.passing(target.rows(name, table)):
            pass
        if target_digest.value != source_digest.value:
            raise Fault("storage", f"The copy of {name} differs from what was sent.")
        report(name, source_digest.rows)
        total += source_digest.rows
        filled += bool(source_digest.rows)
    target.set_last_ids(source.last_ids())
    target.rebuild()
    return Copied(filled, total)


class _Digest:
    """The SHA-256 of rows that pass through."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.rows = 0

    def passing(self, rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            self._hash.update(_encode(row))
            self.rows += 1
            yield row

    @property
    def value(self) -> str:
        return self._hash.hexdigest()
