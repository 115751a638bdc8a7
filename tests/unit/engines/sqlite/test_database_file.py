"""A database file as bytes: its log, pieces of text in it, and the checksums that earlier releases expect."""

import struct
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from kernel.core.errors import Fault
from kernel.engines.sqlite.database_file import check_log, holds_any, log_of, size_of, write_page_sums


def database(file: Path, *, wal: bool = True) -> apsw.Connection:
    db = apsw.Connection(str(file))
    if wal:
        db.pragma("journal_mode", "wal")
    db.execute("CREATE TABLE t (a); INSERT INTO t VALUES ('the mill wheel')")
    return db


def test_a_file_with_its_own_log_is_accepted(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    db = database(file)
    assert size_of(log_of(file)) > 0
    check_log(file)
    db.close()


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (Path.unlink, "is missing and its log is not"),
        (lambda file: file.write_bytes(b""), "is empty and its log is not"),
    ],
)
def test_a_log_without_its_file_is_refused(tmp_path: Path, damage: Callable[[Path], object], problem: str) -> None:
    file = tmp_path / "a.db"
    db = database(file)
    log = log_of(file).read_bytes()
    db.close()
    log_of(file).write_bytes(log)
    damage(file)
    with pytest.raises(Fault, match=problem):
        check_log(file)


def test_a_log_beside_a_backup_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    database(file, wal=False).close()
    log_of(file).write_bytes(b"log")
    with pytest.raises(Fault, match=r"a\.db-wal does not belong to a\.db"):
        check_log(file)


def test_a_piece_is_found_wherever_it_stands(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    database(file, wal=False).close()
    assert holds_any(file, [b"absent", b"mill wheel"])
    assert not holds_any(file, [b"absent"])
    assert not holds_any(file, [])
    assert not holds_any(tmp_path / "none.db", [b"mill"])


def test_a_piece_across_two_chunks_is_found(tmp_path: Path) -> None:
    file = tmp_path / "large"
    file.write_bytes(bytes((1 << 20) - 2) + b"mill" + bytes(10))
    assert holds_any(file, [b"mill"])


def sums(page: bytes) -> bytes:
    """The two sums of a page, as sqlite.org/cksumvfs.html has them."""
    first = second = 0
    words = struct.unpack(f"<{(len(page) - 8) // 4}I", page[:-8])
    for word, after in zip(words[::2], words[1::2], strict=True):
        first = (first + word + second) & 0xFFFFFFFF
        second = (second + after + first) & 0xFFFFFFFF
    return struct.pack("<II", first, second)


def test_a_file_with_room_for_sums_gets_them(tmp_path: Path) -> None:
    header = bytes(16) + (512).to_bytes(2) + bytes(2) + b"\x08"
    pages = [header.ljust(504, b"\1") + bytes(8), bytes(range(250)) * 2 + bytes(12)]
    file = tmp_path / "a.db"
    file.write_bytes(b"".join(pages))
    write_page_sums(file)
    assert file.read_bytes() == b"".join(page[:-8] + sums(page) for page in pages)


def test_a_file_without_room_for_sums_is_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    database(file, wal=False).close()
    before = file.read_bytes()
    write_page_sums(file)
    assert file.read_bytes() == before
