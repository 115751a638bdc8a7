"""Cheap calls of one key beside 16 callers of another key that ask for what is dearest, against the same calls alone.

Both keys open one tenant. A round asks each kind of cheap call alone, and then beside each kind of dear call.
"""

import itertools
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median

from kernel.core.data_dir import MAIN
from loadtests.benchmarks.tenants import keyed_request
from loadtests.lib import corpus
from loadtests.lib.engines import Tenant, keyed
from loadtests.lib.http_load import Request, Result, drive
from loadtests.lib.servers import budget, budgets, finish, machine, options, paired, rounds, served, table

_CALLERS = 16  # that ask for dear calls
_MEMORIES = 3000
_P99 = 3.0
_ALONE = "alone"
_TEXT_BYTES = 100_000
_QUERY_WORDS = 300


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if an answer was wrong."""
    chosen = options(__doc__, arguments, rounds=3, seconds={"type": float, "default": 2.0, "help": "length of one run"})
    seconds, memories = (0.5, 300) if chosen.quick else (chosen.seconds, _MEMORIES)
    machine()
    with tempfile.TemporaryDirectory() as temporary:
        data = Path(temporary) / "data"
        greedy, modest = keyed(data, [MAIN, MAIN])
        with served("kernel", "serve", "--data", str(data), environ={"QUIPU_LIMIT_RATE": "0"}) as server:
            server.wait("/readyz", status=0)
            made = [{"path": one.path, "content": one.text} for one in corpus.memories(memories)]
            filled = drive(server.port, [keyed_request(modest, "add_memory", one) for one in made], callers=16)
            dear = {_ALONE: iter(()), **_dear(greedy)}
            cheap = _cheap(modest, made)

            def run(call: str, beside: str) -> Result:
                stopping = threading.Event()
                asked = itertools.takewhile(lambda _: not stopping.is_set(), dear[beside])
                load = threading.Thread(target=drive, args=(server.port, asked), kwargs={"callers": _CALLERS})
                load.start()
                try:
                    return drive(server.port, cheap[call], callers=1, seconds=seconds)
                finally:
                    stopping.set()
                    load.join()

            pairs = {f"{call}, {beside}": (call, beside) for call in cheap for beside in dear}
            runs = rounds(chosen.rounds, {name: partial(run, *pair) for name, pair in pairs.items()})
    _show({pairs[name]: seen for name, seen in runs.items()})
    return finish([seen.complaint for seen in [filled, *itertools.chain(*runs.values())] if seen.errors])


def _dear(key: Tenant) -> Mapping[str, Iterator[Request]]:
    """Return endless calls that are refused or answered: a recall of many words, and a write of a long text."""
    texts = itertools.cycle([corpus.memory(number).text for number in range(_QUERY_WORDS)])

    def recalls() -> Iterator[Request]:
        while True:
            words = " ".join(next(texts).split()[0] for _ in range(_QUERY_WORDS))
            yield keyed_request(key, "recall", {"query": words, "limit": 100})._replace(expect=())

    def writes() -> Iterator[Request]:
        for number in itertools.count():
            text = " ".join(itertools.islice(texts, 5))
            content = (text * (_TEXT_BYTES // len(text) + 1))[:_TEXT_BYTES]
            yield keyed_request(key, "add_memory", {"path": f"dear/{number}", "content": content})._replace(expect=())

    return {"recalls of many words": recalls(), "writes of long texts": writes()}


def _cheap(key: Tenant, made: Sequence[Mapping[str, str]]) -> Mapping[str, Iterator[Request]]:
    paths = itertools.cycle([one["path"] for one in made])
    return {
        "read_memory": (keyed_request(key, "read_memory", {"path": path}) for path in paths),
        "add_memory": (
            keyed_request(key, "add_memory", {"path": f"cheap/{number}", "content": f"note {number}"})
            for number in itertools.count()
        ),
    }


def _show(runs: Mapping[tuple[str, str], Sequence[Result]]) -> None:
    p99 = {side: [run.percentile(0.99) for run in seen] for side, seen in runs.items()}
    rows = [
        (f"{call}, {beside}", median(run.rate for run in seen), median(p99[call, beside]))
        for (call, beside), seen in runs.items()
    ]
    table(f"one caller beside {_CALLERS} of another key (medians)", ("call", "calls/s", "p99 ms"), rows)
    ratios = {side: paired(values, p99[side[0], _ALONE]) for side, values in p99.items() if side[1] != _ALONE}
    budgets([budget(f"p99 of {call}, {beside}", ratio, _P99) for (call, beside), ratio in ratios.items()])


if __name__ == "__main__":
    raise SystemExit(main())
