"""Calls, values and checks that several tests of scopes share."""

from pathlib import Path
from typing import Any

import apsw

from kernel.security.permissions import Permission
from kernel.server import app
from tests.security.calls import Call

DIALECTS = {dialect.name: {tool.name for tool in dialect.tools} for dialect in app.DIALECTS}


PERMISSIONS = {tool.name: tool.permission for dialect in app.DIALECTS for tool in dialect.tools}


def needed(call: Call) -> Permission:
    entry = PERMISSIONS[call[0]]
    return Permission[entry if isinstance(entry, str) else entry[call[1]]]


def told(challenge: str, name: str) -> str:
    """One parameter of a challenge."""
    return challenge.partition(f'{name}="')[2].partition('"')[0]


def rows(file: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table."""
    db = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        named: Any = db.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        )
        return {name: db.execute(f'SELECT * FROM "{name}"').fetchall() for (name,) in named}
    finally:
        db.close()
