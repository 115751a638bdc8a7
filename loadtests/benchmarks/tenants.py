"""Recalls of many tenants, each with a key of its own, against those of ten, over HTTP and with the default settings.

Both servers run at once and are asked in turn. The ratio by processor time counts where other work takes the cores.
"""

import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

from loadtests.lib import corpus, http_requests
from loadtests.lib.engines import Database, Tenant, keyed
from loadtests.lib.http_load import Request, Result, drive
from loadtests.lib.servers import Server, budget, budgets, finish, machine, options, paired, rounds, served, table
from tests.postgres.cluster import running

_FEW = 10
_CALLERS = 64
_MEMORIES = 3  # of each tenant
_RATE, _RATE_ON_POSTGRESQL, _P99, _MEGABYTES, _THREADS = 0.6, 0.5, 6.0, 400, 64


class Run(NamedTuple):
    """One round of one side: what the callers saw, and seconds of processor time."""

    seen: Result
    cpu: float


class Side(NamedTuple):
    """A server and its tenants."""

    server: Server
    tenants: Sequence[Tenant]

    def fill(self) -> Result:
        """Writes the memories of each tenant."""
        memories = corpus.memories(_MEMORIES)
        arguments = [{"path": one.path, "content": one.text} for one in memories]
        asked = [keyed_request(tenant, "add_memory", one) for one in arguments for tenant in self.tenants]
        return drive(self.server.port, asked, callers=_CALLERS)

    def run(self, seconds: float) -> Run:
        """Recalls from tenants chosen at random."""
        before = self.server.cpu()
        seen = drive(self.server.port, self._recalls(), callers=_CALLERS, seconds=seconds)
        return Run(seen, self.server.cpu() - before)

    def _recalls(self) -> Iterator[Request]:
        chance = random.Random(1)
        while True:
            query = {"query": corpus.question(chance.randrange(_MEMORIES)).text}
            yield keyed_request(chance.choice(self.tenants), "recall", query, b'"memories":[{"id":"')


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the benchmark; 1 if an answer was wrong."""
    chosen = options(
        __doc__,
        arguments,
        rounds=3,
        tenants={"type": int, "default": 1000, "help": "tenants of the larger side"},
        seconds={"type": float, "default": 5.0, "help": "length of one run"},
        postgresql={"action": "store_true", "help": "keep the tenants in a database in place of files"},
    )
    tenants, seconds = (40, 0.5) if chosen.quick else (chosen.tenants, chosen.seconds)
    machine()
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        sizes = {str(count): count for count in (_FEW, tenants)}
        database = Database(stack.enter_context(running(on_disk=True))) if chosen.postgresql else None
        addresses = {name: database.new(f"of_{name}") if database else "" for name in sizes}
        sides = {name: _side(stack, Path(temporary) / name, size, addresses[name]) for name, size in sizes.items()}
        filled = [side.fill() for side in sides.values()]
        for side in sides.values():
            side.run(seconds)
        runs = rounds(chosen.rounds, {name: lambda side=side: side.run(seconds) for name, side in sides.items()})
        servers = {name: side.server for name, side in sides.items()}
        _show(runs, servers, _RATE_ON_POSTGRESQL if database else _RATE)
    results = [*filled, *(run.seen for side in runs.values() for run in side)]
    return finish([seen.complaint for seen in results if seen.errors])


def _side(stack: ExitStack, data: Path, count: int, address: str) -> Side:
    tenants = keyed(data, [f"tenant-{number}" for number in range(count)])
    environ = {"QUIPU_LIMIT_RATE": "0", **({"QUIPU_STORE": address} if address else {})}
    server = stack.enter_context(served("kernel", "serve", "--data", str(data), environ=environ))
    server.wait("/readyz", status=0)
    return Side(server, tenants)


def keyed_request(tenant: Tenant, tool: str, arguments: object, expect: bytes = b"") -> Request:
    body = msgspec.json.encode(http_requests.message("modern", tool, arguments))
    head = {**http_requests.headers("modern", tool), "authorization": f"Bearer {tenant.key}"}
    return Request(http_requests.post("/mcp", body, head), (http_requests.FINE, expect))


def _show(runs: dict[str, list[Run]], servers: dict[str, Server], least_rate: float) -> None:
    rows = [
        (
            name,
            median(run.seen.rate for run in side),
            median(run.seen.percentile(0.5) for run in side),
            median(run.seen.percentile(0.99) for run in side),
            median(run.cpu / run.seen.replies for run in side) * 1e3,
            servers[name].rss(),
            servers[name].threads(),
        )
        for name, side in runs.items()
    ]
    header = ("tenants", "recalls/s", "p50 ms", "p99 ms", "cpu ms", "RSS MB", "threads")
    table(f"{_CALLERS} callers, {_MEMORIES} memories a tenant (medians)", header, rows)
    few, many = runs.values()
    by_clock = paired([run.seen.rate for run in many], [run.seen.rate for run in few])
    by_cpu = paired([run.seen.replies / run.cpu for run in many], [run.seen.replies / run.cpu for run in few])
    p99 = paired([run.seen.percentile(0.99) for run in many], [run.seen.percentile(0.99) for run in few])
    name, _, _, _, _, megabytes, threads = rows[1]
    budgets(
        [
            budget(f"recalls/s of {name} tenants over {_FEW}", by_clock, least_rate, least=True),
            budget("the same by processor time", by_cpu, least_rate, least=True),
            budget("p99 over that of the few", p99, _P99),
            budget("RSS MB", megabytes, _MEGABYTES),
            budget("threads", threads, _THREADS),
        ]
    )


if __name__ == "__main__":
    raise SystemExit(main())
