"""The ASGI application over an open kernel: MCP and tools by a dictionary of paths, the rest through Starlette."""

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache, partial
from importlib import import_module
from itertools import combinations
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from kernel.calls.dialect import Dialect
from kernel.calls.dispatch import catch_faults
from kernel.calls.tenants import OpenTenant, Tenants
from kernel.core.config import VERSION, Config, OAuth, on_loopback
from kernel.core.errors import Fault
from kernel.core.limits import LOOPBACK, Header, Headers, Limits
from kernel.http import direct_routes
from kernel.http.edge import AccessControl, HttpResponse, error_response
from kernel.http.fast_path import Done, FastRoute, Pending
from kernel.http.mcp import Endpoint
from kernel.http.rest import MethodRoutes, ToolRoutes
from kernel.http.update_streams import UpdateStreams
from kernel.mcp.server import EVERYTHING, Profile, Service, profiles
from kernel.search import index
from kernel.security.auth import Auth, Challenge, TokenVerifier
from kernel.security.permissions import FULL_ACCESS, Caller, Forbidden, Grant, Permission
from kernel.server import app
from kernel.server.app import Kernel
from kernel.server.upkeep import Upkeep
from kernel.store.context import CallContext
from kernel.store.store import note_keys

if TYPE_CHECKING:
    from handlers.console.guide import GuideOf
    from kernel.calls.tools import Tool
    from kernel.http.routes import Pages, Ready
    from kernel.observe.call_log import CallLog
    from kernel.observe.metrics import MetricsRegistry, Snapshot
    from kernel.operations.backup import BackupLoop
    from kernel.security.local_access import LocalAccess
    from kernel.security.sign_in import SignIn
    from kernel.server.worker import Worker


_KEPT_SERVICES = 64  # of hundreds of addresses, each of which every caller may ask for


