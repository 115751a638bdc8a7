"""A data directory is opened with the log that belongs to its database, or refused by name."""

import shutil
from pathlib import Path

import pytest

from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.engines.sqlite.database_file import check_log
from kernel.operations.backup import backup_file
from kernel.operations.data_access import DataAccess
from kernel.operations.restore import JOURNAL
from kernel.server.app import open_kernel


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A directory whose process was killed: the database, its log, and the same database as a backup."""
    config = Config(data=tmp_path / "data", model=None)
    running = open_kernel(config)
    running.store.write_sync(lambda tx: tx.run("paths.memories.add", path="a", content="b", content_size=1, now=tx.now))
    killed = shutil.copytree(config.data, tmp_path / "killed")
    running.store.close()
    backup_file(config.file, running.store.context, tmp_path / "backup.db")
    return config._replace(data=killed)


def refusal(config: Config) -> str:
    """Why neither a start nor the doctor takes it, in one voice, with nothing changed."""
    before = {path: path.read_bytes() for path in config.data.iterdir()}
    with pytest.raises(Fault) as at_start:
        open_kernel(config)
    with pytest.raises(Fault) as by_doctor:
        check_log(config.file)
    told = [at_start.value.message, by_doctor.value.message]
    assert told[0] == told[1]
    assert {path: path.read_bytes() for path in config.data.iterdir()} == before
    return told[0]


def test_killed_process_s_log_is_taken(config: Config) -> None:
    check_log(config.file)
    open_kernel(config).store.close()


def test_log_beside_a_backup_that_was_copied_over_its_file_is_refused_by_name(config: Config, tmp_path: Path) -> None:
    shutil.copyfile(tmp_path / "backup.db", config.file)
    assert refusal(config) == (
        "quipu.db-wal does not belong to quipu.db, which was put in its place. Restore a backup with "
        "`quipu restore FILE`, or move quipu.db-wal and quipu.db-shm away to lose what they held."
    )
    for name in ("quipu.db-wal", "quipu.db-shm"):
        config.file.with_name(name).unlink()
    open_kernel(config).store.close()


def test_log_without_its_file_is_refused_by_name(config: Config) -> None:
    config.file.unlink()
    assert refusal(config) == (
        "quipu.db is missing and its log is not. Restore a backup with `quipu restore FILE`, "
        "or move quipu.db-wal and quipu.db-shm away to lose what they held."
    )


def test_interrupted_restore_waits_for_whoever_is_inside(config: Config) -> None:
    first = DataAccess(config.data, config.home)
    first.share()
    (config.data / JOURNAL).write_text("[]")
    with pytest.raises(Fault, match="A restore was interrupted; stop all other processes") as busy:
        DataAccess(config.data, config.home)
    assert busy.value.code == "busy"
    first.close()
    DataAccess(config.data, config.home).close()
    assert not (config.data / JOURNAL).exists()


def test_interrupted_restore_with_an_unreadable_journal_is_refused(config: Config) -> None:
    (config.data / JOURNAL).write_text("not JSON")
    with pytest.raises(Fault, match="A restore was interrupted and cannot be finished"):
        DataAccess(config.data, config.home)
