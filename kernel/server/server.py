"""Runs the server: HTTP on a socket, or MCP over standard input and output."""

import asyncio
import errno
import gc
import logging
import os
import signal
import sys
import threading
import time
from contextlib import closing
from functools import partial
from socket import AF_INET, AF_INET6, IPPROTO_TCP, TCP_NODELAY, socket
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.types import Receive, Scope, Send

from kernel.core.config import VERSION, Config, on_loopback
from kernel.core.errors import Fault
from kernel.core.limits import Limits
from kernel.core.memory import wait_for_memory
from kernel.http.edge import HttpResponse, send_response
from kernel.http.fast_path import HEALTHY, FastRoute, protocol
from kernel.security.local_access import LocalAccess, authority
from kernel.security.rate_limit import RateLimiter
from kernel.server import process
from kernel.server.process import IdleTimer, connection_limit

if TYPE_CHECKING:
    from handlers.console.guide import GuideOf
    from kernel.server.asgi import Application
    from kernel.server.worker import Worker

GRACE_SECONDS = 3  # for accepted requests
END_SECONDS = 4.5  # after which a process that was told to stop has ended, whatever its threads do
# With the default thresholds a tenth of the start went into collections over objects that stay.
_GC_THRESHOLDS = (50_000, 20, 100)
# How long a thread keeps the interpreter's lock from others. A short call waits for it at each of its statements:
# beside 16 writers of 100 KB the p99 of a read was 6.8 times that alone with .5 ms, and 2.2 times with this (busy
# machine). Two threads that compute take .5 % more processor time than with the default of 5 ms.
_SWITCH_SECONDS = 0.0001
# A socket passed by the service manager may hold connections that were accepted just before the signal.
_LAST_REQUESTS_SECONDS = 0.2
_KEEP_TICKS = 5  # of a tenth of a second, between two times at which a worker keeps its counters
# The probes before the kernel is open; afterwards the application answers them.
_EARLY = {"/healthz": (200, HEALTHY), "/readyz": (503, b'{"status":"starting"}')}
_STOPPING = (503, b'{"error":{"code":"busy","message":"The server is stopping."}}')


class StartupGate:
    """The ASGI application from the start: answers the probes, and lets other requests wait for the kernel.

    `fast_routes` is filled when the kernel is open, and `rate_limiter` knows keys from then on.
    """

    def __init__(self, limits: Limits, worker: "Worker | None" = None) -> None:
        self.fast_routes: dict[bytes, FastRoute] = {}
        self.limits = limits._replace(connections=connection_limit(limits.connections))
        self.rate_limiter = RateLimiter(limits.rate, limits.burst, worker.buckets if worker else None)
        self._opened = asyncio.Event()
        self._application: Application | None = None

    def set_application(self, application: "Application | None") -> None:
        """Passes requests to the application; with None, answers them with 503."""
        self._application = application
        if application is not None:
            self.fast_routes.update(application.fast_routes)
            self.rate_limiter.authenticator = application.access.auth
        self._opened.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._application is None:
            early = _EARLY.get(scope["path"]) if scope["method"] in {"GET", "HEAD"} else None
            if early is None:
                await self._opened.wait()
            if self._application is None:
                await send_response(send, HttpResponse(*(early or _STOPPING)))
                return
        await self._application(scope, receive, send)


