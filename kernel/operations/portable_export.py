"""The export of everything as JSON lines: rows of every dialect, their history, author and time.

The first line names the format, the last has the number of lines and their SHA-256, so that a damaged copy is known.

No row of a memory may hold a text that is no time, nor a path that leads out or deceives, whoever wrote it.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from kernel.calls.dialect import Dialect, Outside
from kernel.core.text import harmless, one_line
from kernel.core.times import utc_time
from kernel.engines.sqlite.table_rows import schema_tables
from kernel.store.statements import table_facts
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


_SHOWN = 40  # characters of a value
_LINE_ENDS = frozenset("\n\r\t")


def problem_of(table: str, row: Mapping[str, Any]) -> str:
    """Return the mistake in a row of a table of a dialect, such as `holds created_at x, which is no time`."""
    for name, value in row.items():
        kind = _kind_of(table, name)
        if kind and value and isinstance(value, str) and not (utc_time(value) if kind == "time" else _is_path(value)):
            return f"holds {table}.{name} {harmless(one_line(value, _SHOWN))}, which is no {kind}"
    return ""


def problems(tx: Tx, dialect: Dialect) -> Iterator[str]:
    """Yield a line for each such row of a dialect: its first column, and the mistake."""
    for table, (_, columns) in tables([dialect], tx).items():
        names = [name for name in columns if _kind_of(table, name)]
        if not names:
            continue
        for first, *values in tx.tables.rows(table, [columns[0], *names]):
            if problem := problem_of(table, dict(zip(names, values, strict=True))):
                yield f"{dialect.name} {harmless(one_line(str(first), _SHOWN))} {problem}"


def _kind_of(table: str, name: str) -> str:
    """Return whether a column holds a `time` or a `path`; empty for others."""
    is_path = name == "path" and table in table_facts().paths
    return "time" if name == "at" or name.endswith("_at") else "path" if is_path else ""


def _is_path(value: str) -> bool:
    plain = harmless(value) == value and _LINE_ENDS.isdisjoint(value)
    return plain and {".", ".."}.isdisjoint(value.split("/"))
