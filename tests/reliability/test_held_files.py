"""Whoever holds the file, an old page of it or the whole server holds up nobody for longer than is promised.

HELD_SECONDS sets how long another process keeps the file locked, PAUSED_SECONDS how long the server stands still, and
PINNED_WRITES how much is written while a reader holds on to an old page.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kernel.engines.sqlite import database
from kernel.engines.sqlite.connection import BUSY_MILLISECONDS, Connection
from kernel.server.app import Kernel
from tests.catalogue import Catalogue
from tests.conftest import Call
from tests.reliability.server_process import (
    LATE,
    Client,
    Countdown,
    Ledger,
    Writer,
    disagreements,
    finish,
    serving,
    until,
)

HELD = float(os.environ.get("HELD_SECONDS", "5.5"))
PAUSED = float(os.environ.get("PAUSED_SECONDS", "1.5"))
PINNED = int(os.environ.get("PINNED_WRITES", "300"))
BUSY = BUSY_MILLISECONDS / 1000
PAGE = 4096
HOLDER = """
import sys
import apsw

db = apsw.Connection(sys.argv[1])
db.set_busy_timeout(5000)
db.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held(file: Path) -> Iterator[None]:
    """Another process has the write lock of the file, and does not get on with it."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        holder.send_signal(signal.SIGSTOP)
        yield
    finally:
        holder.kill()
        holder.communicate()


class Repeated(threading.Thread):
    """One call after the other until it is told to stop; return each answer and its duration."""

    def __init__(self, work: Callable[[], int]) -> None:
        super().__init__(daemon=True)
        self.answers: list[tuple[int, float]] = []
        self.stopping = threading.Event()
        self._work = work

    def run(self) -> None:
        while not self.stopping.is_set():
            begun = time.monotonic()
            self.answers.append((self._work(), time.monotonic() - begun))
            self.stopping.wait(0.01)


def _refused(writers: list[Repeated]) -> list[float]:
    """How long each write took that was refused as busy, in seconds."""
    return [seconds for one in writers for status, seconds in one.answers if status == 503]


def test_while_somebody_sits_on_the_file_writes_are_told_so_in_time_and_reads_go_on(
    tmp_path: Path, catalogue: Catalogue
) -> None:
    with serving(tmp_path / "data") as server:
        clients = [Client(server.port) for _ in range(6)]
        for client in clients:
            assert client.call("add_memory", path=f"kept/{id(client)}", content="before")[0] == 200
        writers = [
            Repeated(lambda client=client: client.call("add_memory", path=f"new/{time.monotonic_ns()}", content="x")[0])
            for client in clients[:4]
        ]
        readers = [Repeated(lambda client=client: client.call("list_memories")[0]) for client in clients[4:]]
        with held(server.data / "quipu.db"):
            for one in [*writers, *readers]:
                one.start()
            time.sleep(HELD)
            until(lambda: bool(_refused(writers)), "a write that was told it was busy")
            for one in readers:
                one.stopping.set()
                one.join(BUSY)
        for one in writers:
            one.stopping.set()
            one.join(4 * BUSY)
        refused = _refused(writers)
        assert {status for one in writers for status, _ in one.answers} <= {200, 503}
        assert max(refused) < 2 * BUSY + LATE  # a call may find another before it that waits
        reads = [answer for one in readers for answer in one.answers]
        assert {status for status, _ in reads} == {200}
        assert max(seconds for _, seconds in reads) < BUSY  # none waited for the lock
        assert clients[0].call("add_memory", path="after", content="free again")[0] == 200
        for client in clients:
            client.close()
    assert disagreements(tmp_path / "data") == []
    outcome = f"{len(refused)} writes busy after {max(refused):.1f} s at most, {len(reads):,} reads answered"
    catalogue("R13", injected=f"file locked for {HELD:g} s by a stopped process", times=1, outcome=outcome)


def test_a_reader_that_never_ends_is_warned_of_and_the_log_is_folded_once_it_does(
    kernel: Kernel,
    call: Call,
    catalogue: Catalogue,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(database, "PASSIVE_PAGES", 50)
    monkeypatch.setattr(database, "RESTART_PAGES", 200)
    log = kernel.config.file.with_name(f"{kernel.config.file.name}-wal")
    reader = Connection(kernel.config.file, kernel.store.context, readonly=True)
    reader.script("BEGIN")
    before = reader.values("SELECT count(*) FROM paths_memory")
    for number in range(PINNED):
        assert call("add_memory", path=f"pinned/{number}", content="x" * 5000).fault is None
    assert reader.values("SELECT count(*) FROM paths_memory") == before
    warnings = [record.getMessage() for record in caplog.records if "write-ahead log" in record.getMessage()]
    high = log.stat().st_size
    assert high > 200 * PAGE
    assert 1 <= len(warnings) <= 12
    reader.script("COMMIT")
    reader.close()
    for number in range(40):
        assert call("add_memory", path=f"free/{number}", content="x" * 5000).fault is None
    db = Connection(kernel.config.file, kernel.store.context, readonly=False)

    def folded() -> bool:
        busy, pages, done = db.values("PRAGMA wal_checkpoint(PASSIVE)")[0]
        return (busy, done) == (0, pages) and pages < high // PAGE  # it has started over

    until(folded, "the log, folded whole; the keeper may be at it")
    db.close()
    ended = log.stat().st_size
    for number in range(40):
        assert call("add_memory", path=f"more/{number}", content="x" * 5000).fault is None
    assert log.stat().st_size <= max(ended, 1 << 26)
    catalogue(
        "R14",
        injected=f"{PINNED:,} writes beside a reader of an old page",
        times=1,
        outcome=f"log grew to {high / 2**20:.0f} MiB, warned {len(warnings)} times, folded when the reader ended",
    )


def test_a_server_that_stood_still_goes_on_and_locks_have_run_out_meanwhile(
    tmp_path: Path, catalogue: Catalogue
) -> None:
    data, ledger = tmp_path / "data", Ledger()
    with serving(data) as server:
        client = Client(server.port)
        lock = {"action": "checkout", "file_path": "/src/cart.py"}
        taken = client.call("memory_file_lock", **lock, agent_id="ada", expires_in=1)
        countdown = Countdown(40)
        writers = [Writer(server.port, f"w{number}", number, countdown) for number in range(4)]
        for writer in writers:
            writer.start()
        assert countdown.done.wait(60)
        server.process.send_signal(signal.SIGSTOP)
        time.sleep(PAUSED)
        server.process.send_signal(signal.SIGCONT)
        other = Client(server.port)
        got = other.call("memory_file_lock", **lock, agent_id="bob", expires_in=60)
        late = other.call("memory_file_lock", action="checkin", file_path="/src/cart.py", agent_id="ada")
        more = Countdown(20)
        again = Writer(server.port, "again", 9, more)
        again.start()
        assert more.done.wait(60)
        finish([*writers, again])
        client.close()
        other.close()
    assert (taken[0], got[0], late[0]) == (200, 200, 409)
    assert got[1]["lock"]["fencingToken"] > taken[1]["lock"]["fencingToken"]
    assert ledger.take([*writers, again], data) == []
    assert [error for writer in writers for error in writer.errors] == []
    assert disagreements(data) == []
    outcome = f"{len(ledger.known)} paths, 0 lost, {ledger.doubts} calls cut off; the expired lock changed hands"
    catalogue("R15", injected=f"server stopped for {PAUSED:g} s under 4 writers", times=1, outcome=outcome)
