"""Quipu and three memory servers from their registries: the same memories and the same work in one run; see README.md.

All run over stdio, the transport they share, Quipu also over HTTP, and with the tools of `server-memory` (`graph`).
Everything is installed into a folder of the run, and servers listen on the loopback address only.
"""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

from loadtests.lib import corpus
from loadtests.lib.servers import budget, budgets, finish, machine, options, paired, quipu, rounds, shown, table
from loadtests.scenarios import graph_comparison
from loadtests.scenarios.lost_writes import WRITERS, Lost, killed, together
from loadtests.scenarios.peer_runner import CASES, READY, Listening, Piped, Run, Side, Stored, tokens
from loadtests.scenarios.peer_servers import CONTENDERS, GRAPH, QUIPU, REFERENCE, SERVICE
from loadtests.scenarios.registry_install import Installed

_OURS = (QUIPU, GRAPH)
_PEERS = [name for name in CONTENDERS if name not in _OURS]
_HTTP = f"{QUIPU}, HTTP"
_STARTS = 5
_SHORT = ("--dialect", "paths", "--dialect", "common")


class Start(NamedTuple):
    """One start on a filled store: seconds and processor seconds to the first answer, tokens of the tool list."""

    wall: float
    cpu: float
    tokens: int


class Worked(NamedTuple):
    """The rounds of all sides by case, and the final memory of each side in MB."""

    runs: dict[str, dict[str, list[Run]]]
    rss: dict[str, float]


