"""A command opens the file of SQLite, or the database that the context connects to."""

from pathlib import Path
from typing import Any

import pytest

from kernel.engines.opening import open_reader, open_writer
from kernel.store.context import CallContext
from tests.unit.store_fixtures import THING_CONTEXT, add, names, things


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.db"
    things(path).close()
    return path


def test_a_file_is_written_and_read(file: Path) -> None:
    with open_writer(file, THING_CONTEXT) as db, db.writing(CallContext()) as tx:
        add("mill")(tx)
    with open_reader(file, THING_CONTEXT) as db:
        assert db.read(CallContext(), names) == ["mill"]


class Database:
    """Another database, which notes that it was closed."""

    closed = False

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("opened", [open_reader, open_writer])
def test_a_context_that_connects_has_its_own_database(file: Path, opened: Any) -> None:
    database = Database()
    context = THING_CONTEXT._replace(connect=lambda _context: database)
    with opened(file, context) as db:
        assert db is database
    assert database.closed
