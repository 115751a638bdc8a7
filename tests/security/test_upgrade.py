"""A request that would rather speak another protocol is answered in this one, with all it brought along."""

import itertools
from collections.abc import Iterator

import pytest

from tests.catalogue import Catalogue
from tests.reliability.server_process import Server, serving
from tests.security.sockets import Peer, request

UPGRADES = {
    "HTTP/2": ("Connection: Upgrade, HTTP2-Settings\r\n", "Upgrade: h2c\r\n", "HTTP2-Settings: AAEAAEAAAAIAAAAB\r\n"),
    "WebSocket": ("Connection: upgrade\r\n", "upgrade: websocket\r\n", "Sec-WebSocket-Version: 13\r\n"),
}
_numbers = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("upgrade") / "data") as running:
        yield running


def adding(upgrade: str, path: str, *, chunked: bool = False) -> bytes:
    """A memory added by a request that asks for another protocol."""
    body = b'{"path":"%b","content":"%b"}' % (path.encode(), b"all of it " * 20_000)
    framing = {"Content_Length": "", "Transfer_Encoding": "chunked"} if chunked else {}
    sent = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:7], body[7:])) + b"0\r\n\r\n"
    whole = request("/tools/add_memory", body, Accept="application/json", **framing)
    whole = whole[: -len(body)] + sent if chunked else whole
    return whole.replace(b"\r\n", b"\r\n" + "".join(UPGRADES[upgrade]).encode(), 1)


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunks"])
@pytest.mark.parametrize("upgrade", UPGRADES)
def test_a_request_that_would_upgrade_keeps_its_body(
    server: Server, upgrade: str, chunked: bool, catalogue: Catalogue
) -> None:
    for at in (0, 40, 300, -1):
        path = f"car/{next(_numbers)}"
        whole = adding(upgrade, path, chunked=chunked)
        with Peer(server.port, whole[:at] if at else b"") as peer:
            peer.send(whole[at:])
            status, headers, body = peer.answer()
            assert (status, headers["connection"], body["path"]) == (200, "close", path)
            assert not peer.listen()
        with Peer(server.port, request("/tools/read_memory", b'{"path":"%b"}' % path.encode())) as peer:
            assert peer.answer()[2].count("all of it ") == 20_000
    catalogue("S24", injected=f"POST that asks for {upgrade}", times=4, outcome="answered with its body, then closed")


def test_what_follows_a_request_that_would_upgrade_is_not_read(server: Server) -> None:
    path = f"car/{next(_numbers)}"
    with Peer(server.port, adding("HTTP/2", path) + request("/tools/clear_memory", b"{}")) as peer:
        assert peer.answer()[0] == 200
        assert not peer.listen()
    with Peer(server.port, request("/tools/read_memory", b'{"path":"%b"}' % path.encode())) as peer:
        assert peer.answer()[0] == 200


@pytest.mark.parametrize("method", ["GET", "CONNECT"])
def test_an_upgrade_without_a_body_is_answered_too(server: Server, method: str) -> None:
    asked = f"{method} /healthz HTTP/1.1\r\nHost: localhost\r\n{''.join(UPGRADES['WebSocket'])}\r\n".encode()
    with Peer(server.port, asked) as peer:
        assert peer.answer()[0] in ((200,) if method == "GET" else (501,))


def test_an_upgrade_with_two_lengths_or_a_wrong_chunk_is_refused(server: Server) -> None:
    for upgrade, framing in (("HTTP/2", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"), ("HTTP/2", "")):
        head = f"POST /tools/recall HTTP/1.1\r\nHost: localhost\r\n{''.join(UPGRADES[upgrade])}"
        framing = framing or "Transfer-Encoding: chunked\r\n"
        with Peer(server.port, f"{head}{framing}Content-Type: application/json\r\n\r\nxyz\r\n".encode()) as peer:
            assert peer.answer()[0] == 400
    with Peer(server.port, request()) as peer:
        assert peer.answer()[0] == 200
