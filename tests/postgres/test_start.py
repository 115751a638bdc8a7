"""The start of servers: before their database, on an empty database, and on a database that cannot hold every text."""

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.engines.postgres import database
from kernel.server.app import open_kernel
from tests.postgres import stores
from tests.postgres.cluster import Cluster
from tests.reliability.server_process import Client, serving, until

pytestmark = pytest.mark.postgres
TOGETHER = 8
SLOW = {"QUIPU_LIMIT_STORE_MILLISECONDS": 30_000}  # statements end by the clock, and these tests run beside others


def test_a_server_waits_for_its_database_and_says_so(cluster: Cluster, tmp_path: Path) -> None:
    address = stores.new_database("late", cluster.address)
    cluster.stop()
    with serving(tmp_path / "data", QUIPU_STORE=address, ready=False, **SLOW) as server:
        until(lambda: "waiting for the database" in server.log(), "a line in the log")
        with closing(Client(server.port)) as client:
            assert (client.get("/healthz"), client.get("/readyz")) == (200, 503)
            cluster.start()
            until(server.ready, "the server")
            assert client.call("add_memory", path="a", content="b")[0] == 200
        assert re.search("WARNING waiting for the database, for [56][0-9] s more: connection failed", server.log())


def test_a_server_that_has_waited_enough_ends(cluster: Cluster, tmp_path: Path) -> None:
    cluster.stop()
    settings = {"QUIPU_STORE": f"{cluster.address}/never", "QUIPU_STORE_WAIT": 1}
    with serving(tmp_path / "data", ready=False, **settings) as server:
        assert server.process.wait(30) == 1
        assert server.log().endswith("quipu: Cannot reach the database.\n")


def test_a_server_that_waits_ends_when_it_is_told_to(cluster: Cluster, tmp_path: Path) -> None:
    cluster.stop()
    with serving(tmp_path / "data", QUIPU_STORE=f"{cluster.address}/never", ready=False) as server:
        until(lambda: "waiting for the database" in server.log(), "a line in the log")
        server.stop()
        assert "traceback" not in server.log().lower()


def test_servers_started_together_on_an_empty_database_all_come_up(server: str, tmp_path: Path) -> None:
    address = stores.new_database("together", server)

    def come_up(number: int) -> int:
        folder = tmp_path / str(number) / "data"
        with serving(folder, QUIPU_STORE=address, **SLOW) as own, closing(Client(own.port)) as client:
            return client.call("add_memory", path=f"of/{number}", content="here")[0]

    with ThreadPoolExecutor(TOGETHER) as threads:
        assert list(threads.map(come_up, range(TOGETHER))) == [200] * TOGETHER


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_of_another_encoding_is_refused_by_name(server: str, tmp_path: Path, encoding: str) -> None:
    name = f"of_{encoding.lower()}"
    with stores.connect(f"{server}/postgres") as db:
        db.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'")
    with pytest.raises(Fault) as refused:
        open_kernel(Config(data=tmp_path, store=f"{server}/{name}", model=None))
    database.forget_pool(f"{server}/{name}")

    assert str(refused.value) == (
        f"The database has the encoding {encoding}, and UTF8 is needed: make another by "
        "`createdb --template template0 --encoding UTF8 NAME`."
    )
