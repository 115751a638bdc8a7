"""Backups of everything at regular times: dated folders in one folder, of which the newest are kept."""

import logging
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from kernel.core.errors import Fault
from kernel.core.ids import utc_now
from kernel.core.lazy_regex import regex
from kernel.engines.sqlite.unfinished import SUFFIX
from kernel.operations.backup import MANIFEST, Manifest

_PREFIX = "quipu-"
_NAME = regex(r"quipu-\d{8}T\d{6}Z")
_POLL_SECONDS = 30.0  # how late a backup may begin
_RETRY_SECONDS = 300.0  # after a failed backup, unless the next is due before
_log = logging.getLogger("quipu")

BackUp = Callable[[Path], Manifest | Fault]


class Schedule(NamedTuple):
    """The folder of backups, the seconds between two of them, and how many are kept."""

    to: Path
    every: float
    keep: int


def backups_in(folder: Path) -> list[Path]:
    with suppress(OSError):
        return sorted(entry for entry in folder.iterdir() if _begun(entry) and (entry / MANIFEST).is_file())
    return []


def time_of_newest(folder: Path) -> float:
    """Return when the newest backup was begun, in seconds since 1970; 0 without any."""
    return max(map(_begun, backups_in(folder)), default=0.0)


def _begun(backup: Path) -> float:
    """Return the time in the name of a backup; 0 for another name."""
    with suppress(ValueError):
        if _NAME.fullmatch(backup.name):
            return datetime.fromisoformat(backup.name.removeprefix(_PREFIX)).timestamp()
    return 0.0


def back_up_now(schedule: Schedule, back_up: BackUp) -> Path:
    """Make a backup, then delete the oldest of those that are too many; raises Fault."""
    name = f"{_PREFIX}{utc_now()[:19].replace('-', '').replace(':', '')}Z"
    try:
        schedule.to.mkdir(mode=0o700, exist_ok=True)  # without parents: a disk may not be mounted
    except OSError as error:
        raise Fault("storage", f"Cannot write {schedule.to}: {error.strerror}") from None
    manifest = back_up(schedule.to / name)
    if isinstance(manifest, Fault):
        raise manifest
    for old in backups_in(schedule.to)[: -schedule.keep]:
        _delete(old)
    return schedule.to / name


def _delete(backup: Path) -> None:
    """Delete a backup, under a name by which the next backup finishes the work of a killed process."""
    renamed_folder = backup.with_name(f"{backup.name}.old{SUFFIX}")
    with suppress(OSError):
        backup.rename(renamed_folder)
        shutil.rmtree(renamed_folder)


class BackupLoop:
    """Makes the backups of a schedule, counted from the newest backup there, by any program.

    `take` lets a single worker of several do it. `failures` counts those of this process.
    """

    def __init__(self, schedule: Schedule, back_up: BackUp, take: Callable[[], bool]) -> None:
        self.schedule = schedule
        self.failures = 0
        self._back_up = back_up
        self._take = take

    def run(self, stopping: threading.Event) -> None:
        """Make backups until `stopping` is set; a failure is logged, and tried again."""
        wait = 0.0
        while not stopping.wait(wait):
            now = datetime.fromisoformat(utc_now()).timestamp()
            due = time_of_newest(self.schedule.to) + self.schedule.every - now
            wait = min(_POLL_SECONDS, max(due, 0.0))
            if due <= 0 and self._take():
                wait = min(_POLL_SECONDS if self._made() else _RETRY_SECONDS, self.schedule.every)
            elif due <= 0:
                wait = _POLL_SECONDS

    def _made(self) -> bool:
        try:
            folder = back_up_now(self.schedule, self._back_up)
        except Fault as fault:
            self.failures += 1
            _log.error("the backup has failed: %s", fault.message)
            return False
        _log.info("backup %s", folder.name)
        return True