class Outcome(NamedTuple):
    """All measurements, by side."""

    stored: dict[str, Stored]
    starts: dict[str, list[Start]]
    worked: Worked
    lost: dict[str, tuple[Lost, Lost]]
    sizes: dict[str, float]
    short: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison; return 1 if an answer was wrong or Quipu lost a write."""
    chosen = options(
        __doc__,
        arguments,
        size={"type": int, "default": 10_000, "help": "memories in each store"},
        seconds={"type": float, "default": 3.0, "help": "length of one run"},
        graph={"action": "store_true", "help": "only graph beside server-memory"},
        keep={"type": Path, "default": None, "help": "folder that keeps programs and filled stores for the next run"},
    )
    size = 200 if chosen.quick else chosen.size
    count = chosen.rounds or (1 if chosen.quick else 3)
    machine()
    with tempfile.TemporaryDirectory() as temporary, tempfile.TemporaryFile() as log:
        kept: Path = (chosen.keep or Path(temporary) / "kept").absolute()
        names = (GRAPH, REFERENCE) if chosen.graph else CONTENDERS
        sides = {name: Side(name, installed(kept, name), kept, log) for name in names}
        sizes, seconds = sorted({min(size, graph_comparison.SMALL), size}), 0.5 if chosen.quick else chosen.seconds
        wrong = graph_comparison.compare(sides, Path(temporary) / "graph", sizes, count, seconds)
        if chosen.graph:
            return finish(wrong)
        filled = {name: side.filled(size) for name, side in sides.items()}
        copies = {name: shutil.copytree(data, Path(temporary) / name) for name, (data, _) in filled.items()}
        used = {name: side._replace(folder=Path(temporary)) for name, side in sides.items()}
        starts = rounds(
            1 if chosen.quick else _STARTS,
            {name: lambda side=side: _start(side, copies[side.name]) for name, side in used.items()},
        )
        outcome = Outcome(
            {name: stored for name, (_, stored) in filled.items()},
            starts,
            _work(used, copies, size, count, seconds),
            {name: (together(side), killed(side)) for name, side in used.items()},
            {name: side.installed.megabytes for name, side in sides.items()},
            _start(used[QUIPU], copies[QUIPU], *_SHORT).tokens,
        )
    _show(outcome)
    _promise(outcome)
    return finish([*wrong, *_complaints(outcome)])


def installed(kept: Path, name: str) -> Installed:
    """Install the program of a peer, or reuse an earlier installation; what is ours is installed once."""
    name = QUIPU if name in _OURS else name
    noted = kept / f"{name}.json"
    if not noted.exists():
        shutil.rmtree(kept / name, ignore_errors=True)
        kept.mkdir(parents=True, exist_ok=True)
        noted.write_bytes(msgspec.json.encode(CONTENDERS[name].install(kept / name)))
    return msgspec.json.decode(noted.read_bytes(), type=Installed)


def _start(side: Side, data: Path, *more: str) -> Start:
    talk = side.talk(data, *more)
    start = Start(talk.started, talk.cpu_started, tokens(talk))
    talk.close()
    return start


def _work(sides: Mapping[str, Side], copies: Mapping[str, Path], size: int, count: int, seconds: float) -> Worked:
    ready = list(corpus.memories(int(READY * seconds * count), size))
    with ExitStack() as stack:
        at_work: dict[str, Piped | Listening] = {}
        for name, side in sides.items():
            piped = at_work[name] = Piped(side, copies[name], size, ready)
            stack.callback(piped.talk.close)
        own = shutil.copytree(copies[QUIPU], copies[QUIPU].with_name("listening"))
        at_work[_HTTP] = Listening(stack.enter_context(quipu(own)), size, ready)
        runs = {
            case: rounds(
                count, {name: lambda one=one, case=case: one.run(case, seconds) for name, one in at_work.items()}
            )
            for case in CASES
        }
        return Worked(runs, {name: one.rss() for name, one in at_work.items()})


def _show(outcome: Outcome) -> None:
    names = [QUIPU, _HTTP, GRAPH, *_PEERS]
    runs, rss = outcome.worked
    rate = {(case, name): median(run.seen.rate for run in of[name]) for case, of in runs.items() for name in names}
    table(
        "calls a second and, in brackets, milliseconds of processor time for one (medians)",
        ("server", *CASES),
        [(name, *(f"{shown(rate[case, name])} ({shown(_cpu(runs[case][name]))})" for case in CASES)) for name in names],
    )
    table(
        "start on a filled store, filling it, memory at the end, size on disk, tool list",
        ("server", "start s", "cpu of that", "filled, s", "memories/s", "MB", "installed MB", "tokens"),
        [
            (
                name,
                median(start.wall for start in outcome.starts[name]),
                median(start.cpu for start in outcome.starts[name]),
                outcome.stored[name].seconds,
                outcome.stored[name].memories / outcome.stored[name].seconds,
                rss[name],
                outcome.sizes[name],
                outcome.starts[name][0].tokens,
            )
            for name in CONTENDERS
        ],
    )
    table(
        "answered writes that are not there after a restart",
        ("server", f"{WRITERS} processes writing at once", "killed while writing"),
        [(name, *map(str, lost)) for name, lost in outcome.lost.items()],
    )
    print(f"\n{_HTTP}: {rss[_HTTP]:.0f} MB; {QUIPU} {' '.join(_SHORT)}: {outcome.short} tokens")


def _promise(outcome: Outcome) -> None:
    runs = outcome.worked.runs
    rows = [
        budget(f"{case} over {name}", paired(_rates(runs[case][QUIPU]), _rates(runs[case][name])), 10, least=True)
        for case in CASES
        for name in _PEERS
    ]
    ours = outcome.starts[QUIPU]
    for name in _PEERS:
        theirs = outcome.starts[name]
        bound = 10 if name == SERVICE else 1
        ratio = paired([start.wall for start in theirs], [start.wall for start in ours])
        rows.append(budget(f"start, {name} over Quipu", ratio, bound, least=True))
        ratio = paired([start.cpu for start in theirs], [start.cpu for start in ours])
        rows.append(budget(f"start, processor time, {name} over Quipu", ratio, bound, least=True))
    budgets(rows)


def _complaints(outcome: Outcome) -> list[str]:
    """Errors in Quipu's answers; errors of the peers are only printed."""
    wrong: list[str] = []
    for case, sides in outcome.worked.runs.items():
        for name, runs in sides.items():
            errors = sum(run.seen.errors for run in runs)
            message = f"{case}, {name}: {errors} wrong, {max(run.seen.complaint for run in runs)}"
            if errors and name in _PEERS:
                print(message)
            elif errors:
                wrong.append(message)
    lost = {name: sum(one.lost + one.refused for one in outcome.lost[name]) for name in _OURS}
    return [*wrong, *(f"{name} lost or refused {count} writes" for name, count in lost.items() if count)]


def _cpu(runs: Sequence[Run]) -> float:
    return median(run.cpu for run in runs)


def _rates(runs: Sequence[Run]) -> list[float]:
    return [run.seen.rate for run in runs]


if __name__ == "__main__":
    raise SystemExit(main())
