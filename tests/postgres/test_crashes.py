"""No answered write is lost, doubled or half there, after every kill and cut: the database, its processes, a server,
a connection around a COMMIT.

POSTGRES_KILL_ROUNDS sets how often that happens, over all kinds (14 by default).
"""

import math
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.postgres import stores
from tests.postgres.cluster import Cluster, running
from tests.postgres.proxy import Cut, Proxy
from tests.postgres.writers import Load, check, servers
from tests.reliability.server_process import Server

pytestmark = pytest.mark.postgres
BETWEEN = 20  # answered writes between two faults
_BACKENDS = (
    "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() "
    "ORDER BY state <> 'active', random()"
)


class Scene:
    """A database, a network in front of it, and two servers."""

    def __init__(self, cluster: Cluster, proxy: Proxy, running_servers: list[Server], database: str) -> None:
        self.cluster = cluster
        self.proxy = proxy
        self.servers = running_servers
        self.ports = [server.port for server in running_servers]
        self.database = database
        self._killed = 0

    def kill_backend(self) -> None:
        """kill -9 of one process of the database, after which it ends all others and recovers."""
        with stores.connect(self.database) as admin:
            (pid,) = admin.execute(_BACKENDS).fetchone()
            os.kill(pid, signal.SIGKILL)

    def end_backends(self) -> None:
        """Act as an administrator or a fail-over: all sessions end."""
        with stores.connect(self.database) as admin:
            admin.execute(f"SELECT pg_terminate_backend(pid) FROM ({_BACKENDS}) AS b")

    def kill_database(self) -> None:
        """kill -9 of the whole database, which recovers from its log when it starts."""
        self.cluster.kill()
        self.cluster.start()

    def kill_server(self) -> None:
        """kill -9 of one of the servers; another takes its place."""
        at = self._killed % len(self.servers)
        self._killed += 1
        old = self.servers[at]
        old.kill()
        self.servers[at] = Server(old.data, QUIPU_STORE=self.address, QUIPU_LIMIT_RATE=0)
        self.ports[at] = self.servers[at].port

    @property
    def address(self) -> str:
        """Of the database behind the network."""
        return self.database.replace(str(self.cluster.port), str(self.proxy.port))

    def cut(self, how: Cut) -> None:
        """Cuts the connection of the next commit."""
        self.proxy.cut(how)
        assert self.proxy.was_cut()


FAULTS: dict[str, Callable[[Scene], None]] = {
    "kill -9 of a process of the database": Scene.kill_backend,
    "end of all its sessions": Scene.end_backends,
    "kill -9 of the database": Scene.kill_database,
    "kill -9 of a server": Scene.kill_server,
    **{f"cut {how.value}": lambda scene, how=how: scene.cut(how) for how in (Cut.BEFORE, Cut.DURING, Cut.AFTER)},
}


ROUNDS = math.ceil(int(os.environ.get("POSTGRES_KILL_ROUNDS", "14")) / len(FAULTS))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A database server of its own, since it is killed."""
    with running() as found:
        yield found


@pytest.mark.parametrize("fault", FAULTS)
def test_no_answered_write_is_lost_doubled_or_half_there(
    fault: str, cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = stores.new_database(f"crashes_{[*FAULTS].index(fault)}", cluster.address)
    proxy = Proxy(cluster.port)
    through = database.replace(str(cluster.port), str(proxy.port))
    with servers(2, through, tmp_path) as found:
        scene = Scene(cluster, proxy, found, database)
        load = Load(scene.ports)
        pauses: list[float] = []
        try:
            for _ in range(ROUNDS):
                load.until_answered(BETWEEN)
                begun = time.monotonic()
                FAULTS[fault](scene)
                pauses.append(load.next_answer(begun, after=time.monotonic()))
            load.until_answered(BETWEEN)
        finally:
            load.stop()
            for server in scene.servers:
                server.kill()
    proxy.close()
    check(load, database, tmp_path)
    with capsys.disabled():
        print(f"\n{fault}: {ROUNDS} rounds, {dict(load.outcomes())}, answered again after {max(pauses):.2f} s at most")
