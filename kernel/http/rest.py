"""JSON over HTTP: tools by POST, and authentication for the GET routes."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from kernel.calls.call import NOT_CANCELLABLE, Answer, Call, Pending, ToolEntry, fail
from kernel.calls.dispatch import Dispatch
from kernel.calls.retries import IDEMPOTENCY_KEY, with_idempotency_key
from kernel.calls.tools import InputRequired, Interaction, Reply
from kernel.core.errors import HTTP_STATUS, Fault
from kernel.core.limits import MISDIRECTED, Header, Headers, Limits, Refusal, excess, refuse, refuse_body
from kernel.http.access import AccessControl
from kernel.http.edge import (
    RETRY,
    Failure,
    HttpResponse,
    access_refusal,
    error_response,
    failure_response,
    has_no_body,
    read_arguments,
    refusal_response,
    respond,
    send_response,
)
from kernel.http.fast_path import Done, FastRoute
from kernel.security.auth import Unauthenticated
from kernel.security.permissions import Forbidden

_JSON = "application/json"
_PREFIX = "/tools/"
_PUBLIC_PATHS = frozenset({"/healthz"})
# A kubelet sends the address of the pod as Host, and no key: whoever is refused hears whether the server is ready.
_TERSE_PATHS = frozenset({"/readyz"})


class Ready(NamedTuple):
    """The report of /readyz on a store that is open and migrated; `probe` asks a database that may be away."""

    model: Literal["loading", "ready"]
    schema: int
    probe: Callable[[], Mapping[str, str]] | None = None


def _drop(*_emitted: object) -> None:
    """Progress and log notifications have no place in one JSON response."""


# A lost connection does not cancel a call: a plain HTTP client repeats it and expects that it was done once.
NO_INTERACTION = Interaction({}, None, {}, _drop, _drop)


_NO_TOOL = error_response(404, "not_found", "Unknown tool, GET /tools lists the tools.")
_WRONG_METHOD = error_response(405, "method_not_allowed", "Method not allowed, use POST.", (b"allow", b"POST"))


class ToolRoutes:
    """POST /tools/{name}: the arguments as a JSON object, answered with the dialect's reply.

    An ASGI application, and a fast route for each tool.
    """

    def __init__(self, dispatch: Dispatch, limits: Limits, access: AccessControl) -> None:
        self._dispatch = dispatch
        self._limits = limits
        self._access = access
        self.fast_routes: dict[bytes, FastRoute] = {
            f"{_PREFIX}{entry.tool.name}".encode(): partial(self._direct, entry) for entry in dispatch.tools.values()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]

        def refusal(failure: Failure, headers: Headers) -> HttpResponse:
            if isinstance(failure, Fault):  # of a tenant that cannot be opened now
                return error_response(503, failure.code, failure.message, RETRY)
            return failure_response(self._access, failure, path, headers)

        await respond(scope, send, self._limits, partial(self._answer, scope["method"], path, receive), refusal)

    async def _answer(self, method: str, path: str, receive: Receive, headers: Headers) -> HttpResponse:
        caller = self._access.caller(headers)
        entry = self._dispatch.tools.get(path.partition(_PREFIX)[2])
        if entry is None:
            return _NO_TOOL
        if method != "POST":
            return _WRONG_METHOD
        body = await read_arguments(headers, receive, self._limits)
        if isinstance(body, Refusal):
            return refusal_response(body)
        if too_much := excess(body, self._limits):
            return _answer(fail(entry, Fault("invalid", f"Invalid arguments: {too_much}")), headers)
        async with self._access.dispatch_of(caller) as dispatch:
            keyed = with_idempotency_key(caller, headers.get(IDEMPOTENCY_KEY))
            return _answer(await dispatch.call(entry, body, keyed, NO_INTERACTION), headers)

    def _direct(
        self, entry: ToolEntry, raw: Sequence[Header], body: bytes | None, done: Done
    ) -> HttpResponse | Pending | None:
        headers: dict[bytes, bytes] = dict(raw)
        refusal = refuse(raw, headers, self._limits)
        if refusal is not None:
            return refusal_response(refusal)
        try:
            return self._begin(entry, headers, body, done)
        except (Unauthenticated, Forbidden) as error:
            return access_refusal(self._access, error, f"{_PREFIX}{entry.tool.name}", headers)

    def _begin(
        self, entry: ToolEntry, headers: Headers, body: bytes | None, done: Done
    ) -> HttpResponse | Pending | None:
        caller = self._access.caller(headers)
        refusal = None if has_no_body(headers) else refuse_body(headers, self._limits)
        if refusal is not None:
            return refusal_response(refusal)
        if body is None:
            return None
        dispatch = self._access.open_dispatch(caller)
        if dispatch is None or len(body) > self._limits.body:
            return None
        if too_much := excess(body, self._limits):
            return _answer(fail(entry, Fault("invalid", f"Invalid arguments: {too_much}")), headers)

        def respond(answer: Answer) -> None:
            done(_answer(answer, headers))

        keyed = with_idempotency_key(caller, headers.get(IDEMPOTENCY_KEY))
        answer = dispatch.submit(Call(entry, body or b"{}", keyed, NO_INTERACTION), respond)
        return NOT_CANCELLABLE if isinstance(answer, Pending) else _answer(answer, headers)


class AuthGate:
    """Requires authentication for all other paths, except OAuth metadata and the probes.

    `application` gives the application behind; it is called at the first request that passes, which spares its import.
    """

    def __init__(self, application: Callable[[], ASGIApp], limits: Limits, access: AccessControl) -> None:
        self._application = application
        self._limits = limits
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw = scope.get("headers", ())
        headers: dict[bytes, bytes] = dict(raw)
        path: str = scope.get("path", "")  # the lifespan has none
        if scope["type"] == "http" and path not in _PUBLIC_PATHS:
            probe = path in _TERSE_PATHS and scope["method"] in {"GET", "HEAD"}
            refusal = refuse(raw, headers, self._limits)
            if refusal is not None and not (probe and refusal.status == MISDIRECTED):
                await send_response(send, refusal_response(refusal))
                return
            metadata = self._access.metadata(path, headers) if scope["method"] in {"GET", "HEAD"} else None
            if metadata is not None:
                await send_response(send, HttpResponse(200, msgspec.json.encode(metadata)))
                return
            try:
                scope["caller"] = None if refusal else self._access.caller(headers)
            except Unauthenticated as error:
                if not probe or b"authorization" in headers:
                    await send_response(send, access_refusal(self._access, error, path, headers))
                    return
                scope["caller"] = None
        await self._application()(scope, receive, send)


def _answer(reply: Reply | InputRequired, headers: Headers) -> HttpResponse:
    if isinstance(reply, InputRequired):
        return _input_required(reply)
    status = 200 if reply.fault is None else HTTP_STATUS[reply.fault]
    extra = (RETRY,) if reply.fault == "busy" else ()
    wants_json = b"application/json" in headers.get(b"accept", b"").lower()
    if wants_json and reply.structured is not None and not reply.media.startswith(_JSON):
        return HttpResponse(status, reply.structured, extra)
    return HttpResponse(status, reply.body, extra, reply.media.encode())


def _input_required(ask: InputRequired) -> HttpResponse:
    names = ", ".join(sorted(ask.inputs)) or "another round"
    message = f"The tool requires input ({names}), which only an MCP client can provide."
    return error_response(409, "input_required", message, inputs=ask.inputs)
