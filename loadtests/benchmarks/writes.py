"""Durable writes over HTTP: group commit against one commit per request, FULL against NORMAL, every row verified.

A write is one memory with its row, full text, vector and history. Each server has its own file and its own memories.
With `--against` a server of another checkout takes the place of all sides but the first, and the ratio of processor
time for one write is printed; with `--filled 10000 --seconds .3` at 10,000 memories.
"""

import tempfile
from collections.abc import Generator, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import NamedTuple

import apsw
import msgspec

from kernel.core.config import Config
from kernel.engines.sqlite.connection import Connection
from kernel.operations import consistency
from kernel.server import app
from loadtests.lib import corpus, http_requests
from loadtests.lib.http_load import Request, Result, drive
from loadtests.lib.servers import (
    Server,
    budget,
    budgets,
    finish,
    machine,
    options,
    paired,
    quipu,
    rounds,
    served,
    table,
)

_FULL, _TOOLS, _SINGLE, _NORMAL, _NAIVE = "quipu /mcp", "quipu /tools", "quipu group=1", "quipu NORMAL", "naive"
_AGAINST = "against"
_READY = 4000
_FILLING = 64  # callers that fill the stores


class Run(NamedTuple):
    """One round of one side: the latencies, and the server's processor time."""

    seen: Result
    cpu: float


