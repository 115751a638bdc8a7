"""The share of calls by real HTTP clients that Quipu answers without its ASGI application."""

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import httpx
import requests
import uvicorn
from mcp import Client
from starlette.types import ASGIApp, Receive, Scope, Send

from kernel.calls.dispatch import Pending
from kernel.core.errors import Fault
from kernel.core.limits import Header
from kernel.http.edge import HttpResponse
from kernel.http.fast_path import Done, FastRoute, protocol
from loadtests.baselines import echo_servers
from loadtests.lib import http_requests


class Share(NamedTuple):
    """A client, its calls, and the share of them on the fast path."""

    client: str
    calls: int
    share: float


class _Counter:
    """Counts the requests that each path answers."""

    def __init__(self) -> None:
        self.fast = 0
        self.slow = 0

    def route(self, answer: FastRoute) -> FastRoute:
        def counted(headers: Sequence[Header], body: bytes | None, done: Done) -> HttpResponse | Pending | Fault | None:
            response = answer(headers, body, done)
            self.fast += body is not None and response is not None
            return response

        return counted

    def application(self, app: ASGIApp) -> ASGIApp:
        async def counted(scope: Scope, receive: Receive, send: Send) -> None:
            self.slow += scope["method"] == "POST"
            await app(scope, receive, send)

        return counted


def measure(calls: int) -> list[Share]:
    """The shares of httpx, requests and the official MCP client; raises where a reply is wrong."""
    clients = {"httpx": _httpx, "httpx, async": _httpx_async, "requests": _requests, "mcp": _mcp}
    shares: list[Share] = []
    with _served() as (port, counter):
        for name, client in clients.items():
            counter.fast = counter.slow = 0
            client(f"http://127.0.0.1:{port}/mcp", calls)
            shares.append(Share(name, counter.fast + counter.slow, counter.fast / (counter.fast + counter.slow)))
    return shares


@contextmanager
def _served() -> Iterator[tuple[int, _Counter]]:
    """The echo server in a thread, with its protocol and application wrapped by a counter."""
    served, close = echo_servers.quipu()
    counter = _Counter()
    routes = {path: counter.route(route) for path, route in served.fast_routes.items()}
    app = counter.application(served)
    config = uvicorn.Config(app, port=0, lifespan="off", ws="none", log_level="error", http=protocol(routes))
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        thread.join(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1], counter
    finally:
        server.should_exit = True
        thread.join()
        close()


def _headers() -> dict[str, str]:
    return {"content-type": "application/json", **http_requests.headers("modern", echo_servers.TOOL)}


def _body(number: int) -> bytes:
    return json.dumps(http_requests.message("modern", echo_servers.TOOL, {"text": str(number)}, number)).encode()


def _check(content: bytes, number: int) -> None:
    if f'"text":"{number}"'.encode() not in content:
        raise ValueError(f"wrong reply to call {number}: {content[:200]!r}")


def _httpx(url: str, calls: int) -> None:
    with httpx.Client(headers=_headers()) as client:
        for number in range(calls):
            _check(client.post(url, content=_body(number)).content, number)


def _httpx_async(url: str, calls: int) -> None:
    async def call() -> None:
        async with httpx.AsyncClient(headers=_headers()) as client:
            for number in range(calls):
                _check((await client.post(url, content=_body(number))).content, number)

    asyncio.run(call())


def _requests(url: str, calls: int) -> None:
    with requests.Session() as session:
        for number in range(calls):
            _check(session.post(url, data=_body(number), headers=_headers(), timeout=30).content, number)


def _mcp(url: str, calls: int) -> None:
    async def call() -> None:
        async with Client(url) as client:
            for number in range(calls):
                result = await client.call_tool(echo_servers.TOOL, {"text": str(number)})
                _check(result.model_dump_json().encode(), number)

    asyncio.run(call())
