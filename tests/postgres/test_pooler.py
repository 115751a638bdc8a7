"""Servers behind PgBouncer in transaction mode, where no two transactions need have the same session."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from kernel.cli.main import main
from kernel.engines.postgres import database, driver
from kernel.server.app import Kernel
from tests.postgres import stores
from tests.postgres.calls import Load, chain_is_whole, paths
from tests.postgres.pooler import pooled, program
from tests.postgres.writers import Load as Callers
from tests.postgres.writers import check, servers
from tests.reliability.server_process import serving

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(program() is None, reason="PgBouncer is not there: `make .venv-pgbouncer/.ok` unpacks it"),
]
BETWEEN = 20  # answered writes between two faults
ROUNDS = int(os.environ.get("POSTGRES_KILL_ROUNDS", "3"))


@pytest.fixture(scope="module")
def pooler(server: str) -> Iterator[str]:
    """The address of a pooler."""
    if stores.ADDRESS and os.environ.get("POOLER"):
        yield server
    else:
        with pooled(server) as address:
            yield address


@pytest.fixture
def behind(pooler: str, address: str) -> Iterator[str]:
    """The address of a new database behind the pooler."""
    made = f"{pooler}/{address.rpartition('/')[2]}"
    yield made
    database.forget_pool(made)


def test_callers_of_two_servers_share_a_tenant(behind: str, opened: Callable[[str], Kernel]) -> None:
    kernels = [opened(behind), opened(behind)]
    load = Load(kernels)
    while len(load.answers) < 60:
        assert not any(reply.fault for reply in [*load.answers.values()][:-6])
    load.stop()

    load.check(paths(behind))
    assert chain_is_whole(kernels[0])


def test_nothing_answered_is_lost_when_servers_are_killed(behind: str, address: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        running = stack.enter_context(servers(2, behind, tmp_path))
        ports = [server.port for server in running]
        load = Callers(ports)
        for at in range(ROUNDS):
            load.until_answered(BETWEEN)
            killed = running[at % 2]
            killed.kill()
            running[at % 2] = stack.enter_context(serving(killed.data, QUIPU_STORE=behind, QUIPU_LIMIT_RATE=0))
            ports[at % 2] = running[at % 2].port
        load.until_answered(BETWEEN)
        load.stop()
    check(load, address, tmp_path)


def test_a_session_keeps_nothing_of_the_store(behind: str, opened: Callable[[str], Kernel]) -> None:
    opened(behind)
    with closing(driver.connect(behind)) as connection, driver.transaction(connection):
        here = {name: connection.execute(f"SHOW {name}").fetchone()[0] for name in ("search_path", "enable_seqscan")}
    with closing(driver.connect(behind)) as connection:
        after = {name: connection.execute(f"SHOW {name}").fetchone()[0] for name in here}
        prepared = connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()[0]

    assert (here, after, prepared) == (
        {"search_path": "quipu, pg_catalog", "enable_seqscan": "off"},
        {"search_path": '"$user", public', "enable_seqscan": "on"},
        0,
    )


@pytest.mark.parametrize(
    ("said", "expected"), [("", True), ("?pgbouncer=true", True), ("?application_name=q&pgbouncer=false", False)]
)
def test_a_pooler_is_noticed_unless_the_address_says(pooler: str, said: str, *, expected: bool) -> None:
    with closing(driver.connect(f"{pooler}/postgres{said}")) as connection:
        assert connection.quipu_pooled is expected


@pytest.mark.parametrize(("said", "expected"), [("", False), ("?pgbouncer=true&application_name=q", True)])
def test_a_server_is_taken_for_a_pooler_if_the_address_says_so(server: str, said: str, *, expected: bool) -> None:
    if os.environ.get("POOLER"):
        pytest.skip("the server is a pooler")
    with closing(driver.connect(f"{server}/postgres{said}")) as connection:
        assert connection.quipu_pooled is expected


def test_a_move_through_a_pooler_is_refused(
    pooler: str, behind: str, opened: Callable[[str], Kernel], capsys: pytest.CaptureFixture[str]
) -> None:
    opened(behind)
    target = stores.new_database(f"{behind.rpartition('/')[2]}_target", pooler)
    try:
        code = main(["tenant", "move", "main", "--to", target, "--store", behind])
    finally:
        database.forget_pool(target)

    assert (code, capsys.readouterr().err) == (
        1,
        "quipu: A move needs the database itself: use its own address, not that of a pooler.\n",
    )
