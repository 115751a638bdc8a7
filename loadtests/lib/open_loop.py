"""Closed-loop and open-loop load: the latency of each answer, and which answers were refusals.

In an open loop latency counts from the scheduled send time, so that a server that falls behind cannot hide it
(coordinated omission).
"""

import random
import selectors
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from loadtests.lib.http_load import Caller, Request

_BUSY = b"is busy"
_TIMEOUT_SECONDS = 30.0


class Sample(NamedTuple):
    """One answer: its time since the start, its latency in seconds, and whether it was the refusal `busy`."""

    at: float
    took: float
    busy: bool


class Pressed(NamedTuple):
    """One run: its seconds, its answers, the number of wrong ones and the first of them."""

    seconds: float
    samples: list[Sample]
    wrong: int
    complaint: str

    @property
    def rate(self) -> float:
        """Completed calls a second."""
        return sum(not sample.busy for sample in self.samples) / self.seconds

    @property
    def busy(self) -> float:
        """The share of calls that were refused."""
        return sum(sample.busy for sample in self.samples) / max(1, len(self.samples))

    def percentile(self, share: float, *, busy: bool = False) -> float:
        """A percentile of the answers, or of the refusals, in milliseconds."""
        return percentile([sample.took for sample in self.samples if sample.busy is busy], share)

    def windows(self, count: int, share: float) -> list[float]:
        """That percentile of the answers in each of `count` equal parts of the run."""
        parts: list[list[float]] = [[] for _ in range(count)]
        for sample in self.samples:
            if not sample.busy:
                parts[min(count - 1, int(sample.at / self.seconds * count))].append(sample.took)
        return [percentile(part, share) for part in parts]


def percentile(took: Sequence[float], share: float) -> float:
    """A percentile of these seconds, in milliseconds."""
    return sorted(took)[min(len(took) - 1, int(share * len(took)))] * 1000 if took else 0.0


def press(port: int, requests: Iterator[Request], *, callers: int, seconds: float, pace: float = 0) -> Pressed:
    """Keeps `callers` requests in flight; with a `pace`, requests arrive as a Poisson process of that rate."""
    crowd = _Crowd(port, requests, callers, seconds, pace)
    try:
        return crowd.run()
    finally:
        crowd.close()


class _Crowd:
    def __init__(self, port: int, requests: Iterator[Request], most: int, seconds: float, pace: float) -> None:
        self._port = port
        self._most = most
        self._free: list[Caller] = []
        self._asking: set[Caller] = set()
        self._poll = selectors.DefaultSelector()
        self._requests = requests
        self._seconds = seconds
        self._pace = pace
        self._chance = random.Random(7)
        self._samples: list[Sample] = []
        self._wrong = 0
        self._complaint = ""

    def run(self) -> Pressed:
        """Send until the time is over, then wait for the requests in flight."""
        self._begun = self._due = time.perf_counter()
        end = self._begun + self._seconds
        while (now := time.perf_counter()) < end or self._asking:
            if now > end + _TIMEOUT_SECONDS:
                raise TimeoutError("requests were not answered")
            self._ask(min(now, end), end)
            for key, _ in self._poll.select(self._pause(end)):
                self._hear(key.data)
        return Pressed(self._seconds, self._samples, self._wrong, self._complaint)

    def close(self) -> None:
        """Close the connections."""
        for caller in [*self._free, *self._asking]:
            caller.socket.close()
        self._poll.close()

    def _ask(self, now: float, end: float) -> None:
        """Give idle callers the due requests, or the next one if there is no pace."""
        while self._due <= now < end and (self._free or len(self._asking) < self._most):
            caller = self._free.pop() if self._free else self._new()
            self._asking.add(caller)
            caller.ask(next(self._requests))
            if self._pace:
                caller.sent = self._due
                self._due += self._chance.expovariate(self._pace)

    def _new(self) -> Caller:
        caller = Caller(self._port)
        self._poll.register(caller.socket, selectors.EVENT_READ, caller)
        return caller

    def _pause(self, end: float) -> float:
        now = time.perf_counter()
        if now >= end or len(self._asking) == self._most:
            return 0.1
        return max(0.0, min(self._due, end) - now)

    def _hear(self, caller: Caller) -> None:
        if caller not in self._asking:  # the server hangs up on who says nothing for long
            self._poll.unregister(caller.socket)
            self._free.remove(caller)
            caller.socket.close()
            return
        reply = caller.reply()
        if reply is None:
            return
        now = time.perf_counter()
        self._asking.remove(caller)
        self._free.append(caller)
        head, body = reply
        busy = _BUSY in body
        self._samples.append(Sample(now - self._begun, now - caller.sent, busy))
        if not busy and not (head.startswith(b"HTTP/1.1 200") and all(piece in body for piece in caller.expect)):
            self._wrong += 1
            self._complaint = self._complaint or f"{head[:40]!r} {body[:300]!r}, expected {caller.expect!r}"
