"""The tables as sql/schema makes them, without a file."""

from collections.abc import Callable
from functools import cache
from typing import cast

import apsw

from kernel.store.sqlite.table_rows import TableRows
from kernel.store.statements import migrations
from kernel.store.tx_engine import Cursor, Params


@cache
def schema_tables() -> TableRows:
    """Empty tables, which tell their names, columns and keys."""
    db = apsw.Connection(":memory:")
    for file in migrations():
        db.execute(file.read_text(encoding="utf-8")).fetchall()
    return TableRows(cast("Callable[[str, Params | None], Cursor]", db.execute))
