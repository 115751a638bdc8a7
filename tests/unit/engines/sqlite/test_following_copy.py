"""A copy that follows a database has its committed states, and never those of another schema or with damage."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from kernel.core.errors import Fault
from kernel.engines.sqlite.following_copy import FollowingCopy

SCHEMA = 3


@pytest.fixture
def source(tmp_path: Path) -> Iterator[apsw.Connection]:
    with closing(apsw.Connection(str(tmp_path / "source.db"))) as db:
        db.pragma("journal_mode", "wal")
        db.pragma("user_version", SCHEMA)
        db.execute("CREATE TABLE t (a)")
        yield db


@pytest.fixture
def copy(source: apsw.Connection, tmp_path: Path) -> Iterator[FollowingCopy]:
    with closing(FollowingCopy(tmp_path / "source.db", tmp_path / "copy.db", SCHEMA)) as following:
        yield following


def rows(folder: Path) -> list[tuple[object, ...]]:
    with closing(apsw.Connection(str(folder / "copy.db"), flags=apsw.SQLITE_OPEN_READONLY)) as db:
        return [*db.execute("SELECT a FROM t ORDER BY a")]


def test_a_refresh_copies_committed_rows_alone(source: apsw.Connection, copy: FollowingCopy, tmp_path: Path) -> None:
    source.execute("INSERT INTO t VALUES (1)")
    assert copy.refresh()
    source.execute("INSERT INTO t VALUES (2)")
    source.execute("BEGIN; INSERT INTO t VALUES (3)")
    assert copy.refresh()
    assert rows(tmp_path) == [(1,), (2,)]
    source.execute("ROLLBACK")


def test_without_a_change_nothing_is_copied(source: apsw.Connection, copy: FollowingCopy) -> None:
    assert copy.refresh()
    assert not copy.refresh()


def test_another_schema_is_refused_and_the_copy_stays(
    source: apsw.Connection, copy: FollowingCopy, tmp_path: Path
) -> None:
    source.execute("INSERT INTO t VALUES (1)")
    copy.refresh()
    source.execute("INSERT INTO t VALUES (2)")
    source.pragma("user_version", SCHEMA + 1)
    with pytest.raises(Fault, match="The source has schema 4, this program 3"):
        copy.refresh()
    assert rows(tmp_path) == [(1,)]
