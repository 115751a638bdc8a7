"""A restore refuses unsound backups, keeps the earlier data, and never opens a store that had keys."""

import shutil
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from kernel.cli.main import main
from kernel.core.config import Config
from kernel.engines.sqlite.connection import Connection
from kernel.server.app import Kernel, open_kernel
from kernel.store.context import StoreContext
from tests.conftest import Call


@pytest.fixture
def copy(kernel: Kernel, call: Call, tmp_path: Path) -> Path:
    """A backup of one database, which is closed and holds one memory more by now."""
    call("add_memory", path="a", content="before")
    assert main(["backup", str(tmp_path / "copy.db"), "--data", str(kernel.config.data)]) == 0
    call("add_memory", path="b", content="after")
    kernel.store.close()
    return tmp_path / "copy.db"


def paths(data: Path) -> list[str]:
    running = open_kernel(Config(data=data, model=None))
    running.store.close()
    db = Connection(data / "quipu.db", StoreContext({}), readonly=True)
    found = db.values("SELECT path FROM paths_memory ORDER BY path")
    db.close()
    return [str(path) for (path,) in found]


def run(statement: str) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        db = apsw.Connection(str(file))
        db.execute(statement)
        db.close()

    return change


def damage(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[8192:40960] = b"\xa5" * 32768
    file.write_bytes(content)


HARMS: dict[str, tuple[Callable[[Path], object], str]] = {
    "damaged": (damage, "is damaged"),
    "of another program": (run("PRAGMA application_id = 7"), "This file is not a Quipu database."),
    "of a later release": (run("PRAGMA user_version = 999"), "The database has schema 999, newer than this program's"),
    "of another build": (
        run("UPDATE migration SET name = '0003_other' WHERE name = '0003_scopes'"),
        "Migration 0003_other of this database is not the one this program knows",
    ),
    "empty": (lambda file: file.write_bytes(b""), "it is empty"),
    "a text": (lambda file: file.write_text("dear diary\n" * 500), "file is not a database"),
    "missing": (lambda file: file.unlink(), "There is no file and no folder"),
    "with another's log": (
        lambda file: file.with_name("copy.db-wal").write_bytes(LOG),
        "copy.db-wal does not belong to copy.db",
    ),
}
LOG = b""


@pytest.mark.parametrize("harm", HARMS)
def test_source_that_is_no_sound_backup_is_refused_and_nothing_changes(
    kernel: Kernel,
    copy: Path,
    harm: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = Connection(tmp_path / "other.db", StoreContext({}), readonly=False)
    other.enable_wal()
    other.script("CREATE TABLE x (y)")
    monkeypatch.setitem(globals(), "LOG", (tmp_path / "other.db-wal").read_bytes())
    other.close()
    change, told = HARMS[harm]
    change(copy)
    data = kernel.config.data
    before = {path: path.read_bytes() for path in data.iterdir()}
    capsys.readouterr()
    assert main(["restore", str(copy), "--data", str(data)]) == 1
    (error,) = capsys.readouterr().err.splitlines()
    assert told in error
    assert {path: path.read_bytes() for path in data.iterdir()} == before


def test_what_was_there_is_kept_and_can_be_restored_in_turn(kernel: Kernel, copy: Path) -> None:
    data = kernel.config.data
    assert main(["restore", str(copy), "--data", str(data)]) == 0
    assert paths(data) == ["a"]
    (kept,) = data.glob("quipu-before-restore-*.db")
    assert main(["restore", str(kept), "--data", str(data)]) == 0
    assert paths(data) == ["a", "b"]


def test_file_with_a_log_of_its_own_is_restored_with_what_the_log_holds(
    kernel: Kernel, copy: Path, tmp_path: Path
) -> None:
    running = open_kernel(kernel.config)
    running.store.write_sync(lambda tx: tx.run("paths.memories.add", path="c", content="c", content_size=1, now=tx.now))
    for end in ("", "-wal"):
        shutil.copyfile(kernel.config.data / f"quipu.db{end}", tmp_path / f"killed.db{end}")
    running.store.close()
    assert main(["restore", str(tmp_path / "killed.db"), "--data", str(tmp_path / "fresh")]) == 0
    assert paths(tmp_path / "fresh") == ["a", "b", "c"]


def test_database_is_no_backup_of_itself(kernel: Kernel, copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["restore", str(kernel.config.file), "--data", str(kernel.config.data)]) == 1
    assert "is the database itself" in capsys.readouterr().err
    assert paths(kernel.config.data) == ["a", "b"]


def test_restore_of_a_file_leaves_the_keys(kernel: Kernel, copy: Path) -> None:
    data = kernel.config.data
    assert main(["key", "create", "--scope", "read", "--data", str(data)]) == 0
    before = (data / "keys.json").read_bytes()
    assert main(["restore", str(copy), "--data", str(data)]) == 0
    assert (data / "keys.json").read_bytes() == before


def test_restore_of_everything_without_keys_leaves_the_keys(
    kernel: Kernel, copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = kernel.config.data
    assert main(["backup", "--all", str(tmp_path / "all"), "--data", str(data)]) == 0
    assert main(["key", "create", "--scope", "read", "--data", str(data)]) == 0
    before = (data / "keys.json").read_bytes()
    capsys.readouterr()
    assert main(["restore", str(tmp_path / "all"), "--data", str(data)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "no keys in this backup: those that are there stay"
    assert (data / "keys.json").read_bytes() == before


def test_what_the_store_remembers_of_itself_survives_an_older_backup(kernel: Kernel, copy: Path) -> None:
    """Such as that it had keys once: a restore must not make it forget that."""
    data = kernel.config.data
    run("INSERT INTO setting (name, value) VALUES ('remembered', 'yes')")(data / "quipu.db")
    assert main(["restore", str(copy), "--data", str(data)]) == 0
    db = Connection(data / "quipu.db", StoreContext({}), readonly=True)
    assert db.values("SELECT value FROM setting WHERE name = 'remembered'") == [("yes",)]
    db.close()


def test_restore_beside_an_open_store_is_refused(
    kernel: Kernel, call: Call, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = str(kernel.config.data)
    assert main(["backup", str(tmp_path / "copy.db"), "--data", data]) == 0
    capsys.readouterr()
    assert main(["restore", str(tmp_path / "copy.db"), "--data", data]) == 1
    assert "is in use: stop the server" in capsys.readouterr().err
    assert call("list_memories").fault is None


def test_another_tenant_is_restored_alone(kernel: Kernel, copy: Path) -> None:
    data = kernel.config.data
    assert main(["restore", str(copy), "--data", str(data), "--tenant", "ada"]) == 0
    assert (paths(data), paths(data / "tenants" / "ada")) == (["a", "b"], ["a"])
