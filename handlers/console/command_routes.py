"""POST /memories/{command}: the commands for memories over HTTP, for the command line and for other programs."""

import asyncio
import hmac
from collections.abc import Mapping
from typing import get_args
from urllib.parse import parse_qs

from starlette.types import ASGIApp, Receive, Scope

from handlers.console.commands import COMMANDS, TERMINAL, local_caller, run_command
from handlers.console.printing import Style, printed
from kernel.calls.dispatch import IDEMPOTENCY_KEY, with_idempotency_key
from kernel.core.data_dir import MAIN
from kernel.core.errors import Fault
from kernel.core.limits import Headers, Limits, Refusal
from kernel.core.text import excess
from kernel.http import edge
from kernel.security.auth import Unauthenticated
from kernel.security.local_access import TENANT_HEADER, TOKEN_HEADER, LocalAccess
from kernel.security.permissions import Caller, with_client_name

PREFIX = "/memories/"
_STYLES: Mapping[str, Style] = {style: style for style in get_args(Style)}
_MEDIA = {"json": b"application/x-ndjson", "text": b"text/plain; charset=utf-8", "colour": b"text/plain; charset=utf-8"}
_NO_COMMAND = f"Unknown command, choose from {', '.join(COMMANDS)}."


def command_routes(limits: Limits, access: edge.AccessControl, local: LocalAccess | None) -> ASGIApp:
    """Return an ASGI application for all paths below /memories.

    A program of this machine that can read the data directory shows the token from there instead of a key.
    """

    async def answer(scope: Scope, receive: Receive, headers: Headers) -> edge.HttpResponse:
        caller = _caller(access, local, headers)
        name = scope["path"].removeprefix(PREFIX)
        if name not in COMMANDS:
            return edge.error_response(404, "not_found", _NO_COMMAND)
        if scope["method"] != "POST":
            return edge.error_response(405, "method_not_allowed", "Method not allowed, use POST.", (b"allow", b"POST"))
        options = parse_qs(scope["query_string"].decode("latin-1"))
        style, in_seconds = _STYLES.get(options.get("as", ["json"])[-1]), options.get("times") == ["seconds"]
        mark = options.get("mark", [""])[-1]
        if style is None:
            raise Fault("invalid", f"as: choose from {', '.join(_STYLES)}")
        body = await edge.read_arguments(headers, receive, limits)
        if isinstance(body, Refusal):
            return edge.refusal_response(body)
        if too_much := excess(body, limits):
            raise Fault("invalid", f"The body has {too_much}.")
        if name == "add":  # one call; others make several
            caller = with_idempotency_key(caller, headers.get(IDEMPOTENCY_KEY))
        async with access.tenants.use(caller.tenant) as dispatch:
            result = await run_command(dispatch, caller, name, body, mark, plain=style == "json")
        output = await asyncio.to_thread(printed, name, result, style, in_seconds=in_seconds)
        return edge.HttpResponse(200, output.encode("utf-8", "replace"), (), _MEDIA[style])

    return edge.application(limits, access, answer)


def _caller(access: edge.AccessControl, local: LocalAccess | None, headers: Headers) -> Caller:
    token = headers.get(TOKEN_HEADER)
    if token is None:
        return with_client_name(access.auth.caller(headers), TERMINAL)
    if local is None or not hmac.compare_digest(token, local.token.encode()):
        raise Unauthenticated("invalid_token", "Another server has written this token")
    tenant = headers.get(TENANT_HEADER, MAIN.encode()).decode("latin-1")
    return local_caller(local.data, tenant)
