"""Too large input of any form is refused before it is read: nobody waits for it and no memory holds it."""

import itertools
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.catalogue import Catalogue
from tests.reliability.server_process import LATE, Server, serving
from tests.security.sockets import Peer, request, status

MEGABYTE = 1_000_000
MOST_HELD = 50 * MEGABYTE
ADDRESSES = ("/mcp", "/tools/save_memory", "/healthz", "/nowhere")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("bombs") / "data", QUIPU_LIMIT_BODY_SECONDS=1) as running:
        for path in ("/tools/recall", "/tools/save_memory"):
            with Peer(running.port, request(path)) as peer:
                peer.answer()
        yield running


class Bomb(NamedTuple):
    """Hold a request, in pieces, and the statuses that may answer it."""

    what: str
    pieces: Iterable[bytes]
    statuses: tuple[int, ...]


def head(path: str, *lines: str) -> bytes:
    """The headers of a POST that has no others."""
    usual = ("Host: localhost", "Content-Type: application/json")
    return "\r\n".join([f"POST {path} HTTP/1.1", *usual, *lines, "", ""]).encode()


def elements(piece: bytes, before: bytes = b"", after: bytes = b"") -> bytes:
    """JSON of four million bytes with as many elements as fit."""
    return before + b"[" + b",".join([piece] * (4 * MEGABYTE // (len(piece) + 1))) + b"]" + after


def bombs(path: str) -> Iterator[Bomb]:
    """Everything that is too large at one address."""
    unread = (413,) if path != "/healthz" and path != "/nowhere" else (404, 405)
    yield Bomb("a body of 1 GiB declared", [head(path, "Content-Length: 1073741824")], unread)
    yield Bomb("a length of 5,000 digits", [head(path, "Content-Length: " + "9" * 5000)], (400,))
    chunks = itertools.chain(
        [head(path, "Transfer-Encoding: chunked")], itertools.repeat(b"10000\r\n" + b" " * 65536 + b"\r\n")
    )
    yield Bomb("a body in chunks without end", chunks, (413, *unread))
    tiny = itertools.chain([head(path, "Transfer-Encoding: chunked")], itertools.repeat(b"1\r\n \r\n" * 10_000))
    yield Bomb("the smallest chunks without end", tiny, (413, *unread))
    long = itertools.chain([head(path, "Transfer-Encoding: chunked") + b"1;"], itertools.repeat(b"x" * 65536))
    yield Bomb("an extension of a chunk without end", long, (413, *unread))
    trailer = itertools.chain([head(path, "Transfer-Encoding: chunked") + b"0\r\nX: "], itertools.repeat(b"x" * 65536))
    yield Bomb("a trailer without end", trailer, (431, *unread))
    yield Bomb("a header of 40 MB", [head(path)[:-2] + b"X: ", *[b"x" * MEGABYTE] * 40, b"\r\n\r\n"], (431,))
    yield Bomb("a name of 40 MB", [head(path)[:-2], *[b"x" * MEGABYTE] * 40, b": y\r\n\r\n"], (431, 400))
    many = b"".join(b"X-%d: y\r\n" % number for number in range(10_000))
    yield Bomb("10,000 headers", [head(path)[:-2] + many + b"Content-Length: 2\r\n\r\n{}"], (431,))
    yield Bomb("an address of 40 MB", [f"POST {path}?".encode(), *[b"x" * MEGABYTE] * 40], (431,))
    gzip = head(path, "Content-Encoding: gzip", "Content-Length: 20") + bytes(20)
    yield Bomb("a body in gzip", [gzip], (415, 404, 405))


@pytest.mark.parametrize("path", ADDRESSES)
def test_what_is_too_large_for_http_is_refused_while_it_comes(server: Server, path: str, catalogue: Catalogue) -> None:
    for bomb in bombs(path):
        found, held = thrown(server, bomb.pieces)
        assert found in bomb.statuses, (bomb.what, found)
        assert held < MOST_HELD, bomb.what
        catalogue("S12", injected=f"{bomb.what} to {path}", times=1, outcome=f"{found}, {held // MEGABYTE} MB held")


BODIES = {
    "a body of 5 MB": b'{"query":"%b"}' % (b"x" * 5 * MEGABYTE),
    "100,000 levels": b"[" * 100_000,
    "100,000 levels of objects": b'{"a":' * 100_000,
    **{f"elements {piece.decode()}": elements(piece) for piece in (b"[]", b"{}", b"1", b'""', b'{"":0}', b"[[[]]]")},
    "elements within": elements(b"[]", b'{"db":"core","content":"x","category":"fact","metadata":{"a":', b"}}"),
    "members": b"{" + b",".join(b'"%d":0' % number for number in range(400_000)) + b"}",
    "a text of quotes": b'{"content":"' + b'\\"' * 1_900_000 + b'"}',
    "a text of backslashes": b'{"content":"' + b"\\\\" * 1_900_000 + b'"}',
    "a text of escapes": b'{"content":"' + b"\\u0061" * 600_000 + b'"}',
    "a number of 4 MB": b'{"importance":' + b"1" * 4 * MEGABYTE + b"}",
    "blanks": b" " * 4 * MEGABYTE,
}


@pytest.mark.parametrize("path", ["/mcp", "/tools/save_memory"])
def test_what_is_too_much_for_one_call_is_refused_before_it_is_built(
    server: Server, path: str, catalogue: Catalogue
) -> None:
    for what, body in BODIES.items():
        found, held = thrown(server, [request(path, body)])
        assert found in (400, 413), (what, found)
        assert held < MOST_HELD, (what, held)
        catalogue("S12", injected=f"{what} to {path}", times=1, outcome=f"{found}, {held // MEGABYTE} MB held")


def thrown(server: Server, pieces: Iterable[bytes]) -> tuple[int, int]:
    """The status of the answer, and the bytes of memory the server held at most on top of its earlier memory."""
    before = held_at_most(server, anew=True)
    with Peer(server.port) as peer:
        for piece in pieces:
            if not peer.send(piece):
                break
        while peer.listen() and not status(peer.said):
            pass
    begun = time.monotonic()
    with Peer(server.port, request()) as other:
        assert other.answer()[0] == 200
    assert time.monotonic() - begun < LATE
    return status(peer.said), held_at_most(server) - before


def held_at_most(server: Server, *, anew: bool = False) -> int:
    """The most memory, in bytes, that was resident since this was asked `anew`."""
    process = Path("/proc", str(server.process.pid))
    if anew:
        (process / "clear_refs").write_text("5")
    lines = (process / "status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