class Side:
    """One server, the memories sent to it, and the requests of the next round."""

    def __init__(self, server: Server, data: Path, kind: str, size: int) -> None:
        self.server = server
        self.data = data
        self.sent: list[str] = []
        self._kind = kind
        self._size = size
        self._next = 0

    def run(self, callers: int, seconds: float) -> Run:
        """Run one round: as many memories as fit into the time."""
        made = [self._request(corpus.memory(number)) for number in range(self._next, self._next + self._size)]
        self._next += self._size
        before = self.server.cpu()
        seen = drive(self.server.port, self._noted(made), callers=callers, seconds=seconds)
        return Run(seen, (self.server.cpu() - before) / max(1, seen.replies))

    def _noted(self, made: list[tuple[str, Request]]) -> Generator[Request]:
        for path, request in made:
            self.sent.append(path)
            yield request

    def _request(self, memory: corpus.Memory) -> tuple[str, Request]:
        arguments = {"path": memory.path, "content": memory.text}
        expect = memory.path.encode()
        if self._kind == "mcp":
            return memory.path, http_requests.mcp("modern", "add_memory", arguments, expect)
        if self._kind == "tools":
            return memory.path, http_requests.json("add_memory", arguments, b"path: " + expect)
        return memory.path, Request(http_requests.post("/add", msgspec.json.encode(arguments)), (b'"ok"', expect))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if a row is missing or a reply was wrong."""
    chosen = options(
        __doc__,
        arguments,
        rounds=5,
        callers={"type": int, "default": 64},
        seconds={"type": float, "default": 1.5, "help": "length of one run"},
        filled={"type": int, "default": 0, "help": "memories in each store before the first round"},
        against={"type": Path, "help": "another checkout, whose server is compared"},
    )
    seconds = 0.3 if chosen.quick else chosen.seconds
    machine()
    with tempfile.TemporaryDirectory() as folder:
        with ExitStack() as stack:
            size = int(_READY * 5 * seconds)
            sides = (
                _two(stack, Path(folder), size, chosen.against) if chosen.against else _sides(stack, Path(folder), size)
            )
            for side in sides.values():
                side.run(chosen.callers, min(0.3, seconds))
                while len(side.sent) < chosen.filled:
                    side.run(_FILLING, min(0.3, seconds))
            found = rounds(
                chosen.rounds,
                {name: lambda side=side: side.run(chosen.callers, seconds) for name, side in sides.items()},
            )
        (_report_two if chosen.against else _report)(found, chosen.callers)
        complaints = [run.seen.complaint for runs in found.values() for run in runs if run.seen.errors]
        complaints += [
            f"{name}: {wrong}" for name, side in sides.items() if name != _AGAINST for wrong in _missing(side)
        ]
    return finish(complaints)


def _sides(stack: ExitStack, folder: Path, size: int) -> dict[str, Side]:
    sides: dict[str, Side] = {}
    settings = {_FULL: {}, _TOOLS: {}, _SINGLE: {"group": "1"}, _NORMAL: {"durability": "normal"}}
    for name, given in settings.items():
        data = folder / f"q{len(sides)}"
        kind = "tools" if name == _TOOLS else "mcp"
        sides[name] = Side(stack.enter_context(quipu(data, **given)), data, kind, size)  # pyrefly: ignore[bad-argument-type]
    data = folder / "naive"
    data.mkdir()
    server = stack.enter_context(served("loadtests.baselines.naive_server", "--data", str(data)))
    server.wait()
    sides[_NAIVE] = Side(server, data, "naive", size)
    return sides


def _two(stack: ExitStack, folder: Path, size: int, other: Path) -> dict[str, Side]:
    sides: dict[str, Side] = {}
    for name, checkout in ((_FULL, None), (_AGAINST, other)):
        data = folder / f"q{len(sides)}"
        sides[name] = Side(stack.enter_context(quipu(data, checkout=checkout)), data, "mcp", size)
    return sides


def _report_two(found: dict[str, list[Run]], callers: int) -> None:
    cpu = {name: [run.cpu for run in runs] for name, runs in found.items()}
    rows = [
        (name, median(run.seen.rate for run in runs), min(cpu[name]) * 1e6, median(cpu[name]) * 1e6)
        for name, runs in found.items()
    ]
    table(f"{callers} callers, {len(cpu[_FULL])} rounds", ("server", "rows/s", "least cpu us/row", "median"), rows)
    budgets([budget("processor time of a write over the other's", paired(cpu[_FULL], cpu[_AGAINST]), 0.95)])


def _report(found: dict[str, list[Run]], callers: int) -> None:
    rates = {name: [run.seen.rate for run in runs] for name, runs in found.items()}
    tails = {
        name: [run.seen.percentile(0.99) / run.seen.percentile(0.5) for run in runs] for name, runs in found.items()
    }
    rows = [
        (
            name,
            median(rates[name]),
            max(rates[name]),
            median(run.seen.percentile(0.5) for run in runs),
            median(run.seen.percentile(0.99) for run in runs),
            median(tails[name]),
            min(run.cpu for run in runs) * 1e6,
            paired(rates[name], rates[_SINGLE]),
        )
        for name, runs in found.items()
    ]
    header = ("server", "rows/s", "best", "p50 ms", "p99 ms", "p99/p50", "cpu us/row", "x group=1")
    table(f"{callers} callers, {len(rates[_FULL])} rounds (medians; cpu is the least)", header, rows)
    budgets(
        [
            budget("/mcp over commit per request", paired(rates[_FULL], rates[_SINGLE]), 6, least=True),
            budget("/tools over commit per request", paired(rates[_TOOLS], rates[_SINGLE]), 6, least=True),
            budget("/mcp over the naive server", paired(rates[_FULL], rates[_NAIVE]), 6, least=True),
            budget("FULL over NORMAL", paired(rates[_FULL], rates[_NORMAL]), 0.9, least=True),
            budget("p99 over p50, /mcp", median(tails[_FULL]), 10),
        ]
    )


def _missing(side: Side) -> list[str]:
    """Rows, documents, vectors and events of answered writes that the file lacks."""
    if (side.data / "naive.db").exists():
        db = apsw.Connection(str(side.data / "naive.db"), flags=apsw.SQLITE_OPEN_READONLY)
        held = {str(row[0]) for row in db.execute("SELECT path FROM note").fetchall()}
        db.close()
        return _compare(side.sent, held, "row")
    config = Config(side.data)
    app.prepare_data(config, app.base_context(None))  # of an older checkout
    context = app.base_context(config.model)
    db = Connection(config.file, context, readonly=True)
    found = {
        "row": "SELECT path FROM paths_memory",
        "document": "SELECT key FROM doc",
        "vector": "SELECT d.key FROM doc_vector AS v JOIN doc AS d ON d.id = v.doc",
        "event": "SELECT key FROM history WHERE operation = 'created'",
    }
    wrong = [
        text
        for what, query in found.items()
        for text in _compare(side.sent, {row[0] for row in db.values(query)}, what)
    ]
    db.close()
    differences = consistency.check(config.file, context, app.DIALECTS)
    return wrong + [f"{finding.part}: {finding.rows} {finding.what}" for finding in differences]


def _compare(sent: Sequence[str], held: set[str], what: str) -> list[str]:
    lost = len(set(sent) - held)
    extra = len(held - set(sent))
    return [f"{lost} of {len(sent)} without a {what}, {extra} {what}s too many"] if lost or extra else []


if __name__ == "__main__":
    raise SystemExit(main())
