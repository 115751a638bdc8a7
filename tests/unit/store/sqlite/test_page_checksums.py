"""Every page of a file has a checksum, however it came there, and a page that does not match it is found."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from kernel.errors import Fault
from kernel.store.context import StoreContext
from kernel.store.sqlite import page_checksums
from kernel.store.sqlite.connection import Connection
from kernel.store.sqlite.page_checksums import damaged_pages, free_pages, has_checksums
from kernel.store.sqlite.vacuum import unverified, vacuum

ROWS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 3000) "
FILL = f"INSERT INTO t (b) {ROWS} SELECT hex(randomblob(300)) FROM c"
PAGE = 4096


def opened(file: Path) -> Connection:
    return Connection(file, StoreContext({}), readonly=False)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Connection]:
    """A new database with two thousand pages or so, that are still in its log."""
    made = opened(tmp_path / "quipu.db")
    made.enable_wal()
    made.script("CREATE TABLE t (id INTEGER PRIMARY KEY, b TEXT)")
    made.script(FILL)
    yield made
    made.close()


def sound(file: Path) -> bool:
    return has_checksums(file) and damaged_pages(file) == []


def flip(file: Path, page: int, at: int = 2000) -> None:
    with file.open("r+b") as content:
        content.seek((page - 1) * PAGE + at)
        byte = content.read(1)[0]
        content.seek((page - 1) * PAGE + at)
        content.write(bytes([byte ^ 4]))


def test_new_file_has_checksums_whoever_copies_its_log(db: Connection) -> None:
    file = Path(db.filename)
    other = opened(file)
    other.checkpoint()
    assert sound(file)
    for _ in range(3):
        db.script("UPDATE t SET b = hex(randomblob(300)) WHERE id % 7 = 0")
        db.checkpoint(truncate=True)
        assert sound(file)
        other.script("UPDATE t SET b = hex(randomblob(300)) WHERE id % 5 = 0")
        other.restart_log(100)
        assert sound(file)
    other.close()


def test_copy_has_checksums_too(db: Connection, tmp_path: Path) -> None:
    db.checkpoint()
    db.script("UPDATE t SET b = hex(randomblob(300)) WHERE id % 7 = 0")
    reader = Connection(Path(db.filename), StoreContext({}), readonly=True, verified=True)
    reader.backup(tmp_path / "copy.db")
    reader.close()
    assert sound(tmp_path / "copy.db")
    copy = opened(tmp_path / "copy.db")
    assert copy.integrity_errors() == []
    copy.close()


def test_file_of_an_older_release_gets_checksums_by_vacuum_for_all_who_have_it_open(tmp_path: Path) -> None:
    file = tmp_path / "old.db"
    old = apsw.Connection(str(file), vfs=page_checksums.plain_vfs())
    old.pragma("journal_mode", "wal")
    old.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, b TEXT)")
    old.execute(FILL)
    old.close()
    assert (has_checksums(file), damaged_pages(file)) == (False, [])
    early, copying, vacuuming = opened(file), opened(file), opened(file)
    assert early.values("SELECT count(*) FROM t") == copying.values("SELECT count(*) FROM t") == [(3000,)]
    reader = Connection(file, StoreContext({}), readonly=True, verified=True)
    reader.backup(tmp_path / "without.db")
    assert not has_checksums(tmp_path / "without.db")
    vacuum(vacuuming)
    vacuuming.checkpoint()
    for one in (early, copying):
        one.script("UPDATE t SET b = hex(randomblob(300)) WHERE id % 7 = 0")
        one.checkpoint()
        assert sound(file)
    reader.backup(tmp_path / "with.db")
    assert sound(tmp_path / "with.db")
    for one in (reader, early, copying, vacuuming):
        one.close()
    assert sound(file)


@pytest.mark.parametrize("at", [0, 8, 100, 2000, PAGE - 9, PAGE - 8, PAGE - 1])
def test_any_byte_of_any_page_is_missed(db: Connection, at: int) -> None:
    file = Path(db.filename)
    db.checkpoint(truncate=True)
    for page in (1, 2, 17, file.stat().st_size // PAGE):
        if (page, at) != (1, 0):  # no database any more
            flip(file, page, at)
            assert damaged_pages(file) == [page]
            flip(file, page, at)
    assert sound(file)


def test_damaged_page_is_an_error_to_writers_and_copies_but_not_where_the_log_has_it(
    db: Connection, tmp_path: Path
) -> None:
    file = Path(db.filename)
    db.checkpoint(truncate=True)
    db.script("UPDATE t SET b = 'short' WHERE id = 1500")
    flip(file, 200)
    flip(file, 300)
    writer = opened(file)
    with pytest.raises(apsw.IOError):
        writer.values("SELECT sum(length(b)) FROM t")
    assert len(writer.integrity_errors()) == 1
    with unverified(writer):
        assert writer.values("SELECT count(*) FROM t WHERE length(b) > 0") == [(3000,)]
    reader = Connection(file, StoreContext({}), readonly=True, verified=True)
    with pytest.raises(apsw.IOError):
        reader.backup(tmp_path / "copy.db")
    reader.close()
    assert not (tmp_path / "copy.db").exists()
    assert damaged_pages(file) == [200, 300]
    with unverified(writer):
        writer.script("UPDATE t SET b = b || 'x'")
    assert damaged_pages(file) == []
    writer.checkpoint(truncate=True)
    assert sound(file)
    writer.close()


def test_free_pages_are_known(db: Connection) -> None:
    file = Path(db.filename)
    db.script("DELETE FROM t WHERE id > 1000")
    db.checkpoint(truncate=True)
    assert len(free_pages(file)) == db.pragma("freelist_count") > 100
    assert sound(file)


def test_system_without_the_library_refuses_what_it_cannot_write(
    db: Connection, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    db.checkpoint()
    monkeypatch.setattr(page_checksums, "checksum_vfs", lambda: None)
    with pytest.raises(Fault, match="the apsw package of this system lacks cksumvfs"):
        opened(Path(db.filename))
    assert page_checksums.vfs_to_write(tmp_path / "new.db") is None
