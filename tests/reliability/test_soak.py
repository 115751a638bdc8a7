"""Hours of mixed work leave the server as it was: memory, descriptors and log stay level, and answers as quick.

The store holds as many memories at the end as at the beginning: in a growing one answers would rightly take longer.
SOAK_SECONDS sets how long it is kept at seven tenths of its full speed; without it nothing is run. Machines that are
shared are not always equally quick: its speed is measured before each of six stretches, and in the last one it
takes turns with a new server, to which these are its first minutes.
"""

import os
import random
import statistics
import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from loadtests.lib import corpus
from tests.catalogue import Catalogue
from tests.reliability.server_process import Client, Server, disagreements, serving

pytestmark = pytest.mark.alone
SECONDS = float(os.environ.get("SOAK_SECONDS", "0"))
CALLERS = 6
SHARE = 0.7
STRETCHES = 6
TURNS = 15
KEPT = 400
RENEWED = 50
GROWTH = 0.05 if SECONDS >= 600 else 0.5  # the warm-up weighs more in a short run
TEXTS = 100_000


class Sample(NamedTuple):
    """Hold the resources of the server at a moment: bytes of its own memory, descriptors, bytes of the log."""

    at: float
    memory: int
    descriptors: int
    log: int


def sample(server: Server) -> Sample:
    """A look from outside."""
    descriptors = Path(f"/proc/{server.process.pid}/fd")
    log = server.data / "quipu.db-wal"
    size = log.stat().st_size if log.exists() else 0
    return Sample(time.monotonic(), server.memory, len(list(descriptors.iterdir())), size)


class Caller(threading.Thread):
    """Calls at a pace, or as fast as it is answered; when each call was due and how long after it was answered."""

    def __init__(self, port: int, made: deque[str], pause: float) -> None:
        super().__init__(daemon=True)
        self.calls: list[tuple[float, float]] = []
        self.statuses: Counter[int] = Counter()
        self.stopping = threading.Event()
        self._port, self._made, self._pause = port, made, pause
        self._random = random.Random()

    def run(self) -> None:
        client = Client(self._port)
        due = time.monotonic() + self._random.random() * self._pause
        while not self.stopping.wait(max(0.0, due - time.monotonic())):
            begun = due if self._pause else time.monotonic()
            self.statuses[self._call(client)] += 1
            self.calls.append((begun, time.monotonic() - begun))
            due += self._pause
        client.close()

    def _call(self, client: Client) -> int:
        chance = self._random
        number = chance.randrange(TEXTS)
        path = f"m/{chance.randrange(KEPT)}"
        dice = chance.random()
        if dice < 0.2:
            return client.call("replace_memory", path=path, content=corpus.memory(number).text)[0]
        if dice < 0.3:
            return self._renew(client, corpus.memory(number).text)
        if dice < 0.4:
            return client.call("list_recent", limit=5)[0]
        if dice < 0.7:
            return client.call("recall", query=corpus.question(number).text, limit=5)[0]
        if dice < 0.8:
            return client.call("search_memory", query=corpus.question(number).text, session_id="soak")[0]
        return client.call("read_memory", path=path)[0]

    def _renew(self, client: Client, text: str) -> int:
        """Makes a memory, or where there are enough of its own drops the oldest."""
        if len(self._made) >= RENEWED:
            return client.call("drop_memory", path=self._made.popleft())[0]
        self._made.append(f"new/{self._random.getrandbits(64)}")
        return client.call("add_memory", path=self._made[-1], content=text)[0]


class Side(NamedTuple):
    """A server, and the memories of its own that each caller of it has made: who comes next drops them."""

    server: Server
    made: list[deque[str]]


def filled(server: Server) -> Side:
    """A server with as many memories as it will always hold."""
    client = Client(server.port)
    for number in range(KEPT):
        assert client.call("add_memory", path=f"m/{number}", content="at first")[0] == 200
        assert client.call("remember", content=corpus.memory(number).text, session_id="soak")[0] == 200
    client.close()
    return Side(server, [deque() for _ in range(CALLERS)])


def worked(side: Side, seconds: float, pause: float) -> tuple[list[Caller], list[Sample]]:
    """Callers at work for so long, and the resources of the server meanwhile."""
    callers = [Caller(side.server.port, made, pause) for made in side.made]
    for caller in callers:
        caller.start()
    samples: list[Sample] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(min(seconds / 6, 5))
        samples.append(sample(side.server))
    for caller in callers:
        caller.stopping.set()
    for caller in callers:
        caller.join()
    return callers, samples


