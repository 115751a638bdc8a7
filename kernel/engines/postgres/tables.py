"""Translate the tables and indexes of `sql/schema` for PostgreSQL."""

import re
from collections.abc import Iterator

_TYPES = {"INTEGER": "bigint", "TEXT": 'text COLLATE "C"', "REAL": "double precision", "BLOB": "bytea"}
_TABLE = re.compile(r'CREATE TABLE "?(\w+)"? \((.*)\) STRICT(?:, WITHOUT ROWID)?', re.DOTALL)
_INDEX = re.compile(r"CREATE (UNIQUE )?INDEX (\w+)\s+ON (\w+)\s*\((.*)\)(\s+WHERE.*)?", re.DOTALL)
_COLUMN = re.compile(r"(\w+) (INTEGER|TEXT|REAL|BLOB)(.*)", re.DOTALL)
_REFERENCE = re.compile(r" REFERENCES (\w+) \((\w+)\)")
_TENANT = "tenant integer NOT NULL DEFAULT quipu.tenant()"


def translate_table(text: str) -> str:
    """Return a `CREATE TABLE` of SQLite with the tenant first in each key, without its references.

    Text is compared byte by byte, as SQLite does. An integer key is numbered per tenant, as a rowid is per file.
    """
    match = _TABLE.fullmatch(text)
    assert match is not None, text
    table, columns, keys = match[1], [_TENANT], list[str]()
    for item in _items(match[2]):
        if item.startswith(("PRIMARY KEY", "UNIQUE")):
            keys.append(item.replace("(", "(tenant, ", 1))
        elif item.startswith("CHECK"):
            columns.append(item)
        else:
            columns.append(_column(table, item, keys))
    return f"CREATE TABLE quipu_data.{table} ({', '.join([*columns, *keys])});"


def translate_index(text: str) -> str:
    """Return a `CREATE INDEX` of SQLite with the tenant first."""
    match = _INDEX.fullmatch(text)
    assert match is not None, text
    unique, name, table, columns, condition = match.groups("")
    columns = re.sub(r"\b(\w++) COLLATE NOCASE", r"lower(\1)", columns.strip())
    return f"CREATE {unique}INDEX {name} ON quipu_data.{table} (tenant, {columns}){condition};"


def references(table: str, text: str) -> Iterator[tuple[str, str, str, str]]:
    match = _TABLE.fullmatch(text)
    assert match is not None, text
    for item in _items(match[2]):
        if reference := _REFERENCE.search(item):
            yield table, item.split(" ", 1)[0], reference[1], reference[2]


def _column(table: str, text: str, keys: list[str]) -> str:
    """Translate a column, and add the keys that it declares."""
    match = _COLUMN.fullmatch(text)
    assert match is not None, text
    name, rest = match[1], _REFERENCE.sub("", match[3])
    if " PRIMARY KEY" in rest:
        keys.insert(0, f"PRIMARY KEY (tenant, {name})")
        if match[2] == "INTEGER":
            number = f"next_id('{table}')" if "AUTOINCREMENT" in rest else f"next_row('{table}', '{name}')"
            rest = rest.replace(" NOT NULL", "") + f" DEFAULT quipu.{number}"
        rest = " NOT NULL" + rest.replace(" PRIMARY KEY", "").replace(" AUTOINCREMENT", "").replace(" NOT NULL", "")
    if " UNIQUE" in rest:
        keys.append(f"UNIQUE (tenant, {name})")
    if "GENERATED ALWAYS" in rest:
        rest = rest.replace(" NOT NULL", "").replace("VIRTUAL", "STORED").replace("julianday", "quipu.julianday")
    return f"{name} {_TYPES[match[2]]}{rest.replace(' UNIQUE', '')}"


def _items(body: str) -> Iterator[str]:
    """Split the columns and constraints of a table at its commas."""
    depth = start = 0
    for at, character in enumerate(body):
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            yield body[start:at].strip()
            start = at + 1
    yield body[start:].strip()
