"""Hostile calls of hooks, `prime`, commands, console, REST and importers: no 5xx, no hang, no growth, and SIGTERM ends
the server at any moment of them.

FUZZ_SURFACES is the number of calls; a fiftieth of them are imports. FUZZ_PAUSE is how long the event loop may work on
one thing, in seconds, as another process sees it.
"""

import contextlib
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.catalogue import Catalogue
from tests.reliability import surfaces
from tests.reliability.mutations import Call
from tests.reliability.server_process import LATE, ROOT, Server, serving
from tests.support.reliability_mutations import Wire

COUNT = int(os.environ.get("FUZZ_SURFACES", "3000"))
SEED = int(os.environ.get("FUZZ_SEED", "20261126"))
PAUSE = float(os.environ.get("FUZZ_PAUSE", "1"))
IMPORTS = max(60, COUNT // 50)
ROUNDS = max(2, COUNT // 20_000)
CALLERS = 4
ROOM = 64 << 20  # bytes by which the server may grow once it has seen a tenth of the calls
HANG = max(10.0, LATE)  # seconds; on a busy machine four callers wait for each other
GRACE = 5.0  # seconds from SIGTERM to the end
GRAPH = {"CODE_MEMORY_ENABLE_GRAPH": "1"}
# Asks /healthz without pause until its input ends. Prints the longest wait in seconds, and the longest in which the
# server used the processor: on a busy machine a wait is mostly for others.
_PROBE = """
import http.client, os, sys, threading, time
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=60)
tick = os.sysconf("SC_CLK_TCK")
def used():
    with open(f"/proc/{sys.argv[2]}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / tick
longest = busiest = 0.0
while not ended.is_set():
    begun, before = time.monotonic(), used()
    connection.request("GET", "/healthz")
    connection.getresponse().read()
    took = time.monotonic() - begun
    longest, busiest = max(longest, took), max(busiest, min(took, used() - before))
    time.sleep(0.002)
print(longest, busiest)
"""


@contextlib.contextmanager
def probing(server: Server) -> Iterator[list[float]]:
    """The longest waits of another process for /healthz are in the list at the end of the block."""
    waits: list[float] = []
    command = [sys.executable, "-c", _PROBE, str(server.port), str(server.process.pid)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as probe:
        yield waits
        waits += map(float, probe.communicate(timeout=90)[0].split())


def seeded(port: int) -> dict[str, str]:
    """Something of each kind that the calls name."""
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
        for number in range(20):
            added = {"path": f"seed/{number or 'one'}", "content": f"The API listens on port {number}."}
            client.post("/tools/add_memory", json=added)
        client.post("/tools/remember", json={"session_id": "s-1", "content": "The API uses a port."})
        fact = {"db": "core", "category": "fact", "content": "The API uses port 80."}
        client.post("/tools/save_memory", json=fact)
        scope = {"action": "create", "name": "web", "rootPath": "/w/web"}
        client.post("/tools/memory_project", json=scope)
        rule = {"action": "add", "scopeType": "global", "name": "never", "content": "Use port 80."}
        client.post("/tools/memory_guideline", json=rule)
        store = client.post("/v1/memory_stores", json={"name": "Notes"}).json()["id"]
        memory = client.post(f"/v1/memory_stores/{store}/memories", json={"path": "/a/b", "content": "x"}).json()
    return {"STORE": store, "FILE": memory["id"], "VERSION": memory["memory_version_id"]}


class Fuzz:
    """Callers that send hostile calls, and the faults of the answers."""

    def __init__(self, server: Server, count: int, seed: int) -> None:
        self.seen: Counter[int] = Counter()
        self.wrong: dict[str, str] = {}
        self.stopping = threading.Event()
        self.settled = 0
        self._server = server
        self._seeded = seeded(server.port)
        self._threads = [
            threading.Thread(target=self._send, args=(seed + number, count // CALLERS, number), daemon=True)
            for number in range(CALLERS)
        ]

    def start(self) -> None:
        """Begin to send."""
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        """Wait until all has been answered."""
        for thread in self._threads:
            thread.join()

    def _calls(self, seed: int, count: int, number: int) -> Iterator[Call]:
        yield from surfaces.kept_calls()[number::CALLERS]
        yield from surfaces.hostile_calls(seed, count, self._seeded)

    def _send(self, seed: int, count: int, number: int) -> None:
        with closing(Wire(self._server.port)) as wire:
            for at, call in enumerate(self._calls(seed, count, number)):
                if self.stopping.is_set():
                    return
                begun = time.monotonic()
                try:
                    status, body = wire.send(call)
                except OSError as error:
                    status, body = 0, repr(error).encode()
                took = time.monotonic() - begun
                self.seen[status] += 1
                if self.stopping.is_set():
                    return
                if wrong := _wrong(status, body, took):
                    key = f"{wrong} {call.method} {call.path.partition('?')[0][:60]}"
                    line = f"{wrong} after {took:.1f} s: {surfaces.line_of(call)[:3000]}\n  {body[:300]!r}"
                    self.wrong.setdefault(key, line)
                if number == 0 and at == count // 10:
                    self.settled = self._server.memory


def _wrong(status: int, body: bytes, took: float) -> str:
    if status == 0:
        return "no answer"
    if status >= 500:
        return f"status {status}"
    if b"Traceback (most recent" in body:
        return "a traceback"
    return "a hang" if took > HANG else ""


@pytest.mark.alone
def test_hostile_calls_beyond_the_tools_get_no_5xx_and_leave_the_server_sound(
    tmp_path: Path, catalogue: Catalogue
) -> None:
    begun = time.monotonic()
    with serving(tmp_path / "data", **GRAPH) as server:
        fuzz = Fuzz(server, COUNT, SEED)
        with probing(server) as waits:
            fuzz.start()
            fuzz.join()
        grown = server.memory - fuzz.settled
        log = server.log()
        assert not fuzz.wrong, "\n".join([f"{len(fuzz.wrong)} kinds", *[*fuzz.wrong.values()][:20]])
        assert "Traceback" not in log, log[log.index("Traceback") - 300 :][:3000]
        assert httpx.get(f"http://127.0.0.1:{server.port}/readyz").status_code == 200
        assert server.stop() == 0
    rate = fuzz.seen.total() / (time.monotonic() - begun)
    paused = f"longest wait {waits[0]:.2f} s, {waits[1]:.2f} s of it work"
    outcome = f"{dict(sorted(fuzz.seen.items()))}; +{grown >> 20} MB, {paused}, {rate:.0f}/s"
    catalogue("S32", injected="hostile call beyond the tools", times=fuzz.seen.total(), outcome=outcome)
    assert grown <= ROOM
    assert waits[1] <= PAUSE


@pytest.mark.alone
def test_sigterm_ends_the_server_at_any_moment_of_hostile_calls(tmp_path: Path, catalogue: Catalogue) -> None:
    chance = random.Random(SEED)
    slowest = 0.0
    for number in range(ROUNDS):
        with serving(tmp_path / str(number) / "data", **GRAPH) as server:
            fuzz = Fuzz(server, 10**9, SEED + 100 * number)
            fuzz.start()
            time.sleep(chance.uniform(0.05, 3))
            begun = time.monotonic()
            status = server.stop()
            slowest = max(slowest, time.monotonic() - begun)
            fuzz.stopping.set()
            fuzz.join()
            assert status == 0, server.log()[-2000:]
            assert "Traceback" not in server.log()
    outcome = f"ended with status 0, at most {slowest:.1f} s later"
    catalogue("S32", injected="SIGTERM amid hostile calls", times=ROUNDS, outcome=outcome)
    assert slowest <= max(GRACE, LATE)


@pytest.mark.alone
def test_hostile_files_are_imported_or_refused_and_what_is_stored_stays_readable(
    tmp_path: Path, catalogue: Catalogue
) -> None:
    command = [sys.executable, "-m", "tests.reliability.surfaces", str(SEED), str(IMPORTS), str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600 + IMPORTS)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    assert not found["bugs"], "\n".join(found["bugs"][:10])
    outcome = f"{found['seen']}; +{found['grown'] >> 20} MB, slowest {found['slowest'][0]:.1f} s"
    catalogue("S32", injected="hostile import", times=IMPORTS, outcome=outcome)
    assert found["grown"] <= ROOM
    assert found["slowest"][0] <= 10 * LATE, found["slowest"]
