"""The export of everything as JSON lines: rows of every dialect, their history, author and time.

The first line names the format, the last has the number of lines and their SHA-256, so that a damaged copy is known.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from kernel.calls.dialect import Dialect, Outside
from kernel.engines.sqlite.table_rows import schema_tables
from kernel.store.transaction import Tx

FORMAT, VERSION = "memories", 1
_encode = msgspec.json.Encoder().encode


class Event(Struct, forbid_unknown_fields=True):
    space: str
    key: str
    operation: str
    before: str | None
    after: str | None
    reason: str | None
    dialect: str
    tool: str
    actor: str
    at: str


class Document(Struct, forbid_unknown_fields=True):
    space: str
    key: str
    dialect: str
    tool: str
    actor: str
    created_at: str
    updated_at: str


class Release(Struct, forbid_unknown_fields=True):
    digest: str
    space: str
    key: str
    at: str


def export_lines(dialects: Sequence[Dialect], tx: Tx) -> Iterator[bytes]:
    digest, count = hashlib.sha256(), 0
    for value in _values(dialects, tx):
        line = _encode(value)
        digest.update(line + b"\n")
        count += 1
        yield line
    yield _encode({"end": count, "sha256": digest.hexdigest()})


def tables(dialects: Sequence[Dialect], tx: Tx) -> dict[str, tuple[Dialect, Sequence[str]]]:
    by_prefix = {dialect.name: dialect for dialect in dialects}
    columns_by_table: dict[str, tuple[Dialect, Sequence[str]]] = {}
    for table in schema_tables().names():  # another program may have added tables to the file
        dialect = by_prefix.get(table.partition("_")[0])
        if dialect is not None:
            outside: Outside | None = dialect.files.outside.get(table)
            columns = tx.tables.columns(table) if outside is None else outside.columns
            if columns:
                columns_by_table[table] = (dialect, columns)
    return columns_by_table


def _values(dialects: Sequence[Dialect], tx: Tx) -> Iterator[Mapping[str, Any]]:
    yield {"quipu": FORMAT, "version": VERSION}
    for table, (_, columns) in tables(dialects, tx).items():
        for row in tx.tables.rows(table, columns):
            yield {"table": table, "row": dict(zip(columns, row, strict=True))}
    for event in tx.each("kernel.portable_export.history", Event):
        yield {"history": event}
    for release in tx.each("kernel.portable_export.releases", Release):
        yield {"release": release}
    for document in tx.each("kernel.portable_export.documents", Document):
        yield {"doc": document}
