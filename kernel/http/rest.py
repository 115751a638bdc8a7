"""The JSON edge: tools by POST, and who may see the rest."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import msgspec

from kernel.calls import Answer, Call, Pending, ToolEntry, fail
from kernel.dispatch import Dispatch
from kernel.errors import HTTP_STATUS, Fault
from kernel.http.access import AccessControl
from kernel.http.fast_path import Done, FastRoute, HttpResponse
from kernel.limits import Header, Headers, Limits, Receive, Refusal, excess, read_body, refuse, refuse_body
from kernel.security.auth import Unauthenticated
from kernel.security.permissions import Forbidden
from kernel.tools import InputRequired, Interaction, Reply

Scope = Mapping[str, Any]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_JSON = "application/json"
_PREFIX = "/tools/"
_EDGE_CODES = {
    400: "invalid",
    403: "forbidden",
    413: "too_large",
    415: "unsupported_media_type",
    421: "misdirected",
    431: "headers_too_large",
}
_RETRY = (b"retry-after", b"1")
_PUBLIC_PATHS = frozenset({"/healthz"})


class Ready(NamedTuple):
    """What a store that is open and migrated says of itself; the model may still be loading."""

    model: Literal["loading", "ready"]
    schema: int


def _unheard(*_emitted: object) -> None:
    """Progress and log lines have nowhere to go in one JSON answer."""


_UNCANCELLED = Pending(lambda: None)
_SILENT = Interaction({}, None, {}, _unheard, _unheard)


def error_response(status: int, code: str, message: str, *extra: Header, **more: Any) -> HttpResponse:
    """An error of the edge itself, where no dialect is there to word it."""
    return HttpResponse(status, msgspec.json.encode({"error": {"code": code, "message": message, **more}}), extra)


_NO_TOOL = error_response(404, "not_found", "There is no such tool; GET /tools lists them.")
_WRONG_METHOD = error_response(405, "method_not_allowed", "A tool is called by POST.", (b"allow", b"POST"))
_TOO_LARGE = Refusal(413, "Body too large or too slow")


class ToolRoutes:
    """POST /tools/{name}: arguments in as a JSON object, the dialect's own answer out.

    An ASGI callable, and for each tool a way around ASGI.
    """

    def __init__(self, dispatch: Dispatch, limits: Limits, doors: AccessControl) -> None:
        self._dispatch = dispatch
        self._limits = limits
        self._doors = doors
        self.fast_routes: dict[bytes, FastRoute] = {
            f"{_PREFIX}{bound.tool.name}".encode(): partial(self._direct, bound) for bound in dispatch.tools.values()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        raw = scope["headers"]
        headers: dict[bytes, bytes] = dict(raw)
        path: str = scope["path"]
        refusal = refuse(raw, headers, self._limits)
        try:
            answer = (
                _refusal_response(refusal) if refusal else await self._answer(scope["method"], path, headers, receive)
            )
        except (Unauthenticated, Forbidden) as why:
            answer = access_refusal(self._doors, why, path, headers)
        except Fault as fault:
            answer = error_response(503, fault.code, fault.message, _RETRY)
        await _send(send, answer)

    async def _answer(self, method: str, path: str, headers: Headers, receive: Receive) -> HttpResponse:
        caller = self._doors.caller(headers)
        bound = self._dispatch.tools.get(path.partition(_PREFIX)[2])
        if bound is None:
            return _NO_TOOL
        if method != "POST":
            return _WRONG_METHOD
        body = await _arguments(headers, receive, self._limits)
        if isinstance(body, Refusal):
            return _refusal_response(body)
        if too_much := excess(body, self._limits):
            return _answer(fail(bound, Fault("invalid", f"Invalid arguments: {too_much}")), headers)
        async with self._doors.dispatch_of(caller) as dispatch:
            return _answer(await dispatch.call(bound, body, caller, _SILENT), headers)

    def _direct(
        self, bound: ToolEntry, raw: Sequence[Header], body: bytes | None, done: Done
    ) -> HttpResponse | Pending | None:
        headers: dict[bytes, bytes] = dict(raw)
        refusal = refuse(raw, headers, self._limits) or (
            None if _empty(headers) else refuse_body(headers, self._limits)
        )
        if refusal is not None:
            return _refusal_response(refusal)
        try:
            return self._begin(bound, headers, body, done)
        except (Unauthenticated, Forbidden) as why:
            return access_refusal(self._doors, why, f"{_PREFIX}{bound.tool.name}", headers)

    def _begin(
        self, bound: ToolEntry, headers: Headers, body: bytes | None, done: Done
    ) -> HttpResponse | Pending | None:
        caller = self._doors.caller(headers)
        if body is None:
            return None
        dispatch = self._doors.open_dispatch(caller)
        if dispatch is None or len(body) > self._limits.body:
            return None
        if too_much := excess(body, self._limits):
            return _answer(fail(bound, Fault("invalid", f"Invalid arguments: {too_much}")), headers)

        def respond(answer: Answer) -> None:
            done(_answer(answer, headers))

        answer = dispatch.submit(Call(bound, body or b"{}", caller, _SILENT), respond)
        return _UNCANCELLED if isinstance(answer, Pending) else _answer(answer, headers)


class AuthGate:
    """Everything else by GET: nobody gets past without a key but to what tells a stranger how to get one.

    `behind` gives what answers those who do, and is not asked before.
    """

    def __init__(self, behind: Callable[[], Any], limits: Limits, doors: AccessControl) -> None:
        self._behind = behind
        self._limits = limits
        self._doors = doors

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Answers one request."""
        raw = scope.get("headers", ())
        headers: dict[bytes, bytes] = dict(raw)
        path: str = scope.get("path", "")  # the lifespan has none
        if scope["type"] == "http" and path not in _PUBLIC_PATHS:
            refusal = refuse(raw, headers, self._limits)
            told = self._doors.metadata(path, headers) if scope["method"] in {"GET", "HEAD"} else None
            if refusal is not None or told is not None:
                await _send(
                    send, _refusal_response(refusal) if refusal else HttpResponse(200, msgspec.json.encode(told))
                )
                return
            try:
                scope["caller"] = self._doors.caller(headers)
            except Unauthenticated as why:
                await _send(send, access_refusal(self._doors, why, path, headers))
                return
        await self._behind()(scope, receive, send)


