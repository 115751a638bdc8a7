"""A process of many connections that send all they have and take nothing: `python -m tests.security.strangers ...`."""

import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Mapping

from tests.unit.sql.code import ROOT

_CHUNKED = b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
_GET = b"GET %b HTTP/1.1\r\nHost: localhost\r\n\r\n"
# The first bytes, and those that follow again and again.
FLOODS: Mapping[str, tuple[bytes, bytes]] = {
    "pipelined probes": (b"", _GET % b"/healthz"),
    "pipelined pages": (b"", _GET % b"/tools"),
    "trailers": (_CHUNKED, b"a:b\r\n"),
    "one trailer without end": (_CHUNKED + b"a:", b"bbbb"),
    "one header without end": (b"GET / HTTP/1.1\r\na:", b"bbbb"),
}
_PART = 1 << 18
_CPU_WAIT = 0.1


def begin(port: int, what: str, connections: int, size: int, seconds: float) -> "subprocess.Popen[str]":
    """Starts the process: `size` bytes in all, from another address of the loopback network."""
    command = [sys.executable, "-m", "tests.security.strangers", what, *map(str, (port, connections, size, seconds))]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def _flood(data: bytes, port: int, connections: int, end: float) -> int:
    """Sends `data` on each connection; the bytes that the server took before it closed them, or at `end`."""
    sent = 0
    with selectors.DefaultSelector() as waiting:
        for _ in range(connections):
            peer = socket.socket()
            peer.bind(("127.0.0.2", 0))
            peer.setblocking(False)
            peer.connect_ex(("127.0.0.1", port))
            waiting.register(peer, selectors.EVENT_WRITE, memoryview(data))
        while waiting.get_map() and time.monotonic() < end:
            for key, _ in waiting.select(_CPU_WAIT):
                try:
                    taken = key.fileobj.send(key.data[:_PART])  # type: ignore[union-attr]
                except BlockingIOError:
                    continue
                except OSError:
                    taken = len(key.data)
                else:
                    sent += taken
                if taken == len(key.data):
                    waiting.unregister(key.fileobj)
                else:
                    waiting.modify(key.fileobj, selectors.EVENT_WRITE, key.data[taken:])
    return sent


if __name__ == "__main__":
    first, again = FLOODS[sys.argv[1]]
    port, connections, size, seconds = (float(text) for text in sys.argv[2:])
    times = (int(size / connections) - len(first)) // len(again)
    print(_flood(first + again * times, int(port), int(connections), time.monotonic() + seconds))
