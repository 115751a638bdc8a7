"""PostgreSQL beside SQLite in one run, in turns: writes, recalls, many tenants, a synchronous replica.

`make bench-postgres`, with ARGS="--sizes 10000 100000 --tenants 1000 --only recall".
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import NamedTuple

import apsw

from kernel.core.config import Config
from loadtests.lib.engines import Database, Writers, Written, count, keyed, on, on_keyed
from loadtests.lib.servers import budget, budgets, finish, machine, options, paired, rounds, table
from loadtests.scenarios import engine_recalls, engine_tenants
from tests.postgres import stores
from tests.postgres.cluster import running

_PARTS = ("writes", "recall", "tenants", "replica")
_TENANTS = 8
_SERVERS = ("first", "second")  # of which the second gets the keys of the first
_ROWS = "SELECT count(*) FROM paths_memory"
_SHARED_ROWS = "SELECT count(*) FROM quipu_data.paths_memory WHERE tenant > 0"
Budget = tuple[str, str, str, str]


class Chosen(NamedTuple):
    """How long a part is: callers of a tenant, seconds of a round, rounds."""

    callers: int
    seconds: float
    rounds: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the parts; 1 if an answer was wrong or a write is missing."""
    given = options(
        __doc__,
        arguments,
        callers={"type": int, "default": 64},
        seconds={"type": float, "default": 2.0, "help": "length of one round of writes"},
        sizes={"type": int, "nargs": "+", "default": [10_000], "help": "memories of which is recalled"},
        tenants={"type": int, "default": 1000},
        only={"choices": _PARTS, "nargs": "+", "default": _PARTS},
    )
    if given.quick:
        given.seconds, given.sizes, given.tenants = 0.4, [300], 20
    chosen = Chosen(given.callers, given.seconds, given.rounds or (1 if given.quick else 5))
    machine()
    rows: list[Budget] = []
    complaints: list[str] = []
    with tempfile.TemporaryDirectory() as temporary, running(on_disk=True) as cluster:
        folder, database = Path(temporary), Database(cluster)
        parts: dict[str, Callable[[], tuple[list[Budget], list[str]]]] = {
            "writes": lambda: _writes(folder / "writes", database, chosen),
            "recall": lambda: engine_recalls.compared(folder / "recall", database, given.sizes, chosen.rounds),
            "tenants": lambda: engine_tenants.compared(folder / "tenants", database, given.tenants, chosen.rounds),
            "replica": lambda: _replica(folder / "replica", database, chosen),
        }
        for name in given.only:
            begun = time.monotonic()
            made, wrong = parts[name]()
            rows += made
            complaints += [f"{name}: {one}" for one in wrong]
            print(f"({name}: {time.monotonic() - begun:.0f} s)")
        budgets(rows)
    return finish(complaints)


def _writes(folder: Path, database: Database, chosen: Chosen) -> tuple[list[Budget], list[str]]:
    with ExitStack() as stack:
        addresses = {name: database.new(name) for name in ("group", "single", "tenants")}
        tenants = keyed(folder / _SERVERS[0], ["main", *(f"tenant-{at}" for at in range(_TENANTS))])
        database_of_tenants = addresses["tenants"]
        keyed_servers = [stack.enter_context(on_keyed(folder / name, database_of_tenants)) for name in _SERVERS]
        sides = {
            "SQLite": Writers([stack.enter_context(on(folder / "file"))]),
            "PostgreSQL": Writers([stack.enter_context(on(folder / "group", addresses["group"]))]),
            "commit per call": Writers([stack.enter_context(on(folder / "single", addresses["single"], group="1"))]),
            "one tenant of two servers": Writers(keyed_servers[:1], tenants[:1]),
            "eight tenants, two servers": Writers(keyed_servers, tenants[1:]),
        }
        found = _measured(sides, chosen)
        kept = {name: count(address, _SHARED_ROWS) for name, address in addresses.items()}
    ((filed,),) = apsw.Connection(str(Config(folder / "file").file)).execute(_ROWS).fetchall()
    _show("durable writes", found, "SQLite", chosen)
    rates = {name: [run.rate for run in runs] for name, runs in found.items()}
    one, eight = list(sides)[3:]
    rows = [
        budget("writes, 64 callers, over SQLite's", paired(rates["PostgreSQL"], rates["SQLite"]), 0.5, least=True),
        budget("writes over a commit per call", paired(rates["PostgreSQL"], rates["commit per call"]), 6, least=True),
        budget("eight tenants, two servers, over one tenant", paired(rates[eight], rates[one]), 1.5, least=True),
    ]
    stored = [filed, kept["group"], kept["single"], kept["tenants"]]
    answered = [side.answered for side in sides.values()]
    return rows, _differences(stored, [*answered[:3], sum(answered[3:])], found)  # pyrefly: ignore[bad-argument-type]


def _replica(folder: Path, database: Database, chosen: Chosen) -> tuple[list[Budget], list[str]]:
    """One store, whose commits wait for a second server in every other run."""
    address = database.new("replicated")

    def side(name: str, writers: Writers) -> Callable[[], Written]:
        def run() -> Written:
            with stores.connect(database.address + "/postgres") as db:
                db.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'")
                db.execute("SELECT pg_reload_conf()")
            return writers.run(chosen.callers, chosen.seconds)

        return run

    with running(database.address, on_disk=True), on(folder / "data", address) as server:
        writers = Writers([server])
        side("", writers)()
        found = rounds(chosen.rounds, {"alone": side("", writers), "synchronous replica": side("*", writers)})
        side("", writers)()
    _show("durable writes with a replica", found, "alone", chosen)
    rates = {name: [run.rate for run in runs] for name, runs in found.items()}
    over = paired(rates["synchronous replica"], rates["alone"])
    rows = [budget("writes with a synchronous replica, over without", over, 0.8, least=True)]
    return rows, _differences([count(address, _SHARED_ROWS)], [writers.answered], found)


def _measured(sides: dict[str, Writers], chosen: Chosen) -> dict[str, list[Written]]:
    for side in sides.values():
        side.run(chosen.callers, min(0.5, chosen.seconds))
    return rounds(
        chosen.rounds,
        {name: lambda side=side: side.run(chosen.callers, chosen.seconds) for name, side in sides.items()},
    )


def _show(title: str, found: dict[str, list[Written]], base: str, chosen: Chosen) -> None:
    rates = {name: [run.rate for run in runs] for name, runs in found.items()}
    rows = [
        (
            name,
            median(rates[name]),
            median(run.cpu / run.replies for run in runs) * 1e6,
            paired(rates[name], rates[base]),
        )
        for name, runs in found.items()
    ]
    header = ("side", "rows/s", "cpu us/row of the servers", f"x {base}")
    table(f"{title}, {chosen.callers} callers a tenant, {chosen.rounds} rounds (medians)", header, rows)


def _differences(stored: Sequence[int], answered: Sequence[int], found: dict[str, list[Written]]) -> list[str]:
    wrong = [run.complaint for runs in found.values() for run in runs if run.complaint]
    pairs = zip(stored, answered, strict=True)
    return wrong + [f"{held} rows of {told} answered writes" for held, told in pairs if held != told]


if __name__ == "__main__":
    raise SystemExit(main())
