"""An import into a store that others use: how long their calls wait while `memory_import` runs, and without it.

Writes and reads arrive at a steady pace, each kind alone; both the quiet and the busy time of one round are of one
server. The answer of the import is checked, and every answer of the others.
"""

import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

import msgspec

from loadtests.lib import corpus, http_requests, store_fixtures
from loadtests.lib.http_load import Request, drive
from loadtests.lib.open_loop import percentile, press
from loadtests.lib.servers import Server, budget, budgets, finish, machine, options, quipu, table

_STORED = 10_000
_IMPORTED = 3_000
_PACE = 40.0  # calls a second: most of a processor is left to the import
_CALLERS = 16
_QUIET_SECONDS = 5.0
_WRITE_MILLISECONDS = 250.0
_READ_RATIO = 2.0
Work = Callable[[], Iterator[Request]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if an answer was wrong."""
    chosen = options(
        __doc__,
        arguments,
        rounds=3,
        size={"type": int, "default": _STORED, "help": "memories in the store"},
        entries={"type": int, "default": _IMPORTED, "help": "entries of an import"},
        keep={"type": Path, "help": "folder for the filled store"},
    )
    machine()
    size, entries = (500, 300) if chosen.quick else (chosen.size, chosen.entries)
    with tempfile.TemporaryDirectory() as temporary:
        filled = store_fixtures.filled(chosen.keep or Path(temporary) / "filled", size)
        return finish(_measure(store_fixtures.copied(filled, Path(temporary) / "used"), entries, chosen.rounds))


def _measure(data: Path, entries: int, rounds: int) -> list[str]:
    complaints: list[str] = []
    seen: dict[str, tuple[list[float], list[float]]] = {}
    with quipu(data, limit_rate="1000000", limit_burst="1000000", limit_body=str(64 << 20)) as server:
        for round_number in range(rounds):
            for name, requests in {"write": _writes, "read": _reads}.items():
                quiet = press(server.port, requests(), callers=_CALLERS, seconds=_QUIET_SECONDS, pace=_PACE)
                importing = _Import(server, entries, f"{name}-{round_number}")
                importing.start()
                busy: list[float] = []
                while importing.is_alive():
                    pressed = press(server.port, requests(), callers=_CALLERS, seconds=0.5, pace=_PACE)
                    busy += [sample.took for sample in pressed.samples]
                    complaints += [pressed.complaint] * bool(pressed.wrong)
                quiet_times, busy_times = seen.setdefault(name, ([], []))
                quiet_times += [sample.took for sample in quiet.samples]
                busy_times += busy
                complaints += [quiet.complaint] * bool(quiet.wrong) + importing.complaints
    _report(seen, entries)
    return complaints


def _report(seen: dict[str, tuple[list[float], list[float]]], entries: int) -> None:
    rows = [
        (name, len(busy), *(percentile(times, share) for times in (quiet, busy) for share in (0.5, 0.99)))
        for name, (quiet, busy) in seen.items()
    ]
    header = ("call", "calls beside", "p50 alone ms", "p99 alone ms", "p50 beside ms", "p99 beside ms")
    table(f"calls beside an import of {entries} entries", header, rows)
    write, read = (percentile(seen["write"][1], 0.99), percentile(seen["read"][1], 0.99))
    alone = percentile(seen["read"][0], 0.99)
    budgets(
        [
            budget("p99 of a write beside the import, ms", write, _WRITE_MILLISECONDS),
            budget("p99 of a read beside the import over alone", read / alone, _READ_RATIO),
        ]
    )


class _Import(threading.Thread):
    """One import, on a connection of its own."""

    def __init__(self, server: Server, entries: int, name: str) -> None:
        super().__init__()
        self._server = server
        self._entries = entries
        self._name = name
        self.complaints: list[str] = []

    def run(self) -> None:
        """Sends the import and checks its answer."""
        held = [
            {"name": f"{self._name} {number}", "content": corpus.memory(number).text, "tags": ["imported"]}
            for number in range(self._entries)
        ]
        content = msgspec.json.encode({"entries": {"guidelines": held}}).decode()
        wanted = f'"created":{self._entries},'.encode()
        request = http_requests.json("memory_import", {"action": "import", "content": content}, wanted)
        begun = time.perf_counter()
        done = drive(self._server.port, iter([request]), callers=1)
        print(f"import {self._name}: {time.perf_counter() - begun:.1f} s")
        self.complaints += [done.complaint] * bool(done.errors)


_numbers = count()


def _writes() -> Iterator[Request]:
    while True:
        number = next(_numbers)
        arguments = {"path": f"beside/{number}", "content": corpus.memory(number).text}
        yield http_requests.json("add_memory", arguments, b"ok")


def _reads() -> Iterator[Request]:
    for question in corpus.questions(1000, 1000) * 1000:
        yield http_requests.json("recall", {"query": question.text}, b"")


if __name__ == "__main__":
    raise SystemExit(main())
