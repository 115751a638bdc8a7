"""Whole rows of the tables of a file, read in the order of their keys and written back."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import apsw
import pytest

from kernel.engines.sqlite.table_rows import TableRows, quoted, schema_definitions, schema_tables
from kernel.store.context import Cursor, Params


@pytest.fixture
def tables(tmp_path: Path) -> TableRows:
    db = apsw.Connection(str(tmp_path / "a.db"))
    db.execute(
        """
        CREATE TABLE house (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
        CREATE TABLE door (at TEXT PRIMARY KEY, house INTEGER REFERENCES house (id), twice AS (house * 2));
        INSERT INTO house VALUES (2, 'mill'), (1, 'barn');
        INSERT INTO door (at, house) VALUES ('north', 1);
        """
    )
    return TableRows(cast("Callable[[str, Params | None], Cursor]", db.execute))


def test_a_table_comes_after_those_that_it_refers_to(tables: TableRows) -> None:
    assert tables.names() == ["house", "door"]


def test_columns_are_those_that_hold_values(tables: TableRows) -> None:
    assert tables.columns("door") == ["at", "house"]
    assert tables.key("door") == ["at"]


def test_rows_come_in_the_order_of_the_key(tables: TableRows) -> None:
    assert [*tables.rows("house", ["id", "name"])] == [(1, "barn"), (2, "mill")]


def test_a_row_is_found_by_its_key(tables: TableRows) -> None:
    assert tables.found("house", {"id": 2, "name": "any"}) == {"id": 2, "name": "mill"}
    assert tables.found("house", {"id": 3, "name": "any"}) is None


def test_a_row_in_the_way_is_replaced_if_that_is_wanted(tables: TableRows) -> None:
    tables.put("house", {"id": 3, "name": "mill"}, replace=True)
    assert [*tables.rows("house", ["id", "name"])] == [(1, "barn"), (3, "mill")]
    with pytest.raises(apsw.ConstraintError):
        tables.put("house", {"id": 4, "name": "mill"}, replace=False)


def test_all_rows_are_replaced(tables: TableRows) -> None:
    tables.replace_all("house", ["id", "name"], [(7, "inn")])
    assert [*tables.rows("house", ["id", "name"])] == [(7, "inn")]


def test_the_tables_of_the_schema_are_known_without_a_file() -> None:
    assert schema_tables().key("doc") == ["id"]
    first = schema_definitions(1)
    assert ("table", "doc") in {(type_, name) for type_, name, _ in first}
    assert len(schema_definitions(2)) >= len(first)


def test_a_quote_in_a_name_is_doubled() -> None:
    assert quoted("a", 'b"c') == '"a", "b""c"'
