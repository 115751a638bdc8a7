"""Runs the server: HTTP on a socket, or MCP over standard input and output."""

import asyncio
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, MutableMapping
from functools import partial
from typing import Any

import uvicorn
from starlette.applications import Starlette

from kernel import activation, app, upkeep
from kernel.app import Kernel
from kernel.config import VERSION, Config
from kernel.direct import Direct, protocol
from kernel.dispatch import guard
from kernel.idle import Idle
from kernel.limits import LOOPBACK, Limits
from kernel.mcp_http import Endpoint
from kernel.rest import Ready, Tools, routes
from kernel.rpc import Service, profiles

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]

GRACE_SECONDS = 5
_KEEP_ALIVE_SECONDS = 75
_LAST_REQUESTS_SECONDS = 0.2
_GARBAGE = (50_000, 20, 100)


class Server(uvicorn.Server):
    """Uvicorn that reads the model and completes the index only once it listens, and may end when it has been idle."""

    def __init__(self, config: uvicorn.Config, listening: Callable[[], None], idle_exit: float = 0) -> None:
        super().__init__(config)
        self._listening = listening
        self._idle = Idle(idle_exit, self.server_state, time.monotonic) if idle_exit else None

    async def startup(self, sockets: Any = None) -> None:
        """Starts to listen, then leaves the rest to a thread beside the first calls."""
        await super().startup(sockets)
        if self.started:
            where = "the socket it was given" if sockets else f"http://{self.config.host}:{self.config.port}/mcp"
            sys.stderr.write(f"quipu {VERSION} listens on {where}\n")
        threading.Thread(target=self._listening, name="quipu-warm", daemon=True).start()

    async def on_tick(self, counter: int) -> bool:
        """Whether to end: after a signal, or after the time without requests."""
        return await super().on_tick(counter) or (self._idle is not None and self._idle.over())

    async def shutdown(self, sockets: Any = None) -> None:
        """Ends; whoever connects to a socket that was given, and so outlives us, is answered by us or by the next."""
        if sockets:
            for server in self.servers:
                server.close()
            await asyncio.sleep(_LAST_REQUESTS_SECONDS)
        await super().shutdown(sockets)


class Application:
    """The ASGI application: hot paths by dictionary, everything else through Starlette.

    `hot` are the addresses that `kernel.direct` answers without a task.
    """

    def __init__(self, kernel: Kernel) -> None:
        limits = limits_of(kernel.config)
        served = kernel.dispatch.dialects
        exact = {"/mcp": _mcp(kernel, served, limits)}
        exact.update((f"/mcp/{dialect.name}", _mcp(kernel, (dialect,), limits)) for dialect in served)
        self._exact: dict[str, Asgi] = {**exact}
        self._tools = Tools(kernel.dispatch, limits)
        self._rest = Starlette(routes=routes(kernel.dispatch, partial(ready, kernel)))
        self.hot: dict[bytes, Direct] = {
            **{path.encode(): one.direct for path, one in exact.items()},
            **self._tools.hot,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        path: str = scope.get("path", "")  # the lifespan has none, and Starlette answers it
        hot = self._exact.get(path) or (self._tools if path.startswith("/tools/") else self._rest)
        await hot(scope, receive, send)


def limits_of(config: Config) -> Limits:
    """The edge limits: loopback names always, and what the configuration allows besides."""
    return Limits(
        hosts=LOOPBACK | {host.lower() for host in config.allowed_hosts},
        origins=LOOPBACK | {origin.lower() for origin in config.allowed_origins},
    )


def ready(kernel: Kernel) -> Ready | None:
    """What /readyz says of an open store."""
    embedder = kernel.store.world.embedder
    return Ready("ready" if embedder is None or embedder.ready else "loading", kernel.schema)


def http(config: Config) -> int:
    """Serves until SIGTERM or SIGINT; what was accepted is answered first, for at most five seconds."""
    given = activation.given(config.environment, os.getpid())
    kernel = app.open_kernel(config)
    stopping = threading.Event()
    server = Server(_settings(config, Application(kernel)), partial(_warm, kernel, stopping), config.idle_exit)
    # Uvicorn raises the signals that stopped it once more at its end; the store must still be closed then.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _already_stopping)
    gc.freeze()
    gc.set_threshold(*_GARBAGE)
    try:
        server.run(given or None)
    finally:
        stopping.set()
        kernel.store.close()
    return 0 if server.started else 1


def stdio(config: Config, names: tuple[str, ...]) -> int:
    """Serves one client over standard input and output until it closes them."""
    from kernel.mcp_stdio import serve

    kernel = app.open_kernel(config._replace(dialects=names or config.dialects))
    stopping = threading.Event()
    threading.Thread(target=_warm, args=(kernel, stopping), name="quipu-warm", daemon=True).start()
    try:
        serve(_service(kernel, kernel.dispatch.dialects, "all"))
    finally:
        stopping.set()
        kernel.store.close()
    return 0


def _already_stopping(_number: int, _frame: object) -> None:
    """A signal that has done its work."""


def _mcp(kernel: Kernel, dialects: Any, limits: Limits) -> Endpoint:
    return Endpoint(profiles(partial(_service, kernel, dialects)), limits)


def _service(kernel: Kernel, dialects: Any, tools: Any) -> Service:
    return Service(kernel.dispatch, dialects, version=VERSION, tools=tools, seal_key=kernel.seal_key)


def _warm(kernel: Kernel, stopping: threading.Event) -> None:
    embedder = kernel.store.world.embedder
    if embedder is not None:
        guard(embedder.load)
        guard(upkeep.embed_missing, kernel.store, stopping.is_set)


def _settings(config: Config, served: Application) -> uvicorn.Config:
    fast = sys.platform != "win32"
    return uvicorn.Config(
        served,
        host=config.host,
        port=config.port,
        loop="uvloop" if fast else "asyncio",
        http=protocol(served.hot),
        ws="none",
        lifespan="off",
        interface="asgi3",
        access_log=False,
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
