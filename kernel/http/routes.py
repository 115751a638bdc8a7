"""The pages for GET, through Starlette: home page, tool list, OpenAPI document, probes, and those of the server."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from html import escape
from typing import Literal, NamedTuple

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from kernel.calls.dialect import Dialect, RestMethod
from kernel.calls.dispatch import Dispatch, ToolEntry, catch_faults
from kernel.calls.schema import input_schema, output_schema
from kernel.calls.tools import Schema, Tool
from kernel.core.config import VERSION
from kernel.core.errors import Fault
from kernel.core.limits import MISDIRECTED, Headers, Limits, refuse
from kernel.http.edge import (
    AccessControl,
    HttpResponse,
    access_refusal,
    error_response,
    refusal_response,
    send_response,
)
from kernel.http.fast_path import HEALTHY
from kernel.http.openapi import document
from kernel.mcp.messages import INVALID_REQUEST, ProtocolError
from kernel.security.auth import Unauthenticated
from kernel.security.permissions import Caller, Forbidden, Grant, Permission

# The caller is None only for the probes.
Page = Callable[[Caller | None, Headers], Awaitable[HttpResponse]]
_HEALTH, _READINESS = "/healthz", "/readyz"
_KEPT = 16  # documents, of grants
_SHOWN_PATH = 256  # characters
_PROBE_SECONDS = 2.0  # for the database
_READY = b'{"status":"ready"}'
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


class Ready(NamedTuple):
    """The report of /readyz on a store that is open and migrated; `probe` asks a database that may be away."""

    model: Literal["loading", "ready"]
    schema: int
    probe: Callable[[], Mapping[str, str]] | None = None


class Pages:
    """An ASGI application for all paths that are no other application's; what lists tools is encoded once a grant.

    All but the probes and the OAuth metadata need a caller. The `commands` are asked for with the first document.
    """

    def __init__(
        self,
        dispatch: Dispatch,
        limits: Limits,
        access: AccessControl,
        ready: Callable[[], Ready],
        commands: Callable[[], Sequence[Tool]] = tuple,
        more: Mapping[str, Page] = {},
    ) -> None:
        self._dispatch = dispatch
        self._limits = limits
        self._access = access
        self._ready = ready
        self._commands = commands
        self._asking: asyncio.Task[Mapping[str, str] | Fault] | None = None
        self._tool_list = lru_cache(_KEPT)(self._encode_tool_list)
        self._openapi = lru_cache(_KEPT)(self._encode_openapi)
        pages: Mapping[str, Page] = {
            "/": self._home,
            "/tools": self._tools,
            "/openapi.json": self._document,
            _HEALTH: self._health,
            _READINESS: self._readiness,
            **more,
        }
        routes = [self._route(path, page) for path, page in pages.items()]
        self.site = Starlette(routes=routes, exception_handlers={HTTPException: self._failed})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        try:
            answer = self._answer_before(scope, headers)
        except Unauthenticated as error:
            answer = access_refusal(self._access, error, scope["path"], headers)
        await (send_response(send, answer) if answer else self.site(scope, receive, send))

    def _route(self, path: str, page: Page) -> Route:
        async def endpoint(request: Request) -> Response:
            headers: dict[bytes, bytes] = dict(request.scope["headers"])
            try:
                return _response(await page(request.scope["caller"], headers))
            except Forbidden as error:
                return _response(access_refusal(self._access, error, path, headers))

        return Route(path, endpoint)

    async def _failed(self, request: Request, error: Exception) -> Response:
        """Answer for a path that is none, or a method that it does not take, in the form of its part of the server."""
        assert isinstance(error, HTTPException)
        if verbs := ", ".join(sorted((error.headers or {}).get("Allow", "").split(", "))):
            message = f"Method not allowed, use {verbs}."
            return _response(error_response(405, "method_not_allowed", message, (b"allow", verbs.encode())))
        path, grant = request.scope["path"][:_SHOWN_PATH], _grant(request.scope["caller"])
        if not path.startswith("/mcp/"):
            message = f"There is no address {path}: GET / lists those that there are."
            return _response(error_response(404, "not_found", message))
        names = ", ".join(dialect.name for dialect in self._dialects(grant))
        message = f"There is no address {path}: below /mcp/ are these dialects, or several with commas between: {names}"
        return _response(HttpResponse(404, ProtocolError(INVALID_REQUEST, message).reply()))

    def _answer_before(self, scope: Scope, headers: Headers) -> HttpResponse | None:
        """Return a refusal or the OAuth metadata; None for a page, with the caller in the scope."""
        path: str = scope["path"]
        is_get = scope["method"] in {"GET", "HEAD"}
        # A kubelet sends the address of the pod as Host, and no key; it is told whether the server is ready.
        is_probe = is_get and path == _READINESS
        refusal = None if path == _HEALTH else refuse(scope["headers"], headers, self._limits)
        if refusal is not None and not (is_probe and refusal.status == MISDIRECTED):
            return refusal_response(refusal)
        if is_get and (metadata := self._access.metadata(path, headers)) is not None:
            return HttpResponse(200, msgspec.json.encode(metadata))
        caller = None
        try:
            if path != _HEALTH and refusal is None:
                caller = self._access.auth.caller(headers)
        except Unauthenticated:
            if not is_probe or b"authorization" in headers:
                raise
        scope["caller"] = caller
        return None

    async def _home(self, caller: Caller | None, headers: Headers) -> HttpResponse:
        return home(VERSION, self._dialects(_grant(caller)), headers.get(b"accept", b""))

    async def _tools(self, caller: Caller | None, _headers: Headers) -> HttpResponse:
        return HttpResponse(200, await asyncio.to_thread(self._tool_list, _grant(caller)))

    async def _document(self, caller: Caller | None, _headers: Headers) -> HttpResponse:
        return HttpResponse(200, await asyncio.to_thread(self._openapi, _grant(caller)))

    async def _health(self, _caller: Caller | None, _headers: Headers) -> HttpResponse:
        return HttpResponse(200, HEALTHY)

    async def _readiness(self, caller: Caller | None, _headers: Headers) -> HttpResponse:
        """Return status 503 if the database does not answer; if nobody may call, the status alone."""
        state = self._ready()
        database = dict[str, str]() if state.probe is None else await self._probed(state.probe)
        if isinstance(database, Fault):
            message = {"message": database.message} if caller else {}
            return HttpResponse(503, msgspec.json.encode({"status": "unavailable", **message}))
        body = {"status": "ready", "model": state.model, "schema": state.schema, **database}
        return HttpResponse(200, msgspec.json.encode(body) if caller else _READY)

    async def _probed(self, probe: Callable[[], Mapping[str, str]]) -> Mapping[str, str] | Fault:
        # One thread asks at a time, however many probes there are.
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(asyncio.to_thread(catch_faults, probe))
        try:
            return await asyncio.wait_for(asyncio.shield(self._asking), _PROBE_SECONDS)
        except TimeoutError:
            return _AWAY

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


def _response(answer: HttpResponse) -> Response:
    fields = {name.decode("latin-1"): value.decode("latin-1") for name, value in answer.headers}
    return Response(answer.body, answer.status, {"content-type": answer.media.decode(), **fields})


def _grant(caller: Caller | None) -> Grant:
    assert caller is not None
    return caller.grant.of_all_places()


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
