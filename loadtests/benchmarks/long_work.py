"""Writers and readers beside long work: reindex, check --repair, compact, the undo of an import, a tool that clears.

Each job works on a store of its own, which a server has open. Writers and readers (`add_memory`, `recall`) call at a
steady pace, first alone, then beside the job; the figure is the ratio of their 99th percentiles, and its growth is
processor time a memory over that of the smallest store. Commands are processes of their own, whose processor time is
counted; a tool answers in one call, so that its time is that of its answer.
"""

import json
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple

import psutil

from kernel.core.config import Config
from loadtests.lib import corpus, http_requests, store_fixtures
from loadtests.lib.http_load import Request
from loadtests.lib.open_loop import Pressed, percentile, press
from loadtests.lib.servers import ROOT, budget, budgets, clean_environ, finish, machine, options, quipu, table

_SIZES = (2_000, 10_000)
_WRITES, _READS = 40.0, 20.0  # calls a second
_CALLERS = 16
_WINDOW_SECONDS = 0.5
_RATIO = 3.0
_GROWTH = 1.5
_SESSION = "purged"
_numbers = count()


class _Job(NamedTuple):
    """What is done to a store, before the server has it open and beside its load; the latter gives seconds of CPU."""

    prepare: Callable[[Path, int], object]
    run: Callable[[Path, int], float]
    is_tool: bool = False