class Application:
    """The server's application; `fast_routes` are the paths that `kernel.http.fast_path` answers without it."""

    def __init__(self, kernel: Kernel, worker: "Worker | None" = None) -> None:
        self.kernel = kernel
        self._worker = worker
        limits = self._limits = limits_of(kernel.config)
        served = kernel.dispatch.dialects
        self.upkeep = Upkeep(kernel, worker)
        self.tenants = Tenants(kernel.dispatch, partial(open_tenant, kernel, self.upkeep), app.tenant_bounds(kernel))
        addresses = {"/mcp": union(kernel)} | {address(names): names for names in selections(served)}
        resources = frozenset(path for path in addresses if "," not in path)
        self.access = access_control(kernel, self.tenants, resources)
        self.streams = UpdateStreams(kernel.seal_key)
        self._addresses = (
            addresses
            if worker is None
            else {path: tuple(map(unsubscribable, dialects)) for path, dialects in addresses.items()}
        )
        services = lru_cache(_KEPT_SERVICES)(self._service)
        self._mcp = {
            path: Endpoint(profiles(partial(services, path)), limits, self.access, path, self.streams)
            for path in addresses
        }
        self._position = {dialect.name: number for number, dialect in enumerate(served)}
        self._tools = ToolRoutes(kernel.dispatch, limits, self.access)
        self._methods = MethodRoutes(kernel.dispatch, limits, self.access)
        fast = {**{path.encode(): endpoint.direct for path, endpoint in self._mcp.items()}, **self._tools.fast_routes}
        # Mere counters begin with the first page: a server without visitors observes nothing.
        self._calls = self._observe_calls() if kernel.config.ui and kernel.config.ui_calls != "counts" else None
        sources = (kernel.tracing and kernel.tracing.on_headers, self._calls and self._calls.note_agent)
        self._notes = [note for note in sources if note]
        for note in self._notes:
            fast = {path: _noting(note, route) for path, route in fast.items()}
        self.fast_routes: dict[bytes, FastRoute] = {path: partial(catch_faults, route) for path, route in fast.items()}
        self.connections: Callable[[], int] = lambda: 0
        self.stopping: Callable[[], bool] = lambda: False
        self.guide: GuideOf | None = None
        self.local: LocalAccess | None = None
        self.backups: BackupLoop | None = None
        self._before = self._counters_before()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        for note in self._notes:
            note(scope["headers"])
        path: str = scope["path"]
        if self.kernel.config.ui and (path.startswith(("/ui/", "/ui.")) or path == "/ui" or _from_browser(scope, path)):
            if (name := "handlers.console.console") not in sys.modules:  # a tenth of a second
                await asyncio.to_thread(import_module, name)
            await self._console(scope, receive, send)
            return
        if path.endswith("/") and path.startswith(("/mcp", "/tools/")):  # clients add a slash to an address
            scope = {**scope, "path": path[:-1]}
        has_origin = any(name == b"origin" for name, _ in scope["headers"])
        await (self._cors if has_origin else self._route)(scope, receive, send)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        app = self._mcp.get(path) or self._mcp.get(self._in_order(path))
        await (app or self._app_at(path))(scope, receive, send)

    @cached_property
    def _cors(self) -> ASGIApp:
        # Imported when a browser first calls: most servers never see an origin.
        from kernel.http.cors import Cors

        return Cors(self._route, self._limits)

    def _app_at(self, path: str) -> ASGIApp:
        if path.startswith("/tools/"):
            return self._tools
        if path.startswith("/memories/"):
            return self._commands
        if path.startswith("/tenants/"):
            return self._tenant_routes
        if path == direct_routes.PROOF_PATH:
            return self._proof
        if path.startswith(("/oauth/", "/.well-known/oauth-authorization-server")) and self.access.sign_in:
            return self._oauth
        return self._methods if self._methods.serves(path) else self._pages

    def _in_order(self, path: str) -> str:
        """Return the address of several dialects with their names in the order of `addresses`."""
        names = path.removeprefix("/mcp/").split(",", len(self._position))
        return f"/mcp/{','.join(sorted(names, key=lambda name: self._position.get(name, -1)))}"

    def _service(self, path: str, profile: Profile, grant: Grant) -> Service:
        return service(self.kernel, self._addresses[path], profile, grant)

    def close(self) -> None:
        self.tenants.close()
        self.kernel.store.close()
        if self.kernel.tracing is not None:
            self.kernel.tracing.close()

    def _observe_calls(self) -> "CallLog":
        from kernel.observe.call_log import CallLog

        log = CallLog(self.kernel.config.ui_calls)
        self.kernel.dispatch.observers.append(log.observe)
        return log

    @cached_property
    def _console(self) -> ASGIApp:
        # Imported when a page is first asked for, as Jinja2 is, in a thread: others are answered meanwhile.
        from handlers.console.console import console_of

        config, registry = self.kernel.config, self.kernel.metrics
        log = self._calls or self._observe_calls()
        counters = None if registry is None else partial(self._counted_by_all, registry)
        site = (config, self.kernel.schema, self.access.auth.needed, log, self.stopping)
        return console_of(site, self.guide, counters, self._limits, self.access, self._worker)

    @cached_property
    def _commands(self) -> ASGIApp:
        from handlers.console.command_routes import command_routes

        return command_routes(self._limits, self.access, self.local)

    @cached_property
    def _tenant_routes(self) -> ASGIApp:
        from kernel.operations.tenant_removal import erase

        def receipt(tenant: str) -> bytes:
            return msgspec.json.encode(erase(self.kernel.config, tenant)._asdict())

        return direct_routes.tenant_routes(self._limits, self.access, receipt)

    @cached_property
    def _oauth(self) -> ASGIApp:
        return direct_routes.oauth_routes(self._limits, self.access)

    @cached_property
    def _proof(self) -> ASGIApp:
        return direct_routes.proof_route(self._limits, self.access.auth, self.local)

    @cached_property
    def _pages(self) -> "Pages":
        # Imported at the first GET: the first tool call must not wait for it.
        from kernel.http.routes import Pages

        kernel = self.kernel
        metrics = {} if kernel.metrics is None else {"/metrics": partial(self._metrics, kernel.metrics)}
        return Pages(kernel.dispatch, self._limits, self.access, partial(readiness, kernel), _commands, metrics)

    async def _metrics(self, registry: "MetricsRegistry", caller: Caller | None, _headers: Headers) -> HttpResponse:
        """Answer GET /metrics for an `operator`; an `admin` gets the metrics of its own tenant."""
        from kernel.observe.metrics import MEDIA

        if caller is None or caller.grant.permission < Permission.admin:
            raise Forbidden("/metrics", Permission.admin)
        tenant = None if caller.grant.permission >= Permission.operator else caller.tenant
        text = await self._render_metrics(registry, tenant)
        if isinstance(text, Fault):
            return error_response(503, text.code, text.message)
        return HttpResponse(200, text, (), MEDIA.encode())

    async def _render_metrics(self, registry: "MetricsRegistry", tenant: str | None) -> bytes | Fault:
        from kernel.observe.metrics import render, render_tenant

        counts = await self._counted_by_all(registry)
        if isinstance(counts, Fault):
            return counts
        info = {"version": VERSION, "schema": str(self.kernel.schema)}
        memories = await self._memories(tenant)
        if tenant is not None:
            return render_tenant({name: load for name, load in counts.loads.items() if name == tenant}, info, memories)
        return render(counts, info, memories)

    async def _memories(self, tenant: str | None) -> dict[str, int]:
        counts: dict[str, int] = {}
        for name, dispatch in self.tenants.open_dispatches().items():
            if tenant in (None, name):
                with suppress(Fault):
                    count = await dispatch.store.read(index.total, CallContext())[1]
                    counts |= {} if isinstance(count, Fault) else {name: count}
        return counts

    async def _counted_by_all(self, registry: "MetricsRegistry") -> "Snapshot | Fault":
        snapshot, worker = self._snapshot(registry), self._worker
        if worker is None:
            return snapshot
        worker.keep(msgspec.json.encode(snapshot))  # or its successor would begin with less than is answered
        answers = await asyncio.to_thread(catch_faults, worker.ask_siblings)
        if isinstance(answers, Fault):
            return answers
        for answer in answers:
            snapshot = snapshot.plus(msgspec.json.decode(answer, type=type(snapshot)))
        return snapshot

    def snapshot(self) -> bytes:
        return b"" if self.kernel.metrics is None else msgspec.json.encode(self._snapshot(self.kernel.metrics))

    def _snapshot(self, registry: "MetricsRegistry") -> "Snapshot":
        from kernel.observe.metrics import Backups, Snapshot

        loads = {name: dispatch.store.load() for name, dispatch in self.tenants.open_dispatches().items()}
        use = None
        if self.kernel.config.store:
            from kernel.engines.postgres.database import database_use

            use = database_use()
        now = Snapshot.take(registry, loads, self.connections(), Backups.of(self.backups), use)
        return now if self._before is None else now.plus(self._before)

    def _counters_before(self) -> "Snapshot | None":
        """Return the counters of the worker whose place this worker takes."""
        if self._worker is None or self.kernel.metrics is None:
            return None
        from kernel.observe.metrics import kept_counters

        return kept_counters(self._worker.kept())


