"""A file is migrated completely or refused, by one process or by several at once."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.engines import migrations as migrating
from kernel.engines.migrations import APPLICATION_ID, migrate, pending_migrations
from kernel.engines.sqlite.connection import Connection
from kernel.operations.backup import backup_file
from kernel.server import app
from kernel.server.app import Kernel, open_kernel
from kernel.store import statements
from kernel.store.context import StoreContext
from kernel.store.statements import migrations
from tests.conftest import Call, Clock

ROOT = Path(__file__).resolve().parents[3]
PATIENCE = 60


@pytest.fixture(autouse=True)
def no_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Migrates each database, instead of copying a migrated one."""
    monkeypatch.setattr(app, "migrate", migrate)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "quipu.db"


@pytest.fixture
def db(file: Path) -> Iterator[Connection]:
    opened = Connection(file, StoreContext({}), readonly=False)
    yield opened
    opened.close()


def schema(db: Connection) -> list[tuple[Any, ...]]:
    return db.values("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name")


def refusal(file: Path) -> str:
    """The message with which the kernel refuses the file, which stays unchanged to the last byte."""
    before = file.read_bytes()
    with pytest.raises(Fault) as raised:
        open_kernel(Config(data=file.parent, model=None))
    assert raised.value.code == "storage"
    assert file.read_bytes() == before
    return raised.value.message


def test_new_file_gets_every_migration_once(db: Connection, clock: Clock) -> None:
    assert migrate(db) == len(migrations())
    assert migrate(db) == 0
    assert db.values("SELECT name, applied_at FROM migration ORDER BY name") == [
        (file.stem, clock.now) for file in migrations()
    ]
    assert (db.pragma("user_version"), db.pragma("application_id")) == (len(migrations()), APPLICATION_ID)
    assert db.pragma("journal_mode") == "wal"


def test_database_of_another_program_is_refused(file: Path) -> None:
    other = apsw.Connection(str(file))
    other.execute("CREATE TABLE theirs (id INTEGER)")
    other.close()
    assert refusal(file) == "This file is not a Quipu database."


def test_empty_database_with_another_application_id_is_refused(file: Path) -> None:
    other = apsw.Connection(str(file))
    other.pragma("application_id", 7)
    other.close()
    assert refusal(file) == "This file is not a Quipu database."


