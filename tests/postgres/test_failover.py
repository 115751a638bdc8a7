"""Fail-over to a synchronous standby: the primary is killed, and nothing that was answered is lost.

POSTGRES_FAILOVER_ROUNDS sets how often (once by default).
"""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres import stores
from tests.postgres.cluster import Cluster, programs, running
from tests.postgres.writers import Load, check, servers
from tests.reliability.server_process import Client, Server, until

pytestmark = pytest.mark.postgres
ROUNDS = int(os.environ.get("POSTGRES_FAILOVER_ROUNDS", "1"))
WRITES = 60  # answered before the primary dies, and after
_SYNCHRONOUS = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"


@pytest.fixture
def standby(cluster: Cluster) -> Iterator[Cluster]:
    """A copy of the cluster that each of its commits waits for."""
    if not (programs() / "pg_basebackup").exists():
        pytest.skip("pg_basebackup is not installed")
    with running(cluster.address) as following, stores.connect(f"{cluster.address}/postgres") as admin:
        admin.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        admin.execute("SELECT pg_reload_conf()")
        until(lambda: admin.execute(_SYNCHRONOUS).fetchone() == (1,), "a synchronous standby")
        yield following


def role(server: Server) -> str:
    """Of the database that a server uses."""
    client = Client(server.port)
    try:
        return json.loads(client.text("/readyz"))["store"]
    finally:
        client.close()


@pytest.mark.parametrize("number", range(ROUNDS))
def test_no_answered_write_is_lost_when_the_standby_takes_over(
    number: int, cluster: Cluster, standby: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = stores.new_database(f"failover_{number}", cluster.address).rpartition("/")[2]
    hosts = f"127.0.0.1:{cluster.port},127.0.0.1:{standby.port}"
    address = f"postgresql://postgres@{hosts}/{name}?target_session_attrs=read-write"
    with servers(2, address, tmp_path) as found:
        load = Load([server.port for server in found])
        try:
            load.until_answered(WRITES)
            begun = time.monotonic()
            cluster.kill()
            with stores.connect(f"{standby.address}/postgres") as admin:
                assert admin.execute("SELECT pg_promote()").fetchone() == (True,)
            promoted = time.monotonic()
            pause = load.next_answer(begun, after=promoted)
            load.until_answered(WRITES)
            assert [role(server) for server in found] == ["primary", "primary"]
        finally:
            load.stop()
    check(load, f"{standby.address}/{name}", tmp_path)
    with capsys.disabled():
        times = f"promoted after {promoted - begun:.2f} s, answered again after {pause:.2f} s"
        print(f"\nfail-over: {dict(load.outcomes())}, {times}")
