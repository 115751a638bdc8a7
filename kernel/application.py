"""The ASGI application over an open kernel: hot paths by dictionary, everything else through Starlette."""

import threading
from collections.abc import Awaitable, Callable, MutableMapping
from functools import partial
from typing import Any

from starlette.applications import Starlette

from kernel import app, upkeep
from kernel.app import Kernel
from kernel.config import VERSION, Config
from kernel.direct import Direct
from kernel.dispatch import guard
from kernel.errors import Fault
from kernel.limits import LOOPBACK, Limits
from kernel.mcp_http import Endpoint
from kernel.rest import Ready, Tools, routes
from kernel.rpc import Service, profiles

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]


class Application:
    """Answers requests; `hot` are the addresses that `kernel.direct` answers without a task."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        limits = limits_of(kernel.config)
        served = kernel.dispatch.dialects
        exact = {"/mcp": _mcp(kernel, served, limits)}
        exact.update((f"/mcp/{dialect.name}", _mcp(kernel, (dialect,), limits)) for dialect in served)
        self._exact: dict[str, Asgi] = {**exact}
        self._tools = Tools(kernel.dispatch, limits)
        self._rest = Starlette(routes=routes(kernel.dispatch, partial(ready, kernel)))
        hot = {**{path.encode(): one.direct for path, one in exact.items()}, **self._tools.hot}
        self.hot: dict[bytes, Direct] = {path: partial(guard, direct) for path, direct in hot.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        path: str = scope.get("path", "")  # the lifespan has none, and Starlette answers it
        hot = self._exact.get(path) or (self._tools if path.startswith("/tools/") else self._rest)
        await hot(scope, receive, send)


def opened(config: Config) -> Application | Fault:
    """An application over the configured data, or why there is none."""
    return guard(lambda: Application(app.open_kernel(config)))


def limits_of(config: Config) -> Limits:
    """The edge limits: loopback names always, and what the configuration allows besides."""
    return config.limits._replace(
        hosts=LOOPBACK | {host.lower() for host in config.allowed_hosts},
        origins=LOOPBACK | {origin.lower() for origin in config.allowed_origins},
    )


def ready(kernel: Kernel) -> Ready:
    """What /readyz says of an open store."""
    embedder = kernel.store.world.embedder
    return Ready("ready" if embedder is None or embedder.ready else "loading", kernel.schema)


def service(kernel: Kernel, dialects: Any, tools: Any) -> Service:
    """MCP over these dialects of a kernel, with all of their tools or those that read."""
    return Service(kernel.dispatch, dialects, version=VERSION, tools=tools, seal_key=kernel.seal_key)


def warm(kernel: Kernel, stopping: threading.Event) -> None:
    """Reads the model and completes the index, beside the first calls."""
    embedder = kernel.store.world.embedder
    if embedder is not None:
        guard(embedder.load)
        guard(upkeep.embed_missing, kernel.store, stopping.is_set)


def _mcp(kernel: Kernel, dialects: Any, limits: Limits) -> Endpoint:
    return Endpoint(profiles(partial(service, kernel, dialects)), limits)
