"""A database that other programs use too: with settings that they need, and locks that they take."""

import asyncio
import time
from collections.abc import Callable

import pytest

from kernel.server.app import Kernel
from tests.postgres import stores
from tests.postgres.calls import Load, add, ask, chain_is_whole, paths

pytestmark = pytest.mark.postgres
SECONDS = 1.5
CALLS = 12


@pytest.fixture
def opened_with(address: str, opened: Callable[[str], Kernel]) -> Callable[[str], list[Kernel]]:
    """Opens two servers on a database with a setting."""

    def open_both(setting: str) -> list[Kernel]:
        with stores.connect(address) as db:
            db.execute(f'ALTER DATABASE "{address.rpartition("/")[2]}" SET {setting}')
        return [opened(address), opened(address)]

    return open_both


@pytest.mark.slow
@pytest.mark.parametrize(
    "setting",
    [
        "default_transaction_isolation = 'repeatable read'",
        "default_transaction_isolation = 'serializable'",
        "standard_conforming_strings = off",
    ],
)
def test_writers_of_two_servers_go_on(address: str, opened_with: Callable[[str], list[Kernel]], setting: str) -> None:
    kernels = opened_with(setting)
    load = Load(kernels)
    time.sleep(SECONDS)
    load.stop()

    assert {reply.body for reply in load.answers.values() if reply.fault is not None} == set()
    load.check(paths(address))
    assert chain_is_whole(kernels[0])


@pytest.mark.slow
def test_a_lock_of_another_program_is_no_mistake_of_the_caller(address: str, opened: Callable[[str], Kernel]) -> None:
    kernel = opened(address)
    assert add(kernel, "before").fault is None

    async def together() -> list[str | None]:
        """Some calls of which each waits for the lock, in one group."""
        calls = [ask(kernel, "add_memory", path=f"p/{at}", content="text") for at in range(CALLS)]
        return [reply.fault for reply in await asyncio.gather(*calls)]

    with stores.connect(address) as db, db.transaction():
        db.execute("LOCK TABLE quipu_data.paths_memory IN ACCESS EXCLUSIVE MODE")
        answers = [add(kernel, "a"), asyncio.run(ask(kernel, "read_memory", path="before"))]
        begun = time.monotonic()
        faults = asyncio.run(together())
        seconds = time.monotonic() - begun

    assert [reply.fault for reply in answers] == ["busy"] * 2, answers
    assert (set(faults), seconds < CALLS / 2) == ({"busy"}, True)
    assert add(kernel, "a").fault is None
    assert paths(address) == ["a", "before"]
