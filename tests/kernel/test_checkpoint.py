"""The write-ahead log is folded back in time, and never at the cost of who writes."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel import checkpoint
from kernel.lanes import Store
from kernel.store import Connection
from kernel.world import Origin
from tests.faults.serving import until
from tests.kernel.things import THING_WORLD, add, names, thing_store

PAGE = 4096


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "things.db"


@pytest.fixture
def store(file: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A store whose log is due after 50 pages."""
    monkeypatch.setattr(checkpoint, "_PAGES", 50)
    running = thing_store(file)
    running.start()
    yield running
    running.close()


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The thread of every copying of the log."""
    counted: list[str] = []
    copy = Connection.checkpoint

    def counting(db: Connection, *, truncate: bool = False) -> None:
        counted.append(threading.current_thread().name)
        copy(db, truncate=truncate)

    monkeypatch.setattr(Connection, "checkpoint", counting)
    return counted


def log(file: Path) -> int:
    """Pages in the file of the log."""
    return file.with_name(f"{file.name}-wal").stat().st_size // PAGE


def test_the_log_is_folded_in_beside_the_writer(store: Store, file: Path) -> None:
    before = file.stat().st_size
    store.write_sync(add("x" * 300_000))
    until(lambda: file.stat().st_size > before + 150_000, "the log, folded in")


def test_the_log_starts_over_while_writes_go_on(store: Store, file: Path) -> None:
    def write(number: int) -> None:
        for _ in range(100):
            store.write_sync(add(f"{number}" * 10_000))

    writers = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert log(file) < 1500  # of about 2400 written
    assert len(store.read_sync(names)) == 800


def test_the_log_does_not_grow_without_bound_where_its_keeper_is_slow(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "_PAGES", 1_000_000)
    monkeypatch.setattr(checkpoint, "_PAGES_HARD", 50)
    store = thing_store(file)
    store.start()
    for _ in range(200):
        store.write_sync(add("x" * 10_000))
    assert log(file) < 100
    store.close()
    db = Connection(file, THING_WORLD, readonly=True)
    assert len(db.read(Origin(), names)) == 200
    db.close()


def test_a_reader_that_holds_on_to_old_pages_costs_a_copying_a_stretch_and_no_more(
    store: Store, file: Path, copies: list[str]
) -> None:
    reader = Connection(file, THING_WORLD, readonly=True)
    reader.script("BEGIN")
    assert reader.values("SELECT count(*) FROM thing") == [(0,)]
    for _ in range(100):
        store.write_sync(add("x" * 10_000))
    assert log(file) > 300
    assert 1 <= copies.count("quipu-writer") <= 7
    reader.script("COMMIT")
    reader.close()
    held = log(file)
    for _ in range(100):
        store.write_sync(add("x" * 10_000))
    assert log(file) < held + 200
    assert len(store.read_sync(names)) == 200


def test_the_log_starts_over_though_there_is_always_a_reader(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "_PAGES", 50)
    monkeypatch.setattr(checkpoint, "_PAGES_HARD", 200)
    store = thing_store(file)
    store.start()
    stopping = threading.Event()
    readers = [threading.Thread(target=_read_in_turn, args=pair) for pair in _overlapping(file, stopping)]
    for reader in readers:
        reader.start()
    for _ in range(400):
        store.write_sync(add("x" * 10_000))
    grown = log(file)
    stopping.set()
    for reader in readers:
        reader.join()
    store.close()
    assert grown < 800  # of about 1200 written


def _overlapping(
    file: Path, stopping: threading.Event
) -> list[tuple[Path, threading.Event, threading.Event, threading.Event]]:
    one, other = threading.Event(), threading.Event()
    return [(file, stopping, one, other), (file, stopping, other, one)]


def _read_in_turn(file: Path, stopping: threading.Event, begun: threading.Event, other: threading.Event) -> None:
    """Reads that end when the other reader's next has begun."""
    reader = Connection(file, THING_WORLD, readonly=True)
    while not stopping.is_set():
        reader.script("BEGIN")
        reader.values("SELECT count(*) FROM thing")
        begun.set()
        other.wait(0.05)
        other.clear()
        reader.script("COMMIT")
    reader.close()
