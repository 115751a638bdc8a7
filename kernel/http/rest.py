"""JSON over HTTP: tools by POST."""

from collections.abc import Sequence
from functools import partial

from starlette.types import Receive, Scope, Send

from kernel.calls.call import NOT_CANCELLABLE, Answer, Call, Pending, ToolEntry, fail
from kernel.calls.dispatch import Dispatch
from kernel.calls.retries import IDEMPOTENCY_KEY, with_idempotency_key
from kernel.calls.tools import InputRequired, Interaction, Reply
from kernel.core.errors import HTTP_STATUS, Fault
from kernel.core.limits import Header, Headers, Limits, Refusal, excess, refuse, refuse_body
from kernel.http.edge import (
    RETRY,
    AccessControl,
    HttpResponse,
    access_refusal,
    application,
    error_response,
    has_no_body,
    read_arguments,
    refusal_response,
)
from kernel.http.fast_path import Done, FastRoute
from kernel.security.auth import Unauthenticated
from kernel.security.permissions import Forbidden

_JSON = "application/json"
_PREFIX = "/tools/"


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
        self._application = application(limits, access, self._answer, _unavailable)
        self.fast_routes: dict[bytes, FastRoute] = {
            f"{_PREFIX}{entry.tool.name}".encode(): partial(self._direct, entry) for entry in dispatch.tools.values()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._application(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, headers: Headers) -> HttpResponse:
        caller = self._access.auth.caller(headers)
        entry = self._dispatch.tools.get(scope["path"].partition(_PREFIX)[2])
        if entry is None:
            return _NO_TOOL
        if scope["method"] != "POST":
            return _WRONG_METHOD
        body = await read_arguments(headers, receive, self._limits)
        if isinstance(body, Refusal):
            return refusal_response(body)
        if too_much := excess(body, self._limits):
            return _answer(fail(entry, Fault("invalid", f"Invalid arguments: {too_much}")), headers)
        async with self._access.tenants.use(caller.tenant) as dispatch:
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
        caller = self._access.auth.caller(headers)
        refusal = None if has_no_body(headers) else refuse_body(headers, self._limits)
        if refusal is not None:
            return refusal_response(refusal)
        if body is None:
            return None
        dispatch = self._access.tenants.open_dispatch(caller.tenant)
        if dispatch is None or len(body) > self._limits.body:
            return None
        if too_much := excess(body, self._limits):
            return _answer(fail(entry, Fault("invalid", f"Invalid arguments: {too_much}")), headers)

        def respond(answer: Answer) -> None:
            done(_answer(answer, headers))

        keyed = with_idempotency_key(caller, headers.get(IDEMPOTENCY_KEY))
        answer = dispatch.submit(Call(entry, body or b"{}", keyed, NO_INTERACTION), respond)
        return NOT_CANCELLABLE if isinstance(answer, Pending) else _answer(answer, headers)


def _unavailable(fault: Fault) -> HttpResponse:
    """Return the response if the store of a tenant cannot be opened now."""
    return error_response(503, fault.code, fault.message, RETRY)


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
