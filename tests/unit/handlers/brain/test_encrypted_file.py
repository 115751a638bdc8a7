"""An encrypted file opens with its password, log included, and with nothing else; damage never passes for data."""

import shutil
import sys
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handlers.brain.encrypted_file import decrypt, is_encrypted
from kernel.core.errors import Fault
from tests.unit.handlers.brain.original import PASSWORD

FILE = Path(__file__).parent / "sealed" / "core.sealed"
LOG = FILE.with_name("core.sealed-wal")
PAGE, FRAME = 1024, 1024 + 24


@pytest.fixture
def file(tmp_path: Path) -> Path:
    shutil.copyfile(FILE, tmp_path / "core.db")
    return tmp_path / "core.db"


def opened(path: Path) -> apsw.Connection:
    db = apsw.Connection(str(path))
    assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    return db


def ids(path: Path) -> set[str]:
    db = opened(path)
    found = {key for (key,) in db.execute("SELECT id FROM memories")}
    db.close()
    return found


def test_encrypted_file_is_distinguished_from_plain_one(file: Path, tmp_path: Path) -> None:
    db = apsw.Connection(str(tmp_path / "plain.db"))
    db.execute("CREATE TABLE t (a)")
    db.close()
    (tmp_path / "empty.db").touch()

    assert [is_encrypted(path) for path in (file, tmp_path / "plain.db", tmp_path / "empty.db")] == [True, False, False]
    with pytest.raises(Fault, match=r"^Cannot read none\.db"):
        is_encrypted(tmp_path / "none.db")


def test_password_decrypts_and_original_is_unchanged(file: Path, tmp_path: Path) -> None:
    before = file.read_bytes()

    assert ids(decrypt(file, PASSWORD, tmp_path / "out.db")) == {"mem_a", "mem_b", "mem_c", "val_000"}
    assert file.read_bytes() == before


@pytest.mark.slow
def test_only_committed_wal_transactions_are_applied(file: Path, tmp_path: Path) -> None:
    log = LOG.read_bytes()
    found: list[set[str]] = []
    for end in range(32, len(log) + 1, FRAME):
        file.with_name("core.db-wal").write_bytes(log[:end])
        found.append(ids(decrypt(file, PASSWORD, tmp_path / "out.db")))

    before, after = {"mem_a", "mem_b", "mem_c", "val_000"}, {"mem_a", "mem_b", "mem_c", "val_000", "mem_d"}
    assert all(some in (before, after) for some in found)
    assert (found[0], found[-1]) == (before, after)


def test_frames_of_an_earlier_log_are_not_applied(file: Path, tmp_path: Path) -> None:
    log = bytearray(LOG.read_bytes())
    log[16:24] = bytes(8)
    file.with_name("core.db-wal").write_bytes(log)

    assert "mem_d" not in ids(decrypt(file, PASSWORD, tmp_path / "out.db"))


@pytest.mark.parametrize("password", ["", "Correct horse battery staple", PASSWORD + " ", "ß" * 500])
def test_wrong_password_is_refused(file: Path, tmp_path: Path, password: str) -> None:
    with pytest.raises(Fault, match=r"^The password does not open core\.db\.$"):
        decrypt(file, password, tmp_path / "out.db")
    assert not (tmp_path / "out.db").exists()


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(at=st.integers(0, FILE.stat().st_size - 1), bit=st.integers(0, 7))
def test_any_flipped_bit_is_detected(tmp_path_factory: pytest.TempPathFactory, at: int, bit: int) -> None:
    raw = bytearray(FILE.read_bytes())
    raw[at] ^= 1 << bit
    folder = tmp_path_factory.mktemp("flipped")
    (folder / "core.db").write_bytes(raw)

    with pytest.raises(Fault) as refused:
        decrypt(folder / "core.db", PASSWORD, folder / "out.db")
    assert refused.value.code == "invalid"


@pytest.mark.parametrize("content", [b"x", b"not a database at all" * 100, bytes(4096)])
def test_file_of_another_format_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "core.db").write_bytes(content)

    with pytest.raises(Fault, match=r"^core\.db is neither a SQLite database nor one that project-brain encrypted\.$"):
        decrypt(tmp_path / "core.db", PASSWORD, tmp_path / "out.db")


def test_missing_library_names_the_extra_to_install(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.poly1305", None)

    with pytest.raises(Fault, match=r"install quipu-memory\[project-brain\]"):
        decrypt(file, PASSWORD, tmp_path / "out.db")
