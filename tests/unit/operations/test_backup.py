"""A backup is whole or is not there, and its manifest lists its content."""

import json
import os
import resource
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from kernel.calls.dispatch import catch_faults
from kernel.cli.main import main
from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.engines.sqlite.connection import Connection
from kernel.operations import backup
from kernel.operations.backup import Manifest, backup_file, copy_tree, read_manifest, verify
from kernel.server import app
from kernel.server.app import Kernel, open_kernel
from kernel.store.context import StoreContext
from tests.catalogue import Catalogue
from tests.conftest import Call

NO_STATEMENTS = StoreContext({})


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """No file can grow beyond this size, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def copy(kernel: Kernel, call: Call, tmp_path: Path) -> Path:
    """A backup of everything, with one note."""
    assert call("memory_remember", title="one", content="two", memoryType="context").fault is None
    assert main(["backup", "--all", str(tmp_path / "copy"), "--data", str(kernel.config.data)]) == 0
    return tmp_path / "copy"


def test_backup_never_overwrites_a_file(kernel: Kernel, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    target.write_text("precious")
    with pytest.raises(Fault, match=r"copy\.db exists already") as raised:
        backup_file(kernel.config.file, NO_STATEMENTS, target)
    assert raised.value.code == "conflict"
    assert target.read_text() == "precious"


def test_backup_into_a_missing_directory_is_a_storage_fault(kernel: Kernel, tmp_path: Path) -> None:
    with pytest.raises(Fault, match=r"Cannot write .*missing/copy\.db: No such file or directory"):
        backup_file(kernel.config.file, NO_STATEMENTS, tmp_path / "missing" / "copy.db")


def test_backup_of_another_program_s_database_is_refused(tmp_path: Path) -> None:
    db = apsw.Connection(str(tmp_path / "theirs.db"))
    db.execute("CREATE TABLE theirs (x)")
    db.close()
    with pytest.raises(Fault, match="This file is not a Quipu database"):
        backup_file(tmp_path / "theirs.db", NO_STATEMENTS, tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()


@pytest.mark.parametrize("words", [["--all"], []], ids=["--all DIR", "FILE"])
def test_full_disk_leaves_nothing_of_a_backup(
    kernel: Kernel, call: Call, tmp_path: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    call("add_memory", path="large", content="x" * 300_000)
    target = tmp_path / "copies" / "copy"
    target.parent.mkdir()
    with files_of_at_most(200_000):
        assert main(["backup", *words, str(target), "--data", str(kernel.config.data)]) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith("quipu: Cannot write ")
    assert list(target.parent.iterdir()) == []


def test_manifest_names_every_file_and_the_settings_without_passwords(
    copy: Path, kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = read_manifest(copy)
    assert (made.format, made.tenants, sorted(made.files)) == (
        1,
        ["main"],
        ["folders/notes-1/context/one.md", "quipu.db"],
    )
    assert made.folders == [("folders/notes-1", "main", "notes", "default")]
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in (copy, copy / "quipu.db")} == {0}
    monkeypatch.setenv("QUIPU_GROUP", "7")
    monkeypatch.setenv("QUIPU_BRAIN_PASSWORD", "hunter2")
    assert main(["backup", "--all", str(tmp_path / "again"), "--data", str(kernel.config.data)]) == 0
    assert read_manifest(tmp_path / "again").settings.get("QUIPU_GROUP") == "7"
    assert b"hunter2" not in (tmp_path / "again" / "manifest.json").read_bytes()


def rewrite(folder: Path, **changes: object) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | changes))


HARMS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a byte of a note": (lambda at: (at / "folders/notes-1/context/one.md").write_text("changed"), "is not as it was"),
    "a file less": (lambda at: (at / "quipu.db").unlink(), "quipu.db is missing"),
    "a file more": (lambda at: (at / "quipu.db-wal").write_text("x"), "quipu.db-wal is not in its manifest"),
    "a link for a file": (
        lambda at: ((at / "quipu.db").rename(at.parent / "x.db"), (at / "quipu.db").symlink_to(at.parent / "x.db")),
        "quipu.db is missing",
    ),
    "no manifest": (lambda at: (at / "manifest.json").unlink(), "is no backup: manifest.json"),
    "a manifest of another kind": (lambda at: (at / "manifest.json").write_text("[]"), "manifest.json cannot be read"),
    "a later format": (lambda at: rewrite(at, format=2), "has format 2, this program knows 1"),
    "a folder elsewhere": (
        lambda at: rewrite(at, folders=[["../../etc", "main", "notes", "default"]]),
        "manifest.json cannot be read",
    ),
    "a folder of nobody": (
        lambda at: rewrite(at, folders=[["folders/notes-1", "eve", "notes", "default"]]),
        "manifest.json cannot be read",
    ),
    "a tenant elsewhere": (lambda at: rewrite(at, tenants=["../main"]), "manifest.json cannot be read"),
}


@pytest.mark.parametrize("harm", HARMS)
def test_backup_that_is_not_as_it_was_made_is_refused_and_nothing_is_restored(
    copy: Path, tmp_path: Path, harm: str, capsys: pytest.CaptureFixture[str], catalogue: Catalogue
) -> None:
    change, told = HARMS[harm]
    change(copy)
    capsys.readouterr()
    assert main(["restore", str(copy), "--data", str(tmp_path / "fresh")]) == 1
    (error,) = capsys.readouterr().err.splitlines()
    assert told in error
    assert not (tmp_path / "fresh" / "quipu.db").exists()
    catalogue("R32", injected=f"backup with {harm}", times=1, outcome="refused by name, nothing restored")


def test_unharmed_backup_verifies(copy: Path) -> None:
    manifest: Manifest = read_manifest(copy)
    verify(copy, manifest)


def test_second_pass_of_a_tree_copies_what_changed_and_drops_what_went(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "deep").mkdir(parents=True)
    for name in ("same", "changed", "deep/gone"):
        (source / name).write_text(name)
    os.utime(source / "same", ns=(1, 5_000_000_000))
    (source / "link").symlink_to("/etc/passwd")
    known = copy_tree(source, target)
    (target / "same").write_text("kept")
    (source / "changed").write_text("otherwise")
    (source / "deep/gone").unlink()
    (source / "new").write_text("new")
    assert sorted(copy_tree(source, target, known)) == ["changed", "new", "same"]
    found = {path.name: path.read_text() for path in target.rglob("*") if path.is_file()}
    assert found == {"same": "kept", "changed": "otherwise", "new": "new"}


def older(folder: Path, migrated: Path, schema: int) -> Path:
    """A database of an earlier release, by its files."""
    folder.mkdir()
    root = folder.parent / f"sql{schema}"
    if not root.exists():
        shutil.copytree(app.statements.ROOT / "schema", root / "schema")
        for file in sorted((root / "schema").glob("*.sql"))[schema:]:
            file.unlink()
    from kernel.engines.migrations import migrate

    db = Connection(folder / "quipu.db", NO_STATEMENTS, readonly=False)
    migrate(db, root)
    db.close()
    return folder


@pytest.mark.slow
def test_a_copy_is_kept_before_each_migration_and_the_oldest_go(tmp_path: Path, migrated: Path) -> None:
    data = older(tmp_path / "data", migrated, 6)
    for number in range(5):
        open_kernel(Config(data=data, model=None)).store.close()
        (copy,) = sorted(data.glob("quipu-before-migration-from-0006-*.db"))[-1:]
        db = Connection(copy, NO_STATEMENTS, readonly=True)
        assert db.pragma("user_version") == 6
        db.close()
        assert len(list(data.glob("quipu-before-migration-*.db"))) == min(number + 1, 3)
        (data / "quipu.db").unlink()
        shutil.copyfile(older(tmp_path / f"again{number}", migrated, 6) / "quipu.db", data / "quipu.db")


@pytest.mark.slow
def test_a_database_is_migrated_though_another_process_copied_it_at_the_same_time(
    tmp_path: Path, migrated: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = older(tmp_path / "data", migrated, 6)
    monkeypatch.setattr(backup, "backup_time", lambda: "2026-01-02T030405678Z")
    copy = data / "quipu-before-migration-from-0006-2026-01-02T030405678Z.db"
    copy.write_text("of the other process")

    open_kernel(Config(data=data, model=None)).store.close()

    db = Connection(data / "quipu.db", NO_STATEMENTS, readonly=True)
    assert db.pragma("user_version") > 6
    db.close()
    assert copy.read_text() == "of the other process"


def test_a_new_or_current_database_is_not_copied(tmp_path: Path) -> None:
    for _ in range(2):
        open_kernel(Config(data=tmp_path / "data", model=None)).store.close()
    assert list((tmp_path / "data").glob("*migration*")) == []


def test_without_room_for_the_copy_nothing_is_migrated(tmp_path: Path, migrated: Path) -> None:
    data = older(tmp_path / "data", migrated, 6)
    before = (data / "quipu.db").read_bytes()

    def full(*_given: object, **_options: object) -> None:
        raise apsw.FullError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connection, "backup", full)
        refused = catch_faults(open_kernel, Config(data=data, model=None))
    assert isinstance(refused, Fault)
    assert refused.message.startswith("A copy is made before the database is migrated; free 1 MiB in ")
    assert (data / "quipu.db").read_bytes() == before
    assert backup.DATABASE in [path.name for path in data.iterdir()]
