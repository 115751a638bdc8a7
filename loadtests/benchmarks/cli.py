"""What a command for memories costs beside a running server: processor time by the interpreter's own start.

Each round starts `python -c pass`, `quipu recall` and `quipu list` beside a server, and `quipu recall` on a file that
no server has open, in turns. Ratios are medians of the ratios within a round.
"""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

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
    quipu,
    rounds,
    table,
)

_START, _BESIDE, _LIST, _FILE = "python -c pass", "quipu recall, server", "quipu list, server", "quipu recall, file"
_MEMORIES = 1000
_QUERY = ("recall", *next(iter(corpus.questions(1, _MEMORIES))).text.split())  # which finds something
_RUN = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from kernel.cli.entry import main; sys.exit(main())"


class Run(NamedTuple):
    """One run: seconds of the processor and of the clock, and what it printed."""

    cpu: float
    wall: float
    shown: bytes


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if an answer was wrong."""
    chosen = options(__doc__, arguments, rounds=15)
    machine()
    with tempfile.TemporaryDirectory() as folder:
        beside, alone = (store_fixtures.filled(Path(folder) / name, _MEMORIES) for name in ("beside", "alone"))
        with quipu(beside):
            sides: dict[str, Callable[[], Run]] = {
                _START: partial(_run, beside, ["-c", "pass"]),
                _BESIDE: partial(_run, beside, ["-c", _RUN, *_QUERY]),
                _LIST: partial(_run, beside, ["-c", _RUN, "list"]),
                _FILE: partial(_run, alone, ["-c", _RUN, *_QUERY]),
            }
            for side in sides.values():
                side()  # compiled files, and what the server imports at its first answer
            runs = rounds(chosen.rounds, sides)
    _show(runs)
    return finish(
        [f"{name} printed nothing" for name in (_BESIDE, _LIST, _FILE) if not all(one.shown for one in runs[name])]
    )


def _run(data: Path, arguments: Sequence[str]) -> Run:
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = {**clean_environ(), "QUIPU_DATA": str(data)}
    done = subprocess.run([sys.executable, *arguments], env=environment, cwd=ROOT, stdout=subprocess.PIPE)
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Run(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall, done.stdout)


def _show(runs: dict[str, list[Run]]) -> None:
    cpu = {name: [run.cpu for run in several] for name, several in runs.items()}
    rows = [
        (name, median(cpu[name]) * 1e3, median(run.wall for run in runs[name]) * 1e3, paired(cpu[name], cpu[_START]))
        for name in runs
    ]
    table("medians", ("command", "processor ms", "clock ms", "starts"), rows)
    budgets(
        [
            budget("quipu recall beside a server, in starts", paired(cpu[_BESIDE], cpu[_START]), 2),
            budget("the same, ms of the clock", median(run.wall for run in runs[_BESIDE]) * 1e3, 150),
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
