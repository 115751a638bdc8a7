"""Searches a second and processor time of a write of two workers against one, over HTTP and over one store.

The load generator is niced, so that it takes the cores last; where it takes them nevertheless, the second ratio counts:
searches in a second of processor time of the worker that has the most to do.
"""

import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import count, cycle
from pathlib import Path
from statistics import median
from typing import NamedTuple

from loadtests.lib import corpus, http_requests, store_fixtures
from loadtests.lib.http_load import Request, Result, drive
from loadtests.lib.servers import Server, budget, budgets, finish, machine, options, paired, quipu, rounds, table

_WORKERS = (1, 2)
_CALLERS = 8
_WRITERS = 32
_QUESTIONS = 200
_RATE, _WRITE = 1.7, 1.1
_START_SECONDS = 30.0


class Run(NamedTuple):
    """One round of one side: what the callers saw, and seconds of processor time of each worker."""

    seen: Result
    cpus: list[float]

    @property
    def cpu(self) -> float:
        """Seconds of processor time of a call."""
        return sum(self.cpus) / self.seen.replies

    @property
    def rate_of_the_busiest(self) -> float:
        """Searches in a second of the worker that has the most to do."""
        return self.seen.replies / max(self.cpus)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the benchmark; 1 if an answer was wrong."""
    chosen = options(
        __doc__,
        arguments,
        rounds=5,
        size={"type": int, "default": 10_000, "help": "memories in the store"},
        seconds={"type": float, "default": 2.0, "help": "length of one run"},
    )
    size, seconds = (500, 0.5) if chosen.quick else (chosen.size, chosen.seconds)
    machine()
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        data = store_fixtures.filled(Path(temporary), size)
        asked = [question.text for question in corpus.questions(min(_QUESTIONS, size), size)]
        # Without a floor: one of 200 made-up questions is too far from what answers it.
        queries = [{"query": text, "floor": "none"} for text in asked]
        requests = [http_requests.mcp("modern", "recall", query, b'"memories":[{"id":"') for query in queries]
        servers = {number: stack.enter_context(quipu(data, workers=str(number))) for number in _WORKERS}
        for number, server in servers.items():
            _warm(server, number, requests)
        os.nice(10)  # the servers have been started
        searches = rounds(
            chosen.rounds,
            {
                str(number): lambda server=server: _run(server, cycle(requests), _CALLERS, seconds)
                for number, server in servers.items()
            },
        )
        texts = _writes()
        writes = rounds(
            chosen.rounds,
            {
                str(number): lambda server=server: _run(server, texts, _WRITERS, seconds)
                for number, server in servers.items()
            },
        )
    header = f"{size:,} memories, {chosen.rounds} rounds (medians)"
    _show(f"{header}, searches of {_CALLERS} callers", searches)
    _show(f"{header}, writes of {_WRITERS} callers", writes)
    _judge(searches, writes)
    runs = [*searches.values(), *writes.values()]
    return finish([run.seen.complaint for side in runs for run in side if run.seen.errors])


def _writes() -> Iterator[Request]:
    for number in count():
        content = {"path": f"worker/{number}", "content": f"note {number} of a worker"}
        yield http_requests.mcp("modern", "add_memory", content, b"worker/")


def _warm(server: Server, workers: int, requests: Sequence[Request]) -> None:
    """Waits for all workers, and lets each answer a few questions."""
    deadline = time.monotonic() + _START_SECONDS
    while len(server.cpu_by_worker()) < workers and time.monotonic() < deadline:
        time.sleep(0.01)
    drive(server.port, cycle(requests), callers=_CALLERS, seconds=1.0)


def _run(server: Server, requests: Iterable[Request], callers: int, seconds: float) -> Run:
    before = server.cpu_by_worker()
    seen = drive(server.port, requests, callers=callers, seconds=seconds)
    return Run(seen, [after - begun for after, begun in zip(server.cpu_by_worker(), before, strict=True)])


def _show(title: str, runs: dict[str, list[Run]]) -> None:
    rows = [
        (
            workers,
            median(run.seen.rate for run in side),
            median(run.seen.percentile(0.5) for run in side),
            median(run.seen.percentile(0.99) for run in side),
            median(run.cpu for run in side) * 1e3,
            median(max(run.cpus) / sum(run.cpus) for run in side),
        )
        for workers, side in runs.items()
    ]
    table(title, ("workers", "calls/s", "p50 ms", "p99 ms", "cpu ms", "share of the busiest"), rows)


def _judge(searches: dict[str, list[Run]], writes: dict[str, list[Run]]) -> None:
    one, two = (searches[str(number)] for number in _WORKERS)
    by_clock = paired([run.seen.rate for run in two], [run.seen.rate for run in one])
    by_cpu = paired([run.rate_of_the_busiest for run in two], [run.rate_of_the_busiest for run in one])
    written = paired(*([run.cpu for run in writes[str(number)]] for number in reversed(_WORKERS)))
    budgets(
        [
            budget("searches/s, two workers over one", by_clock, _RATE, least=True),
            budget("by processor time of the busiest worker", by_cpu, _RATE, least=True),
            budget("processor time of a write, two workers over one", written, _WRITE),
        ]
    )


if __name__ == "__main__":
    raise SystemExit(main())
