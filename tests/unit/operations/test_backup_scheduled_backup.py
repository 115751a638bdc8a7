"""Scheduled backups: dated, whole, the newest kept; one that fails is told and tried again."""

import shutil
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kernel.calls.dispatch import catch_faults
from kernel.cli import doctor
from kernel.cli.main import main
from kernel.core.config import Config, from_mapping
from kernel.core.errors import Fault
from kernel.observe.metrics import Backups, MetricsRegistry, Snapshot, render
from kernel.operations import backup
from kernel.operations.backup import BackupLoop, Manifest, Schedule, back_up_now, backups_in, time_of_newest
from kernel.server import app
from kernel.server.app import Kernel
from tests.conftest import Call

START = 1_780_000_000


class Clock:
    """A clock that only a test moves; waiting moves it too."""

    def __init__(self) -> None:
        self.seconds = float(START)

    def now(self) -> str:
        at = datetime.fromtimestamp(self.seconds, UTC)
        return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Stopping(threading.Event):
    """Stops after so many waits, which take no time."""

    def __init__(self, clock: Clock, rounds: int) -> None:
        super().__init__()
        self._clock, self._rounds = clock, rounds

    def wait(self, timeout: float | None = None) -> bool:
        self._clock.seconds += timeout or 0
        self._rounds -= 1
        return self._rounds < 0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(backup, "utc_now", made.now)
    return made


@pytest.fixture
def back_up(kernel: Kernel) -> Callable[[Path], Manifest | Fault]:
    return lambda target: catch_faults(app.back_up_all, kernel.config, target)


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


def test_newest_are_kept_and_each_is_whole(
    clock: Clock, back_up: Callable[[Path], Manifest | Fault], call: Call, tmp_path: Path
) -> None:
    schedule = Schedule(tmp_path / "copies", 60, 3)
    (tmp_path / "copies").mkdir()
    (tmp_path / "copies" / "quipu-20200101T000000Z").mkdir()  # without a manifest: none of ours
    made: list[Path] = []
    for number in range(5):
        call("add_memory", path=f"n{number}", content="text")
        made.append(back_up_now(schedule, back_up))
        clock.seconds += 60
    kept = [one.name for one in backups_in(schedule.to)]
    assert kept == ["quipu-20260528T202840Z", "quipu-20260528T202940Z", "quipu-20260528T203040Z"]
    assert names(schedule.to) == ["quipu-20200101T000000Z", *kept]
    assert time_of_newest(schedule.to) == START + 240
    for one in backups_in(schedule.to):
        backup.verify(one, backup.read_manifest(one))
    assert made[-1].name == kept[-1]


@pytest.mark.slow
def test_loop_counts_from_the_newest_backup_and_goes_on_after_a_failure(
    clock: Clock, back_up: Callable[[Path], Manifest | Fault], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    schedule = Schedule(tmp_path / "missing" / "copies", 3600, 24)
    loop = BackupLoop(schedule, back_up, lambda: True)
    loop.run(Stopping(clock, 2))
    assert (loop.failures, clock.seconds) == (2, START + 600)
    assert caplog.messages == [f"the backup has failed: Cannot write {schedule.to}: No such file or directory"] * 2
    schedule.to.parent.mkdir()
    loop.run(Stopping(clock, 400))
    made = [one.name for one in backups_in(schedule.to)]
    assert (len(made), loop.failures) == (4, 2)


def test_worker_that_is_not_the_one_makes_none(
    clock: Clock, back_up: Callable[[Path], Manifest | Fault], tmp_path: Path
) -> None:
    BackupLoop(Schedule(tmp_path / "copies", 60, 3), back_up, lambda: False).run(Stopping(clock, 20))
    assert not (tmp_path / "copies").exists()


@pytest.mark.parametrize(
    ("given", "seconds"), [("90s", 90), ("30m", 1800), ("1h", 3600), ("7d", 604_800), ("", 3600)], ids=str
)
def test_time_between_backups_is_a_duration(given: str, seconds: int) -> None:
    assert from_mapping({"QUIPU_BACKUP_EVERY": given}).backup_every == seconds


@pytest.mark.parametrize("given", ["0h", "1", "h", "-1h", "1.5h", "1w", "999999999d"])
def test_what_is_no_duration_is_refused_by_the_name_of_the_setting(given: str) -> None:
    with pytest.raises(Fault, match=r"^QUIPU_BACKUP_EVERY must be a duration such as 30m, 1h or 7d$"):
        from_mapping({"QUIPU_BACKUP_EVERY": given})


def test_metrics_tell_the_newest_backup_and_the_failures(
    kernel: Kernel, clock: Clock, back_up: Callable[[Path], Manifest | Fault], tmp_path: Path
) -> None:
    loop = BackupLoop(Schedule(tmp_path / "copies", 60, 3), back_up, lambda: True)
    loop.run(Stopping(clock, 1))
    loop.failures = 2
    seen = Snapshot.take(MetricsRegistry(), {"main": kernel.store.load()}, 0, Backups.of(loop))
    both = seen.plus(seen._replace(backups=Backups(5.0, 1))).plus(seen._replace(backups=None))
    assert both.backups == Backups(START, 3)
    assert Backups.of(None) is None
    lines = [line for line in render(both, {}).decode().splitlines() if line.startswith("quipu_backup")]
    assert lines == [f"quipu_backup_timestamp_seconds {float(START)}", "quipu_backup_failures_total 3"]


def test_doctor_says_when_backups_are_overdue(
    kernel: Kernel, back_up: Callable[[Path], Manifest | Fault], tmp_path: Path
) -> None:
    config = kernel.config._replace(backup_to=tmp_path / "copies", backup_every=3600)
    (missing,) = doctor.backups(config)
    assert (missing.grade, missing.subject, missing.detail) == (
        "wrong",
        "backups",
        f"none yet in {tmp_path / 'copies'}",
    )
    made = back_up_now(Schedule(tmp_path / "copies", 3600, 24), back_up)
    (overdue,) = doctor.backups(config)
    assert (overdue.grade, overdue.detail) == ("ok", f"1 in {tmp_path / 'copies'}, the newest 0.0 h old")
    made.rename(made.with_name("quipu-20200101T000000Z"))
    assert [found.grade for found in doctor.backups(config)] == ["wrong"]
    assert [*doctor.backups(kernel.config)] == []


def test_command_makes_one_backup_and_restore_takes_it(
    config: Config, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QUIPU_DATA", str(config.data))
    monkeypatch.setenv("QUIPU_MODEL", "none")
    call("add_memory", path="car", content="red")
    assert main(["backup", "--to", str(tmp_path / "copies"), "--keep", "2"]) == 0
    folder = Path(capsys.readouterr().out.strip())
    assert [folder] == backups_in(tmp_path / "copies")
    for words in (["backup", "--keep", "2"], ["backup", "x.db", "--to", "y"], ["backup", "--every", "1h"]):
        assert main(words) == 1
    shutil.rmtree(tmp_path / "other", ignore_errors=True)
    assert main(["restore", str(folder), "--data", str(tmp_path / "other")]) == 0
    assert main(["list", "--data", str(tmp_path / "other")]) == 0
    assert "paths/car" in capsys.readouterr().out
