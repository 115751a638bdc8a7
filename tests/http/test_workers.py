"""Several workers are one server: the others know of each write, count and refusal of one in the next call.

WORKER_WRITES sets how many writes of one worker are looked for through another (30 by default).
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from itertools import cycle, permutations
from pathlib import Path
from typing import Any

import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from kernel.security import api_keys
from kernel.security.api_keys import Key
from tests.catalogue import Catalogue
from tests.reliability.server_process import LOST, ROOT, Client, Server, free_port, until
from tests.reliability.workers import one_for_each_worker, owner, pids, serving_by
from tests.security.sockets import Peer, request

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows serves with one worker")

WRITES = int(os.environ.get("WORKER_WRITES", "30"))
CREATED = "2026-11-21T10:00:00.000Z"
RATE, BURST = 1, 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving_by(2, tmp_path_factory.mktemp("workers") / "data", QUIPU_METRICS=1) as running:
        yield running


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kernel", *words], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )


def found(client: Client, query: str) -> list[str]:
    """The ids that `recall` finds, best first."""
    status, answer = client.call("recall", query=query, limit=5)
    assert status == 200, answer
    return [hit["id"] for hit in answer["memories"]]


def test_what_one_worker_writes_another_finds_in_the_next_call(server: Server, catalogue: Catalogue) -> None:
    with one_for_each_worker(server, lambda: Client(server.port)) as clients:
        turns = cycle([tuple(clients.values()), tuple(clients.values())[::-1]])
        for number in range(WRITES):
            writer, reader = next(turns)
            path, word = f"shared/{number}", f"zq{number}xw"
            assert writer.call("add_memory", path=path, content=f"The word {word} of rivers.")[0] == 200
            assert found(reader, word)[0] == f"paths/{path}"
            assert writer.call("replace_memory", path=path, content=f"Another one, {word}b, of hills.")[0] == 200
            assert reader.call("read_memory", path=path)[1]["content"] == f"Another one, {word}b, of hills."
            assert found(reader, f"{word}b")[0] == f"paths/{path}"
            assert writer.call("drop_memory", path=path)[0] == 200
            assert f"paths/{path}" not in found(reader, f"{word}b")
    outcome = "what was added, replaced and dropped is found so in the next call"
    catalogue("R36", injected="write through one worker, search through another", times=WRITES, outcome=outcome)


def test_what_one_worker_writes_another_finds_by_meaning_in_the_next_call(server: Server) -> None:
    texts = {
        "meaning/boat": ("The vessel left the harbour at dawn", "a ship sailed from port in the morning"),
        "meaning/bread": ("She baked a loaf of rye", "making bread in the oven"),
        "meaning/doctor": ("The physician prescribed rest", "what did the medical practitioner advise"),
    }
    with one_for_each_worker(server, lambda: Client(server.port)) as clients:
        for (writer, reader), (path, (text, question)) in zip(
            cycle([tuple(clients.values()), tuple(clients.values())[::-1]]), texts.items(), strict=False
        ):
            assert writer.call("add_memory", path=path, content=text)[0] == 200
            assert found(reader, question)[0] == f"paths/{path}"


def test_a_file_that_one_worker_locks_is_locked_for_callers_of_another(server: Server) -> None:
    with one_for_each_worker(server, lambda: Client(server.port)) as clients:
        one, other = clients.values()
        locked = {"action": "checkout", "file_path": "/work/a.py"}
        assert one.call("memory_file_lock", **locked, agent_id="one")[0] == 200
        assert other.call("memory_file_lock", **locked, agent_id="other")[0] == 409


def test_metrics_are_those_of_all_workers(server: Server) -> None:
    def calls(client: Client) -> float:
        families = text_string_to_metric_families(client.text("/metrics"))
        samples = [one for family in families for one in family.samples if one.name == "quipu_calls_total"]
        return sum(one.value for one in samples if one.labels["tool"] == "list_memories")

    with one_for_each_worker(server, lambda: Client(server.port)) as clients:
        one, other = clients.values()
        for client in (one, one, other):
            assert client.call("list_memories")[0] == 200
        assert (calls(one), calls(other)) == (3, 3)


def test_counters_do_not_fall_when_a_worker_dies(server: Server) -> None:
    def count(client: Client) -> float:
        families = text_string_to_metric_families(client.text("/metrics"))
        samples = [one for family in families for one in family.samples if one.name == "quipu_calls_total"]
        return sum(one.value for one in samples if one.labels["tool"] == "read_memory")

    with one_for_each_worker(server, lambda: Client(server.port)) as clients:
        for client in clients.values():
            assert client.call("read_memory", path="none")[0] == 404
        asked, dead = clients
        before = count(clients[asked])
        os.kill(dead, signal.SIGKILL)
    until(lambda: len({*pids(server)} - {dead}) == len(clients), "another worker")
    with one_for_each_worker(server, lambda: Client(server.port)) as clients:
        assert [count(client) for client in clients.values()] == [before] * len(clients)


def test_connections_are_shared_evenly(server: Server) -> None:
    def alone() -> bool:
        client = Client(server.port)
        try:
            return "quipu_connections 1\n" in client.text("/metrics")
        finally:
            client.close()

    until(alone, "the end of the connections before")
    opened = [Client(server.port) for _ in range(8)]
    try:
        for client in opened:
            until(lambda client=client: owner(server, client.local_port) != 0, "a worker that accepts")
        owners = [owner(server, client.local_port) for client in opened]
        assert {owners.count(pid) for pid in pids(server)} <= {3, 4, 5}
    finally:
        for client in opened:
            client.close()


def key_of(data: Path, name: str) -> tuple[str, bytes]:
    """The id of a new key, and a call with it."""
    key, secret = api_keys.create(data, Key("", "write", CREATED, name=name))
    return key.id, request(Authorization=f"Bearer {secret}")


def statuses(peers: Collection[Peer], call: bytes) -> list[int]:
    """Return the answer to each of them."""
    for peer in peers:
        peer.send(call)
    return [peer.answer()[0] for peer in peers]


def answered_by_all(server: Server, call: bytes) -> list[int]:
    """The status of a call on new connections, since a refusal closes its connection."""
    with one_for_each_worker(server, lambda: Peer(server.port)) as found:
        return statuses(found.values(), call)


def test_keys_and_their_rate_hold_for_all_workers_together(tmp_path: Path) -> None:
    data = tmp_path / "data"
    first, call = key_of(data, "first")
    with serving_by(2, data, QUIPU_LIMIT_RATE=RATE, QUIPU_LIMIT_BURST=BURST) as server:
        _, later = key_of(data, "later")
        until(lambda: answered_by_all(server, later) == [200, 200], "the new key")
        with one_for_each_worker(server, lambda: Peer(server.port)) as found:
            begun, answered = time.monotonic(), 0
            while (now := statuses(found.values(), call)) == [200, 200]:
                answered += 2
            answered += now.count(200)
            assert BURST <= answered <= BURST + 2 + RATE * (time.monotonic() - begun)

        api_keys.revoke(data, first, CREATED)
        until(lambda: answered_by_all(server, call) == [401, 401], "the key refused")


def test_a_tenant_has_one_store_in_all_workers(tmp_path: Path) -> None:
    data = tmp_path / "data"
    _, secret = api_keys.create(data, Key("", "write", CREATED, tenant="acme"))

    def asked(peer: Peer, tool: str, body: bytes) -> tuple[int, Any]:
        peer.send(request(f"/tools/{tool}", body, Authorization=f"Bearer {secret}", Accept="application/json"))
        status, _, answer = peer.answer()
        return status, answer

    with serving_by(2, data) as server, one_for_each_worker(server, lambda: Peer(server.port)) as peers:
        for number, (writer, reader) in enumerate(permutations(peers.values())):
            written = b'{"path":"t/%d","content":"The word zt%dx of rivers."}' % (number, number)
            assert asked(writer, "add_memory", written)[0] == 200
            _, answer = asked(reader, "recall", b'{"query":"zt%dx"}' % number)
            assert answer["memories"][0]["id"] == f"paths/t/{number}"


def test_sigterm_ends_all_workers_and_leaves_a_store_that_was_closed(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with serving_by(3, data) as server, one_for_each_worker(server, lambda: Client(server.port)) as clients:
        for number, client in enumerate(clients.values()):
            assert client.call("add_memory", path=f"a/{number}", content="text")[0] == 200
            assert client.call("drop_memory", path=f"a/{number}")[0] == 200
        workers = pids(server)
        assert server.stop() == 0
        assert not any(psutil.pid_exists(pid) for pid in workers)
    assert sorted(file.name for file in data.iterdir()) == ["quipu.db", "quipu.lock"]
    told = command("audit", "--data", str(data), "--json")
    assert (told.returncode, len(told.stdout.splitlines())) == (0, 6)
    undone = command("undo", "6", "--data", str(data))
    assert undone.returncode == 0, undone.stderr


def test_worker_that_is_killed_is_replaced_and_the_others_go_on(tmp_path: Path) -> None:
    with (
        serving_by(2, tmp_path / "data") as server,
        one_for_each_worker(server, lambda: Client(server.port)) as clients,
    ):
        (killed, _), (left, client) = clients.items()
        os.kill(killed, signal.SIGKILL)
        assert client.call("add_memory", path="a/b", content="text")[0] == 200
        until(lambda: len({*pids(server)} - {killed}) == 2, "another worker")
        with one_for_each_worker(server, lambda: Client(server.port)) as after:
            assert [one.call("read_memory", path="a/b")[1]["content"] for one in after.values()] == ["text", "text"]
        assert left in pids(server)
        assert "worker" in server.log()
        assert server.stop() == 0


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    with serving_by(2, tmp_path / "data") as server:
        workers = pids(server)
        server.kill()
        until(lambda: not any(psutil.pid_exists(pid) for pid in workers), "the end of the workers")
        client = Client(server.port)
        with pytest.raises(LOST):
            client.get("/healthz")
        client.close()


def test_workers_serve_a_socket_that_was_handed_over(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        shell = f'exec 3<&{listener.fileno()}; LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"'
        words = [sys.executable, "-m", "kernel", "serve", "--workers", "2", "--data", str(tmp_path / "data")]
        server = subprocess.Popen(["bash", "-c", shell, "sh", *words], cwd=ROOT, pass_fds=[listener.fileno()])
        try:
            client = Client(listener.getsockname()[1])
            assert client.call("add_memory", path="a/b", content="text")[0] == 200
            client.close()
        finally:
            server.terminate()
        assert server.wait(60) == 0


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"QUIPU_IDLE_EXIT": "5"}, "QUIPU_IDLE_EXIT needs a single worker"),
        ({"HOST": "192.0.2.1", "QUIPU_OPEN": "1"}, "Cannot listen on 192.0.2.1, port"),
        ({"QUIPU_DATA": "/dev/null"}, "Cannot use the data directory /dev/null"),
    ],
)
def test_what_keeps_the_server_from_serving_is_told_once(tmp_path: Path, settings: dict[str, Any], told: str) -> None:
    environment = {**os.environ, "QUIPU_DATA": str(tmp_path), **settings}
    words = [sys.executable, "-m", "kernel", "serve", "--workers", "2", "--port", str(free_port())]
    ended = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, len(ended.stderr.splitlines())) == (1, 1), ended.stderr
    assert told in ended.stderr
