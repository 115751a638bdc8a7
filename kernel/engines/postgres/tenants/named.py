"""Statements of `sql/postgres/engine` on a connection that is in no transaction of a tenant."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from kernel.engines.postgres.driver import load_driver
from kernel.engines.postgres.statements import Statement, translate, values_of
from kernel.store.statements import ROOT, load_postgres


def run(db: Any, name: str, /, **params: Any) -> Any:
    """Runs a statement; the cursor with its rows. Errors are those of psycopg."""
    text = _texts()[name]
    cursor = load_driver().RawCursor(db)
    cursor.execute(str.__str__(text), values_of(text, params))
    return cursor


@cache
def _texts() -> Mapping[str, Statement]:
    return {name: translate(one.text) for name, one in load_postgres(ROOT).items() if name.startswith("engine.")}
