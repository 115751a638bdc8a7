"""Recalls close together share one scan of a large folder; a small one is scanned every time."""

import errno
from pathlib import Path

import pytest

from handlers.notes import files as module
from handlers.notes import sync
from handlers.notes.scan import Scan, scan
from tests.conftest import Call
from tests.unit.handlers.notes.conftest import CallOk, files, put


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[float]:
    """The time of the debounce clock, and how long a scan takes."""
    folder.mkdir(parents=True)
    now = [1000.0, 0.0]

    def slow_scan(root: Path) -> Scan | None:
        now[0] += now[1]
        return scan(root)

    monkeypatch.setattr(sync, "clock", lambda: now[0])
    monkeypatch.setattr(sync, "scan", slow_scan)
    return now


@pytest.mark.parametrize(("taken", "seen_after"), [(0.019, 0.0), (0.03, 0.3), (0.5, 1.0)])
def test_edit_is_seen_after_ten_times_the_scan_and_at_most_a_second(
    call_ok: CallOk, seconds: list[float], folder: Path, taken: float, seen_after: float
) -> None:
    def count() -> int:
        return call_ok("memory_recall", isAll=True)["count"]

    seconds[1] = taken
    begun = seconds[0]
    assert count() == 0
    put(folder, "learning/a.md", "x")
    seconds[0] = begun + max(taken, seen_after - 0.01)
    assert count() == (0 if seen_after else 1)
    seconds[0] = begun + max(taken, seen_after)
    assert count() == 1


def test_sync_reads_the_files_although_a_scan_is_recent(call_ok: CallOk, seconds: list[float], folder: Path) -> None:
    seconds[1] = 0.1
    assert call_ok("memory_recall", isAll=True)["count"] == 0
    put(folder, "learning/a.md", "x")
    call_ok("memory_sync")
    assert call_ok("memory_recall", isAll=True)["count"] == 1


def test_a_recorded_change_is_made_although_a_scan_is_recent(
    call: Call, call_ok: CallOk, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(folder, "learning/a.md", "x")
    call_ok("memory_sync")
    monkeypatch.setattr(sync, "is_recent", lambda *_: True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "remove", failing)
        assert call("memory_forget", filePaths=["learning/a.md"]).fault is not None
    assert files(folder) == ["learning/a.md"]
    assert call_ok("memory_recall", isAll=True)["count"] == 0
    assert files(folder) == []


def failing(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")
