"""A cheap closed-loop load generator: prebuilt requests over keep-alive sockets, every reply checked."""

import select
import socket
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_TIMEOUT = 30.0
_READ = 1 << 18


class Request(NamedTuple):
    """The bytes to send, and the pieces that the body of the reply must hold."""

    data: bytes
    expect: tuple[bytes, ...]


class Result(NamedTuple):
    """One run: replies, wrong ones among them, wall seconds, sorted latencies in seconds, the first wrong reply."""

    replies: int
    errors: int
    seconds: float
    latencies: list[float]
    complaint: str = ""

    @property
    def rate(self) -> float:
        """Replies a second."""
        return self.replies / self.seconds if self.seconds else 0.0

    def percentile(self, share: float) -> float:
        """The latency that `share` of the replies did not exceed, in milliseconds."""
        if not self.latencies:
            return 0.0
        return self.latencies[min(len(self.latencies) - 1, int(share * len(self.latencies)))] * 1000


class Caller:
    """One connection with at most one request under way; `body` is the part of it that is still to be sent."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), _TIMEOUT)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.held = b""
        self.body = b""
        self.expect: tuple[bytes, ...] = ()
        self.sent = 0.0

    def ask(self, request: Request, *, split: bool = False) -> None:
        """Sends a request; with `split` only its head, and `send_body` sends the rest."""
        data = request.data
        if split:
            end = data.index(b"\r\n\r\n") + 4
            data, self.body = data[:end], data[end:]
        self.expect = request.expect
        self.sent = time.perf_counter()
        self.socket.sendall(data)

    def send_body(self) -> None:
        """Sends what `ask` left, in a segment of its own."""
        self.socket.sendall(self.body)
        self.body = b""

    def reply(self) -> tuple[bytes, bytes] | None:
        """The head and the body of the reply, or None while something is missing."""
        read = self.socket.recv(_READ)
        if not read:
            raise ConnectionError("the server closed the connection")
        data = self.held + read if self.held else read
        end = data.find(b"\r\n\r\n")
        if end < 0 or len(data) < end + 4 + _length(data, end):
            self.held = data
            return None
        self.held = b""
        return data[:end], data[end + 4 :]


def drive(
    port: int,
    requests: Iterable[Request],
    *,
    callers: int,
    seconds: float = 3600.0,
    spin: bool = False,
    body_delay: float = 0.0,
) -> Result:
    """Sends `requests` from so many callers until they are used up or the time is; every one sent is answered.

    With `spin` the callers never sleep: where cores are few, one that is woken by each reply takes the server's core,
    which costs a slow server more than a fast one. `body_delay` seconds lie between the head and the body of a request,
    so that the server reads them separately; it needs `spin`.
    """
    crowd = [Caller(port) for _ in range(callers)]
    run = _Run({caller.socket.fileno(): caller for caller in crowd}, iter(requests), spin=spin, body_delay=body_delay)
    try:
        return run.until(seconds)
    finally:
        for caller in crowd:
            caller.socket.close()


class _Run:
    def __init__(
        self, callers: dict[int, Caller], requests: Iterator[Request], *, spin: bool, body_delay: float
    ) -> None:
        self._spin = spin
        self._body_delay = body_delay
        self._bodies: deque[Caller] = deque()
        self._callers = callers
        self._requests = requests
        self._waiting = 0
        self._errors = 0
        self._complaint = ""
        self._latencies: list[float] = []

    def until(self, seconds: float) -> Result:
        poll = select.epoll() if hasattr(select, "epoll") else select.poll()
        for number in self._callers:
            poll.register(number, select.POLLIN)
        wait = _TIMEOUT if hasattr(select, "epoll") else _TIMEOUT * 1000
        begun = time.perf_counter()
        for caller in self._callers.values():
            self._ask(caller)
        self._drain(poll, wait, begun + seconds)
        ended = time.perf_counter()
        count = len(self._latencies)
        return Result(count, self._errors, ended - begun, sorted(self._latencies), self._complaint)

    def _drain(self, poll: "select.epoll | select.poll", wait: float, deadline: float) -> None:
        clock, callers, latencies = time.perf_counter, self._callers, self._latencies
        while self._waiting:
            ready = poll.poll(0)
            while not ready and self._spin and clock() < deadline + _TIMEOUT:
                self._send_bodies(clock())
                ready = poll.poll(0)
            if not ready and not (ready := poll.poll(wait)):
                raise TimeoutError(f"{self._waiting} requests were not answered")
            for number, _ in ready:
                caller = callers[number]
                reply = caller.reply()
                if reply is None:
                    continue
                now = clock()
                latencies.append(now - caller.sent)
                self._waiting -= 1
                self._check(caller, *reply)
                if now < deadline:
                    self._ask(caller)

    def _ask(self, caller: Caller) -> None:
        request = next(self._requests, None)
        if request is not None:
            caller.ask(request, split=self._body_delay > 0)
            self._waiting += 1
            if caller.body:
                self._bodies.append(caller)

    def _send_bodies(self, now: float) -> None:
        while self._bodies and self._bodies[0].sent + self._body_delay <= now:
            self._bodies.popleft().send_body()

    def _check(self, caller: Caller, head: bytes, body: bytes) -> None:
        if head.startswith(b"HTTP/1.1 200") and all(piece in body for piece in caller.expect):
            return
        self._errors += 1
        if not self._complaint:
            self._complaint = f"{head[:40]!r} {body[:300]!r}, expected {caller.expect!r}"


def _length(data: bytes, end: int) -> int:
    at = data.find(b"content-length: ", 0, end)
    return int(data[at + 16 : data.find(b"\r", at)]) if at >= 0 else 0