def _noting(note: Callable[[Sequence[Header]], None], route: FastRoute) -> FastRoute:
    def noting(headers: Sequence[Header], body: bytes | None, finish: Done) -> HttpResponse | Pending | Fault | None:
        note(headers)
        return route(headers, body, finish)

    return noting


def _commands() -> "Sequence[Tool]":
    """Return the commands for memories as the OpenAPI document has them, whose modules most servers never import."""
    from handlers.console.commands import COMMANDS

    return [*COMMANDS.values()]


def union(kernel: Kernel) -> tuple[Dialect, ...]:
    """Return the dialects at /mcp and over stdio: all that are served, extra dialects only if the configuration names
    some.
    """
    served = kernel.dispatch.dialects
    return served if kernel.config.dialects else tuple(dialect for dialect in served if not dialect.extra)


def selections(dialects: Sequence[Dialect]) -> Iterator[tuple[Dialect, ...]]:
    """Yield each dialect, and every set of several, in the order given."""
    for count in range(1, len(dialects) + 1):
        yield from combinations(dialects, count)


def address(dialects: Sequence[Dialect]) -> str:
    """Return the path at which MCP has just these dialects, such as /mcp/paths,common."""
    return f"/mcp/{','.join(dialect.name for dialect in dialects)}"


def unsubscribable(dialect: Dialect) -> Dialect:
    """Return the dialect without subscriptions: no process is notified of the writes of another."""
    offers = dialect.offers
    if offers.resources is None:
        return dialect
    return dialect._replace(offers=offers._replace(resources=offers.resources._replace(whole="")))


