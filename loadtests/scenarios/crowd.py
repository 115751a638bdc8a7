"""A closed loop of locust users, 8 to 512, over 20,000 memories: by one process, and by one for each core.

The folder of the report gets the table and the plot as `index.html`, and the report of locust for each run.
"""

import tempfile
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from kernel.core.data_dir import MAIN
from loadtests.lib import store_fixtures
from loadtests.lib.charts import Axis, chart
from loadtests.lib.engines import keyed
from loadtests.lib.locust_run import LocustRun, locust
from loadtests.lib.servers import budget, budgets, finish, machine, options, served, shown, table

USERS = (8, 64, 256, 512)
_WORKERS = {"one process": "1", "auto": "auto"}
_HEADER = ("users", "calls/s", "p50 ms", "p95 ms", "p99 ms", "refused", "wrong")
_RATE, _REFUSED, _P99 = 0.9, 0.05, 2.5
Runs = Mapping[tuple[str, int], LocustRun]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all sides; return 1 if an answer was wrong."""
    chosen = options(
        __doc__,
        arguments,
        size={"type": int, "default": 20_000, "help": "memories in the store"},
        seconds={"type": float, "default": 22.0, "help": "length of one run"},
        report={"type": Path, "default": Path("dist/crowd"), "help": "folder of the report"},
    )
    size, seconds = (500, 5.0) if chosen.quick else (chosen.size, chosen.seconds)
    users = USERS[:2] if chosen.quick else USERS
    chosen.report.mkdir(parents=True, exist_ok=True)
    machine()
    runs: dict[tuple[str, int], LocustRun] = {}
    for side, workers in _WORKERS.items():
        with tempfile.TemporaryDirectory() as folder:
            data = store_fixtures.alone(Path(folder), size)
            (tenant,) = keyed(data, [MAIN])
            environ = {"QUIPU_WORKERS": workers, "QUIPU_LIMIT_RATE": "0"}
            with served("kernel", "serve", "--data", str(data), environ=environ) as server:
                server.wait("/readyz")
                for count in users:
                    page = chosen.report / f"{side.replace(' ', '-')}-{count}.html"
                    asked = ("--closed", "--key", tenant.key, "--reset-stats", "--html", str(page.resolve()))
                    runs[side, count] = locust(server.port, count, seconds, Path(folder) / f"run-{count}", *asked)
    for side in _WORKERS:
        table(f"closed loop, {side}", _HEADER, [_row(count, runs[side, count]) for count in users])
    budgets([row for side in _WORKERS for row in _budgets(side, users, runs)])
    _write(chosen.report, users, runs)
    print(f"\n{chosen.report / 'index.html'}")
    return finish(
        [f"{run.failures} failures, {side}, {count} users" for (side, count), run in runs.items() if run.failures]
    )


def _row(count: int, run: LocustRun) -> tuple[object, ...]:
    return count, run.rate, *run.latencies.values(), f"{_refused(run):.1%}", run.failures


def _refused(run: LocustRun) -> float:
    return run.busy / max(1, run.calls)


def _budgets(side: str, users: Sequence[int], runs: Runs) -> list[tuple[str, str, str, str]]:
    most, best = runs[side, users[-1]], max(runs[side, count].rate for count in users)
    tail = most.latencies["p99"] / 1000 / (users[-1] / most.rate)
    return [
        budget(f"{side}, calls/s of {users[-1]} users over the best", most.rate / best, _RATE, least=True),
        budget(f"{side}, refused of {users[-1]} users", _refused(most), _REFUSED),
        budget(f"{side}, p99 of {users[-1]} users over users/throughput", tail, _P99),
    ]


def _write(folder: Path, users: Sequence[int], runs: Runs) -> None:
    lines = {side: [(float(count), runs[side, count].rate) for count in users] for side in _WORKERS}
    plot = chart("Calls of a closed loop of users", Axis("users"), Axis("calls a second", log=False), lines)
    (folder / "throughput.svg").write_text(plot, encoding="utf-8")
    rows = [
        f'<tr><td><a href="{side.replace(" ", "-")}-{count}.html">{escape(side)}</a></td>'
        + "".join(f"<td>{escape(shown(value))}</td>" for value in _row(count, run))
        + "</tr>"
        for (side, count), run in runs.items()
    ]
    head = "".join(f"<th>{name}</th>" for name in ("side", *_HEADER))
    page = f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Quipu under a crowd</title>
<style>
body {{ font-family: sans-serif; max-width: 60em; margin: auto }}
td, th {{ padding: .2em .8em; text-align: right }}
</style>
<h1>Quipu under a crowd</h1>
<table><tr>{head}</tr>
{chr(10).join(rows)}
</table>
{plot}
</html>
"""
    (folder / "index.html").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
