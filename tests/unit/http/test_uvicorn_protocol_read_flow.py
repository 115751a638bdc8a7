"""Few requests of a connection are parsed at a time, and nothing it sent is lost."""

import asyncio
from typing import Any, cast

import pytest

from kernel.http.uvicorn_protocol import ReceiveFlow, Trailers, fits_one_turn

GET = b"GET / HTTP/1.1\r\n\r\n"


class Transport:
    """A transport that only knows whether it reads."""

    def __init__(self) -> None:
        self.reading = True

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


class Peer:
    """A connection whose requests wait in `queue`; `turn` lets the event loop go on once."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.transport = Transport()
        self.queue: list[bytes] = []
        self.parsed = b""
        self.longest = 0
        self.flow = ReceiveFlow(cast("Any", self.transport), self.loop, self.parse, self.queue)

    def parse(self, piece: bytes | memoryview) -> None:
        self.parsed += bytes(piece)
        self.queue += [GET] * bytes(piece).count(b"\r\n\r\n")
        self.longest = max(self.longest, len(self.queue))
        if self.queue:
            self.flow.pause_reading()

    def turn(self) -> None:
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()


@pytest.mark.parametrize("sent", [GET * 1000, (GET + b"x" * 5000) * 40, b"y" * 300_000 + GET * 50])
def test_few_requests_wait_and_all_are_parsed_in_order(sent: bytes) -> None:
    peer = Peer()
    peer.flow.receive(sent)
    while peer.queue or peer.flow.has_unparsed:
        assert not (peer.transport.reading and peer.flow.has_unparsed)
        peer.queue[:1] = []
        peer.flow.resume_reading()
        peer.turn()
    assert peer.parsed == sent
    assert (peer.longest <= 16, peer.transport.reading) == (True, True)
    peer.loop.close()


def test_one_turn_parses_few_requests() -> None:
    peer = Peer()
    peer.flow.receive(GET * 1000)
    assert len(peer.queue) <= 4
    peer.loop.close()


def test_what_is_discarded_is_not_parsed() -> None:
    peer = Peer()
    peer.flow.receive(GET * 1000)
    parsed = peer.parsed
    peer.flow.discard()
    peer.flow.resume_reading()
    peer.turn()
    assert (peer.parsed, peer.transport.reading) == (parsed, True)
    peer.loop.close()


def test_one_turn_takes_what_most_clients_send_and_no_more() -> None:
    head = b"POST /mcp HTTP/1.1\r\n" + b"name: value\r\n" * 60 + b"\r\n"
    assert fits_one_turn(head + b"{}" * 30_000)
    assert fits_one_turn(GET * 2)
    assert not fits_one_turn(head * 3)
    assert not fits_one_turn(GET * 17)
    assert not fits_one_turn(b"x" * 65537)


def test_trailers_are_counted_but_for_the_piece_in_which_they_may_have_begun() -> None:
    trailers = Trailers()
    trailers.add(b"ab", b"cde")
    trailers.add(b"f", b"")
    assert (trailers.count, trailers.bytes) == (2, 6)
    assert [trailers.received(size) for size in (1000, 10, 20)] == [0, 10, 30]