class Server(uvicorn.Server):
    """Uvicorn, which opens the kernel in a thread once it listens; perhaps one `worker` of several."""

    def __init__(
        self,
        config: Config,
        address: str,
        local: LocalAccess,
        worker: "Worker | None" = None,
        guide: "GuideOf | None" = None,
    ) -> None:
        self._local = local
        self._guide = guide
        self._gate = StartupGate(config.limits, worker)
        self._worker = worker
        if worker is not None and config.metrics:
            worker.text = partial(_kept_counters, worker)  # until the kernel is open
        super().__init__(_uvicorn_config(config, self._gate))
        self._idle = IdleTimer(config.idle_exit, self.server_state, time.monotonic) if config.idle_exit else None
        self._quipu_config = config
        self._stopping = threading.Event()
        self._opening: threading.Thread | None = None
        self._opened = threading.Event()
        self._application: Application | None = None
        self._fault: Fault | None = None
        self._address = address
        self._connecting: set[asyncio.Future[Any]] = set()

    async def startup(self, sockets: Any = None) -> None:
        worker, loop = self._worker, asyncio.get_running_loop()
        if worker is not None:
            worker.take_signals()
        try:
            await super().startup(sockets if worker is None else [])
        except SystemExit as ended:
            raise _cannot_listen(self.config.host, self.config.port, ended.__context__) from None
        if self.started:
            if worker is not None:
                worker.accept(loop, sockets, self._serve_connection)
            self._opening = threading.Thread(target=self._open, args=(loop,), name="quipu-open", daemon=True)
            self._opening.start()

    async def main_loop(self) -> None:
        """Wait until the server is to end; that a look at the clock gets no memory is no reason."""
        while True:
            try:
                return await super().main_loop()
            except MemoryError:
                wait_for_memory()

    async def on_tick(self, counter: int) -> bool:
        """Return whether to end: after a signal, after `idle_exit` seconds without requests, or without the parent."""
        ending = await super().on_tick(counter) or (self._idle is not None and self._idle.expired())
        if self._worker is None:
            return ending
        self._worker.count(len(self.server_state.connections))
        if self._quipu_config.metrics and counter % _KEEP_TICKS == 0 and self._application is not None:
            self._worker.keep(self._application.snapshot())
        return ending or self._worker.is_orphan()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Begins to stop; the process ends in time even if its loop, or a call, never does."""
        if not self.should_exit:
            process.end_within(END_SECONDS)
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: Any = None) -> None:
        """Answers accepted requests; waits for a kernel that is being opened, since that needs the loop.

        A socket that was passed in outlives this process: a new connection is answered by it or by the next server.
        """
        if sockets:
            if self._worker is not None:
                self._worker.stop_accepting(asyncio.get_running_loop(), sockets)
            for server in self.servers:
                server.close()
            await asyncio.sleep(_LAST_REQUESTS_SECONDS)
        if self._application is not None:
            self._application.streams.close()
        await super().shutdown(sockets)
        if self._opening is not None:
            await asyncio.to_thread(self._opened.wait)

    def end(self) -> int:
        """Closes the kernel; the exit status. Raises the Fault that kept the kernel from opening."""
        self._stopping.set()
        if self._opening is not None:
            self._opening.join()
        if self._application is not None:
            self._application.close()
        if self._fault is not None:
            raise self._fault
        return 0 if self.started else 1

    def _serve_connection(self, sock: socket) -> None:
        if sock.family in {AF_INET, AF_INET6}:
            sock.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
        sock.setblocking(False)
        state = {"server_state": self.server_state, "app_state": self.lifespan.state}
        protocol = partial(self.config.http_protocol_class, config=self.config, **state)  # pyrefly: ignore[unexpected-keyword]
        task = asyncio.ensure_future(asyncio.get_running_loop().connect_accepted_socket(protocol, sock))
        self._connecting.add(task)
        task.add_done_callback(self._connected)

    def _connected(self, task: "asyncio.Future[Any]") -> None:
        self._connecting.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logging.getLogger("quipu").debug("a client left before it was served: %s", task.exception())

    def _open(self, loop: asyncio.AbstractEventLoop) -> None:
        from kernel.operations.shared_store import open_patiently
        from kernel.server import asgi
        from kernel.server.app import start_backups

        process.share_memory()
        worker = self._worker
        config = self._quipu_config
        outcome = open_patiently(config, lambda: asgi.open_application(config, worker), lambda: self.should_exit)
        if isinstance(outcome, Fault):
            self._fault = outcome
            self.should_exit = True
            loop.call_soon_threadsafe(self._gate.set_application, None)
            self._opened.set()
            return
        self._application = outcome
        outcome.kernel.store.pools.begin_all()  # before a call may take the memory of their start
        outcome.connections = lambda: len(self.server_state.connections)
        outcome.stopping, outcome.guide, outcome.local = lambda: self.should_exit, self._guide, self._local
        if worker is None:  # before the first answer: by the token a hook knows whom it has asked
            self._local.publish([sock for server in self.servers for sock in server.sockets])
        loop.call_soon_threadsafe(self._gate.set_application, outcome)
        self._opened.set()
        outcome.backups = start_backups(config, self._stopping, worker)
        if worker is None or worker.first:
            at = self._address
            console = at.endswith("/mcp") and config.ui
            also = f", the console is {at.removesuffix('/mcp')}/ui" if console else ""
            sys.stderr.write(f"quipu {VERSION} listens on {at}{also}\n")
        if worker is not None:
            worker.text = outcome.snapshot
            worker.report_opened()
        outcome.upkeep.run(self._stopping, _collect_garbage)


def _kept_counters(worker: "Worker") -> bytes:
    import msgspec  # a start does not wait for it

    from kernel.observe.metrics import kept_counters

    counters = kept_counters(worker.kept())
    return b"" if counters is None else msgspec.json.encode(counters)


def _collect_garbage() -> None:
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
    gc.enable()


def http(config: Config, guide: "GuideOf | None" = None) -> int:
    """Serves until SIGTERM or SIGINT, then answers accepted requests for at most three seconds.

    `guide` is the state of clients and installation, for the console.
    """
    sockets = process.inherited_sockets(config.environment, os.getpid())
    if config.workers > 1:
        _require_workers_allowed(config)
    config = config._replace(host=process.most_reachable_host(sockets) or config.host)
    if not (config.open or config.oauth or on_loopback(config.host)):
        _need_keys(config)
    # The message of uvicorn about a socket that cannot be opened is raised as a Fault.
    logging.getLogger("uvicorn.error").addFilter(lambda record: not isinstance(record.msg, OSError))
    is_inherited = bool(sockets)
    if not is_inherited and (config.workers > 1 or config.port == 0):
        sockets = _bound(config)
        config = config._replace(port=sockets[0].getsockname()[1])
    address = "a socket it was given" if is_inherited else f"http://{authority(config.host, config.port)}/mcp"
    with closing(LocalAccess.fresh(config.data)) as local:
        if config.workers == 1:
            return _serve(Server(config, address, local, guide=guide), sockets)
        from kernel.server.supervisor import Supervisor

        supervisor = Supervisor(config.workers, config.data, sockets)
        local.publish(sockets)
        outcome = supervisor.run()
        return outcome if isinstance(outcome, int) else _serve(Server(config, address, local, outcome, guide), sockets)


def _serve(server: Server, sockets: list[socket]) -> int:
    # Uvicorn raises the signal that stopped it again at its end, and the store is closed after that.
    for number in process.stop_signals():
        signal.signal(number, server.handle_exit)
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        server.run(sockets or None)
    finally:
        status = server.end()
    return status


def _bound(config: Config) -> list[socket]:
    try:
        return process.listening_sockets(config.host, config.port)
    except OSError as error:
        raise _cannot_listen(config.host, config.port, error) from None


def _require_workers_allowed(config: Config) -> None:
    if sys.platform == "win32":
        raise Fault("invalid", "Windows serves with one worker only: leave --workers and QUIPU_WORKERS out.")
    if config.idle_exit:
        raise Fault("invalid", "QUIPU_IDLE_EXIT needs a single worker: leave it, or --workers and QUIPU_WORKERS, out.")


def stdio(config: Config, names: tuple[str, ...], *, strict: bool = False) -> int:
    """Serves one client over standard input and output until it closes its end."""
    from kernel.mcp.server import Profile
    from kernel.mcp.stdio import serve
    from kernel.server import app, asgi
    from kernel.server.upkeep import Upkeep

    kernel = app.open_kernel(config._replace(dialects=names or config.dialects))
    stopping = threading.Event()
    arguments = (stopping, _collect_garbage)
    threading.Thread(target=Upkeep(kernel).run, args=arguments, name="quipu-upkeep", daemon=True).start()
    try:
        serve(asgi.service(kernel, asgi.union(kernel), Profile(strict=strict)), kernel.dispatch)
    finally:
        stopping.set()
        kernel.store.close()
    return 0


def _need_keys(config: Config) -> None:
    from kernel.security import api_keys

    if not api_keys.read(config.data):
        raise Fault(
            "invalid",
            f"Listening on {config.host} needs keys: make one with `quipu key create --scope admin`, "
            "or say that anybody may read and write everything with --open (QUIPU_OPEN=1).",
        )


def _cannot_listen(host: str, port: int, error: BaseException | None) -> BaseException:
    number = getattr(error, "errno", None)
    if number == errno.EADDRINUSE:
        remedy = "`quipu doctor` says by whom; --port or PORT chooses another"
        return Fault("busy", f"Port {port} of {host} is in use: {remedy}.")
    if number == errno.EACCES:
        return Fault("busy", f"Port {port} of {host} is not allowed to this user: --port or PORT chooses another.")
    return Fault("invalid", f"Cannot listen on {host}, port {port}: {getattr(error, 'strerror', None) or error}.")


def _uvicorn_config(config: Config, gate: StartupGate) -> uvicorn.Config:
    unix = sys.platform != "win32"
    return uvicorn.Config(
        gate,
        host=config.host,
        port=config.port,
        loop="uvloop" if unix else "asyncio",
        http=protocol(
            gate.fast_routes,
            gate.limits,
            gate.rate_limiter,
            frozenset(config.proxies),
            logs_requests=config.log_requests,
        ),
        ws="none",
        lifespan="off",
        interface="asgi3",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
