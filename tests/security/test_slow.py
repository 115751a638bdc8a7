"""Who says nothing, half of something, or does not listen, is dropped by the deadline, and nobody else waits for it."""

import select
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from tests.catalogue import Catalogue
from tests.reliability.server_process import LATE, Client, Server, serving, until
from tests.security.sockets import Peer, crowd, request, status, until_ended
from tests.support.security_slow import HALF_BODY, HALF_HEAD, WHOLE

SETTINGS = {
    "QUIPU_LIMIT_HEADER_SECONDS": 1,
    "QUIPU_LIMIT_BODY_SECONDS": 1,
    "QUIPU_LIMIT_SILENT_SECONDS": 1,
    "QUIPU_LIMIT_STALL_SECONDS": 1,
    "QUIPU_LIMIT_IDLE_SECONDS": 2,
    "QUIPU_LIMIT_CONNECTIONS": 40,
}
CHUNKED = request(body=b"", Content_Length="", Transfer_Encoding="chunked")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("slow") / "data", **SETTINGS) as running:
        yield running


def works(server: Server) -> bool:
    """Whether a call of somebody else is answered in time."""
    begun = time.monotonic()
    with Peer(server.port, WHOLE) as peer:
        return peer.answer()[0] == 200 and time.monotonic() - begun < LATE


def cut_off(peers: list[Peer]) -> Iterator[None]:
    """Goes on until the server has ended all of these connections, which take nothing from it."""
    waiting, begun = select.poll(), time.monotonic()
    left = {peer.socket.fileno(): waiting.register(peer.socket, 0) for peer in peers}
    while left:
        assert time.monotonic() - begun < 1 + 2 * LATE
        for number, _ in waiting.poll(50):
            waiting.unregister(number)
            del left[number]
        yield


class Case(NamedTuple):
    """Hold the first bytes, and those that follow; when the connection must end and with which status."""

    what: str
    sent: bytes
    after: float
    said: int
    piece: bytes = b""


CASES = (
    Case("nothing", b"", 1, 0),
    Case("blank lines", b"", 1, 0, b"\r\n"),
    Case("one letter", b"P", 1, 408),
    Case("half the headers", HALF_HEAD, 1, 408),
    Case("header after header", HALF_HEAD + b": x\r\n", 1, 408, b"X-Y: z\r\n"),
    Case("one header, byte by byte", HALF_HEAD, 1, 408, b"y"),
    Case("half a body", HALF_BODY, 1, 408),
    Case("a body byte by byte", HALF_BODY, 1, 408, b" "),
    Case("half a body that nobody reads", HALF_BODY.replace(b"/tools/recall", b"/healthz"), 1, 405),
    Case("half a chunk", CHUNKED + b"10\r\nabc", 1, 408),
    Case("chunk after chunk", CHUNKED, 1, 408, b"1\r\n \r\n"),
    Case("what is no chunk", CHUNKED + b"x", 0, 400),
    Case("an endless extension of a chunk", CHUNKED + b"1;", 1, 408, b"x"),
    Case("half a trailer", CHUNKED + b"0\r\nTrailer: ", 1, 408),
    Case("an answered call, then nothing", WHOLE, 2, 200),
    Case("an answered call, then half of another", WHOLE + HALF_HEAD, 1, 408),
)


def test_who_stops_or_goes_on_for_ever_is_dropped_by_the_deadline_and_no_sooner(
    server: Server, catalogue: Catalogue
) -> None:
    with crowd(server.port, *(case.sent for case in CASES), count=len(CASES)) as peers:
        until_ended({peer: case.piece for peer, case in zip(peers, CASES, strict=True)})
    wrong = [
        (case.what, status(peer.said), peer.ended)
        for peer, case in zip(peers, CASES, strict=True)
        if status(peer.said) != case.said or not case.after - 0.1 <= peer.ended <= case.after + LATE
    ]
    assert wrong == []
    assert works(server)
    for case in CASES:
        catalogue("S26", injected=case.what, times=1, outcome=f"{case.said or 'closed'} after {case.after} s")


