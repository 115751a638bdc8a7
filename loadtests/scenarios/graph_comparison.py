"""`graph` beside the server whose tools it has, at several numbers of entities; a part of `peer_comparison`."""

import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from loadtests.lib import corpus
from loadtests.lib.servers import budget, budgets, paired, rounds, table
from loadtests.scenarios.peer_runner import CASES, READY, Piped, Run, Side
from loadtests.scenarios.peer_servers import GRAPH, REFERENCE

SMALL = 300
Runs = dict[str, dict[str, list[Run]]]


def compare(sides: Mapping[str, Side], folder: Path, sizes: Sequence[int], count: int, seconds: float) -> list[str]:
    """Prints calls a second of both sides at each size, and their ratios; what was wrong in the answers of `graph`."""
    found = {size: _work(sides, folder / str(size), size, count, seconds) for size in sizes}
    table(
        "the tools of server-memory: calls a second (medians)",
        ("server", "entities", *CASES),
        [
            (name, f"{size:,}", *(median(run.seen.rate for run in runs[case][name]) for case in CASES))
            for size, runs in found.items()
            for name in (GRAPH, REFERENCE)
        ],
    )
    budgets(
        [
            budget(f"{case} of {GRAPH} over {REFERENCE}, {size:,} entities", ratio, 1, least=True)
            for size, runs in found.items()
            for case in CASES
            if (ratio := paired(*([run.seen.rate for run in runs[case][name]] for name in (GRAPH, REFERENCE))))
        ]
    )
    return [
        f"{case}, {GRAPH}, {size:,} entities: {run.seen.errors} wrong, {run.seen.complaint}"
        for size, runs in found.items()
        for case in CASES
        for run in runs[case][GRAPH]
        if run.seen.errors
    ]


def _work(sides: Mapping[str, Side], folder: Path, size: int, count: int, seconds: float) -> Runs:
    ready = list(corpus.memories(int(READY * seconds * count), size))
    with ExitStack() as stack:
        at_work = dict[str, Piped]()
        for name in (GRAPH, REFERENCE):
            data, _ = sides[name].filled(size)
            at_work[name] = Piped(sides[name], shutil.copytree(data, folder / name), size, ready)
            stack.callback(at_work[name].talk.close)
        return {
            case: rounds(
                count, {name: lambda one=one, case=case: one.run(case, seconds) for name, one in at_work.items()}
            )
            for case in CASES
        }
