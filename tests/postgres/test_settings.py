"""A database with settings of its own, which other programs may need."""

import time
from collections.abc import Callable

import pytest

from kernel.server.app import Kernel
from tests.postgres import stores
from tests.postgres.calls import Load, chain_is_whole, paths

pytestmark = pytest.mark.postgres
SECONDS = 1.5


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
