"""`recall` with keys that are held to places, against a key of the whole tenant: p50 of one caller over HTTP.

The store holds paths in folders, databases of `brain` and sessions; every key asks the same questions in turn.
"""

import itertools
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from kernel.core.data_dir import make_private
from kernel.core.ids import utc_now
from kernel.security import api_keys
from loadtests.benchmarks.tenants import keyed_request
from loadtests.lib import corpus
from loadtests.lib.engines import Tenant
from loadtests.lib.http_load import Request, Result, drive
from loadtests.lib.servers import budget, budgets, finish, machine, options, paired, rounds, served, table

_SIZES = (1_000, 10_000)
_QUESTIONS = 40
_P50 = 1.15
_WHOLE = "whole tenant"
_PLACES = {
    _WHOLE: (),
    "one dialect": ("paths",),
    "two dialects": ("paths", "brain"),
    "two folders": ("paths:notes", "paths:decisions"),
    "one folder": ("paths:notes",),
    "one database": ("brain:core",),
    "one session": ("sessions:p3",),
    "one of each": ("paths:notes", "brain:core", "sessions:p3"),
}
_DATABASES = ("core", "therapy", "dnd")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if an answer was wrong."""
    chosen = options(__doc__, arguments, rounds=7)
    sizes = (300,) if chosen.quick else _SIZES
    machine()
    complaints: list[str] = []
    ratios: list[tuple[str, float]] = []
    for size in sizes:
        runs = _runs(size, chosen.rounds)
        complaints += [seen.complaint for seen in itertools.chain(*runs.values()) if seen.errors]
        whole = [seen.percentile(0.5) for seen in runs[_WHOLE]]
        own = {name: [seen.percentile(0.5) for seen in side] for name, side in runs.items()}
        rows = [(name, min(side), paired(side, whole)) for name, side in own.items()]
        table(f"{size:,} memories", ("key of", "p50 ms, best round", "over the whole tenant"), rows)
        ratios += [(f"p50, {size:,} memories, {name}", ratio) for name, _, ratio in rows[1:]]
    budgets([budget(name, ratio, _P50) for name, ratio in ratios])
    return finish(complaints)


def _runs(size: int, count: int) -> dict[str, list[Result]]:
    with tempfile.TemporaryDirectory() as temporary:
        data = Path(temporary) / "data"
        make_private(data)
        keys = {name: _key(data, places) for name, places in _PLACES.items()}
        with served("kernel", "serve", "--data", str(data), environ={"QUIPU_LIMIT_RATE": "0"}) as server:
            server.wait("/readyz", status=0)
            filled = drive(server.port, (_write(keys[_WHOLE], number) for number in range(size)), callers=16)
            assert not filled.errors, filled.complaint
            asked = [{"query": corpus.question(number * 7).text} for number in range(_QUESTIONS)]
            sides = {
                name: partial(drive, server.port, [keyed_request(key, "recall", one) for one in asked], callers=1)
                for name, key in keys.items()
            }
            rounds(1, sides)  # each key asks once before it is timed
            return rounds(count, sides)


def _key(data: Path, places: tuple[str, ...]) -> Tenant:
    draft = api_keys.Key("", "write", utc_now(), read=places, write=places)
    return Tenant(key=api_keys.create(data, draft)[1])


def _write(key: Tenant, number: int) -> Request:
    memory, kind = corpus.memory(number), number % 4
    if kind == 1:
        place = {"db": _DATABASES[number // 4 % 3], "category": "fact"}
        return keyed_request(key, "save_memory", {**place, "content": memory.text})
    if kind == 3:
        return keyed_request(key, "remember", {"content": memory.text, "session_id": f"p{number // 4 % 10}"})
    return keyed_request(key, "add_memory", {"path": memory.path, "content": memory.text})


if __name__ == "__main__":
    raise SystemExit(main())
