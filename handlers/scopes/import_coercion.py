"""Values of another program's rows, whatever they turn out to be, as our columns want them."""

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from handlers.scopes.field_types import MAX_DEPTH, nested_deeper
from handlers.scopes.results import dumps
from kernel.store.transaction import Tx
from kernel.text import utc_time

Row = Mapping[str, Any]
_MAX_INT64 = 2**63 - 1


def text(row: Row, column: str) -> str | None:
    """A column as text; None where it is NULL or is not there."""
    value = row.get(column)
    return value.decode(errors="replace") if isinstance(value, bytes) else None if value is None else str(value)


def integer(row: Row, column: str, default: int) -> int:
    """A column as a whole number of 64 bits; `default` where it is none."""
    found = real_number(row, column, default)
    return int(found) if -_MAX_INT64 <= found <= _MAX_INT64 else default


def real_number(row: Row, column: str, default: float) -> float:
    """A column as a number; `default` where it is none."""
    value = row.get(column)
    return value if isinstance(value, int | float) and math.isfinite(value) else default


def json_column(row: Row, column: str) -> str | None:
    """A JSON column as our columns have it; text that is no JSON, or nested too deep to be exported, becomes a JSON
    string, so that nothing is lost.
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
    """A time in either form that program writes, as ours are written; what is no time stays as it is."""
    value = text(row, column)
    return value and (utc_time(value) or value)


def required_time(tx: Tx, row: Row, column: str, default: str | None = None) -> str:
    """A time that has to be one: `default`, or else now, where it is none."""
    return utc_time(text(row, column) or "") or default or tx.now
