"""Runs the server: HTTP on a socket, or MCP over standard input and output."""

import asyncio
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

import uvicorn

from kernel import process
from kernel.config import VERSION, Config, on_loopback
from kernel.errors import Fault
from kernel.http.fast_path import FastRoute, protocol
from kernel.limits import Limits
from kernel.process import IdleTimer, connection_limit
from kernel.security.rate_limit import RateLimiter

if TYPE_CHECKING:
    from kernel.asgi import Application

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

GRACE_SECONDS = 5  # for answers under way at shutdown
# Rarer than Python's default (700, 10, 10): an answered call leaves no reference cycle that needs the collector.
_GC_THRESHOLDS = (50_000, 20, 100)
_LAST_REQUESTS_SECONDS = 0.2  # for connections that were accepted on an inherited socket just before it is closed
# The answers before the kernel is open; later /healthz is the same, and /readyz has more fields.
_EARLY = {"/healthz": (200, b'{"status":"ok"}'), "/readyz": (503, b'{"status":"starting"}')}
_CLOSED = (503, b'{"error":{"code":"busy","message":"The server is stopping."}}')


class StartupGate:
    """The ASGI application while the kernel opens: it answers health checks, and lets other requests wait.

    `fast_routes` are set once the kernel is open, and `rate_limiter` counts by key from then on.
    """

    def __init__(self, limits: Limits) -> None:
        self.fast_routes: dict[bytes, FastRoute] = {}
        self.limits = limits._replace(connections=connection_limit(limits.connections))
        self.rate_limiter = RateLimiter(limits.rate, limits.burst)
        self._decided = asyncio.Event()
        self._application: Application | None = None

    def set_application(self, application: "Application | None") -> None:
        """Passes all requests to the application from here on, or refuses them where it could not be opened."""
        self._application = application
        if application is not None:
            self.fast_routes.update(application.fast_routes)
            self.rate_limiter.authenticator = application.access.auth
        self._decided.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if self._application is None:
            early = _EARLY.get(scope["path"]) if scope["method"] in {"GET", "HEAD"} else None
            if early is None:
                await self._decided.wait()
            if self._application is None:
                await _send_json(send, *(early or _CLOSED))
                return
        await self._application(scope, receive, send)


class Server(uvicorn.Server):
    """A uvicorn server that opens the kernel in a thread, once it listens."""

    def __init__(self, config: Config) -> None:
        self._gate = StartupGate(config.limits)
        super().__init__(_settings(config, self._gate))
        self._idle = IdleTimer(config.idle_exit, self.server_state, time.monotonic) if config.idle_exit else None
        self._settings = config
        self._stopping = threading.Event()
        self._opening: threading.Thread | None = None
        self._opened = threading.Event()
        self._application: Application | None = None
        self._fault: Fault | None = None
        self._where = ""

    async def startup(self, sockets: Any = None) -> None:
        """Starts to listen, then opens the kernel in a thread."""
        await super().startup(sockets)
        self._where = "a socket it was given" if sockets else f"http://{self.config.host}:{self.config.port}/mcp"
        if self.started:
            loop = asyncio.get_running_loop()
            self._opening = threading.Thread(target=self._open, args=(loop,), name="quipu-open", daemon=True)
            self._opening.start()

    async def on_tick(self, counter: int) -> bool:
        """Whether to end: after a signal, or after `idle_exit` seconds without requests."""
        return await super().on_tick(counter) or (self._idle is not None and self._idle.expired())

    async def shutdown(self, sockets: Any = None) -> None:
        """Answers what was accepted; waits for a kernel that is being opened, since it needs the loop.

        An inherited socket stays open after this process: new connections are answered by this server or the next.
        """
        if sockets:
            for server in self.servers:
                server.close()
            await asyncio.sleep(_LAST_REQUESTS_SECONDS)
        await super().shutdown(sockets)
        if self._opening is not None:
            await asyncio.to_thread(self._opened.wait)

    def end(self) -> int:
        """Closes the kernel and returns the exit status; raises the Fault that kept the kernel from opening."""
        self._stopping.set()
        if self._opening is not None:
            self._opening.join()
        if self._application is not None:
            self._application.close()
        if self._fault is not None:
            raise self._fault
        return 0 if self.started else 1

    def _open(self, loop: asyncio.AbstractEventLoop) -> None:
        from kernel import asgi

        found = asgi.open_application(self._settings)
        if isinstance(found, Fault):
            self._fault = found
            self.should_exit = True
            loop.call_soon_threadsafe(self._gate.set_application, None)
            self._opened.set()
            return
        self._application = found
        found.connections = lambda: len(self.server_state.connections)
        loop.call_soon_threadsafe(self._gate.set_application, found)
        self._opened.set()
        sys.stderr.write(f"quipu {VERSION} listens on {self._where}\n")
        asgi.warm(found.kernel, self._stopping, _collect_garbage)


def _collect_garbage() -> None:
    """Turns the garbage collector on for new objects; those of startup live as long as the process."""
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
    gc.enable()


def http(config: Config) -> int:
    """Serves until SIGTERM or SIGINT, then finishes accepted requests for at most five seconds."""
    given = process.inherited_sockets(config.environment, os.getpid())
    config = config._replace(host=process.most_reachable_host(given) or config.host)
    if not (config.open or config.oauth or on_loopback(config.host)):
        _need_keys(config)
    server = Server(config)
    # Uvicorn raises the signal that stopped it again when it ends; the store must still be closed then.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _already_stopping)
    try:
        server.run(given or None)
    finally:
        status = server.end()
    return status


def stdio(config: Config, names: tuple[str, ...]) -> int:
    """Serves one client over standard input and output until it closes its end."""
    from kernel import app, asgi
    from kernel.mcp.stdio import serve

    kernel = asgi.mark_warming(app.open_kernel(config._replace(dialects=names or config.dialects)))
    stopping = threading.Event()
    arguments = (kernel, stopping, _collect_garbage)
    threading.Thread(target=asgi.warm, args=arguments, name="quipu-warm", daemon=True).start()
    try:
        serve(asgi.service(kernel, kernel.dispatch.dialects), kernel.dispatch)
    finally:
        stopping.set()
        kernel.store.close()
    return 0


def _need_keys(config: Config) -> None:
    """Raises Fault where no key exists, since every client that reaches the address would have full access."""
    from kernel.security import api_keys

    if not api_keys.read(config.data):
        raise Fault(
            "invalid",
            f"Listening on {config.host} needs keys: make one with `quipu key create`, "
            "or say that anybody may read and write everything with --open (QUIPU_OPEN=1).",
        )


def _already_stopping(_number: int, _frame: object) -> None:
    """Ignores the signal."""


async def _send_json(send: Send, status: int, body: bytes) -> None:
    head = [(b"content-length", b"%d" % len(body)), (b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})


def _settings(config: Config, served: StartupGate) -> uvicorn.Config:
    fast = sys.platform != "win32"
    return uvicorn.Config(
        served,
        host=config.host,
        port=config.port,
        loop="uvloop" if fast else "asyncio",
        http=protocol(served.fast_routes, served.limits, served.rate_limiter),
        ws="none",
        lifespan="off",
        interface="asgi3",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
