"""Recorded changes are reverted, unless a row has changed again since."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from kernel.engines.sqlite.changesets import Recorder, can_revert, is_recorded, revert


@pytest.fixture
def db(tmp_path: Path) -> Iterator[apsw.Connection]:
    with closing(apsw.Connection(str(tmp_path / "a.db"))) as opened:
        opened.execute("CREATE TABLE house (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO house VALUES (1, 'mill')")
        yield opened


def rows(db: apsw.Connection) -> list[tuple[object, ...]]:
    return [*db.execute("SELECT id, name FROM house ORDER BY id")]


def changes_of(db: apsw.Connection, text: str, limit: int = 1 << 20) -> bytes | None:
    recorder = Recorder(db, limit)
    db.execute(text)
    changes = recorder.take()
    recorder.close()
    return changes


def test_changes_are_reverted(db: apsw.Connection) -> None:
    changes = changes_of(db, "UPDATE house SET name = 'barn'; INSERT INTO house VALUES (2, 'inn')")
    assert changes is not None
    assert can_revert(db, lambda: [changes])
    assert revert(db, changes)
    assert rows(db) == [(1, "mill")]


def test_a_row_that_has_changed_since_stops_the_revert(db: apsw.Connection) -> None:
    changes = changes_of(db, "UPDATE house SET name = 'barn'; INSERT INTO house VALUES (2, 'inn')")
    assert changes is not None
    db.execute("UPDATE house SET name = 'tower' WHERE id = 1")
    assert not can_revert(db, lambda: [changes])
    assert not revert(db, changes)
    assert rows(db) == [(1, "tower"), (2, "inn")]


def test_the_last_of_several_is_reverted_first(db: apsw.Connection) -> None:
    first = changes_of(db, "UPDATE house SET name = 'barn'")
    second = changes_of(db, "UPDATE house SET name = 'inn'")
    assert first
    assert second
    assert can_revert(db, lambda: [second, first])
    assert not can_revert(db, lambda: [first, second])


def test_more_changes_than_the_limit_are_not_kept(db: apsw.Connection) -> None:
    many = (
        "WITH n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) INSERT INTO house SELECT i, 'a' FROM n"
    )
    assert changes_of(db, many, 1000) is None


def test_derived_tables_are_not_recorded() -> None:
    assert is_recorded("paths_memory")
    assert not is_recorded("doc_fts_data")
