"""Several servers on one store, and what is left of it when the database's processes are killed."""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernel.app import Kernel, open_kernel
from kernel.config import Config
from kernel.data_dir import MAIN
from kernel.security.permissions import ANONYMOUS_CALLER
from kernel.store import audit
from kernel.store.postgres import database
from kernel.tools import Reply
from tests.postgres import stores
from tests.postgres.cluster import Cluster, running

pytestmark = pytest.mark.postgres
ROUNDS = int(os.environ.get("POSTGRES_KILL_ROUNDS", "4"))
CALLERS = 6
UNKNOWN = "It is not known"


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[str], Kernel]]:
    """Opens servers as other processes would: with data directories and connections of their own."""
    with ExitStack() as stack:

        def another(address: str) -> Kernel:
            database.forget_pool(address)
            folder = tmp_path / str(time.monotonic_ns())
            kernel = open_kernel(Config(data=folder, store=address, model=None))
            stack.callback(kernel.store.close)
            return kernel

        yield another


async def ask(kernel: Kernel, tool: str, **arguments: Any) -> Reply:
    answer = await kernel.dispatch.call(kernel.dispatch.tools[tool], msgspec.json.encode(arguments), ANONYMOUS_CALLER)
    assert isinstance(answer, Reply)
    return answer


def add(kernel: Kernel, path: str) -> Reply:
    return asyncio.run(ask(kernel, "add_memory", path=path, content=f"text of {path}"))


def paths(address: str) -> list[str]:
    return sorted(row[0] for row in stores.rows(address, MAIN)["paths_memory"])


def chain_is_whole(kernel: Kernel) -> bool:
    return kernel.store.read_sync(audit.first_broken) is None


def test_of_servers_that_want_one_path_one_gets_it(address: str, opened: Callable[[str], Kernel]) -> None:
    kernels = [opened(address) for _ in range(4)]
    won: dict[str, int] = {}

    async def compete(kernel: Kernel) -> None:
        for name in range(25):
            reply = await ask(kernel, "add_memory", path=f"contested/{name}", content="mine")
            won[f"contested/{name}"] = won.get(f"contested/{name}", 0) + (reply.fault is None)

    threads = [threading.Thread(target=lambda kernel=kernel: asyncio.run(compete(kernel))) for kernel in kernels]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert won == {f"contested/{name}": 1 for name in range(25)}
    assert paths(address) == sorted(won)
    assert chain_is_whole(kernels[0])


def test_what_one_server_answered_another_finds_at_once(address: str, opened: Callable[[str], Kernel]) -> None:
    writer, reader = opened(address), opened(address)
    for number in range(50):
        assert add(writer, f"seen/word{number}").fault is None
        found = asyncio.run(ask(reader, "recall", query=f"word{number}"))
        assert f"seen/word{number}".encode() in found.body


def test_tenants_do_not_see_each_other(address: str, tmp_path: Path, opened: Callable[[str], Kernel]) -> None:
    main = opened(address)
    other = open_kernel(Config(data=tmp_path / "other", store=address, tenant="other", model=None))
    try:
        assert add(other, "theirs").fault is None
        assert add(main, "theirs").fault is None
        assert asyncio.run(ask(main, "recall", query="text theirs")).body.count(b'"id"') == 1
    finally:
        other.store.close()
    assert paths(address) == ["theirs"]


class Load:
    """Callers that write until they are stopped, and what each was answered."""

    def __init__(self, kernels: list[Kernel]) -> None:
        self.answers: dict[str, Reply] = {}
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(kernels[number % len(kernels)], number))
            for number in range(CALLERS)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, kernel: Kernel, number: int) -> None:
        async def writing() -> None:
            at = 0
            while not self._stop.is_set():
                at += 1
                path = f"load/{number}/{at}"
                self.answers[path] = await ask(kernel, "add_memory", path=path, content=path)
                if self.answers[path].fault is not None:
                    await asyncio.sleep(0.02)

        asyncio.run(writing())

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def check(self, held: list[str]) -> None:
        """What was answered is there; what was refused is not, unless the answer said that nobody knows."""
        kept = set(held)
        done = {path for path, reply in self.answers.items() if reply.fault is None}
        refused = {path: reply.body.decode() for path, reply in self.answers.items() if reply.fault is not None}
        assert done
        assert done - kept == set()
        assert {path: refused[path] for path in refused.keys() & kept if UNKNOWN not in refused[path]} == {}


def test_no_answered_write_is_lost_when_backends_are_killed(address: str, opened: Callable[[str], Kernel]) -> None:
    load = Load([opened(address), opened(address)])
    with stores.connect(address) as admin:
        for _ in range(3 * ROUNDS):
            time.sleep(0.15)
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
    load.stop()

    load.check(paths(address))
    assert chain_is_whole(opened(address))


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A server of its own, since it is killed."""
    with running() as found:
        yield found


def test_no_answered_write_is_lost_when_the_database_is_killed(
    cluster: Cluster, opened: Callable[[str], Kernel]
) -> None:
    address = stores.new_database("killed", cluster.address)
    load = Load([opened(address), opened(address)])
    for _ in range(ROUNDS):
        time.sleep(0.4)
        cluster.kill()
        cluster.start()
    time.sleep(0.4)
    load.stop()

    load.check(paths(address))
    assert chain_is_whole(opened(address))