class Stretch(NamedTuple):
    """Calls a second at full load, at its slowest; then the calls at SHARE of that, and the resources of the server."""

    capacity: float
    callers: list[Caller]
    samples: list[Sample]

    def slow(self) -> float:
        """The 99th of 100 calls, by how long its answer took, in milliseconds."""
        return slow(self.callers)

    def turns(self) -> list[float]:
        """The same of each turn."""
        return [slow(self.callers[at : at + CALLERS]) for at in range(0, len(self.callers), CALLERS)]


def slow(callers: Sequence[Caller]) -> float:
    """The 99th of 100 calls of these callers, by how long its answer took, in milliseconds."""
    taken = [seconds for caller in callers for _, seconds in caller.calls]
    return statistics.quantiles(taken, n=100)[98] * 1000


def capacity(side: Side, seconds: float) -> float:
    """Calls a second at full load, at its slowest."""
    full, _ = worked(side, seconds, 0)
    return slowest([at for caller in full for at, _ in caller.calls], seconds / 6)


def stretched(sides: Sequence[Side], seconds: float) -> list[Stretch]:
    """Measure the speed of each server; then so long at the share of that of the first, all of them in turns."""
    stretches = [Stretch(capacity(side, seconds / 10), [], []) for side in sides]
    turns = TURNS if len(sides) > 1 else 1
    for _ in range(turns):
        for side, stretch in zip(sides, stretches, strict=True):
            callers, samples = worked(side, seconds / turns / len(sides), CALLERS / (SHARE * stretches[0].capacity))
            stretch.callers.extend(callers)
            stretch.samples.extend(samples)
    return stretches


def growth(samples: Sequence[Sample], what: int) -> float:
    """By how much of its mean a fitted line rises over the samples, the first third left out as warming up."""
    settled = samples[len(samples) // 3 :]
    times, values = [one.at for one in settled], [float(one[what]) for one in settled]
    slope = statistics.linear_regression(times, values).slope
    return slope * (times[-1] - times[0]) / (statistics.fmean(values) or 1.0)


def slowest(times: Sequence[float], window: float) -> float:
    """The fewest calls a second among the whole windows of a stretch: machines are not always equally quick."""
    begin, end = min(times), max(times)
    counts = Counter(int((at - begin) / window) for at in times)
    return min(counts[number] for number in range(int((end - begin) / window))) / window


@pytest.mark.skipif(not SECONDS, reason="SOAK_SECONDS is not set")
def test_a_long_time_of_mixed_work_leaves_the_server_as_it_was(
    tmp_path: Path, catalogue: Catalogue, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(tmp_path / "data") as server:
        old = filled(server)
        stretches = [stretched([old], SECONDS / STRETCHES)[0] for _ in range(STRETCHES - 1)]
        with serving(tmp_path / "new") as other:
            last, new = stretched([old, filled(other)], SECONDS / STRETCHES)
        log = server.log()
        server.stop()
    stretches.append(last)
    callers = [caller for stretch in stretches for caller in stretch.callers]
    samples = [one for stretch in stretches for one in stretch.samples]
    memory, most = growth(samples, 1), max(one.log for one in samples)
    times = sum(len(caller.calls) for caller in callers)
    ratios = [older / newer for older, newer in zip(last.turns(), new.turns(), strict=True)]
    outcome = (
        f"{'/'.join(f'{stretch.capacity:.0f}' for stretch in stretches)} a second at full load, "
        f"memory {memory:+.1%} of {samples[-1].memory >> 20} MiB, descriptors {growth(samples, 2):+.1%}, "
        f"log {growth(samples, 3):+.1%} of {most / 2**20:.0f} MiB, "
        f"p99 {'/'.join(f'{stretch.slow():.0f}' for stretch in stretches)} ms, a new server {new.slow():.0f}, "
        f"in {len(ratios)} turns {statistics.median(ratios):.2f} x"
    )
    with capsys.disabled():
        print("", outcome, sep="\n")
    catalogue("R25", injected=f"{SECONDS:g} s at {SHARE:.0%} of capacity", times=times, outcome=outcome)
    assert set().union(*(caller.statuses for caller in callers)) == {200}
    assert memory < GROWTH
    assert samples[-1].descriptors <= samples[len(samples) // 3].descriptors + 2
    assert growth(samples, 3) < GROWTH
    assert most < 1 << 28
    assert "Traceback" not in log
    assert disagreements(tmp_path / "data") == []
