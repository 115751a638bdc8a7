"""A data directory is opened with the log that belongs to its database, or refused by name."""

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from kernel.app import open_kernel
from kernel.config import Config
from kernel.errors import Fault
from kernel.maintenance.data_access import DataAccess, check_log_now, cut_damaged_log, open_shared
from kernel.maintenance.restore import JOURNAL


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A directory whose process was killed: the database, its log, and the same database as a backup."""
    config = Config(data=tmp_path / "data", model=None)
    running = open_kernel(config)
    running.store.write_sync(lambda tx: tx.run("paths.add", path="a", content="b", content_size=1, now=tx.now))
    killed = shutil.copytree(config.data, tmp_path / "killed")
    running.store.close()
    open_kernel(config).store.close()
    shutil.copyfile(config.file, tmp_path / "folded.db")
    return config._replace(data=killed)


def refusal(config: Config) -> str:
    """Why neither a start nor the doctor takes it, in one voice, with nothing changed."""
    before = {path: path.read_bytes() for path in config.data.iterdir()}
    with pytest.raises(Fault) as at_start:
        open_kernel(config)
    with pytest.raises(Fault) as by_doctor:
        check_log_now(config.file)
    told = [at_start.value.message, by_doctor.value.message]
    assert told[0] == told[1]
    assert {path: path.read_bytes() for path in config.data.iterdir()} == before
    return told[0]


def test_killed_process_s_log_is_taken(config: Config) -> None:
    check_log_now(config.file)
    open_kernel(config).store.close()


def test_log_beside_another_file_is_refused_by_name(config: Config, tmp_path: Path) -> None:
    shutil.copyfile(tmp_path / "folded.db", config.file)
    assert refusal(config) == (
        "quipu.db-wal does not belong to quipu.db, which was put in its place. Put a backup in place with "
        "`quipu restore FILE`, or move it and quipu.db-shm away to use quipu.db as it is."
    )
    for name in ("quipu.db-wal", "quipu.db-shm"):
        config.file.with_name(name).unlink()
    open_kernel(config).store.close()


def test_log_that_lost_answered_writes_is_refused_by_name_until_it_is_cut(config: Config) -> None:
    log = config.file.with_name("quipu.db-wal")
    whole = log.read_bytes()
    log.write_bytes(whole[:-1])
    assert refusal(config).startswith("quipu.db-wal is damaged: ")
    assert cut_damaged_log(config, "now").endswith("the damaged log is quipu-damaged-now.db-wal")
    assert (config.data / "quipu-damaged-now.db-wal").read_bytes() == whole[:-1]
    open_kernel(config).store.close()


def test_sound_log_and_one_in_use_are_not_cut(config: Config) -> None:
    assert cut_damaged_log(config, "now") == "quipu.db-wal is not damaged: nothing was cut"
    with closing(open_shared(config)), pytest.raises(Fault, match="is in use: stop the server"):
        cut_damaged_log(config, "now")
    open_kernel(config).store.close()


def test_log_that_was_deleted_is_missed(config: Config) -> None:
    config.file.with_name("quipu.db-wal").unlink()
    assert refusal(config).startswith("quipu.db-wal is missing: ")
    cut_damaged_log(config, "now")
    open_kernel(config).store.close()


def test_log_without_its_file_is_refused_by_name(config: Config) -> None:
    config.file.unlink()
    assert refusal(config) == (
        "quipu.db is missing and its log is not. Restore a backup with `quipu restore FILE`, "
        "or move it and quipu.db-shm away to lose what it held."
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
