"""A copy that follows shows whole states of its source, whichever of the three processes is killed.

KILL_ROUNDS sets how often one of them is (3 by default); FOLLOW_CALLS how many calls are followed.
"""

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import apsw

from tests.catalogue import Catalogue
from tests.reliability.server_process import LOST, PATIENCE, ROOT, Client, Server, serving, until

ROUNDS = int(os.environ.get("KILL_ROUNDS", "3"))
CALLS = int(os.environ.get("FOLLOW_CALLS", "150"))


class Copier:
    """`quipu replica`, as a process of its own."""

    def __init__(self, source: Path, target: Path) -> None:
        command = [sys.executable, "-m", "kernel", "replica", str(target), "--data", str(source)]
        self.process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        assert line == f"{target} follows {source}\n"

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.communicate(timeout=PATIENCE)


@contextmanager
def copying(source: Path, target: Path) -> Iterator[list[Copier]]:
    """Hold copiers in a list, whose last copier is gone at the end of the block."""
    running = [Copier(source, target)]
    try:
        yield running
    finally:
        running[-1].kill()


class Writer(threading.Thread):
    """Adds numbered memories until it is stopped; return the answers."""

    def __init__(self, port: int, first: int) -> None:
        super().__init__(daemon=True)
        self.answered: list[int] = []
        self.stopping = threading.Event()
        self._port, self._first = port, first

    def run(self) -> None:
        client, number = Client(self._port), self._first
        try:
            while not self.stopping.is_set():
                status, _ = client.call("add_memory", path=f"n{number}", content=f"text of {number}")
                if status == 200:
                    self.answered.append(number)
                number += 1
        except LOST:
            return
        finally:
            client.close()


def names(server: Server) -> set[str]:
    """The entities that a follower shows."""
    client = Client(server.port)
    try:
        status, body = client.call("read_graph")
        assert status == 200, body
        graph = body if isinstance(body, dict) else json.loads(body)
        return {entity["name"] for entity in graph["entities"]}
    finally:
        client.close()


def test_a_follower_shows_a_whole_state_at_every_moment(tmp_path: Path) -> None:
    """Each call makes two entities: half a state would show one of them, or a call without the one before."""
    source, target = tmp_path / "source", tmp_path / "target"
    with (
        serving(source, QUIPU_MODEL="none") as server,
        copying(source, target),
        serving(target, QUIPU_MODEL="none", QUIPU_FOLLOW=1) as follower,
    ):

        def write() -> None:
            client = Client(server.port)
            for number in range(CALLS):
                pair = [{"name": f"{side}{number}", "entityType": "pair", "observations": []} for side in "ab"]
                assert client.call("create_entities", entities=pair)[0] == 200
            client.close()

        writing = threading.Thread(target=write)
        writing.start()
        seen, sizes = set[str](), set[int]()
        deadline = time.monotonic() + PATIENCE
        while len(seen) < 2 * CALLS:
            seen = names(follower)
            sizes.add(len(seen))
            assert seen == {f"{side}{number}" for side in "ab" for number in range(len(seen) // 2)}
            assert time.monotonic() < deadline, f"{len(seen)} of {2 * CALLS}"
        writing.join()
        assert len(sizes) > 2


def test_what_was_answered_is_followed_whichever_process_is_killed(tmp_path: Path, catalogue: Catalogue) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    chance, answered = random.Random(), list[int]()
    with (
        serving(source, QUIPU_MODEL="none") as first,
        copying(source, target) as copiers,
        serving(target, QUIPU_MODEL="none", QUIPU_FOLLOW=1) as second,
        ExitStack() as later,
    ):
        servers = {"source": first, "follower": second}
        for number in range(ROUNDS):
            writer = Writer(servers["source"].port, first=1_000_000 * number)
            writer.start()
            time.sleep(chance.uniform(0.1, 0.4))  # the moment of the kill, which is the point
            victim = ("copier", "follower", "source")[number % 3]
            if victim == "copier":
                copiers[-1].kill()
                copiers.append(Copier(source, target))
            else:
                servers[victim].kill()
                follow = int(victim == "follower")
                again = serving(servers[victim].data, QUIPU_MODEL="none", QUIPU_FOLLOW=follow)
                servers[victim] = later.enter_context(again)
            writer.stopping.set()
            writer.join()
            answered += writer.answered
            until(partial(shows_all, servers["follower"], answered), f"what was answered, once {victim} was killed")
    assert integrity(target) == "ok"
    catalogue("R01", injected="kill -9 of source, copier, follower", times=ROUNDS, outcome="all answered writes follow")


def shows_all(follower: Server, answered: list[int]) -> bool:
    """Whether the follower shows the memories; the newest are looked at first."""
    client = Client(follower.port)
    try:
        return all(client.call("read_memory", path=f"n{number}")[0] == 200 for number in reversed(answered))
    finally:
        client.close()


def integrity(folder: Path) -> str:
    db = apsw.Connection(str(folder / "quipu.db"))
    try:
        return str(db.pragma("integrity_check"))
    finally:
        db.close()
