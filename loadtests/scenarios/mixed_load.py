"""Quipu under a mixed load: 1 to 512 callers, arrival rates below and above its capacity, and a locust run."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from loadtests.lib import store_fixtures
from loadtests.lib.charts import Axis, chart
from loadtests.lib.locust_run import LocustRun, locust
from loadtests.lib.open_loop import Pressed, press
from loadtests.lib.servers import Server, budget, budgets, finish, machine, options, quipu, table
from loadtests.scenarios.workload import SHARES, mixture

CALLERS = (1, 8, 32, 128, 512)
_CROWD = 512
_PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_READY = 4000
_WINDOWS = 5
_BELOW, _PAST = 0.7, 1.5
_HARDLY = 0.01


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all parts; return 1 if an answer was wrong."""
    chosen = options(
        __doc__,
        arguments,
        size={"type": int, "default": 20_000, "help": "memories in the store"},
        seconds={"type": float, "default": 8.0, "help": "length of one run"},
        crowd={"type": float, "default": 60.0, "help": "seconds of the locust run"},
        plots={"type": Path, "default": None, "help": "folder for the plots"},
    )
    size = 500 if chosen.quick else chosen.size
    seconds = 1.0 if chosen.quick else chosen.seconds
    machine()
    print("of 100 calls: " + ", ".join(f"{share} {name}" for name, share in SHARES.items()))
    with tempfile.TemporaryDirectory() as folder:
        store_fixtures.filled(Path(folder), size)
        with quipu(Path(folder) / f"filled-{size}") as server:
            steps = _steps(server, size, seconds)
            capacity = _capacity(steps)
            below, past = (
                press(
                    server.port, mixture(size, _READY, seed), callers=_CROWD, seconds=seconds * 2, pace=share * capacity
                )
                for seed, share in ((20, _BELOW), (21, _PAST))
            )
            crowd = locust(server.port, _CROWD, 5.0 if chosen.quick else chosen.crowd, Path(folder) / "locust")
    _show(steps, {f"{_BELOW:.0%} of capacity": below, f"{_PAST:.0%} of capacity": past}, crowd)
    if chosen.plots:
        _plot(steps, chosen.plots)
    runs = [*steps.values(), below, past]
    failed = [f"locust saw {crowd.failures} failures"] if crowd.failures else []
    return finish([run.complaint for run in runs if run.wrong] + failed)


def _steps(server: Server, size: int, seconds: float) -> dict[int, Pressed]:
    press(server.port, mixture(size, 100), callers=8, seconds=min(1.0, seconds))
    return {
        callers: press(server.port, mixture(size, _READY, seed), callers=callers, seconds=seconds)
        for seed, callers in enumerate(CALLERS, 2)
    }


def _capacity(steps: Mapping[int, Pressed]) -> float:
    """The highest rate with hardly a refusal; beyond it expensive calls are refused first and the mix changes."""
    return max(run.rate for run in steps.values() if run.busy < _HARDLY)


def _show(steps: Mapping[int, Pressed], paced: Mapping[str, Pressed], crowd: LocustRun) -> None:
    header = ("callers", "calls/s", *(f"{name} ms" for name in _PERCENTILES), "busy", "busy p50 ms", "p99 ms", "wrong")
    closed = [_row(str(count), run) for count, run in steps.items()]
    table("closed loop, by number of callers", header, closed)
    table("open loop, latency from the scheduled time", header, [_row(name, run) for name, run in paced.items()])
    rows = [(f"{_CROWD} users", crowd.rate, *crowd.latencies.values(), crowd.busy, "-", "-", crowd.failures)]
    table(f"locust, {crowd.calls} calls of readers, writers and mixed agents", header, rows)
    below, past = paced.values()
    tails = below.windows(_WINDOWS, 0.99)
    print(f"p99 below capacity, by fifth of the run: {', '.join(f'{tail:.0f}' for tail in tails)} ms")
    done = past.rate / _capacity(steps)
    tail = past.percentile(0.99) / steps[_CROWD].percentile(0.99)
    budgets(
        [
            budget("p99 below capacity, the worst fifth over the best", max(tails) / min(tails), 3),
            budget("past capacity, calls done over capacity", done, 0.7, least=True),
            budget(f"past capacity, p99 of completed calls over that of {_CROWD} callers", tail, 1.5),
        ]
    )


def _row(name: str, run: Pressed) -> tuple[object, ...]:
    tails = [run.percentile(share) for share in _PERCENTILES.values()]
    refused = [run.percentile(share, busy=True) if run.busy else "-" for share in (0.5, 0.99)]
    return name, run.rate, *tails, f"{run.busy:.1%}", *refused, run.wrong


def _plot(steps: Mapping[int, Pressed], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    callers = Axis("callers")
    latencies = {
        name: [(float(count), run.percentile(share)) for count, run in steps.items()]
        for name, share in _PERCENTILES.items()
    }
    drawn = chart("Latency of completed calls in a mixed load", callers, Axis("milliseconds"), latencies)
    (folder / "latency.svg").write_text(drawn, encoding="utf-8")
    rates = {
        "completed": [(float(count), run.rate) for count, run in steps.items()],
        "refused as busy": [(float(count), run.rate * run.busy / (1 - run.busy)) for count, run in steps.items()],
    }
    drawn = chart("Throughput of a mixed load", callers, Axis("calls a second", log=False), rates)
    (folder / "throughput.svg").write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
