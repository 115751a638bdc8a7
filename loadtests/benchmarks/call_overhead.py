"""Processor time of one tools/call over HTTP: bare ASGI, Quipu and the official SDK on the same uvicorn, both eras.

All three have one tool that says what it is told; every reply is looked at. The last table leaves the HTTP server out:
what the two callables take by themselves, in this process.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import cycle
from statistics import median
from typing import Any, NamedTuple

from loadtests.baselines import echo_servers
from loadtests.lib import http_requests
from loadtests.lib.http_load import Request, Result, drive
from loadtests.lib.servers import Server, budget, budgets, finish, machine, options, paired, rounds, served, table

_PEERS = {"bare ASGI + msgspec": "bare", "quipu": "quipu", "official SDK": "sdk"}
_BARE, _QUIPU, _SDK = _PEERS
_ERAS: tuple[http_requests.Era, ...] = ("modern", "legacy")
_TEXTS = 256


class Run(NamedTuple):
    """One round of one side: what the callers saw, and microseconds of processor time for one call."""

    seen: Result
    cpu: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the bench; 1 if a reply was wrong."""
    chosen = options(
        __doc__,
        arguments,
        callers={"type": int, "default": 16},
        seconds={"type": float, "default": 1.0, "help": "length of one run"},
    )
    count = chosen.rounds or (1 if chosen.quick else 7)
    seconds = 0.2 if chosen.quick else chosen.seconds
    machine()
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(served("loadtests.baselines.echo_servers", peer)) for name, peer in _PEERS.items()
        }
        for server in servers.values():
            server.wait("/mcp", status=0)
        found: dict[http_requests.Era, dict[str, list[Run]]] = {
            era: _era(servers, era, chosen.callers, count, seconds) for era in _ERAS
        }
    for era, runs in found.items():
        _show(era, runs, chosen.callers, count)
    _alone(500 if chosen.quick else 5000, count)
    budgets([row for era, runs in found.items() for row in _promises(era, runs)])
    return finish(
        [run.seen.complaint for runs in found.values() for side in runs.values() for run in side if run.seen.errors]
    )


def _era(
    servers: dict[str, Server], era: http_requests.Era, callers: int, count: int, seconds: float
) -> dict[str, list[Run]]:
    requests = [request(era, number) for number in range(_TEXTS)]
    for server in servers.values():
        run(server, requests, callers, min(0.2, seconds))
    return rounds(
        count,
        {name: lambda server=server: run(server, requests, callers, seconds) for name, server in servers.items()},
    )


def request(era: http_requests.Era, number: int) -> Request:
    """A call of the echo tool."""
    text = f"the answer to question {number} is {number * 7919 % 1000003}"
    return http_requests.mcp(era, "echo", {"text": text}, f'"text":"{text}"'.encode(), number)


def run(server: Server, requests: Sequence[Request], callers: int, seconds: float) -> Run:
    """One run; the caller never sleeps."""
    before = server.cpu()
    seen = drive(server.port, cycle(requests), callers=callers, seconds=seconds, spin=True)
    return Run(seen, (server.cpu() - before) / max(1, seen.replies) * 1e6)


def _show(era: http_requests.Era, runs: dict[str, list[Run]], callers: int, count: int) -> None:
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
    table(f"tools/call, {http_requests.VERSIONS[era]}, {callers} callers, {count} rounds", header, rows)


def _alone(calls: int, count: int) -> None:
    ours, close = echo_servers.quipu()
    sides = {_BARE: echo_servers.bare, _QUIPU: ours}
    try:
        rows = [row for era in _ERAS for row in _boundary(sides, era, calls, count)]
    finally:
        close()
    table(f"the callable by itself, {calls:,} calls a round", ("callable", "least cpu us", "median"), rows)


def _boundary(sides: dict[str, Any], era: http_requests.Era, calls: int, count: int) -> list[tuple[str, float, float]]:
    contenders = {name: lambda app=app: asyncio.run(_called(app, era, calls)) for name, app in sides.items()}
    return [(f"{name}, {era}", min(spent), median(spent)) for name, spent in rounds(count, contenders).items()]


async def _called(app: Any, era: http_requests.Era, calls: int) -> float:
    """Microseconds of processor time of one call, with an HTTP server that costs nothing."""
    head, _, body = request(era, 1).data.partition(b"\r\n\r\n")
    headers = [tuple(line.split(b": ", 1)) for line in head.split(b"\r\n")[1:]]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "headers": headers}
    message = {"type": "http.request", "body": body, "more_body": False}

    async def receive() -> dict[str, Any]:
        return message

    async def send(_message: Any) -> None:
        return None

    begun = time.thread_time()
    for _ in range(calls):
        await app(scope, receive, send)
    return (time.thread_time() - begun) / calls * 1e6


def _promises(era: http_requests.Era, runs: dict[str, list[Run]]) -> list[tuple[str, str, str, str]]:
    return [
        budget(f"{era}: quipu over bare ASGI, cpu", paired(_cpu(runs[_QUIPU]), _cpu(runs[_BARE])), 1.3),
        budget(f"{era}: SDK over quipu, cpu", paired(_cpu(runs[_SDK]), _cpu(runs[_QUIPU])), 7, least=True),
    ]


def _cpu(side: Sequence[Run]) -> list[float]:
    return [run.cpu for run in side]


if __name__ == "__main__":
    raise SystemExit(main())
