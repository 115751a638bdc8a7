"""Several servers on one store, as processes of several machines would use it.

POSTGRES_READS sets how many writes are looked for through another server (120 by default).
"""

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, TypeVar

import httpx
import pytest

from kernel.cli.main import main
from kernel.server.app import Kernel
from tests.postgres import stores
from tests.postgres.calls import chain_is_whole, paths
from tests.postgres.writers import servers
from tests.reliability.server_process import Client, Server

pytestmark = pytest.mark.postgres
READS = int(os.environ.get("POSTGRES_READS", "120"))
CREATES = 400
SECONDS = 1.0  # within which a key that is revoked anywhere is refused
T = TypeVar("T")
# A server whose clock is years behind or ahead.
_IDS = "SELECT id FROM quipu_data.brain_memory WHERE content LIKE 'fact %' ORDER BY CAST(substr(content, 6) AS integer)"
_SKEWED = (
    "import runpy, time; real = time.time_ns; time.time_ns = lambda: real() + {}; "
    "runpy.run_module('kernel', run_name='__main__')"
)


class Four(NamedTuple):
    """Four server processes on one store."""

    address: str
    servers: list[Server]


@pytest.fixture(scope="module")
def four(server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Four]:
    """One store for all tests that leave each other alone."""
    address = stores.new_database("four", server)
    with servers(4, address, tmp_path_factory.mktemp("four")) as found:
        yield Four(address, found)


def of_each(found: Sequence[Server], work: Callable[[int, Client], T]) -> list[T]:
    """Return the results of `work` for the number of each server and a connection to it, at once."""

    def run(number: int) -> T:
        client = Client(found[number].port)
        try:
            return work(number, client)
        finally:
            client.close()

    with ThreadPoolExecutor(len(found)) as threads:
        return list(threads.map(run, range(len(found))))


def test_all_creates_of_four_servers_are_there_once(four: Four, opened: Callable[[str], Kernel]) -> None:
    def create(number: int, client: Client) -> list[int]:
        return [
            client.call("add_memory", path=f"of{number}/{at}", content=f"text {at}")[0]
            for at in range(CREATES // len(four.servers))
        ]

    statuses = [status for several in of_each(four.servers, create) for status in several]

    assert Counter(statuses) == {200: CREATES}
    assert len([path for path in paths(four.address) if path.startswith("of")]) == CREATES
    assert chain_is_whole(opened(four.address))


def test_of_servers_that_want_one_path_one_gets_it(four: Four) -> None:
    def compete(_number: int, client: Client) -> list[int]:
        return [client.call("add_memory", path=f"contested/{at}", content="mine")[0] for at in range(25)]

    for statuses in zip(*of_each(four.servers, compete), strict=True):
        assert sorted(statuses) == [200, 409, 409, 409]
    assert len([path for path in paths(four.address) if path.startswith("contested/")]) == 25


def test_a_lock_has_one_holder_and_each_holder_a_higher_number(four: Four) -> None:
    held: list[int] = []  # by whom, while somebody holds it
    tokens: list[int] = []

    def lock(number: int, client: Client) -> int:
        got = 0
        while got < 10:
            own = {"file_path": "/shared/file", "agent_id": f"agent{number}"}
            status, answer = client.call("memory_file_lock", action="checkout", **own)
            if status != 200:
                assert status == 409, answer
                continue
            held.append(number)
            assert held == [number]
            tokens.append(answer["lock"]["fencingToken"])
            held.clear()
            assert client.call("memory_file_lock", action="checkin", **own)[0] == 200
            got += 1
        return got

    assert of_each(four.servers, lock) == [10, 10, 10, 10]
    assert tokens == sorted(set(tokens))


def test_what_one_server_answered_another_finds_in_the_next_call(four: Four) -> None:
    with ExitStack() as stack:
        clients = [Client(server.port) for server in four.servers]
        for client in clients:
            stack.callback(client.close)
        for number in range(READS):
            writer, reader = clients[number % 4], clients[(number + 1 + number // 4 % 3) % 4]
            path, word = f"seen/{number % 7}/{number}", f"word{number}"
            status, answer = writer.call("add_memory", path=path, content=f"the {word} of this memory")
            assert status == 200, answer
            status, answer = reader.call("recall", query=word)
            assert (status, path in str(answer)) == (200, True), answer


def test_a_key_revoked_on_one_machine_is_refused_by_all_servers_within_a_second(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def key(machine: int, *words: str) -> str:
        folder = str(tmp_path / f"machine{machine}" / "data")
        assert main(["key", *words, "--data", folder, "--store", address]) == 0
        return capsys.readouterr().out.strip()

    def statuses() -> set[int]:
        headers = {"authorization": f"Bearer {secret}"}
        address_of = "http://127.0.0.1:{}/tools/list_memories"
        return {httpx.post(address_of.format(server.port), headers=headers, json={}).status_code for server in found}

    key(0, "create", "--scope", "admin")
    secret = key(1, "create", "--scope", "write")
    with servers(4, address, tmp_path) as found:
        assert statuses() == {200}
        key(3, "revoke", secret.split("_")[1])
        end = time.monotonic() + SECONDS
        while time.monotonic() < end and statuses() != {401}:
            time.sleep(0.02)
        assert statuses() == {401}


def test_times_are_those_of_the_database_whatever_the_clocks_of_the_machines_show(address: str, tmp_path: Path) -> None:
    before = datetime.now(UTC)
    with ExitStack() as stack:
        clients: list[Client] = []
        for days in (-1000, 1000):
            command = (sys.executable, "-c", _SKEWED.format(days * 86_400_000_000_000), "serve")
            folder = tmp_path / f"ahead{days}" / "data"
            folder.mkdir(parents=True)
            server = Server(folder, command, QUIPU_STORE=address, QUIPU_MODEL="none")
            stack.callback(server.kill)
            clients.append(Client(server.port))
            stack.callback(clients[-1].close)
        for number in range(20):
            memories = [{"content": f"fact {number}", "category": "fact"}]
            assert clients[number % 2].call("bulk_save_memories", db="core", memories=memories)[0] == 200
        lock = {"file_path": "/a", "agent_id": "one"}
        assert clients[0].call("memory_file_lock", action="checkout", expires_in=60, **lock)[0] == 200
        assert clients[1].call("memory_file_lock", action="status", file_path="/a")[1]["isLocked"]
    with stores.connect(address) as db:
        audited = [
            at for (at,) in db.execute("SELECT at FROM quipu_data.audit WHERE tenant > 0 ORDER BY id").fetchall()
        ]
        ids = [id_ for (id_,) in db.execute(_IDS).fetchall()]
    assert audited == sorted(audited)
    assert ids == sorted(ids)
    assert all(abs((datetime.fromisoformat(at) - before).total_seconds()) < 3600 for at in audited)