def access_refusal(doors: AccessControl, why: Unauthenticated | Forbidden, path: str, headers: Headers) -> HttpResponse:
    """The refusal of a stranger, or of what is out of a caller's reach, as the edge words it."""
    found = doors.refusal(why, path, headers)
    extra = (b"www-authenticate", found.challenge)
    # A stranger's body may still be on its way, and nobody will read it.
    closing = () if found.status == 403 else ((b"connection", b"close"),)
    return error_response(found.status, found.code, found.reason, extra, *closing)


def _empty(headers: Headers) -> bool:
    return headers.get(b"content-length", b"0") == b"0" and b"transfer-encoding" not in headers


async def _arguments(headers: Headers, receive: Receive, limits: Limits) -> bytes | Refusal:
    if _empty(headers):
        return b"{}"
    refusal = refuse_body(headers, limits)
    if refusal is not None:
        return refusal
    body = await read_body(receive, limits.body)
    return _TOO_LARGE if body is None else body or b"{}"


def _answer(reply: Reply | InputRequired, headers: Headers) -> HttpResponse:
    if isinstance(reply, InputRequired):
        return _input_required(reply)
    status = 200 if reply.fault is None else HTTP_STATUS[reply.fault]
    extra = (_RETRY,) if reply.fault == "busy" else ()
    wants_json = b"application/json" in headers.get(b"accept", b"").lower()
    if wants_json and reply.structured is not None and not reply.media.startswith(_JSON):
        return HttpResponse(status, reply.structured, extra)
    return HttpResponse(status, reply.body, extra, reply.media.encode())


def _input_required(ask: InputRequired) -> HttpResponse:
    names = ", ".join(sorted(ask.inputs)) or "another round"
    message = f"The tool asks for {names} first, which a client can answer over MCP only."
    return error_response(409, "input_required", message, inputs=ask.inputs)


def _refusal_response(refusal: Refusal) -> HttpResponse:
    # A body may still be on its way, and nobody will read it.
    return error_response(refusal.status, _EDGE_CODES[refusal.status], refusal.reason, (b"connection", b"close"))


async def _send(send: Send, answer: HttpResponse) -> None:
    head = [(b"content-type", answer.media), (b"content-length", b"%d" % len(answer.body)), *answer.headers]
    await send({"type": "http.response.start", "status": answer.status, "headers": head})
    await send({"type": "http.response.body", "body": answer.body})
