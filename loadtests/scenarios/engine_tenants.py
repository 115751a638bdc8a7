"""Many tenants in one database: their size, the recalls of one beside them, the connections of a process."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from kernel.core.config import Config
from kernel.engines.postgres import database as databases
from kernel.operations.shared_store import prepare_tenant
from kernel.security.permissions import ANONYMOUS_CALLER
from kernel.server import app
from loadtests.lib import corpus, store_fixtures
from loadtests.lib.engines import Asker, Database, count, on, tidied
from loadtests.lib.servers import budget, paired, rounds, table
from loadtests.scenarios.engine_recalls import copied
from tests.postgres import stores

_SMALL = 300  # memories of the tenant that recalls
_AT_ONCE = 32  # tenants that one process serves
_POLL = 0.01


def compared(
    folder: Path, database: Database, tenants: int, rounds_: int
) -> tuple[list[tuple[str, str, str, str]], list[str]]:
    """The budgets of many tenants."""
    data = store_fixtures.alone(folder, _SMALL)
    addresses = {name: database.new(name) for name in ("alone", "beside")}
    for address in addresses.values():
        copied(data, address)
    begun = time.perf_counter()
    size = _size_of_each(addresses["beside"], folder, tenants)
    made = time.perf_counter() - begun
    questions = [question.text for question in corpus.questions(100, _SMALL)]
    with on(folder / "a", addresses["alone"]) as alone, on(folder / "b", addresses["beside"]) as beside:
        sides = {"one tenant": Asker(alone), f"beside {tenants}": Asker(beside)}
        one, other = (side.answers(questions) for side in sides.values())
        found = rounds(rounds_, {name: lambda side=side: side.median(_SMALL) for name, side in sides.items()})
    table(
        f"{tenants} tenants, made in {made:.0f} s; recall over {_SMALL} memories, {rounds_} rounds (the least)",
        ("side", "p50 ms", "cpu ms of the server"),
        [(name, min(ms for ms, _ in runs), min(cpu for _, cpu in runs)) for name, runs in found.items()],
    )
    times = [[ms for ms, _ in runs] for runs in found.values()]
    most = _connections(addresses["beside"], folder / "c", min(_AT_ONCE, tenants))
    rows = [
        budget(f"MB of each of {tenants} empty tenants", size, 0.1),
        budget("p50 of a small tenant's recall beside them, over alone", paired(times[1], times[0]), 1.2),
        budget(f"connections of a process with {min(_AT_ONCE, tenants)} tenants", most, 16),
    ]
    return rows, [] if one == other else ["a tenant finds other memories beside others"]


def _size_of_each(address: str, folder: Path, tenants: int) -> float:
    """Makes tenants; MB of the database for each."""
    before = count(tidied(address), "SELECT pg_database_size(current_database())")
    config = Config(data=folder / "made", store=address, model=None)
    shared = app.base_context(None)
    for at in range(tenants):
        one = config._replace(tenant=f"tenant-{at}")
        prepare_tenant(one, databases.postgres_context(shared, address, one.tenant, one.file))
    databases.forget_pool(address)
    after = count(tidied(address), "SELECT pg_database_size(current_database())")
    return (after - before) / tenants / 1e6


def _connections(address: str, data: Path, tenants: int) -> float:
    """The most connections of a process whose tenants write and read at once."""
    kernel = app.open_kernel(Config(data=data, store=address))
    opened = [app.open_tenant(kernel, f"tenant-{at}") for at in range(tenants)]

    async def call(one: app.Kernel, tool: str, **arguments: Any) -> None:
        entry = one.dispatch.tools[tool]
        await one.dispatch.call(entry, msgspec.json.encode(arguments), ANONYMOUS_CALLER)

    async def work(one: app.Kernel) -> None:
        for number in range(3):
            await call(one, "add_memory", path=f"seen/{number}", content="a few words")
            await asyncio.gather(*(call(one, "recall", query="words") for _ in range(4)))

    async def run() -> None:
        await asyncio.gather(*map(work, opened))

    try:
        with _most(address) as most:
            asyncio.run(run())
    finally:
        for one in (*opened, kernel):
            one.store.close()
        databases.forget_pool(address)
    return float(max(most))


@contextmanager
def _most(address: str) -> Iterator[list[int]]:
    """Counts the connections to a database all the time, without its own."""
    seen = [0]
    done = threading.Event()
    text = (
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )

    def watch() -> None:
        with stores.connect(address) as db:
            while not done.wait(_POLL):
                seen.append(db.execute(text).fetchone()[0])

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()