def _from_browser(scope: Scope, path: str) -> bool:
    """Return whether a browser asks for the home page: the console leads it on."""
    return path == "/" and any(name == b"accept" and b"text/html" in value.lower() for name, value in scope["headers"])


def open_application(config: Config, worker: "Worker | None" = None) -> Application | Fault:
    return catch_faults(lambda: Application(app.open_kernel(config), worker))


def limits_of(config: Config) -> Limits:
    """Return the limits of HTTP requests; loopback names are always allowed, and so are pages of the public address."""
    public = ["{0.scheme}://{0.netloc}".format(urlsplit(config.public))] if config.public else []
    return config.limits._replace(
        hosts=LOOPBACK | {host.lower() for host in config.allowed_hosts},
        origins=LOOPBACK | {origin.lower() for origin in (*config.allowed_origins, *public)},
    )


def readiness(kernel: Kernel) -> "Ready":
    from kernel.http.routes import Ready

    embedder = kernel.store.context.embedder
    return Ready("ready" if embedder is None or embedder.ready else "loading", kernel.schema, kernel.store.probe)


def access_control(kernel: Kernel, tenants: Tenants, paths: frozenset[str]) -> AccessControl:
    """Return the access control: keys are required once there was a key, or beyond the loopback interface."""
    config, store = kernel.config, kernel.store
    issuer = config.oauth
    tokens = None if issuer is None else _tokens(config, issuer, paths)
    required = tokens is not None or not on_loopback(config.host)
    signs_in = issuer is None and config.ui and bool(config.public) and not config.open
    issuers = (config.public,) if signs_in else () if issuer is None else (issuer.issuer,)
    auth = Auth(
        config.data,
        required=required,
        is_open=config.open,
        tokens=tokens,
        had_keys=kernel.had_keys,
        on_keys=lambda: store.write_later(note_keys, CallContext()),
    )
    sign_in = partial(_sign_in, config, paths) if signs_in else None
    return AccessControl(auth, Challenge(config.public, issuers, paths), tenants, sign_in)


def _sign_in(config: Config, paths: frozenset[str]) -> "SignIn":
    from kernel.security.sign_in import SignIn

    return SignIn(config.data, config.public, paths)


def _tokens(config: Config, trusted: OAuth, paths: frozenset[str]) -> TokenVerifier:
    """Return tokens for all of /mcp, or for one dialect at its own path unless it reads the data of other dialects."""
    from kernel.security import oauth

    addresses = [name for name in (trusted.audience, config.public) if name]
    audiences = frozenset(name + end for name in addresses for end in ("", "/mcp"))
    dialects = {path: path.removeprefix("/mcp/") for path in paths if path.startswith("/mcp/")}
    of_dialect = {
        name + path: dialect
        for name in addresses
        for path, dialect in dialects.items()
        if dialect not in app.READING_ALL
    }
    issuer = oauth.Issuer(trusted.issuer, trusted.keys, audiences, of_dialect, trusted.tenant, trusted.claim)
    return oauth.JwtVerifier(issuer)


def open_tenant(kernel: Kernel, upkeep: Upkeep, name: str) -> OpenTenant:
    """Another tenant, open; its index is completed and its vectors are loaded during the first calls."""
    own = app.open_tenant(kernel, name)
    leave = upkeep.add(own)

    def close() -> None:
        leave()
        own.store.close()
        if kernel.metrics is not None:
            kernel.metrics.closed += 1

    if kernel.metrics is not None:
        kernel.metrics.opened += 1

    return OpenTenant(own.dispatch, close)


def service(
    kernel: Kernel, dialects: Sequence[Dialect], profile: Profile = EVERYTHING, grant: Grant = FULL_ACCESS
) -> Service:
    """MCP over these dialects of a kernel, with the tools of a profile, as far as `grant` allows."""
    on_request = None if kernel.tracing is None else kernel.tracing.on_message
    return Service(
        kernel.dispatch.tools, dialects, profile=profile, seal_key=kernel.seal_key, grant=grant, on_request=on_request
    )
