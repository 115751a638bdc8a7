"""Values that no row of a memory may hold, whoever wrote it: texts that are no time, paths that lead out or deceive."""

from collections.abc import Iterator, Mapping
from typing import Any

from kernel.calls.dialect import Dialect
from kernel.core.text import harmless, one_line
from kernel.core.times import utc_time
from kernel.operations.portable_export import tables
from kernel.store.statements import table_facts
from kernel.store.transaction import Tx

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
