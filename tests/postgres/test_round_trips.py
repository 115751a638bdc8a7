"""How often a call waits for the database, which is the cost of a network between the two."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from kernel.core.config import Config
from kernel.engines.postgres import database
from kernel.search.vectors import load_vectors
from kernel.server.app import Kernel, open_kernel
from tests.postgres.calls import ask

pytestmark = pytest.mark.postgres
_DELAY = 0.02  # seconds of each way
_CALLS = 4  # the shortest counts: these tests run beside others
_IDLE_SECONDS = 4.0
_READY = b"Z\0\0\0\x05"  # ends the answer of the database to statements that were sent together


class Far:
    """A network before a database, which takes its time each way."""

    def __init__(self, address: str) -> None:
        self.delay = 0.0
        self.answers = 0
        server = urlsplit(address)
        self._target = (server.hostname, server.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = address.replace(f":{server.port}", f":{self._listener.getsockname()[1]}")
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                for end in (client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for source, target in ((client, server), (server, client)):
                    way: SimpleQueue[tuple[float, bytes]] = SimpleQueue()
                    threading.Thread(target=self._receive, args=(source, way), daemon=True).start()
                    threading.Thread(target=self._deliver, args=(target, way), daemon=True).start()

    def _receive(self, source: socket.socket, way: "SimpleQueue[tuple[float, bytes]]") -> None:
        with suppress(OSError):
            while data := source.recv(1 << 20):
                self.answers += data.count(_READY)
                way.put((time.monotonic() + self.delay, data))
        way.put((0.0, b""))

    def _deliver(self, target: socket.socket, way: "SimpleQueue[tuple[float, bytes]]") -> None:
        with suppress(OSError), target:
            while (item := way.get())[1]:
                time.sleep(max(0.0, item[0] - time.monotonic()))
                target.sendall(item[1])


class Behind(NamedTuple):
    """A server and the network before its database."""

    kernel: Kernel
    network: Far

    def seconds(self, tool: str, calls: Iterator[dict[str, Any]]) -> float:
        """The time of the shortest of some calls."""

        def one(arguments: dict[str, Any]) -> float:
            time.sleep(4 * self.network.delay)  # a read ends without an answer, for which the next would wait
            begun = time.monotonic()
            assert asyncio.run(ask(self.kernel, tool, **arguments)).fault is None
            return time.monotonic() - begun

        return min(one(next(calls)) for _ in range(_CALLS))

    def trips(self, tool: str, calls: Iterator[dict[str, Any]]) -> int:
        """How often a warm call waits for the network."""
        self.network.delay = 0.0
        self.seconds(tool, calls)
        near = self.seconds(tool, calls)
        self.network.delay = _DELAY
        far = self.seconds(tool, calls)
        self.network.delay = 0.0
        return round((far - near) / (2 * _DELAY))


@pytest.fixture
def behind(address: str, tmp_path: Path) -> Iterator[Behind]:
    network = Far(address)
    kernel = open_kernel(Config(data=tmp_path, store=network.address))
    assert kernel.store.context.embedder is not None
    kernel.store.context.embedder.load()
    kernel.store.read_sync(load_vectors)
    yield Behind(kernel, network)
    kernel.store.close()
    database.forget_pool(network.address)
    network.close()


def test_a_call_waits_for_few_round_trips(behind: Behind) -> None:
    texts = ({"path": f"p/{at}", "content": f"marmalade of {at} oranges"} for at in count())
    questions = ({"query": f"oranges {at}"} for at in count())
    reads = ({"path": "p/1"} for _ in count())

    trips = {
        "add_memory": behind.trips("add_memory", texts),
        "recall": behind.trips("recall", questions),
        "read_memory": behind.trips("read_memory", reads),
    }

    assert trips["add_memory"] <= 6, trips
    assert trips["recall"] <= 5, trips
    assert trips["read_memory"] <= 2, trips


def test_an_idle_server_asks_at_most_once_a_second(behind: Behind) -> None:
    time.sleep(1.5)
    before = behind.network.answers
    time.sleep(_IDLE_SECONDS)

    assert 1 <= behind.network.answers - before <= _IDLE_SECONDS
