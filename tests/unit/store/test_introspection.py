"""A store reports its file, tables, model and migrations, frees space, and makes backups before a clear."""

import resource
import stat
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from kernel.core.config import MODEL
from kernel.engines.migrations import migrate
from kernel.engines.sqlite.connection import Connection
from kernel.server.app import Kernel
from kernel.store import history, introspection, statements
from kernel.store.context import CallContext, StoreContext
from kernel.store.introspection import backup_before_clear, migrations
from kernel.store.transaction import Tx
from tests.conftest import Clock

FORGET = CallContext("notes", "forget", "ada")
STATEMENTS = StoreContext({key: statement.text for key, statement in statements.load().items()})


def test_transaction_reports_file_tables_and_model(kernel: Kernel) -> None:
    def look(tx: Tx) -> tuple[str, list[str], str]:
        return introspection.file(tx), introspection.tables(tx), introspection.model_folder(tx)

    file, tables, folder = kernel.store.read_sync(look)

    assert (file, folder) == (str(kernel.config.file.resolve()), str(MODEL))
    assert {"doc", "doc_fts", "history", "migration", "paths_memory", "setting"} <= set(tables)
    assert tables == sorted(tables)


def test_model_folder_is_empty_without_a_model(kernel: Kernel) -> None:
    db = Connection(kernel.config.file, StoreContext({}), readonly=True)
    assert db.read(CallContext(), introspection.model_folder) == ""
    db.close()


def test_vacuum_after_commit_shrinks_the_file(kernel: Kernel) -> None:
    def fill(tx: Tx) -> None:
        for number in range(50):
            tx.run("paths.memories.add", path=f"p{number}", content="x" * 100_000, content_size=100_000, now=tx.now)

    def clear(tx: Tx) -> None:
        while tx.all("paths.memories.clear_slice", lambda *_: True, limit=50, bytes=1 << 20):
            pass

    kernel.store.write_sync(fill)
    kernel.store.write_sync(clear, exclusive=True)
    large = pages(kernel)
    kernel.store.write_sync(introspection.vacuum_after_commit, exclusive=True)

    assert large > 1000
    assert pages(kernel) < large / 4
    assert kernel.store.read_sync(lambda tx: tx.all("paths.memories.all_for_index", lambda *row: row)) == []


def pages(kernel: Kernel) -> int:
    db = Connection(kernel.config.file, StoreContext({}), readonly=True)
    try:
        return db.pragma("page_count")
    finally:
        db.close()


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Connection]:
    opened = Connection(tmp_path / "quipu.db", STATEMENTS, readonly=False)
    migrate(opened)
    yield opened
    opened.close()


def events(file: Path) -> list[str | None]:
    """The events of the one memory these tests write."""
    opened = Connection(file, STATEMENTS, readonly=True)
    try:
        return opened.read(FORGET, lambda tx: [event.after for event in history.read(tx, "notes", "a")])
    finally:
        opened.close()


def test_migrations_lists_those_of_one_dialect(db: Connection) -> None:
    assert db.read(FORGET, lambda tx: migrations(tx, "paths")) == ["0002_paths", "0010_paths_rows"]
    assert db.read(FORGET, lambda tx: migrations(tx, "kernel")) == ["0001_kernel"]
    assert db.read(FORGET, lambda tx: migrations(tx, "path")) == []


def test_backup_before_clear_holds_committed_rows_and_is_private(db: Connection, tmp_path: Path, clock: Clock) -> None:
    with db.writing(FORGET) as tx:
        history.append(tx, "notes", "a", "changed", after="before")
    with db.writing(FORGET) as tx:
        history.append(tx, "notes", "a", "changed", after="not yet")
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
        with pytest.raises((apsw.IOError, apsw.FullError)), db.writing(FORGET) as tx:
            backup_before_clear(tx, "before-reset")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert [path.name for path in tmp_path.iterdir() if "reset" in path.name] == []


def test_backup_into_a_folder_that_is_gone_makes_none(db: Connection, tmp_path: Path) -> None:
    tmp_path.rename(tmp_path.with_name("elsewhere"))

    with pytest.raises(apsw.CantOpenError), db.writing(FORGET) as tx:
        backup_before_clear(tx, "before-reset")

    assert not tmp_path.exists()
