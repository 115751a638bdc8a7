"""The write-ahead log stays short without delaying writes."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kernel.calls.dispatch import catch_faults
from kernel.engines.sqlite import database
from kernel.engines.sqlite.connection import Connection
from kernel.engines.sqlite.database import Checkpointer
from kernel.store.context import CallContext
from kernel.store.store import Store
from tests.reliability.server_process import until
from tests.unit.store_fixtures import THING_CONTEXT, add, names, thing_store

PAGE = 4096
_GROUP = 2500  # pages


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "things.db"


@pytest.fixture
def store(file: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A store with a checkpoint due after 50 pages of log."""
    monkeypatch.setattr(database, "PASSIVE_PAGES", 50)
    running = thing_store(file)
    running.start()
    yield running
    running.close()


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The thread name of every checkpoint."""
    counted: list[str] = []
    copy = Connection.checkpoint

    def counting(db: Connection, *, truncate: bool = False) -> None:
        counted.append(threading.current_thread().name)
        copy(db, truncate=truncate)

    monkeypatch.setattr(Connection, "checkpoint", counting)
    return counted


def log(file: Path) -> int:
    """Pages in the file of the log, which a store makes with its first write."""
    wal = file.with_name(f"{file.name}-wal")
    return wal.stat().st_size // PAGE if wal.exists() else 0


def write_until_the_log_starts_over(store: Store, file: Path) -> None:
    """Writes until a write leaves the log as long as it was; one that is appended adds about three pages."""
    for _ in range(5_000):
        pages = log(file)
        store.write_sync(add("x" * 10_000))
        if log(file) == pages:
            return
    raise AssertionError(f"the log has {log(file)} pages")


def test_checkpoint_runs_beside_the_writer(store: Store, file: Path) -> None:
    before = file.stat().st_size
    store.write_sync(add("x" * 300_000))
    until(lambda: file.stat().st_size > before + 150_000, "the log, folded in")


@pytest.mark.slow
def test_wal_restarts_during_writes(store: Store, file: Path) -> None:
    def write(number: int) -> None:
        for _ in range(100):
            store.write_sync(add(f"{number}" * 10_000))
        write_until_the_log_starts_over(store, file)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(store.read_sync(names)) > 800


def test_wal_stays_bounded_with_a_slow_checkpointer(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "PASSIVE_PAGES", 1_000_000)
    monkeypatch.setattr(database, "RESTART_PAGES", 50)
    store = thing_store(file)
    store.start()
    for _ in range(200):
        store.write_sync(add("x" * 10_000))
    assert log(file) < 100
    store.close()
    db = Connection(file, THING_CONTEXT, readonly=True)
    assert len(db.read(CallContext(), names)) == 200
    db.close()


def test_long_reader_costs_one_checkpoint_attempt_per_stretch(store: Store, file: Path, copies: list[str]) -> None:
    reader = Connection(file, THING_CONTEXT, readonly=True)
    reader.script("BEGIN")
    assert reader.values("SELECT count(*) FROM thing") == [(0,)]
    for _ in range(100):
        store.write_sync(add("x" * 10_000))
    assert log(file) > 300
    assert copies.count("quipu-writer-0") <= 7
    while "quipu-writer-0" not in copies:  # the other thread that copies may be late
        store.write_sync(add("x"))
    reader.script("COMMIT")
    reader.close()
    write_until_the_log_starts_over(store, file)
    assert len(store.read_sync(names)) > 100


@pytest.mark.slow
def test_wal_restarts_despite_overlapping_readers(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "PASSIVE_PAGES", 50)
    monkeypatch.setattr(database, "RESTART_PAGES", 200)
    store = thing_store(file)
    store.start()
    with _overlapping_readers(file):
        write_until_the_log_starts_over(store, file)
    store.close()


@pytest.mark.slow
def test_wal_restarts_at_the_same_length_with_large_groups() -> None:
    log = _Log()
    _run_groups(log, groups=200)
    assert log.longest <= database.RESTART_PAGES + _GROUP


@pytest.mark.slow
def test_long_read_delays_the_writer_ever_more_rarely() -> None:
    log = _Log(held=True)
    _run_groups(log, groups=400)
    assert log.waited == 6  # at 17,500 of a million pages, and whenever there are twice as many


@pytest.mark.parametrize("held", [False, True])
def test_a_reader_is_blamed_for_a_long_log_only_if_there_is_one(held: bool, caplog: pytest.LogCaptureFixture) -> None:
    log: Any = _Log(held=held)
    log.write(100_000)  # a large call, or a compaction
    Checkpointer(catch_faults, lambda: log).after_commit(log)
    warning = "The write-ahead log has 100000 pages: a reader that does not end keeps it from starting over"
    assert caplog.messages == [warning] * held


def _run_groups(log: Any, *, groups: int) -> None:
    """Runs a checkpointer over a log to which so many groups are written."""
    checkpointer = Checkpointer(catch_faults, lambda: log)
    for _ in range(groups):
        log.write(_GROUP)
        checkpointer.after_commit(log)
        until(lambda: checkpointer._copy is None or checkpointer._copy.done(), "the copying")
    checkpointer.stop()


class _Log:
    """A log that starts over only after a restart checkpoint, which waits for readers."""

    def __init__(self, *, held: bool = False) -> None:
        self.wal_pages = self.longest = self.waited = 0
        self._held, self._over = held, False

    def write(self, pages: int) -> None:
        self.wal_pages = pages if self._over else self.wal_pages + pages
        self._over = False
        self.longest = max(self.longest, self.wal_pages)

    def checkpoint(self) -> None:
        """Copies nothing, as with a reader on old pages."""

    def restart_log(self, _wait_milliseconds: int) -> bool:
        """Copies all, unless a reader holds old pages."""
        self.waited += 1
        self._over = not self._held
        return self._over

    def close(self) -> None:
        """Nothing is open."""


@contextmanager
def _overlapping_readers(file: Path) -> Iterator[None]:
    """Two overlapping readers: each ends its read after the next one of the other has begun."""
    stopping, one, other = (threading.Event() for _ in range(3))

    def read(begun: threading.Event, next_begun: threading.Event) -> None:
        reader = Connection(file, THING_CONTEXT, readonly=True)
        while not stopping.is_set():
            reader.script("BEGIN")
            reader.values("SELECT count(*) FROM thing")
            begun.set()
            next_begun.wait(0.05)
            next_begun.clear()
            reader.script("COMMIT")
        reader.close()

    readers = [threading.Thread(target=read, args=pair) for pair in ((one, other), (other, one))]
    for reader in readers:
        reader.start()
    try:
        yield
    finally:
        stopping.set()
        for reader in readers:
            reader.join()


def test_a_store_begins_every_thread_that_its_checkpoints_need(store: Store) -> None:
    assert sum(thread.name.startswith("quipu-checkpoint") for thread in threading.enumerate()) == 2
