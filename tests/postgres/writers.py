"""Callers of several servers of one database: the answers to each, and whether the database says the same."""

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from kernel.cli.main import main
from kernel.engines.postgres import database
from tests.postgres import stores
from tests.reliability.server_process import LOST, Client, Server, serving, until

UNKNOWN = b"It is not known"
PARTS = "abc"  # of one call, which are there together or not at all
CALLERS = 4


@contextmanager
def servers(count: int, address: str, folder: Path, **settings: Any) -> Iterator[list[Server]]:
    """Server processes on one database, each with a data directory of its own, as on several machines."""
    with ExitStack() as stack:
        # Statements end by the clock, and these tests run beside others.
        limits = {"QUIPU_LIMIT_RATE": 0, "QUIPU_LIMIT_STORE_MILLISECONDS": 30_000}
        given = {"QUIPU_STORE": address, **limits, **settings}
        yield [stack.enter_context(serving(folder / f"machine{at}" / "data", **given)) for at in range(count)]


class Caller(threading.Thread):
    """Saves three memories, then wants a path that all callers want, and again; after an error by another server."""

    def __init__(self, name: str, ports: Sequence[int]) -> None:
        super().__init__(name=name, daemon=True)
        self.ports = ports
        self.answers: dict[str, str] = {}  # by the name of the call
        self.wins: dict[str, str] = {}  # by the name of the path
        self.stopping = threading.Event()
        self.last = time.monotonic()  # when a write was answered
        self._at = 0

    def run(self) -> None:
        number, contested = 0, 0
        while not self.stopping.is_set():
            client = Client(self.ports[self._at % len(self.ports)])
            try:
                while not self.stopping.is_set():
                    number += 1
                    name = f"{self.name}-{number}"
                    self.answers[name] = "cut off"
                    self.answers[name] = self._save(client, name)
                    contested += 1
                    self.wins[f"contested/{contested}"] = "cut off"
                    self.wins[f"contested/{contested}"] = self._win(client, f"contested/{contested}")
            except LOST:
                self._at += 1
                time.sleep(0.02)  # as clients do before they connect again
            finally:
                client.close()

    def _save(self, client: Client, name: str) -> str:
        memories = [{"content": f"{name} {part}", "category": "fact"} for part in PARTS]
        return self._outcome(*client.call("bulk_save_memories", db="core", memories=memories))

    def _win(self, client: Client, path: str) -> str:
        status, body = client.call("add_memory", path=path, content=self.name)
        return "taken" if status == 409 else self._outcome(status, body)

    def _outcome(self, status: int, body: Any) -> str:
        if status == 200:
            self.last = time.monotonic()
            return "done"
        if UNKNOWN in body:
            return "unknown"
        if status not in (503, 507):
            return f"{status}: {body!r}"
        time.sleep(0.02)
        return "refused"


class Load:
    """Callers until they are stopped."""

    def __init__(self, ports: Sequence[int]) -> None:
        self.callers = [Caller(f"caller{at}", ports) for at in range(CALLERS)]
        for caller in self.callers:
            caller.start()

    def until_answered(self, count: int) -> None:
        """Waits until so many more writes were answered."""
        begun = self._done()
        until(lambda: self._done() >= begun + count, f"{count} answers")

    def _done(self) -> int:
        return sum(1 for caller in self.callers for outcome in [*caller.answers.values()] if outcome == "done")

    def next_answer(self, begun: float, after: float) -> float:
        """Seconds from the begin of a fault until a caller is answered after it."""
        until(lambda: any(caller.last > after for caller in self.callers), "an answer")
        return min(caller.last for caller in self.callers if caller.last > after) - begun

    def stop(self) -> None:
        for caller in self.callers:
            caller.stopping.set()
        for caller in self.callers:
            caller.join()

    def outcomes(self) -> Counter[str]:
        """How many calls had which outcome."""
        return Counter(
            outcome for caller in self.callers for outcome in (*caller.answers.values(), *caller.wins.values())
        )


def wrong(load: Load, address: str) -> list[str]:
    """Return the differences between the database and the answers."""
    with stores.connect(address) as db, db.transaction():  # a pooler keeps a session for a transaction
        (tenant,) = db.execute("SELECT id FROM quipu.directory WHERE name = 'main'").fetchone()
        db.execute(f"SET LOCAL quipu.tenant = '{tenant}'")
        held = Counter(text for (text,) in db.execute("SELECT content FROM quipu.brain_memory").fetchall())
        owners = dict(db.execute("SELECT path, content FROM quipu.paths_memory").fetchall())
    found: list[str] = []
    for name, outcome in ((name, outcome) for caller in load.callers for name, outcome in caller.answers.items()):
        counts = {held.pop(f"{name} {part}", 0) for part in PARTS}
        allowed = {"done": ({1},), "refused": ({0},), "unknown": ({0}, {1}), "cut off": ({0}, {1})}
        if counts not in allowed.get(outcome, ()):
            found.append(f"{name}: {outcome}, and there {counts} times")
    for path in {path for caller in load.callers for path in caller.wins}:
        outcomes = {caller.name: caller.wins.get(path, "not wanted") for caller in load.callers}
        won = [name for name, outcome in outcomes.items() if outcome == "done"]
        possible = won or [name for name, outcome in outcomes.items() if outcome in ("unknown", "cut off")]
        if len(won) > 1 or (won and path not in owners) or (path in owners and owners[path] not in possible):
            found.append(f"{path}: {outcomes}, and there is {owners.get(path)}")
    return found + [f"nobody wrote {text}" for text in held]


def check(load: Load, address: str, folder: Path) -> None:
    """Nothing that was answered is lost, doubled or half there; the index and the audit agree with the rows."""
    found = wrong(load, address)
    assert found == [], found[:5]
    assert load.outcomes()["done"]
    try:
        assert main(["check", "--data", str(folder / "check"), "--store", address]) == 0
    finally:
        database.forget_pool(address)
