"""Three servers share the tenants: a tenant moves while it is written, and a server is lost."""

import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

import pytest

from kernel.cli.main import main
from kernel.core.data_dir import MAIN
from kernel.core.errors import Fault
from kernel.engines.postgres import database
from kernel.server import app
from kernel.server.app import Kernel
from tests.postgres import stores
from tests.postgres.calls import add, chain_is_whole
from tests.postgres.cluster import Cluster, running
from tests.support.postgres_servers import Open, contents, faults, loaded, moved, opened, places

__all__ = ["opened"]
pytestmark = pytest.mark.postgres
TENANTS = int(os.environ.get("POSTGRES_TENANTS", "9"))


class Shards(NamedTuple):
    """Three servers, of which the first has the directory."""

    clusters: list[Cluster]
    addresses: list[str]

    @property
    def home(self) -> str:
        return self.addresses[0]


@pytest.fixture
def shards() -> Iterator[Shards]:
    with ExitStack() as stack:
        clusters = [stack.enter_context(running()) for _ in range(3)]
        addresses = [stores.new_database("quipu", cluster.address) for cluster in clusters]
        yield Shards(clusters, addresses)
        for address in addresses:
            database.forget_pool(address)


def write_to_all(main_kernel: Kernel, names: list[str], path: str) -> dict[str, str]:
    """Writes one memory of each tenant, as a server of all of them would; the codes of the answers, `ok` without."""
    told: dict[str, str] = {}
    for name in names:
        try:
            own = app.open_tenant(main_kernel, name)
        except Fault as fault:
            told[name] = fault.code
            continue
        answer = add(own, path)
        told[name] = "ok" if answer.fault is None else answer.fault
        own.store.close()
    return told


def test_three_servers_share_the_tenants_and_one_moves_under_load(
    shards: Shards, opened: Open, capsys: pytest.CaptureFixture[str]
) -> None:
    home, second, third = shards.addresses
    for address in (second, third):
        assert main(["store", "add", address, "--store", home]) == 0
    first = opened(home, MAIN)
    names = [f"t{number}" for number in range(TENANTS - 1)]
    assert set(write_to_all(first, names, "first").values()) == {"ok"}
    spread = {name: address for address in shards.addresses for name in names if places([address], name)}
    counts = Counter(spread.values())
    assert sum(counts.values()) == TENANTS - 1
    assert max(counts.values()) - min(counts.values()) <= 1

    mover = next(name for name in names if spread[name] == second)
    with loaded(opened(home, mover), opened(home, mover)) as load:
        time.sleep(1.0)
        output = moved(home, third, mover)
        time.sleep(1.0)

    held = contents(third, mover)
    load.check(sorted(row[0] for row in held["paths_memory"]))
    assert set(faults(load)) <= {"busy"}
    assert contents(second, mover) == {}
    assert places(shards.addresses, mover) == [third]
    with capsys.disabled():
        print(f"\n{TENANTS} tenants; {output.strip()}; {len(load.answers)} writes, refused: {dict(faults(load))}")

    spread[mover] = third
    shards.clusters[2].kill()
    told = write_to_all(first, names, "second")
    assert {name for name in names if told[name] != "ok"} == {name for name in names if spread[name] == third}
    assert {told[name] for name in names if spread[name] == third} == {"busy"}
    shards.clusters[2].start()
    time.sleep(1.1)
    assert set(write_to_all(first, names, "third").values()) == {"ok"}
    assert chain_is_whole(opened(home, mover))

    still = opened(home, next(name for name in names if spread[name] == second))
    shards.clusters[0].kill()
    assert add(still, "without the home").fault is None
