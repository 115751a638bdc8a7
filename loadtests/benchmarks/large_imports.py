"""An import of 100,000 memories by `quipu import`, beside a server that others write to: its memory, and their latency.

The import is a process of its own on the data of the server. Others write at a steady pace, alone and for a minute
beside it; the figure is the ratio of the two 99th percentiles. The peak of memory is that of the import alone on an
empty store, to its end.
"""

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

import psutil

from loadtests.lib import corpus, http_requests, import_sources
from loadtests.lib.http_load import Request
from loadtests.lib.open_loop import percentile, press
from loadtests.lib.servers import ROOT, budget, budgets, clean_environ, finish, machine, options, quipu, table

_MEMORIES = 100_000
_PACE = 40.0  # calls a second
_CALLERS = 16
_QUIET_SECONDS = 10.0
_WINDOW_SECONDS = 1.0
_BESIDE_SECONDS = 60.0
_MEGABYTES = 150.0
_RATIO = 3.0
_JSONL = "jsonl"
_numbers = count()


class _Import(threading.Thread):
    """One `quipu import`: its peak of memory, its seconds, and what it says; `stop` cuts it off."""

    def __init__(self, kind: str, source: Path, data: Path) -> None:
        super().__init__()
        command = [*_QUIPU, "import", kind, str(source), "--data", str(data), "--json"]
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=clean_environ(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._is_cut_off = False
        self.peak = 0
        self.seconds = 0.0
        self.complaint = ""

    def run(self) -> None:
        """Waits for the end of the process."""
        began = time.perf_counter()
        watched = threading.Thread(target=self._watch)
        watched.start()
        out, error = self._process.communicate()
        self.seconds = time.perf_counter() - began
        watched.join()
        counts = json.loads(out)["counts"] if out else {}
        if not self._is_cut_off and (self._process.returncode or not any(counts.values())):
            self.complaint = f"the import said {out!r} {error[-500:]!r}"

    def stop(self) -> None:
        self._is_cut_off = self._process.poll() is None
        self._process.kill()

    def _watch(self) -> None:
        seen = psutil.Process(self._process.pid)
        while self._process.poll() is None:
            try:
                self.peak = max(self.peak, seen.memory_info().rss)
            except psutil.NoSuchProcess:
                return
            time.sleep(0.02)


_QUIPU = (sys.executable, "-m", "kernel")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if an answer was wrong."""
    chosen = options(
        __doc__,
        arguments,
        size={"type": int, "default": _MEMORIES, "help": "memories of the import"},
        kind={"choices": (*import_sources.KINDS, _JSONL), "default": "mem0", "help": "program of the source"},
    )
    machine()
    size = 2000 if chosen.quick else chosen.size
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        source = _source(chosen.kind, folder, size)
        alone = _Import(chosen.kind, source, folder / "alone")
        alone.start()
        alone.join()
        complaints = [alone.complaint] * bool(alone.complaint)
        return finish(complaints + _beside(folder, chosen.kind, source, size, alone))


def _source(kind: str, folder: Path, size: int) -> Path:
    if kind != _JSONL:
        return import_sources.write(kind, folder / "source", size)
    source, data, export = import_sources.write("mem0", folder / "source", size), folder / "first", folder / "all.jsonl"
    for command in (["import", "mem0", source], ["export", _JSONL, export]):
        called = [*_QUIPU, *map(str, command), "--data", str(data)]
        subprocess.run(called, cwd=ROOT, env=clean_environ(), stdout=subprocess.DEVNULL, check=True)
    return export


def _beside(folder: Path, kind: str, source: Path, size: int, alone: _Import) -> list[str]:
    data = folder / "beside"
    with quipu(data, limit_rate="1000000", limit_burst="1000000") as server:
        quiet = press(server.port, _writes(), callers=_CALLERS, seconds=_QUIET_SECONDS, pace=_PACE)
        importing = _Import(kind, source, data)
        importing.start()
        ends_at = time.monotonic() + _BESIDE_SECONDS
        busy: list[float] = []
        complaints = [quiet.complaint] * bool(quiet.wrong)
        while importing.is_alive() and time.monotonic() < ends_at:
            pressed = press(server.port, _writes(), callers=_CALLERS, seconds=_WINDOW_SECONDS, pace=_PACE)
            busy += [sample.took for sample in pressed.samples]
            complaints += [pressed.complaint] * bool(pressed.wrong)
        importing.stop()
        importing.join()
    complaints += [importing.complaint] * bool(importing.complaint)
    first, second = (percentile(took, 0.99) for took in ([sample.took for sample in quiet.samples], busy))
    rows = [
        ("alone", f"{alone.seconds:.0f}", f"{alone.peak / 1e6:.0f}", len(quiet.samples), first),
        ("beside", f"{importing.seconds:.0f}", f"{importing.peak / 1e6:.0f}", len(busy), second),
    ]
    header = ("import", "seconds", "peak MB", "writes of others", "their p99 ms")
    table(f"an import of {size} memories of {kind}, and others", header, rows)
    budgets(
        [
            budget("peak of memory of the import, MB", max(alone.peak, importing.peak) / 1e6, _MEGABYTES),
            budget("p99 of a write of others beside the import over alone", second / first, _RATIO),
        ]
    )
    return complaints


def _writes() -> Iterator[Request]:
    while True:
        number = next(_numbers)
        arguments = {"path": f"beside/{number}", "content": corpus.memory(number).text}
        yield http_requests.json("add_memory", arguments, b"ok")


if __name__ == "__main__":
    raise SystemExit(main())
