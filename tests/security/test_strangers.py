"""Who has no key, or does not read the answers, costs the server little memory, and others little time."""

import select
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kernel.security import api_keys
from kernel.security.api_keys import Key
from tests.catalogue import Catalogue
from tests.reliability.server_process import LATE, Client, Server, serving, until
from tests.security.sockets import Peer, crowd, request
from tests.security.strangers import FLOODS, begin

pytestmark = pytest.mark.alone
CREATED = "2026-11-21T10:00:00.000Z"
CONNECTIONS, SENT, SECONDS = 200, 172_000_000, 6.0
MOST = 64 << 20
PROBE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Watch:
    """The largest memory of a server while the block runs, and the wait of a probe, in seconds."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.before = self.most = server.memory
        self.waits: list[float] = []
        self.statuses: set[int] = set()

    @property
    def more(self) -> int:
        return self.most - self.before

    @contextmanager
    def watching(self) -> Iterator[None]:
        ending = threading.Event()
        threads = [threading.Thread(target=work, args=(ending,)) for work in (self._look, self._probe)]
        for thread in threads:
            thread.start()
        yield
        ending.set()
        for thread in threads:
            thread.join()

    def _look(self, ending: threading.Event) -> None:
        while not ending.wait(0.005):
            self.most = max(self.most, self.server.memory)

    def _probe(self, ending: threading.Event) -> None:
        with Peer(self.server.port, host="127.0.0.2") as peer:  # beside the others
            while not ending.wait(0.012):
                begun = time.perf_counter()
                peer.send(PROBE)
                self.statuses.add(peer.answer()[0])
                self.waits.append(time.perf_counter() - begun)


@pytest.mark.parametrize("what", FLOODS)
def test_who_has_no_key_costs_little_memory_and_holds_up_no_probe(
    tmp_path: Path, what: str, catalogue: Catalogue
) -> None:
    data = tmp_path / "data"
    api_keys.create(data, Key("", "write", CREATED))
    with serving(data) as server:
        usual = Watch(server)
        with usual.watching():
            time.sleep(0.5)
        flooded = Watch(server)
        with flooded.watching():
            sent = int(begin(server.port, what, CONNECTIONS, SENT, SECONDS).communicate()[0])
        assert (flooded.statuses, "Traceback" in server.log()) == ({200}, False)
        assert flooded.more <= MOST
        assert max(flooded.waits) < LATE
        until(lambda: server.memory <= flooded.before + MOST // 2, "the memory is given back")
    wait, idle = 1000 * max(flooded.waits), 1000 * max(usual.waits)
    median = 1000 * statistics.median(flooded.waits)
    waited = f"a probe waited {wait:.0f} ms at most, {median:.1f} usually, {idle:.0f} before"
    outcome = f"at most {flooded.more >> 20} MB more; {waited}"
    catalogue("S26", injected=f"{what}, {sent >> 20} MB", times=CONNECTIONS, outcome=outcome)


def test_answers_that_nobody_takes_are_bounded_together(tmp_path: Path, catalogue: Catalogue) -> None:
    size, readers = 1_000_000, 240
    settings = {"QUIPU_LIMIT_ANSWER": 2 << 20, "QUIPU_LIMIT_UNSENT": 16 << 20, "QUIPU_LIMIT_STALL_SECONDS": 60}
    with serving(tmp_path / "data", **settings) as server:
        client = Client(server.port)
        assert client.call("add_memory", path="large", content="x" * size)[0] == 200
        asked = request("/tools/read_memory", b'{"path":"large"}')
        watch = Watch(server)
        with watch.watching(), crowd(server.port, asked * 20, count=readers, listens=False) as peers:
            begun = time.monotonic()
            until_closed(peers, readers * 2 // 3)
            seconds = time.monotonic() - begun
            assert len(client.call("read_memory", path="large")[1]["content"]) == size
            client.close()
        assert watch.more < readers * size // 2
    outcome = f"{watch.more >> 20} MB more, two of three closed after {seconds:.1f} s, who reads served"
    catalogue("S26", injected=f"answers of {size:,} bytes not taken", times=readers, outcome=outcome)


def until_closed(peers: list[Peer], count: int) -> None:
    """Waits until the server has closed so many of these connections, from which nothing is taken."""
    waiting, closed = select.poll(), set[int]()
    for peer in peers:
        waiting.register(peer.socket, 0)

    def enough() -> bool:
        for number, _ in waiting.poll(10):
            waiting.unregister(number)
            closed.add(number)
        return len(closed) >= count

    until(enough, "the slowest are closed")
