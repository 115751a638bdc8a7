"""With several workers no answered write is lost, whether one of them is killed or all, and the audit has no gap.

WORKER_KILL_ROUNDS sets how often that happens (4 by default).
"""

import os
import random
import signal
import sys
from pathlib import Path

import pytest

from kernel.engines.sqlite.connection import Connection
from kernel.server.app import base_context
from kernel.store import audit
from kernel.store.context import CallContext
from tests.catalogue import Catalogue
from tests.reliability.server_process import Client, Countdown, Ledger, Server, Writer, disagreements, finish, until
from tests.reliability.workers import kill_all, pids, serving_by

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows serves with one worker")

ROUNDS = int(os.environ.get("WORKER_KILL_ROUNDS", "4"))
WORKERS = 2
WRITERS = 8


def test_no_answered_write_is_lost_when_a_worker_or_all_are_killed(tmp_path: Path, catalogue: Catalogue) -> None:
    chance, data, ledger = random.Random(), tmp_path / "data", Ledger()
    for number in range(ROUNDS):
        with serving_by(WORKERS, data) as server:
            writers = write_until_killed(server, number, chance, every=number % 2 == 1)
        assert ledger.take(writers, data) == []
        assert [error for writer in writers for error in writer.errors] == []
        assert broken_audit(data) is None
    assert disagreements(data) == []
    outcome = f"{len(ledger.known):,} paths, 0 lost, audit unbroken"
    catalogue("R01", injected=f"kill -9 of one of {WORKERS} workers, or of all", times=ROUNDS, outcome=outcome)


def write_until_killed(server: Server, number: int, chance: random.Random, *, every: bool) -> list[Writer]:
    """Writers that have ended, of whom some or all were cut off; the rest of the server has been stopped."""
    countdown = Countdown(chance.randrange(30, 400))
    writers = [
        Writer(server.port, f"{number}-{writer}", chance.randrange(1 << 30), countdown) for writer in range(WRITERS)
    ]
    for writer in writers:
        writer.start()
    assert countdown.done.wait(60)
    if every:
        kill_all(server)
        finish(writers)
        return writers
    killed = chance.choice(pids(server))
    os.kill(killed, signal.SIGKILL)
    until(lambda: len({*pids(server)} - {killed}) == WORKERS, "another worker")
    finish(writers)
    client = Client(server.port)
    for path, content in ((path, content) for writer in writers for path, content in writer.known.items()):
        status, answer = client.call("read_memory", path=path)
        assert (answer["content"] if status == 200 else None) == content or path in doubted(writers)
    client.close()
    assert server.stop() == 0
    return writers


def doubted(writers: list[Writer]) -> set[str]:
    """The paths of calls that were cut off."""
    return {writer.doubt[0] for writer in writers if writer.doubt is not None}


def broken_audit(data: Path) -> int | None:
    """The first row of the audit that does not follow from the one before."""
    db = Connection(data / "quipu.db", base_context(None), readonly=True)
    try:
        return db.read(CallContext(), audit.first_broken)
    finally:
        db.close()
