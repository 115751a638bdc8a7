"""Columns of a foreign database, of any SQLite type, as values of our columns."""

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from handlers.scopes.field_types import MAX_DEPTH, nested_deeper
from handlers.scopes.results import dumps
from kernel.core.times import utc_time
from kernel.store.transaction import Tx

Row = Mapping[str, Any]
_MAX_INT64 = 2**63 - 1


def text(row: Row, column: str) -> str | None:
    """Return a column as text; None if it is NULL or missing."""
    value = row.get(column)
    return value.decode(errors="replace") if isinstance(value, bytes) else None if value is None else str(value)


def integer(row: Row, column: str, default: int) -> int:
    """Return a column as a 64-bit integer; `default` for any other value."""
    found = real_number(row, column, default)
    return int(found) if -_MAX_INT64 <= found <= _MAX_INT64 else default


def real_number(row: Row, column: str, default: float) -> float:
    """Return a column as a finite number; `default` for any other value."""
    value = row.get(column)
    return value if isinstance(value, int | float) and math.isfinite(value) else default


def json_column(row: Row, column: str) -> str | None:
    """Return a JSON column as compact JSON text; invalid JSON, or JSON nested too deep to be exported, becomes a
    string.
    """
    value = text(row, column)
    if value is None:
        return None
    try:
        found = msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return dumps(value)
    return dumps(value if nested_deeper(found, MAX_DEPTH) else found)


def time_or_text(row: Row, column: str) -> str | None:
    """Return a time, in any form of ISO 8601, as stored here; any other text unchanged."""
    value = text(row, column)
    return value and (utc_time(value) or value)


def required_time(tx: Tx, row: Row, column: str, default: str | None = None) -> str:
    """Return a time as stored here; `default`, or else now, for any other text."""
    return utc_time(text(row, column) or "") or default or tx.now
