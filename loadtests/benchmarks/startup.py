"""Cold start: to /healthz against a bare Starlette application, to the first semantic answer, and memory at rest.

Sides alternate; figures are medians. `import mcp` is measured for comparison.
"""

import http.client
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec
import psutil

from loadtests.lib import corpus, store_fixtures
from loadtests.lib.servers import (
    ROOT,
    budget,
    budgets,
    clean_environ,
    finish,
    machine,
    options,
    paired,
    rounds,
    served,
    table,
)

_QUIPU, _POLLED, _BARE = "quipu, first semantic answer", "quipu, ready", "bare uvicorn + starlette"
_MEMORIES = 20
_REST = 0.5
_TIMEOUT_SECONDS = 30.0
_IMPORTS = {"import mcp": "import mcp", "a bare interpreter": "pass"}


class Start(NamedTuple):
    """One start: seconds and processor seconds to /healthz, seconds to the first answer, MB at rest."""

    healthy: float
    cpu: float
    answered: float
    rss: float


class Import(NamedTuple):
    """One import in a fresh interpreter: seconds, processor seconds, MB resident."""

    wall: float
    cpu: float
    rss: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if the first answer was wrong."""
    chosen = options(__doc__, arguments, rounds=9)
    machine()
    with tempfile.TemporaryDirectory() as folder:
        data = store_fixtures.filled(Path(folder), _MEMORIES)
        quipus = {_QUIPU: partial(_quipu, data, _first_answer), _POLLED: partial(_quipu, data, _ready)}
        starts = rounds(chosen.rounds, {**quipus, _BARE: _bare})
    imports = rounds(chosen.rounds, {name: lambda code=code: _import(code) for name, code in _IMPORTS.items()})
    _show(starts, imports, chosen.rounds)
    healthy = {name: [start.healthy for start in runs] for name, runs in starts.items()}
    budgets(
        [
            budget("to /healthz over the bare application", paired(healthy[_QUIPU], healthy[_BARE]), 1.5),
            budget("to the first semantic answer over the same", paired(_semantic(starts), healthy[_BARE]), 2.5),
            budget("MB at rest, model mapped", median(start.rss for start in starts[_QUIPU]), 80),
        ]
    )
    return finish([])


def _quipu(data: Path, asked: Callable[[int, float], float]) -> Start:
    with served("kernel", "serve", "--data", str(data)) as server:
        healthy, cpu = server.wait(), server.cpu()
        answered = asked(server.port, server.started)
        time.sleep(_REST)
        return Start(healthy, cpu, answered, server.rss())


def _bare() -> Start:
    with served("loadtests.baselines.starlette_app") as server:
        healthy, cpu = server.wait(), server.cpu()
        time.sleep(_REST)
        return Start(healthy, cpu, 0.0, server.rss())


def _ready(port: int, started: float) -> float:
    """Poll until the store is open."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_SECONDS)
    try:
        while time.perf_counter() - started < _TIMEOUT_SECONDS:
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            answer.read()
            if answer.status == 200:
                return time.perf_counter() - started
            time.sleep(0.001)
    finally:
        connection.close()
    raise RuntimeError("the store did not open")


def _first_answer(port: int, started: float) -> float:
    """Query until an answer uses semantic search; the seconds since the start. Raises if it is wrong or late."""
    question = corpus.question(_MEMORIES // 2)
    body = msgspec.json.encode({"query": question.text})
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_SECONDS)
    try:
        while time.perf_counter() - started < _TIMEOUT_SECONDS:
            connection.request("POST", "/tools/recall", body, {"content-type": "application/json"})
            answer = msgspec.json.decode(connection.getresponse().read())
            if "meaning" in answer.get("signals", ()):
                spent = time.perf_counter() - started
                if all(memory["id"] != f"paths/{question.path}" for memory in answer["memories"]):
                    raise RuntimeError(f"the first answer lacks {question.path}")
                return spent
    finally:
        connection.close()
    raise RuntimeError("no semantic answer came")


def _import(code: str) -> Import:
    command = [sys.executable, "-c", f"{code}; print(flush=True); input()"]
    begun = time.perf_counter()
    with subprocess.Popen(
        command, cwd=ROOT, env=clean_environ(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        wall = time.perf_counter() - begun
        seen = psutil.Process(process.pid)
        times = seen.cpu_times()
        rss = seen.memory_info().rss / 1e6
        process.communicate(b"\n", _TIMEOUT_SECONDS)
    return Import(wall, times.user + times.system, rss)


def _show(starts: dict[str, list[Start]], imports: dict[str, list[Import]], count: int) -> None:
    rows = [
        (
            name,
            *(median(start[field] for start in runs) * 1000 for field in range(3)),
            median(start.rss for start in runs),
        )
        for name, runs in starts.items()
    ]
    rows += [
        (
            name,
            median(run.wall for run in runs) * 1000,
            median(run.cpu for run in runs) * 1000,
            0.0,
            median(run.rss for run in runs),
        )
        for name, runs in imports.items()
    ]
    table(
        f"from the start of the process, {count} rounds (medians, ms)",
        ("program", "to /healthz", "cpu of that", "to the answer", "MB at rest"),
        [(name, healthy, cpu, answered or "-", rss) for name, healthy, cpu, answered, rss in rows],
    )


def _semantic(starts: dict[str, list[Start]]) -> list[float]:
    return [start.answered for start in starts[_QUIPU]]


if __name__ == "__main__":
    raise SystemExit(main())