class _Load(NamedTuple):
    """The latencies of writers and readers in seconds, and what was wrong."""

    writes: list[float]
    reads: list[float]
    complaints: list[str]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if an answer was wrong."""
    chosen = options(
        __doc__,
        arguments,
        sizes={
            "type": int,
            "nargs": "+",
            "default": list(_SIZES),
            "help": "memories of each store; 100000 takes minutes a job",
        },
        only={"nargs": "+", "choices": list(_JOBS), "default": list(_JOBS), "help": "jobs"},
        seconds={"type": float, "default": 20.0, "help": "of load without the job"},
        keep={"type": Path, "help": "folder in which filled stores stay for the next run"},
    )
    machine()
    sizes, seconds = ([2_000], 3.0) if chosen.quick else (chosen.sizes, chosen.seconds)
    complaints: list[str] = []
    rows: list[tuple[object, ...]] = []
    verdicts: list[tuple[str, str, str, str]] = []
    with tempfile.TemporaryDirectory() as temporary:
        filled = chosen.keep or Path(temporary) / "filled"
        for name in chosen.only:
            first = 0.0
            for size in sizes:
                data = store_fixtures.copied(store_fixtures.alone(filled, size), Path(temporary) / f"{name}-{size}")
                row, ratio, cpu = _measured(name, data, size, seconds, complaints)
                rows.append(row)
                verdicts.append(budget(f"{name} at {size}: p99 of others beside it over alone", ratio, _RATIO))
                first = first or cpu / size
                if not _JOBS[name].is_tool and size > sizes[0]:
                    verdicts.append(
                        budget(f"{name} at {size}: CPU a memory over {sizes[0]}", cpu / size / first, _GROWTH)
                    )
    header = (
        "job",
        "size",
        "wall s",
        "cpu s",
        "ms a memory",
        "writes p50/p99 alone",
        "beside",
        "reads alone",
        "beside",
    )
    table("long work, and others beside it (ms)", header, rows)
    budgets(verdicts)
    return finish(complaints)


def _measured(
    name: str, data: Path, size: int, seconds: float, complaints: list[str]
) -> tuple[tuple[object, ...], float, float]:
    """The row of one job on one store, the larger ratio of two 99th percentiles, and its processor time."""
    job = _JOBS[name]
    job.prepare(data, size)
    with quipu(data, limit_rate="1000000", limit_burst="1000000") as server:
        _pressed(server.port, 1.0)
        alone = _pressed(server.port, seconds)
        spent: list[float] = []
        worker = threading.Thread(target=lambda: spent.append(job.run(data, server.port)))
        began = time.perf_counter()
        worker.start()
        beside = _Load([], [], [])
        while worker.is_alive():
            for all_, some in zip(beside, _pressed(server.port, _WINDOW_SECONDS), strict=True):
                all_ += some
        worker.join()
        wall = time.perf_counter() - began
    complaints += [*alone.complaints, *beside.complaints]
    if not spent or spent[0] < 0:
        complaints.append(f"{name} at {size} failed")
    cpu = max(spent, default=0.0)
    ratio = max(
        percentile(busy, 0.99) / (percentile(quiet, 0.99) or 1.0)
        for quiet, busy in ((alone.writes, beside.writes), (alone.reads, beside.reads))
    )
    shown = [
        f"{percentile(took, 0.5):.1f}/{percentile(took, 0.99):.1f}"
        for took in (alone.writes, beside.writes, alone.reads, beside.reads)
    ]
    return (name, size, f"{wall:.1f}", f"{cpu:.2f}", f"{cpu / size * 1000:.3f}", *shown), ratio, cpu


def _pressed(port: int, seconds: float) -> _Load:
    done: dict[str, Pressed] = {}

    def load(kind: str, requests: Iterator[Request], pace: float) -> None:
        done[kind] = press(port, requests, callers=_CALLERS, seconds=seconds, pace=pace)

    threads = [
        threading.Thread(target=load, args=("writes", _adding(), _WRITES)),
        threading.Thread(target=load, args=("reads", _recalling(), _READS)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    complaints = [one.complaint for one in done.values() if one.wrong]
    complaints += ["the load stopped"] * (len(threads) - len(done))
    writes, reads = (
        [sample.took for sample in done[kind].samples] if kind in done else [] for kind in ("writes", "reads")
    )
    return _Load(writes, reads, complaints)


def _adding() -> Iterator[Request]:
    while True:
        number = next(_numbers)
        arguments = {"path": f"beside/{number}", "content": corpus.memory(number).text}
        yield http_requests.json("add_memory", arguments, b"ok")


def _recalling() -> Iterator[Request]:
    while True:
        yield http_requests.json("recall", {"query": corpus.memory(next(_numbers)).text[:60]}, b"")


def _command(*words: str) -> Callable[[Path, int], float]:
    def run(data: Path, _port: int) -> float:
        command = [sys.executable, "-m", "kernel", *words, "--data", str(data)]
        process = psutil.Popen(command, cwd=ROOT, env=clean_environ(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        spent = 0.0
        while process.poll() is None:
            try:
                times = process.cpu_times()
                spent = times.user + times.system
            except psutil.NoSuchProcess:
                break
            time.sleep(0.02)
        status = process.wait()
        return spent if status == 0 else -1.0

    return run


def _tool(name: str, **arguments: object) -> Callable[[Path, int], float]:
    def run(_data: Path, port: int) -> float:
        began = time.perf_counter()
        asked = press(port, iter([http_requests.json(name, arguments, b"")]), callers=1, seconds=0.001)
        return time.perf_counter() - began if not asked.wrong else -1.0

    return run


def _nothing(_data: Path, _size: int) -> None:
    pass


def _import(data: Path, size: int) -> None:
    source = data.parent / f"{data.name}.json"
    with source.open("w") as file:
        file.write('{"results": [')
        for number in range(size):
            memory = {"id": f"m{number}", "memory": corpus.memory(number).text, "created_at": "2026-03-01T10:00:00Z"}
            file.write(f"{',' if number else ''}{json.dumps(memory)}\n")
        file.write("]}")
    assert _command("import", str(source))(data, 0) >= 0


def _undo(data: Path, _port: int) -> float:
    """Undo the import, the only call before the load that can be undone."""
    with sqlite3.connect(f"file:{Config(data).file}?mode=ro", uri=True) as db:
        ((number,),) = db.execute("SELECT min(audit) FROM undo").fetchall()
    return _command("undo", str(number))(data, 0)


def _sessions(data: Path, size: int) -> None:
    context, db = store_fixtures.opened(data)
    for start in range(0, size, 5_000):
        many = corpus.memories(min(5_000, size - start), start)
        store_fixtures.remember(db, context, [(_SESSION, memory.text) for memory in many])
        db.checkpoint()
    db.close()


def _dropped(data: Path, size: int) -> None:
    """Drop half, so that there is something to free."""
    _, db = store_fixtures.opened(data)
    store_fixtures.dropped(db, [memory.path for memory in corpus.memories(size // 2)])
    db.close()


def _without_words(data: Path, _size: int) -> None:
    """Empty the full-text index, so that there is something to repair."""
    _, db = store_fixtures.opened(data)
    db.values("INSERT INTO doc_fts (doc_fts) VALUES ('delete-all')")
    db.close()


_JOBS = {
    "reindex": _Job(_nothing, _command("reindex")),
    "repair": _Job(_without_words, _command("check", "--repair")),
    "compact": _Job(_dropped, _command("compact")),
    "undo": _Job(_import, _undo),
    "clear": _Job(_nothing, _tool("clear_memory"), is_tool=True),
    "purge": _Job(
        _sessions, _tool("maintenance", action="purge_session", session_id=_SESSION, confirm=True), is_tool=True
    ),
}

if __name__ == "__main__":
    raise SystemExit(main())
