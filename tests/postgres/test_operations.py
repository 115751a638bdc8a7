"""The answers to a client over HTTP while the database is away, locked, slow, or only a standby."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from kernel.engines.postgres.database import forget_pool, pool_of
from tests.postgres import stores
from tests.postgres.cluster import Cluster, running
from tests.postgres.writers import servers
from tests.reliability.server_process import Server, until

pytestmark = pytest.mark.postgres
_LOCK = 0x51554950  # of the writers of tenants


class Served(NamedTuple):
    """A server on a database that a test may kill."""

    cluster: Cluster
    address: str
    server: Server

    def post(self, tool: str, **arguments: Any) -> httpx.Response:
        headers = {"accept": "application/json"}
        address = f"http://127.0.0.1:{self.server.port}/tools/{tool}"
        return httpx.post(address, json=arguments, headers=headers, timeout=60)

    def ready(self) -> tuple[int, str]:
        """The status of the probe, and which database answers."""
        answer = httpx.get(f"http://127.0.0.1:{self.server.port}/readyz")
        return answer.status_code, answer.json().get("store", "")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with running() as cluster:
        address = stores.new_database("operated", cluster.address)
        settings = {"QUIPU_MODEL": "none", "QUIPU_LIMIT_STORE_MILLISECONDS": 500}
        with servers(1, address, tmp_path_factory.mktemp("operated"), **settings) as (server,):
            yield Served(cluster, address, server)


def heard(answer: httpx.Response) -> tuple[int, str | None, str]:
    """Status, when to try again, and the message, in the form of any dialect."""
    found = re.search(r'message"?: ?"?([^"\n]+)', answer.text)
    return answer.status_code, answer.headers.get("retry-after"), found[1] if found else answer.text


def test_while_the_database_is_away_calls_are_told_to_try_again(served: Served) -> None:
    assert served.post("add_memory", path="before", content="text").status_code == 200
    served.cluster.kill()

    away = (503, "1", "Cannot reach the database.")
    assert heard(served.post("add_memory", path="meanwhile", content="text")) == away
    assert heard(served.post("recall", query="text")) == away
    assert served.ready() == (503, "")

    served.cluster.start()
    until(lambda: served.ready() == (200, "primary"), "the server to find its database again")
    assert served.post("add_memory", path="meanwhile", content="text").status_code == 200


def test_after_a_restart_of_the_database_no_call_is_refused(served: Served) -> None:
    assert served.post("recall", query="text").status_code == 200
    served.cluster.kill()
    served.cluster.start()

    assert served.post("add_memory", path="restarted", content="text").status_code == 200
    assert served.post("recall", query="text").status_code == 200


def test_while_another_writes_for_long_reads_go_on_and_writes_are_told_to_try_again(served: Served) -> None:
    with stores.connect(served.address) as admin:
        (tenant,) = admin.execute("SELECT id FROM quipu.directory WHERE name = 'main'").fetchone()
        admin.execute(f"SELECT pg_advisory_lock({_LOCK}, {tenant})")

        waited = heard(served.post("add_memory", path="locked", content="text"))

        assert waited == (503, "1", "The store is busy, try again.")
        assert served.post("recall", query="text").status_code == 200
        assert served.ready() == (200, "primary")
    assert served.post("add_memory", path="locked", content="text").status_code == 200


def test_a_statement_ends_at_its_time_limit(served: Served) -> None:
    with stores.connect(served.address) as admin:
        admin.execute(
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(20); RETURN new; END'"
        )
        admin.execute(
            "CREATE TRIGGER slow BEFORE INSERT ON quipu_data.paths_memory FOR EACH ROW EXECUTE FUNCTION slow()"
        )

        answer = heard(served.post("add_memory", path="slow", content="text"))
        admin.execute("DROP FUNCTION slow CASCADE")

    assert answer == (400, None, "The call takes too long, ask for less.")
    assert served.post("add_memory", path="slow", content="text").status_code == 200


def test_a_read_waits_for_a_lock_of_another_program_for_less(served: Served) -> None:
    with stores.connect(served.address) as admin, admin.transaction():
        admin.execute("LOCK TABLE quipu_data.paths_memory IN ACCESS EXCLUSIVE MODE")

        assert heard(served.post("list_memories")) == (503, "1", "The store is busy, try again.")
    assert served.post("list_memories").status_code == 200


def test_a_standby_reads_and_refuses_to_write(served: Served, tmp_path: Path) -> None:
    with running(served.cluster.address) as standby:
        address = f"{standby.address}/operated"
        with servers(1, address, tmp_path, QUIPU_MODEL="none") as (server,):
            follower = Served(standby, address, server)

            assert follower.ready() == (200, "standby")
            assert follower.post("recall", query="text").status_code == 200
            refused = heard(follower.post("add_memory", path="on the standby", content="text"))
            assert refused == (507, None, "The database takes no changes: it is a standby, or set to only read.")


@stores.WITHOUT_POOLER
def test_both_ends_notice_that_the_machine_of_the_other_is_gone(address: str) -> None:
    def settings(of: str) -> tuple[str, str, str]:
        pool = pool_of(of)
        db = pool.take()
        (idle,) = db.execute("SELECT current_setting('tcp_keepalives_idle')").fetchone()
        given = db.info.get_parameters()
        pool.give(db)
        forget_pool(of)
        return idle, given["keepalives_idle"], given["tcp_user_timeout"]

    assert settings(address) == ("15", "15", "30000")
    assert settings(f"{address}?tcp_user_timeout=5000") == ("15", "15", "5000")
