"""Thousands who hold a connection and say nothing, or half of something, cost the others next to nothing."""

import os
import resource
import signal
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from tests.catalogue import Catalogue
from tests.reliability.server_process import LATE, Client, serving
from tests.security.sockets import Peer, crowd, request, status, until_ended
from tests.support.security_slow import HALF_BODY, HALF_HEAD, WHOLE

IDLE = int(os.environ.get("IDLE_SOCKETS", "300"))
HALF = 300 if IDLE >= 9000 else 30
CALLS = 1500 if IDLE >= 9000 else 100
WHOLE_TEST = IDLE >= 9000
# The usual deadlines, or shorter ones where there is less time.
HEAD, BODY, SILENT = (5, 10, 10) if WHOLE_TEST else (2, 2, 2)
SETTINGS = {
    "QUIPU_LIMIT_HEADER_SECONDS": HEAD,
    "QUIPU_LIMIT_BODY_SECONDS": BODY,
    "QUIPU_LIMIT_SILENT_SECONDS": SILENT,
}
LIVES = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
SENT = {"nothing": (b"", SILENT, 0), "half a head": (HALF_HEAD, HEAD, 408), "half a body": (HALF_BODY, BODY, 408)}


@pytest.fixture
def descriptors() -> Iterator[None]:
    """Room for both ends of every connection; a test without it says so."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = IDLE + 4 * HALF + 500
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"{wanted} descriptors are needed, {hard} may be had")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def pace(port: int) -> float:
    """The 99th percentile of the latency of a call, in milliseconds."""
    spent: list[float] = []
    with Peer(port) as peer:
        for _ in range(CALLS):
            begun = time.perf_counter()
            peer.send(WHOLE)
            assert peer.answer()[0] == 200
            spent.append(time.perf_counter() - begun)
    return statistics.quantiles(spent, n=100)[-1] * 1000


@pytest.mark.usefixtures("descriptors")
def test_nobody_waits_for_thousands_who_say_nothing_or_half(tmp_path: Path, catalogue: Catalogue) -> None:
    with serving(tmp_path / "data", **SETTINGS) as server, ExitStack() as stack:
        process = psutil.Process(server.process.pid)
        client = Client(server.port)
        assert client.call("add_memory", path="kept", content="hello")[0] == 200
        client.close()
        pace(server.port)
        before, held = [pace(server.port) for _ in range(3)], process.memory_info().rss
        idle: list[Peer] = []
        for _ in range(IDLE):
            idle.append(stack.enter_context(Peer(server.port, LIVES)))
            assert idle[-1].answer()[0] == 200
        half = {what: stack.enter_context(crowd(server.port, sent[0], count=HALF)) for what, sent in SENT.items()}
        during, more = [pace(server.port)], process.memory_info().rss - held
        until_ended({peer: b"" for peers in half.values() for peer in peers})
        during += [pace(server.port) for _ in range(2)]
        for what, (_, after, said) in SENT.items():
            ended = [peer.ended for peer in half[what]]
            assert {status(peer.said) for peer in half[what]} == {said}, what
            assert min(ended) >= after - 0.1, what
            assert max(ended) <= after + LATE, what
            catalogue("S26", injected=f"{what} sent", times=HALF, outcome=f"closed after {max(ended):.1f} s at most")
        for peer in idle[:: len(idle) // 20]:
            peer.send(WHOLE)
            assert peer.answer()[0] == 200
        stack.enter_context(crowd(server.port, HALF_HEAD, HALF_BODY, count=HALF))
        begun = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
        seconds = time.monotonic() - begun
        assert seconds <= 10 + (0 if WHOLE_TEST else LATE)
    then, now = statistics.median(before), statistics.median(during)
    outcome = f"p99 of another {now:.2f} ms beside {then:.2f}, {more >> 20} MB more, stopped in {seconds:.1f} s"
    catalogue("S26", injected="idle connections", times=IDLE, outcome=outcome)
    if WHOLE_TEST:
        assert now <= 2 * then


def test_a_half_sent_request_is_no_call(tmp_path: Path) -> None:
    """The sent part changes nothing, however near its end it was."""
    whole = request("/tools/add_memory", b'{"path":"never","content":"sent whole"}')
    with serving(tmp_path / "data", **SETTINGS) as server:
        with crowd(server.port, *(whole[:-cut] for cut in (1, 2, 20)), count=12) as peers:
            until_ended(dict.fromkeys(peers, b""))
        client = Client(server.port)
        assert client.call("list_memories")[1]["total"] == 0
        client.close()
