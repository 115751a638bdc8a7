"""Cheap calls of one key beside 16 callers of another key that ask for what is dearest, against the same calls alone.

Both keys open one tenant. A round asks each kind of cheap call alone, and then beside each kind of dear call. Dear
calls come from a process of their own: in one process the callers would wait for each other's interpreter lock.
"""

import itertools
import multiprocessing
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing.synchronize import Event
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
_MOST_WRITES = 1_000_000  # of a run


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
            cheap = _cheap(modest, made)
            firsts = itertools.count(0, _MOST_WRITES)

            def run(call: str, beside: str) -> Result:
                if beside == _ALONE:
                    return drive(server.port, cheap[call], callers=1, seconds=seconds)
                with _load(server.port, greedy, beside, next(firsts)):
                    return drive(server.port, cheap[call], callers=1, seconds=seconds)

            pairs = {f"{call}, {beside}": (call, beside) for call in cheap for beside in (_ALONE, *_DEAR)}
            runs = rounds(chosen.rounds, {name: partial(run, *pair) for name, pair in pairs.items()})
    _show({pairs[name]: seen for name, seen in runs.items()})
    return finish([seen.complaint for seen in [filled, *itertools.chain(*runs.values())] if seen.errors])


@contextmanager
def _load(port: int, key: Tenant, kind: str, first: int) -> Generator[None]:
    """Ask for dear calls of one kind from another process, to the end of the block."""
    processes = multiprocessing.get_context("spawn")
    begun, ending = processes.Event(), processes.Event()
    load = processes.Process(target=_ask, args=(port, key, kind, first, begun, ending))
    load.start()
    try:
        begun.wait()
        yield
    finally:
        ending.set()
        load.join()


def _ask(port: int, key: Tenant, kind: str, first: int, begun: Event, ending: Event) -> None:
    def requests() -> Iterator[Request]:
        for request in _DEAR[kind](key, first):
            if ending.is_set():
                return
            yield request
            begun.set()

    drive(port, requests(), callers=_CALLERS)


def _recalls(key: Tenant, _first: int) -> Iterator[Request]:
    words = itertools.cycle([corpus.memory(number).text.split()[0] for number in range(_QUERY_WORDS)])
    while True:
        query = " ".join(itertools.islice(words, _QUERY_WORDS))
        yield keyed_request(key, "recall", {"query": query, "limit": 100})._replace(expect=())


def _writes(key: Tenant, first: int) -> Iterator[Request]:
    texts = itertools.cycle([corpus.memory(number).text for number in range(_QUERY_WORDS)])
    for number in itertools.count(first):
        text = " ".join(itertools.islice(texts, 5))
        content = (text * (_TEXT_BYTES // len(text) + 1))[:_TEXT_BYTES]
        yield keyed_request(key, "add_memory", {"path": f"dear/{number}", "content": content})._replace(expect=())


# Endless calls, refused or answered: recalls of many words, and writes of long texts from a number on.
_DEAR: Mapping[str, Callable[[Tenant, int], Iterator[Request]]] = {
    "recalls of many words": _recalls,
    "writes of long texts": _writes,
}


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
