"""A replica for reads that is away, stands still or comes back: reads are answered, and hold all writes."""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernel.core.config import Config
from kernel.engines.postgres import database
from kernel.server.app import Kernel, open_kernel
from tests.postgres import stores
from tests.postgres.calls import add, ask
from tests.postgres.cluster import Cluster, running
from tests.reliability.server_process import until

pytestmark = pytest.mark.postgres


class Pair:
    """A kernel over a primary whose reads go to a standby."""

    def __init__(self, kernel: Kernel, standby: Cluster) -> None:
        self.kernel = kernel
        self.standby = standby

    def role(self) -> str:
        """Return the report of /readyz on the replica."""
        assert self.kernel.store.probe is not None
        told = self.kernel.store.probe()
        assert told["store"] == "primary"
        return told["read_store"]

    def read(self, path: str) -> Any:
        """The reply to a read."""
        return asyncio.run(ask(self.kernel, "read_memory", path=path))

    def replay(self, command: str) -> None:
        """Pauses or resumes the standby."""
        with stores.connect(f"{self.standby.address}/postgres") as admin:
            admin.execute(f"SELECT pg_wal_replay_{command}()")


@pytest.fixture
def pair(cluster: Cluster, tmp_path: Path) -> Iterator[Pair]:
    """Both at work."""
    address = stores.new_database("replica", cluster.address)
    with running(cluster.address) as standby:
        follower = f"{standby.address}/replica"
        kernel = open_kernel(Config(data=tmp_path / "data", store=address, read_store=follower, model=None))
        yield Pair(kernel, standby)
        kernel.store.close()
        database.forget_pool(address)
        database.forget_pool(follower)


def test_reads_of_the_replica_see_each_write_before_them(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(50):
        assert add(pair.kernel, f"a{number}").fault is None
        assert b"text of" in pair.read(f"a{number}").body
    assert pair.role() == "standby"
    assert "reads go to the primary" not in caplog.text


def test_a_replica_that_is_away_takes_no_read_down_and_is_used_again(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "quipu")
    assert add(pair.kernel, "a").fault is None
    assert pair.role() == "standby"

    pair.standby.kill()

    assert [pair.read("a").fault for _ in range(4)] == [None] * 4
    assert pair.role() == "away"
    assert "the replica is away, reads go to the primary" in caplog.text
    pair.standby.start()
    until(lambda: pair.role() == "standby", "the replica")
    assert pair.read("a").fault is None
    assert caplog.text.count("reads go to the replica again") == 1


def test_a_server_starts_while_its_replica_is_away(cluster: Cluster, tmp_path: Path) -> None:
    address = stores.new_database("lonely", cluster.address)
    nobody = "postgresql://postgres@127.0.0.1:1/lonely"
    pair = Pair(open_kernel(Config(data=tmp_path / "data", store=address, read_store=nobody, model=None)), cluster)
    assert add(pair.kernel, "a").fault is None
    assert pair.read("a").fault is None
    assert pair.role() == "away"
    pair.kernel.store.close()
    database.forget_pool(address)
    database.forget_pool(nobody)


def test_a_replica_that_stands_still_hides_nothing_that_was_written(pair: Pair, tmp_path: Path) -> None:
    assert add(pair.kernel, "a").fault is None
    until(lambda: pair.role() == "standby", "the replica")
    pair.replay("pause")

    assert add(pair.kernel, "b").fault is None
    assert pair.read("b").fault is None
    assert pair.role() == "behind"

    pair.replay("resume")
    until(lambda: pair.role() == "standby", "the replica")
    assert pair.read("b").fault is None


def test_what_another_server_writes_is_hidden_for_a_few_seconds_at_most(pair: Pair) -> None:
    assert add(pair.kernel, "a").fault is None
    until(lambda: pair.role() == "standby", "the replica")
    pair.replay("pause")
    with stores.connect(f"{pair.kernel.config.store}") as other:
        other.execute("CREATE TABLE elsewhere AS SELECT 1")  # a write of another process
    until(lambda: pair.role() == "behind", "the lag to be noticed")
    pair.replay("resume")
    until(lambda: pair.role() == "standby", "the replica")