def test_a_body_that_comes_steadily_may_take_longer(server: Server) -> None:
    body = b'{"query":"x"}'.ljust(300_000)
    with Peer(server.port, request(body=body)[: -len(body)]) as peer:
        for at in range(0, len(body), 10_000):
            peer.send(body[at : at + 10_000])
            time.sleep(0.06)
        assert peer.answer()[0] == 200
        assert time.monotonic() - peer.opened > 1.5


def test_an_open_connection_is_kept_while_it_is_used(server: Server) -> None:
    with Peer(server.port) as peer:
        for wait in (0.7, 1.4, 1.4):
            time.sleep(wait)
            peer.send(WHOLE)
            assert peer.answer()[0] == 200


def test_who_does_not_take_the_answers_is_dropped_and_they_with_him(server: Server, catalogue: Catalogue) -> None:
    client = Client(server.port)
    client.call("add_memory", path="large", content="x" * 1_000_000)
    client.close()
    process = psutil.Process(server.process.pid)
    before = process.memory_info().rss
    asked = request("/tools/read_memory", b'{"path":"large"}')
    most = 0
    with crowd(server.port, asked * 20, count=20, listens=False) as peers:
        for _ in cut_off(peers):
            most = max(most, process.memory_info().rss - before)
            assert works(server)
    assert most < 150_000_000
    outcome = f"dropped, at most {most // 1_000_000} MB held"
    catalogue("S26", injected="20 answers of 1 MB asked for, none read", times=20, outcome=outcome)


def test_bodies_that_stop_halfway_are_given_up_before_they_fill_the_memory(
    tmp_path: Path, catalogue: Catalogue
) -> None:
    with serving(tmp_path / "data", QUIPU_LIMIT_QUEUED=1 << 20, QUIPU_MODEL="none") as server:
        assert works(server)
        process = psutil.Process(server.process.pid)
        before = process.memory_info().rss
        sent = request("/mcp", b" " * 4_000_000)[:-1]
        with crowd(server.port, sent, count=50) as peers:
            grown = process.memory_info().rss - before
            assert works(server)
            for peer in peers:
                peer.socket.settimeout(0.05)
                with suppress(TimeoutError):
                    peer.listen()
            given_up = [status(peer.said) for peer in peers].count(408)
    assert (given_up >= 45, grown < 100_000_000) == (True, True), (given_up, grown)
    catalogue("S26", injected="50 bodies of 4 MB that stop before their end", times=50, outcome=f"{grown:,} bytes held")


def test_a_connection_too_many_is_told_so_and_the_others_are_served(server: Server, catalogue: Catalogue) -> None:
    time.sleep(0.3)  # for the rest of earlier tests
    with crowd(server.port, b"", count=60) as peers:
        peers[0].send(WHOLE)
        assert peers[0].answer()[0] == 200
        for peer in peers[40:]:
            code, headers, body = peer.answer()
            assert (code, headers["retry-after"], headers["connection"]) == (503, "1", "close")
            assert body == {"error": {"code": "busy", "message": "Too many connections, try again."}}
    until(lambda: works(server), "there is room again")
    catalogue("S26", injected="connection past the bound", times=20, outcome="503, the 40 others served")


def test_a_server_told_to_stop_waits_for_nobody_who_has_sent_half(tmp_path: Path, catalogue: Catalogue) -> None:
    with serving(tmp_path / "data") as server:
        client = Client(server.port)
        assert client.call("add_memory", path="kept", content="hello")[0] == 200
        with crowd(server.port, b"", HALF_HEAD, HALF_BODY, CHUNKED + b"5\r\na", count=100):
            time.sleep(0.2)
            begun = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(30) == 0
            seconds = time.monotonic() - begun
        client.close()
    assert seconds < 10
    assert [path.name for path in (tmp_path / "data").glob("quipu.db*")] == ["quipu.db"]
    with serving(tmp_path / "data") as server:
        client = Client(server.port)
        assert client.call("read_memory", path="kept")[1]["content"] == "hello"
        client.close()
    catalogue("R16", injected="SIGTERM beside half-sent requests", times=100, outcome=f"stopped in {seconds:.1f} s")
