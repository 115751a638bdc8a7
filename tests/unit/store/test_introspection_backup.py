"""A dialect learns which migrations it has, and gets a copy of the file as it stood before its transaction."""

import resource
import stat
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from kernel.errors import Fault
from kernel.store import history, statements
from kernel.store.context import CallContext, StoreContext
from kernel.store.introspection import backup_before_clear, migrations
from kernel.store.migrations import migrate
from kernel.store.sqlite.connection import Connection
from tests.conftest import Clock

WHO = CallContext("notes", "forget", "ada")
STATEMENTS = StoreContext({key: statement.text for key, statement in statements.load().items()})


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Connection]:
    opened = Connection(tmp_path / "quipu.db", STATEMENTS, readonly=False)
    migrate(opened)
    yield opened
    opened.close()


def events(file: Path) -> list[str | None]:
    """What happened to the one thing the tests write about."""
    opened = Connection(file, STATEMENTS, readonly=True)
    try:
        return opened.read(WHO, lambda tx: [event.after for event in history.read(tx, "notes", "a")])
    finally:
        opened.close()


def test_migrations_lists_those_of_one_dialect(db: Connection) -> None:
    assert db.read(WHO, lambda tx: migrations(tx, "paths")) == ["0002_paths", "0010_paths_rows"]
    assert db.read(WHO, lambda tx: migrations(tx, "kernel")) == ["0001_kernel"]
    assert db.read(WHO, lambda tx: migrations(tx, "path")) == []


def test_backup_before_clear_holds_committed_rows_and_is_private(db: Connection, tmp_path: Path, clock: Clock) -> None:
    with db.writing(WHO) as tx:
        history.append(tx, "notes", "a", "said", after="before")
    with db.writing(WHO) as tx:
        history.append(tx, "notes", "a", "said", after="not yet")
        history.clear(tx, "notes")
        first, second = backup_before_clear(tx, "before-reset"), backup_before_clear(tx, "before-reset")

    stem = "quipu-before-reset-2026-01-02T030405678Z"
    assert (first, second) == (f"{stem}.db", f"{stem}-2.db")
    for name in (first, second):
        assert events(tmp_path / name) == ["before"]
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    assert events(tmp_path / "quipu.db") == []
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".db") == [
        f"{stem}-2.db",
        first,
        "quipu.db",
    ]


def test_backup_without_room_leaves_no_file(db: Connection, tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, before[1]))
    try:
        with pytest.raises((apsw.IOError, apsw.FullError)), db.writing(WHO) as tx:
            backup_before_clear(tx, "before-reset")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert [path.name for path in tmp_path.iterdir() if "reset" in path.name] == []


def test_unwritable_folder_is_a_storage_fault(db: Connection, tmp_path: Path) -> None:
    tmp_path.rename(tmp_path.with_name("elsewhere"))

    with pytest.raises(Fault, match="No such file"), db.writing(WHO) as tx:
        backup_before_clear(tx, "before-reset")

    assert not tmp_path.exists()