@pytest.mark.parametrize("content", [b"just some text, long enough to be read as a header\n" * 30, b"\0" * 4096])
def test_file_that_is_no_database_is_refused(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    assert refusal(file)


def test_truncated_database_is_refused(file: Path) -> None:
    open_kernel(Config(data=file.parent, model=None)).store.close()
    file.write_bytes(file.read_bytes()[:3000])
    assert refusal(file)


def test_database_with_a_newer_schema_is_refused(db: Connection, file: Path) -> None:
    migrate(db)
    db.pragma("user_version", 999)
    db.close()
    assert refusal(file) == f"The database has schema 999, newer than this program's {len(migrations())}."


def test_database_with_another_migration_is_refused(db: Connection, file: Path) -> None:
    migrate(db)
    db.script("UPDATE migration SET sha256 = 'another' WHERE name = '0001_kernel'")
    db.checkpoint(truncate=True)
    db.close()
    assert refusal(file) == (
        "Migration 0001_kernel of this database is not the one this program knows: "
        "the database was made by another build of Quipu."
    )


def test_old_sqlite_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.touch()
    monkeypatch.setattr(migrating, "sqlite_version", lambda: 3_051_002)
    assert refusal(file).startswith("SQLite 3.51.3 or newer is needed")


def test_release_with_checksums_of_pages_refuses_a_file_that_has_none_any_more(
    tmp_path: Path, db: Connection, file: Path
) -> None:
    migrate(db)
    db.checkpoint(truncate=True)
    older = tmp_path / "older"
    shutil.copytree(ROOT / "sql" / "schema", older / "schema")
    for migration in migrations(older):
        if migration.stem >= "0022_plain_pages":
            migration.unlink()
    before = file.read_bytes()
    with pytest.raises(Fault, match=r"^The database has schema \d+, newer than this program's 21\.$"):
        migrate(db, older)
    db.close()
    assert file.read_bytes() == before


def test_failed_migration_is_rolled_back(tmp_path: Path, db: Connection) -> None:
    root = tmp_path / "sql"
    shutil.copytree(ROOT / "sql" / "schema", root / "schema")
    broken = root / "schema" / "9999_broken.sql"
    broken.write_text("CREATE TABLE half (id INTEGER); CREATE TABLE half (id INTEGER);")
    with pytest.raises(apsw.SQLError):
        migrate(db, root)
    whole = len(migrations())
    assert (db.pragma("user_version"), db.values("SELECT count(*) FROM migration")) == (whole, [(whole,)])
    assert db.values("SELECT name FROM sqlite_schema WHERE name = 'half'") == []
    broken.write_text("CREATE TABLE half (id INTEGER);")
    assert migrate(db, root) == 1


@pytest.mark.slow
def test_process_killed_during_a_migration_leaves_a_file_that_opens(tmp_path: Path) -> None:
    """The file before each statement is the state after a kill at that moment."""
    file, images = tmp_path / "quipu.db", tmp_path / "images"
    db = Connection(file, StoreContext({}), readonly=False, durable=False)

    def copy_files(*_: object) -> bool:
        image = images / f"{len(list(images.iterdir())) if images.exists() else 0:03}"
        image.mkdir(parents=True)
        for name in ("quipu.db", "quipu.db-wal"):
            if (tmp_path / name).exists():
                shutil.copy(tmp_path / name, image / name)
        return True

    db._db.exec_trace = copy_files
    migrate(db)
    db._db.exec_trace = None
    whole = schema(db)
    db.close()
    versions: set[int] = set()
    for image in sorted(images.iterdir()):
        opened = Connection(image / "quipu.db", StoreContext({}), readonly=False, durable=False)
        versions.add(opened.pragma("user_version"))
        migrate(opened)
        assert schema(opened) == whole
        assert opened.values("PRAGMA integrity_check") == [("ok",)]
        opened.close()
    assert len(list(images.iterdir())) > 20
    assert versions == set(range(len(migrations())))


@pytest.mark.slow
def test_a_file_that_another_process_migrates_is_not_taken_for_that_of_another_build(tmp_path: Path) -> None:
    for turn in range(10):
        file = tmp_path / f"{turn}.db"
        migrating = subprocess.Popen([sys.executable, "-c", MIGRATE, file], cwd=ROOT)
        db = Connection(file, StoreContext({}), readonly=False)
        while pending_migrations(db):
            assert migrating.poll() in (None, 0)
        db.close()
        assert migrating.wait(PATIENCE) == 0


MIGRATE = """
import sys
from pathlib import Path
from kernel.store.context import StoreContext
from kernel.engines.migrations import migrate
from kernel.engines.sqlite.connection import Connection

migrate(Connection(Path(sys.argv[1]), StoreContext({}), readonly=False))
"""
FIRST_START = """
import sys
from pathlib import Path
from handlers.paths.memories import add_memory
from handlers.paths.schemas import AddMemory
from kernel.server.app import open_kernel
from kernel.core.config import Config

for line in sys.stdin:
    folder, name = line.split()
    running = open_kernel(Config(data=Path(folder), model=None))
    running.store.write_sync(lambda tx: add_memory(tx, AddMemory(name, "hello")))
    running.store.close()
    print("ok", flush=True)
"""


@pytest.mark.slow
def test_several_processes_start_on_a_new_directory(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", FIRST_START],
            cwd=ROOT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(4)
    ]
    try:
        for turn in range(12):
            for number, process in enumerate(processes):
                assert process.stdin
                process.stdin.write(f"{tmp_path / str(turn)} writer-{number}\n")
                process.stdin.flush()
            for process in processes:
                assert process.stdout
                assert process.stdout.readline() == "ok\n", process.communicate(timeout=PATIENCE)[1]
    finally:
        for process in processes:
            process.communicate(timeout=PATIENCE)
    for turn in range(12):
        db = Connection(tmp_path / str(turn) / "quipu.db", StoreContext({}), readonly=True)
        assert db.values("SELECT path FROM paths_memory ORDER BY path") == [
            (f"writer-{number}",) for number in range(4)
        ]
        db.close()


def test_file_and_directory_are_private(kernel: Kernel, call: Call) -> None:
    call("add_memory", path="a", content="secret")
    data = kernel.config.data
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in data.iterdir()}
    assert modes == dict.fromkeys(("quipu.db", "quipu.db-wal", "quipu.db-shm", "quipu.lock"), "0o600")
    assert oct(data.stat().st_mode & 0o777) == "0o700"


def test_restored_backup_is_served(kernel: Kernel, call: Call, tmp_path: Path) -> None:
    call("add_memory", path="a", content="hello")
    restored = tmp_path / "restored"
    restored.mkdir()
    backup_file(kernel.config.file, kernel.store.context, restored / "quipu.db")
    again = open_kernel(Config(data=restored, model=None))
    db = Connection(again.config.file, again.store.context, readonly=True)
    assert db.pragma("journal_mode") == "wal"
    db.close()
    again.store.close()


def test_data_directory_that_cannot_be_created_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(Fault, match="Cannot use the data directory"):
        app.prepare_data(Config(data=tmp_path / "file" / "data"), StoreContext({}))


def test_schema_version_is_the_number_of_migrations(kernel: Kernel) -> None:
    assert kernel.schema == len(statements.migrations())
