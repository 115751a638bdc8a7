"""Framing: the meaning of a request does not depend on its packets, and no framing costs more than it may."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kernel.security import api_keys
from kernel.security.api_keys import Key
from tests.catalogue import Catalogue
from tests.reliability.server_process import Server, serving
from tests.security.sockets import Peer, crowd, request
from tests.security.sockets import status as last_status

CREATED = "2026-11-21T10:00:00.000Z"
BURST, OF_AN_ADDRESS = 60, 12
PROBE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
MCP = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
BODIES = {"/tools/recall": b'{"query":"x"}', "/mcp": MCP}
_OK = b"HTTP/1.1 200"
SOURCES = iter(range(10, 250))


@pytest.fixture(scope="module")
def secret(tmp_path_factory: pytest.TempPathFactory) -> str:
    data = tmp_path_factory.getbasetemp() / "framing" / "data"
    return api_keys.create(data, Key("", "write", CREATED))[1]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, secret: str) -> Iterator[Server]:
    assert secret
    settings = {"QUIPU_LIMIT_BURST": BURST, "QUIPU_LIMIT_RATE": 20, "QUIPU_LIMIT_ADDRESS_CONNECTIONS": OF_AN_ADDRESS}
    with serving(tmp_path_factory.getbasetemp() / "framing" / "data", **settings) as running:
        yield running
        assert "Traceback" not in running.log()


@pytest.fixture
def host() -> str:
    """An address of its own, so that no test uses up the rate of another."""
    return f"127.0.0.{next(SOURCES)}"


def answers(server: Server, host: str, forms: Sequence[tuple[bytes, ...]]) -> list[tuple[int, Any]]:
    """Status and body of the answer to each form of a request; the parts of a form are packets."""
    found: list[tuple[int, Any]] = []
    for parts in forms:
        with Peer(server.port, host=host) as peer:
            for part in parts:
                peer.send(part)
                time.sleep(0.02)
            status, _, body = peer.answer()
            found.append((status, body))
    return found


def forms(whole: bytes) -> list[tuple[bytes, ...]]:
    head = whole.index(b"\r\n\r\n") + 4
    return [(whole,), (whole[:head], whole[head:]), (whole[:-1], whole[-1:])]


def chunked(path: str, trailers: bytes, **headers: str) -> bytes:
    body = BODIES[path]
    head = request(path, b"", Content_Length="", Transfer_Encoding="chunked", **headers)
    return head + b"%x\r\n%b\r\n0\r\n%b\r\n" % (len(body), body, trailers)


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize(
    ("trailer", "missing", "status"),
    [
        ("Authorization: Bearer {secret}", {"Authorization": ""}, 401),
        ("Host: localhost", {"Host": ""}, 421),
        ("Content-Type: application/json", {"Content_Type": ""}, 415),
        ("Origin: http://elsewhere.example", {}, 200),
    ],
    ids=["key", "host", "type", "origin"],
)
def test_a_trailer_is_no_header(
    server: Server, secret: str, host: str, path: str, trailer: str, missing: dict[str, str], status: int
) -> None:
    given = {"Authorization": f"Bearer {secret}", "Accept": "application/json", **missing}
    whole = chunked(path, trailer.format(secret=secret).encode() + b"\r\n", **given)
    found = answers(server, host, forms(whole))
    assert ([code for code, _ in found], found) == ([status] * 3, [found[0]] * 3)


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize(
    "trailers",
    [b"a:b\r\n" * 100 + b"a:b", b"a:%b" % (b"b" * 16_400), b"a:" + b"b" * 200_000],
    ids=["many", "large", "endless"],
)
def test_trailers_have_the_limits_of_headers(
    server: Server, secret: str, host: str, path: str, trailers: bytes, catalogue: Catalogue
) -> None:
    whole = chunked(path, trailers + b"\r\n", Authorization=f"Bearer {secret}", Accept="application/json")
    found = answers(server, host, forms(whole))
    assert [status for status, _ in found] == [431] * 3
    few = chunked(path, b"a:b\r\n" * 100, Authorization=f"Bearer {secret}", Accept="application/json")
    assert answers(server, host, [(few,)])[0][0] == 200
    catalogue("S26", injected="trailers past a limit of headers", times=3, outcome="431")


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize(
    ("coding", "status"),
    [
        ("chunked", 200),
        ("Chunked", 200),
        ("chunked \t", 501),
        ("gzip, chunked", 501),
        ("gzip\r\nTransfer-Encoding: chunked", 501),
        ("chunked, chunked", 400),
        ("identity, chunked", 501),
        (", chunked", 501),
    ],
)
def test_a_transfer_coding_but_chunked_is_refused(
    server: Server, secret: str, host: str, path: str, coding: str, status: int
) -> None:
    whole = chunked(path, b"", Authorization=f"Bearer {secret}", Accept="application/json")
    whole = whole.replace(b"Transfer-Encoding: chunked", b"Transfer-Encoding: " + coding.encode())
    assert [code for code, _ in answers(server, host, forms(whole))] == [status] * 3


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize(
    "wrong", [{"Content_Type": "text/plain"}, {"Content_Encoding": "gzip"}, {"Content_Length": "9999999"}]
)
def test_a_stranger_is_told_of_the_key_first_whatever_the_packets(
    server: Server, host: str, path: str, wrong: dict[str, str]
) -> None:
    whole = request(path, BODIES[path], **wrong)
    assert [status for status, _ in answers(server, host, forms(whole))] == [401] * 3


def absolute(path: str, url: str, secret: str, **headers: str) -> bytes:
    whole = request(path, BODIES[path], Authorization=f"Bearer {secret}", Accept="application/json", **headers)
    return whole.replace(path.encode(), url.encode() + path.encode(), 1)


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize(
    ("url", "header", "status"),
    [
        ("http://evil.example", "localhost", 421),
        ("http://localhost@evil.example", "localhost", 421),
        ("http://localhost.evil.example:80", "localhost", 421),
        ("HTTPS://evil.example", "localhost", 421),
        ("ftp://localhost", "localhost", 421),
        ("http://", "localhost", 421),
        ("http://localhost", "evil.example", 200),
        ("http://127.0.0.1:80", "localhost", 200),
        ("http://[::1]:80", "localhost", 200),
    ],
)
def test_the_host_of_an_absolute_target_counts(
    server: Server, secret: str, host: str, path: str, url: str, header: str, status: int
) -> None:
    """RFC 9112 section 3.2.2."""
    whole = absolute(path, url, secret, Host=header)
    found = [answers(server, host, [form])[0][0] for form in forms(whole)]
    if url == "http://":
        assert set(found) <= {400, 421}
    else:
        assert found == [status] * 3


@pytest.mark.parametrize(
    ("whole", "status"),
    [
        (b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n", 501),
        (b"CONNECT /tools HTTP/1.1\r\nHost: localhost\r\n\r\n", 501),
        (chunked("/tools/recall", b"").replace(b"HTTP/1.1", b"HTTP/1.0"), 400),
        (chunked("/mcp", b"").replace(b"HTTP/1.1", b"HTTP/1.0"), 400),
    ],
    ids=["CONNECT", "CONNECT to a path", "chunks in HTTP/1.0", "chunks in HTTP/1.0 for MCP"],
)
def test_what_no_client_may_frame_is_refused_and_closed(server: Server, host: str, whole: bytes, status: int) -> None:
    for parts in ((whole,), (whole[:20], whole[20:])):
        with Peer(server.port, host=host) as peer:
            for part in parts:
                peer.send(part)
                time.sleep(0.02)
            while peer.listen():
                pass
            assert last_status(peer.said) == status


@pytest.mark.parametrize("path", [*BODIES, "/tools", "/healthz"])
def test_a_broken_chunk_after_an_expectation_is_a_400_and_no_error_of_ours(
    server: Server, secret: str, host: str, path: str
) -> None:
    given = {"Authorization": f"Bearer {secret}", "Expect": "100-continue", "Accept": "application/json"}
    head = request(path, b"", Content_Length="", Transfer_Encoding="chunked", **given)
    for parts in ((head + b"zz\r\n",), (head, b"zz\r\n"), (head + PROBE * 40 + b"zz",)):
        with Peer(server.port, host=host) as peer:
            for part in parts:
                peer.send(part)
                time.sleep(0.02)
            while peer.listen():
                pass
    assert "Traceback" not in server.log()


def test_pipelined_requests_are_all_answered_however_many_come_at_once(tmp_path: Path) -> None:
    page = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\nX-Number: %d\r\n\r\n"
    with serving(tmp_path / "data") as server, Peer(server.port) as peer:
        for asked in (PROBE * 5000, b"".join(page % number for number in range(200)), request() * 200 + PROBE * 200):
            peer.said = b""
            peer.send(asked)
            count = asked.count(b"Host:")
            while count > 0:
                assert peer.listen()
                count -= peer.said.count(_OK)
                peer.said = peer.said[1 - len(_OK) :]  # the beginning of another


def test_connections_of_an_address_are_bounded_and_others_are_served(
    server: Server, secret: str, host: str, catalogue: Catalogue
) -> None:
    call = request(Authorization=f"Bearer {secret}")
    with crowd(server.port, PROBE, count=OF_AN_ADDRESS + 5, host=host) as peers:
        statuses = [peer.answer()[0] for peer in peers]
        assert statuses == [200] * OF_AN_ADDRESS + [503] * 5
        with Peer(server.port, call) as other:
            assert other.answer()[0] == 200
    time.sleep(0.3)
    with Peer(server.port, PROBE, host=host) as again:
        assert again.answer()[0] == 200
    catalogue("S26", injected="connection of an address past its bound", times=5, outcome="503, others served")


def test_probes_are_counted_by_connection(server: Server, host: str) -> None:
    with Peer(server.port, host=host) as flooding, Peer(server.port, host=host) as other:
        statuses: list[int] = []
        while 429 not in statuses:
            flooding.send(PROBE)
            statuses.append(flooding.answer()[0])
        assert len(statuses) > BURST
        other.send(PROBE)
        assert other.answer()[0] == 200


def test_who_pipelines_past_the_rate_is_closed(server: Server, host: str) -> None:
    with Peer(server.port, PROBE * 5000, host=host) as peer:
        while peer.listen():
            pass
    assert BURST <= peer.said.count(b"HTTP/1.1 200") <= BURST + 50
    assert last_status(peer.said) == 429


def test_malformed_requests_are_counted(server: Server, host: str) -> None:
    statuses: list[int] = []
    for _ in range(BURST + 40):
        with Peer(server.port, b"BAD\r\n\r\n", host=host) as peer:
            statuses.append(peer.answer()[0])
    assert statuses[:BURST] == [400] * BURST
    assert 429 in statuses
