"""The GET routes, through Starlette: home page, tool list, OpenAPI document, health probes and metrics."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from html import escape
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kernel.calls.call import ToolEntry
from kernel.calls.dialect import Dialect, RestMethod
from kernel.calls.dispatch import Dispatch, catch_faults
from kernel.calls.schema import input_schema, output_schema
from kernel.calls.tools import Schema, Tool
from kernel.core.config import VERSION
from kernel.core.errors import Fault
from kernel.http.access import AccessControl
from kernel.http.edge import HttpResponse, access_refusal
from kernel.http.fast_path import HEALTHY
from kernel.http.openapi import document
from kernel.http.rest import Ready
from kernel.security.permissions import Forbidden, Grant, Permission

_JSON = "application/json"
_PROBE_SECONDS = 2.0  # for the database
_READY = {"status": "ready"}
_AWAY = Fault("storage", "The database does not answer.")


_PURPOSE = "A memory server for AI agents: MCP over HTTP, and the same tools as JSON over HTTP."
_DOCUMENTATION = "Documentation: README.md and the folder docs in the repository."
_STYLE = "body{font:1rem/1.5 system-ui;max-width:48rem;margin:2rem auto;padding:0 1rem}td{padding-right:1rem}"
# The page needs no script and loads nothing; a proxy or a bug that injects either gets no further.
_SECURITY = (
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"vary", b"accept"),
)


def routes(
    dispatch: Dispatch, ready: Callable[[], Ready], commands: Callable[[], Sequence[Tool]] = tuple
) -> list[Route]:
    """GET /, /tools, /openapi.json, /healthz and /readyz; the first three obey the caller's grant.

    The `commands` are asked for with the first document.
    """
    pages = _ToolPages(dispatch, commands)

    return [
        Route("/", pages.index),
        Route("/tools", pages.tools),
        Route("/openapi.json", pages.openapi),
        Route("/healthz", Response(HEALTHY, media_type=_JSON), methods=["GET"]),
        Route("/readyz", _Readiness(ready).answer),
    ]


class _ToolPages:
    """The pages that list tools, encoded once for each grant."""

    def __init__(self, dispatch: Dispatch, commands: Callable[[], Sequence[Tool]]) -> None:
        self._dispatch = dispatch
        self._commands = commands
        self._tool_list = cache(self._encode_tool_list)
        self._openapi = cache(self._encode_openapi)

    async def index(self, request: Request) -> Response:
        accept = request.headers.get("accept", "").encode("latin-1")
        return _response(home(VERSION, self._dialects(_grant(request)), accept))

    async def tools(self, request: Request) -> Response:
        return Response(self._tool_list(_grant(request)), media_type=_JSON)

    async def openapi(self, request: Request) -> Response:
        return Response(self._openapi(_grant(request)), media_type=_JSON)

    def _visible(self, grant: Grant) -> list[ToolEntry]:
        return [entry for entry in self._dispatch.tools.values() if entry.visible_to(grant)]

    def _dialects(self, grant: Grant) -> list[Dialect]:
        names = {entry.tool.name for entry in self._visible(grant)}
        tools = [(d, tuple(tool for tool in d.tools if tool.name in names)) for d in self._dispatch.dialects]
        return [dialect._replace(tools=visible) for dialect, visible in tools if visible]

    def _documented(self, grant: Grant) -> list[Dialect]:
        def rest(dialect: Dialect) -> tuple[RestMethod, ...]:
            return tuple(method for method in dialect.rest if ToolEntry(dialect, method.tool).visible_to(grant))

        return [dialect._replace(rest=rest(dialect)) for dialect in self._dialects(grant)]

    def _encode_tool_list(self, grant: Grant) -> bytes:
        return msgspec.json.encode({"tools": [_listed(entry) for entry in self._visible(grant)]})

    def _encode_openapi(self, grant: Grant) -> bytes:
        permission = grant.permission
        commands = [command for command in self._commands() if Permission[str(command.permission)] <= permission]
        return msgspec.json.encode(document(self._documented(grant), VERSION, commands))


class _Readiness:
    """Answers the probe; the database is asked by one thread at a time, however many probes there are."""

    def __init__(self, ready: Callable[[], Ready]) -> None:
        self._ready = ready
        self._asking: asyncio.Task[Mapping[str, str] | Fault] | None = None

    async def answer(self, request: Request) -> Response:
        """Return status 503 if the database does not answer; a caller that may not call the server reads the status
        alone.
        """
        state = self._ready()
        may_call = request.scope["caller"] is not None
        body: dict[str, Any] = {"status": "ready", "model": state.model, "schema": state.schema}
        database = dict[str, str]() if state.probe is None else await self._probed(state.probe)
        if isinstance(database, Fault):
            unavailable = {"status": "unavailable", **({"message": database.message} if may_call else {})}
            return Response(msgspec.json.encode(unavailable), 503, media_type=_JSON)
        return Response(msgspec.json.encode({**body, **database} if may_call else _READY), media_type=_JSON)

    async def _probed(self, probe: Callable[[], Mapping[str, str]]) -> Mapping[str, str] | Fault:
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(asyncio.to_thread(catch_faults, probe))
        try:
            return await asyncio.wait_for(asyncio.shield(self._asking), _PROBE_SECONDS)
        except TimeoutError:
            return _AWAY


def metrics_route(access: AccessControl, text: Callable[[str | None], Awaitable[bytes | Fault]], media: str) -> Route:
    """GET /metrics, for an `operator`; an `admin` gets the metrics of its own tenant."""

    async def metrics(request: Request) -> Response:
        permission = _grant(request).permission
        if permission >= Permission.admin:
            tenant = None if permission >= Permission.operator else request.scope["caller"].tenant
            page = await text(tenant)
            if isinstance(page, Fault):
                return Response(
                    msgspec.json.encode({"error": {"code": page.code, "message": page.message}}),
                    503,
                    media_type=_JSON,
                )
            return Response(page, media_type=media)
        error = Forbidden("/metrics", Permission.admin)
        return _response(access_refusal(access, error, "/metrics", dict(request.scope["headers"])))

    return Route("/metrics", metrics)


def _grant(request: Request) -> Grant:
    return request.scope["caller"].grant


def _response(answer: HttpResponse) -> Response:
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in answer.headers}
    return Response(answer.body, answer.status, {"content-type": answer.media.decode(), **headers})


def _listed(entry: ToolEntry) -> Schema:
    dialect, tool = entry.dialect, entry.tool
    listing = {
        "name": tool.name,
        "dialect": dialect.name,
        "description": tool.description,
        "mode": tool.mode,
        "input_schema": input_schema(tool),
    }
    output = output_schema(tool)
    return listing if output is None else {**listing, "output_schema": output}


def home(version: str, dialects: Sequence[Dialect], accept: bytes) -> HttpResponse:
    """Return the page where `accept` names HTML, else the text; only these dialects are shown."""
    links = _links(dialects)
    if b"text/html" in accept.lower():
        return HttpResponse(200, _page(version, links).encode(), _SECURITY, b"text/html; charset=utf-8")
    return HttpResponse(200, _text(version, links).encode(), _SECURITY, b"text/plain; charset=utf-8")


def _links(dialects: Sequence[Dialect]) -> list[tuple[str, str]]:
    """Return each endpoint with its purpose."""
    return [
        ("/mcp", "MCP, all dialects (POST)"),
        *(
            [(f"/mcp/{dialects[0].name},{dialects[-1].name}", "MCP, some dialects, by their names")]
            * (len(dialects) > 1)
        ),
        *((f"/mcp/{dialect.name}", f"MCP, {dialect.name}: {dialect.about}") for dialect in dialects),
        ("/tools", "the tools with their schemas; POST /tools/NAME calls one"),
        ("/openapi.json", "the tools as an OpenAPI 3.1 document"),
        ("/healthz", "whether the process runs"),
        ("/readyz", "whether the store is open and the model is loaded"),
    ]


def _page(version: str, links: Sequence[tuple[str, str]]) -> str:
    rows = "\n".join(f'<tr><td><a href="{path}">{path}</a></td><td>{escape(about)}</td></tr>' for path, about in links)
    return (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>Quipu</title>\n'
        f"<style>{_STYLE}</style></head>\n<body>\n<h1>Quipu {escape(version)}</h1>\n<p>{escape(_PURPOSE)}</p>\n"
        f"<table>\n{rows}\n</table>\n<p>{escape(_DOCUMENTATION)}</p>\n</body>\n</html>\n"
    )


def _text(version: str, links: Sequence[tuple[str, str]]) -> str:
    width = max(len(path) for path, _ in links)
    rows = "\n".join(f"  {path.ljust(width)}  {about}" for path, about in links)
    return f"Quipu {version}\n{_PURPOSE}\n\n{rows}\n\n{_DOCUMENTATION}\n"
