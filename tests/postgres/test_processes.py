"""Several servers on one store, as processes of several machines would use it.

POSTGRES_READS sets how many writes are looked for through another server (120 by default).
"""

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest

from kernel.app import Kernel, open_kernel
from kernel.cli.main import main
from kernel.config import Config
from kernel.data_dir import MAIN
from kernel.security import api_keys
from tests.postgres import stores
from tests.postgres.calls import add, ask, chain_is_whole, paths
from tests.postgres.writers import servers
from tests.reliability.server_process import Client, Server, serving

pytestmark = pytest.mark.postgres
READS = int(os.environ.get("POSTGRES_READS", "120"))
CREATES = 400
SECONDS = 1.0  # within which a key that is revoked anywhere is refused
T = TypeVar("T")
# A server whose clock is years behind or ahead.
_SKEWED = "import time; real = time.time_ns; time.time_ns = lambda: real() + {}; import kernel.cli.main as m; m.main()"


@pytest.fixture
def four(address: str, tmp_path: Path) -> Iterator[list[Server]]:
    """Four server processes on one store."""
    with servers(4, address, tmp_path) as found:
        yield found


def of_each(found: Sequence[Server], work: Callable[[int, Client], T]) -> list[T]:
    """What `work` makes of the number of each server and a connection to it, at once."""

    def run(number: int) -> T:
        client = Client(found[number].port)
        try:
            return work(number, client)
        finally:
            client.close()

    with ThreadPoolExecutor(len(found)) as threads:
        return list(threads.map(run, range(len(found))))


def test_all_creates_of_four_servers_are_there_once(
    four: list[Server], address: str, opened: Callable[[str], Kernel]
) -> None:
    def create(number: int, client: Client) -> list[int]:
        return [
            client.call("add_memory", path=f"of{number}/{at}", content=f"text {at}")[0]
            for at in range(CREATES // len(four))
        ]

    statuses = [status for several in of_each(four, create) for status in several]

    assert Counter(statuses) == {200: CREATES}
    assert len(paths(address)) == len(set(paths(address))) == CREATES
    assert chain_is_whole(opened(address))


def test_of_servers_that_want_one_path_one_gets_it(four: list[Server], address: str) -> None:
    def compete(_number: int, client: Client) -> list[int]:
        return [client.call("add_memory", path=f"contested/{at}", content="mine")[0] for at in range(25)]

    for statuses in zip(*of_each(four, compete), strict=True):
        assert sorted(statuses) == [200, 409, 409, 409]
    assert paths(address) == sorted(f"contested/{at}" for at in range(25))


def test_a_lock_has_one_holder_and_each_holder_a_higher_number(four: list[Server]) -> None:
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

    assert of_each(four, lock) == [10, 10, 10, 10]
    assert tokens == sorted(set(tokens))


def test_what_one_server_answered_another_finds_in_the_next_call(four: list[Server]) -> None:
    clients = [Client(server.port) for server in four]
    missed: list[str] = []
    for number in range(READS):
        writer, reader = clients[number % 4], clients[(number + 1 + number // 4 % 3) % 4]
        path, word = f"seen/{number % 7}/{number}", f"word{number}"
        status, answer = writer.call("add_memory", path=path, content=f"the {word} of this memory")
        assert status == 200, answer
        status, answer = reader.call("recall", query=word)
        if status != 200 or path not in json.dumps(answer):
            missed.append(f"{path}: {status} {answer!r}")
    for client in clients:
        client.close()
    assert missed == []


def test_a_key_revoked_by_one_server_is_refused_by_all_within_a_second(address: str, tmp_path: Path) -> None:
    machines = [tmp_path / f"machine{at}" / "data" for at in range(4)]
    assert main(["key", "create", "--scope", "admin", "--data", str(machines[0]), "--store", address]) == 0
    made, secret = api_keys.create(machines[0], api_keys.Key("", "write", "2026-01-01T00:00:00.000Z"))
    with open_kernel_of(machines[0], address):
        pass
    with servers(4, address, tmp_path, QUIPU_MODEL="none") as found:

        def status(server: Server) -> int:
            headers = {"authorization": f"Bearer {secret}"}
            return httpx.post(f"http://127.0.0.1:{server.port}/tools/list_memories", headers=headers, json={}).status_code

        assert [status(server) for server in found] == [200] * 4
        assert main(["key", "revoke", made.id, "--data", str(machines[3]), "--store", address]) == 0
        end = time.monotonic() + SECONDS
        while time.monotonic() < end and {status(server) for server in found} != {401}:
            time.sleep(0.02)
        assert [status(server) for server in found] == [401] * 4
