"""Processor time of one tools/call over HTTP: bare ASGI, Quipu and the official SDK on the same uvicorn, both eras.

All three have one echo tool, and every reply is checked. Requests come in one segment, and as head and body in two, as
most HTTP clients send them. Then the share of calls of real clients that Quipu answers without its ASGI application.
The last table leaves the HTTP server out: what the two callables take by themselves, in this process.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import cycle
from statistics import median
from typing import NamedTuple

from starlette.types import ASGIApp, Message

from loadtests.baselines import echo_servers
from loadtests.lib import fast_path_share, http_requests
from loadtests.lib.http_load import Request, Result, drive
from loadtests.lib.servers import Server, budget, budgets, finish, machine, options, paired, rounds, served, table

_PEERS = {"bare ASGI + msgspec": "bare", "quipu": "quipu", "official SDK": "sdk"}
_BARE, _QUIPU, _SDK = _PEERS
_ERAS: tuple[http_requests.Era, ...] = ("modern", "legacy")
# Seconds between head and body: much longer than a server takes for the heads of all callers.
_BODY_DELAYS = {"one segment": 0.0, "two segments": 0.001}
_RATIO_BUDGETS = {"one segment": 1.3, "two segments": 1.5}
_SDK_BUDGET = 7
_SHARE_BUDGET = 0.95
_TEXTS = 256


class Run(NamedTuple):
    """One round of one side: what the callers saw, and microseconds of processor time for one call."""

    seen: Result
    cpu: float


class Case(NamedTuple):
    """An era and the number of segments of a request."""

    era: http_requests.Era
    form: str

    def __str__(self) -> str:
        return f"{self.era}, {self.form}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the bench; 1 if a reply was wrong."""
    chosen = options(
        __doc__,
        arguments,
        rounds=7,
        callers={"type": int, "default": 16},
        seconds={"type": float, "default": 1.0, "help": "length of one run"},
    )
    seconds = 0.2 if chosen.quick else chosen.seconds
    machine()
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(served("loadtests.baselines.echo_servers", peer)) for name, peer in _PEERS.items()
        }
        for server in servers.values():
            server.wait("/mcp", status=0)
        found = {
            case: _measure(servers, case, chosen.callers, chosen.rounds, seconds)
            for case in [Case(era, form) for era in _ERAS for form in _BODY_DELAYS]
        }
    for case, runs in found.items():
        _show(case, runs, chosen.callers, chosen.rounds)
    shares = fast_path_share.measure(20 if chosen.quick else 200)
    table("calls answered on the fast path", ("client", "calls", "share"), [(c, n, share) for c, n, share in shares])
    _alone(500 if chosen.quick else 5000, chosen.rounds)
    rows = [row for case, runs in found.items() for row in _budgets(case, runs)]
    budgets([*rows, *(budget(f"fast path: {name}", share, _SHARE_BUDGET, least=True) for name, _, share in shares)])
    return finish(
        [run.seen.complaint for runs in found.values() for side in runs.values() for run in side if run.seen.errors]
    )


def _measure(servers: dict[str, Server], case: Case, callers: int, count: int, seconds: float) -> dict[str, list[Run]]:
    requests, delay = [request(case.era, number) for number in range(_TEXTS)], _BODY_DELAYS[case.form]
    for server in servers.values():
        run(server, requests, callers, min(0.2, seconds), delay)
    return rounds(
        count,
        {
            name: lambda server=server: run(server, requests, callers, seconds, delay)
            for name, server in servers.items()
        },
    )


def request(era: http_requests.Era, number: int) -> Request:
    """A call of the echo tool."""
    text = f"the answer to question {number} is {number * 7919 % 1000003}"
    return http_requests.mcp(era, "echo", {"text": text}, f'"text":"{text}"'.encode(), number)


def run(server: Server, requests: Sequence[Request], callers: int, seconds: float, body_delay: float = 0.0) -> Run:
    """One run; the callers never sleep."""
    before = server.cpu()
    seen = drive(server.port, cycle(requests), callers=callers, seconds=seconds, spin=True, body_delay=body_delay)
    return Run(seen, (server.cpu() - before) / max(1, seen.replies) * 1e6)


def _show(case: Case, runs: dict[str, list[Run]], callers: int, count: int) -> None:
    rows = [
        (
            name,
            min(_cpu(side)),
            median(_cpu(side)),
            median(run.seen.rate for run in side),
            median(run.seen.percentile(0.5) for run in side),
            median(run.seen.percentile(0.99) for run in side),
            paired(_cpu(side), _cpu(runs[_BARE])),
        )
        for name, side in runs.items()
    ]
    header = ("server", "least cpu us", "median", "calls/s", "p50 ms", "p99 ms", "x bare")
    version = http_requests.VERSIONS[case.era]
    table(f"tools/call, {version}, {case.form}, {callers} callers, {count} rounds", header, rows)


def _alone(calls: int, count: int) -> None:
    ours, close = echo_servers.quipu()
    sides = {_BARE: echo_servers.bare, _QUIPU: ours}
    try:
        rows = [row for era in _ERAS for row in _boundary(sides, era, calls, count)]
    finally:
        close()
    table(f"the callable by itself, {calls:,} calls a round", ("callable", "least cpu us", "median"), rows)


def _boundary(
    sides: dict[str, ASGIApp], era: http_requests.Era, calls: int, count: int
) -> list[tuple[str, float, float]]:
    contenders = {name: lambda app=app: asyncio.run(_called(app, era, calls)) for name, app in sides.items()}
    return [(f"{name}, {era}", min(spent), median(spent)) for name, spent in rounds(count, contenders).items()]


async def _called(app: ASGIApp, era: http_requests.Era, calls: int) -> float:
    """Microseconds of processor time of one call, with an HTTP server that costs nothing."""
    head, _, body = request(era, 1).data.partition(b"\r\n\r\n")
    headers = [tuple(line.split(b": ", 1)) for line in head.split(b"\r\n")[1:]]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "headers": headers}
    message = {"type": "http.request", "body": body, "more_body": False}

    async def receive() -> Message:
        return message

    async def send(_message: Message) -> None:
        return None

    begun = time.thread_time()
    for _ in range(calls):
        await app(scope, receive, send)
    return (time.thread_time() - begun) / calls * 1e6


def _budgets(case: Case, runs: dict[str, list[Run]]) -> list[tuple[str, str, str, str]]:
    over_bare = paired(_cpu(runs[_QUIPU]), _cpu(runs[_BARE]))
    sdk_over_ours = paired(_cpu(runs[_SDK]), _cpu(runs[_QUIPU]))
    return [
        budget(f"{case}: quipu over bare ASGI, cpu", over_bare, _RATIO_BUDGETS[case.form]),
        budget(f"{case}: SDK over ours, cpu", sdk_over_ours, _SDK_BUDGET, least=True),
    ]


def _cpu(side: Sequence[Run]) -> list[float]:
    return [run.cpu for run in side]


if __name__ == "__main__":
    raise SystemExit(main())
