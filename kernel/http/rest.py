"""JSON over HTTP: tools by POST /tools/{name}, and methods at paths of a dialect's own, such as /v1/memory_stores."""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import msgspec
from msgspec.structs import replace
from starlette.types import Receive, Scope, Send

from kernel.calls.arguments import UNREADABLE, nearest_name
from kernel.calls.dispatch import (
    IDEMPOTENCY_KEY,
    NOT_CANCELLABLE,
    Answer,
    Call,
    Dispatch,
    Pending,
    ToolEntry,
    fail,
    with_idempotency_key,
)
from kernel.calls.tools import InputRequired, Interaction, Reply, Request
from kernel.core.errors import HTTP_STATUS, Fault
from kernel.core.ids import new_id
from kernel.core.limits import Header, Headers, Limits, Refusal, refuse, refuse_body
from kernel.core.text import RawJson, excess, json_bytes, json_decoder
from kernel.http.edge import (
    CLOSE,
    RETRY,
    AccessControl,
    Failure,
    HttpResponse,
    access_refusal,
    application,
    error_response,
    has_no_body,
    read_arguments,
    refusal_response,
    respond,
)
from kernel.http.fast_path import Done, FastRoute
from kernel.security.auth import Unauthenticated, credentials
from kernel.security.permissions import Caller, Forbidden, with_client_name

_JSON = "application/json"
_PREFIX = "/tools/"


def _drop(*_emitted: object) -> None:
    """Progress and log notifications have no place in one JSON response."""


# A lost connection does not cancel a call: a plain HTTP client repeats it and expects that it was done once.
NO_INTERACTION = Interaction({}, None, {}, _drop, _drop)


_MAX_NAME_SHOWN = 128  # characters, as of MCP
_WRONG_METHOD = error_response(405, "method_not_allowed", "Method not allowed, use POST.", (b"allow", b"POST"))


def _no_tool(name: str, names: Sequence[str]) -> HttpResponse:
    near = nearest_name(name, names)
    name_part = f": {name[:_MAX_NAME_SHOWN]}" if name else ""
    guess = f", did you mean {near}?" if near else "." if name else ","
    return error_response(404, "not_found", f"Unknown tool{name_part}{guess} GET /tools lists the tools.")


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
        name = scope["path"].partition(_PREFIX)[2]
        entry = self._dispatch.tools.get(name)
        if entry is None:
            return _no_tool(name, [*self._dispatch.tools])
        if scope["method"] != "POST":
            return _WRONG_METHOD
        body = await read_arguments(headers, receive, self._limits)
        if isinstance(body, Refusal):
            return refusal_response(body)
        if too_much := excess(body, self._limits):
            return _answer(fail(entry, Fault("invalid", f"Invalid arguments: {too_much}")), headers)
        async with self._access.tenants.use(caller.tenant) as dispatch:
            caller = with_idempotency_key(caller, headers.get(IDEMPOTENCY_KEY))
            return _answer(await dispatch.call(entry, body, caller, NO_INTERACTION), headers)

    def _direct(
        self, entry: ToolEntry, raw: Sequence[Header], body: bytes | None, on_done: Done
    ) -> HttpResponse | Pending | None:
        headers: dict[bytes, bytes] = dict(raw)
        refusal = refuse(raw, headers, self._limits)
        if refusal is not None:
            return refusal_response(refusal)
        try:
            return self._begin(entry, headers, body, on_done)
        except (Unauthenticated, Forbidden) as error:
            return access_refusal(self._access, error, f"{_PREFIX}{entry.tool.name}", headers)

    def _begin(
        self, entry: ToolEntry, headers: Headers, body: bytes | None, on_done: Done
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
            on_done(_answer(answer, headers))

        caller = with_idempotency_key(caller, headers.get(IDEMPOTENCY_KEY))
        answer = dispatch.submit(Call(entry, body or b"{}", caller, NO_INTERACTION), respond)
        return NOT_CANCELLABLE if isinstance(answer, Pending) else _answer(answer, headers)


def _unavailable(fault: Fault) -> HttpResponse:
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


_MAX_QUERY_FIELDS = 64
_MAX_CLIENT_CHARS = 32
_WITHOUT_BODY = ("GET", "DELETE")
_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    503: "overloaded_error",
}


class _LaxEntry(ToolEntry):
    """The tool of a method whose arguments are text, those of a query."""

    @cached_property
    def decode(self) -> Callable[[RawJson], Request]:
        return json_decoder(self.tool.request, strict=False)


class _Method(NamedTuple):
    entry: ToolEntry
    queried: frozenset[str]  # arguments that a query can give
    client: str  # the parameter that names the calling program
    limits: Limits


class _Route(NamedTuple):
    segments: tuple[str, ...]
    methods: dict[str, _Method]

    def parameters(self, segments: list[str]) -> dict[str, str] | None:
        if len(self.segments) != len(segments):
            return None
        values = dict[str, str]()
        for ours, theirs in zip(self.segments, segments, strict=True):
            if ours.startswith("{"):
                values[ours[1:-1]] = theirs
            elif ours != theirs:
                return None
        return values


class MethodRoutes:
    """The REST methods of all served dialects, as an ASGI application. `serves(path)` says whether a path is one's.

    The arguments of a tool are the fields of the body, parameters of the query, and those of the path, which go first.
    """

    def __init__(self, dispatch: Dispatch, limits: Limits, access: AccessControl) -> None:
        self._limits = limits
        self._access = access
        by_path: dict[str, dict[str, _Method]] = {}
        for dialect in dispatch.dialects:
            for verb, path, tool, client, body in dialect.rest:
                kind = _LaxEntry if verb in _WITHOUT_BODY else ToolEntry
                fields = frozenset(field.encode_name for field in msgspec.structs.fields(tool.request))
                narrow = limits._replace(body=min(body or limits.body, limits.body))
                by_path.setdefault(path, {})[verb] = _Method(kind(dialect, tool), fields, client, narrow)
        self._routes = [_Route(tuple(path.split("/")), methods) for path, methods in by_path.items()]
        self._roots = frozenset(path.split("/")[1] for path in by_path)

    def serves(self, path: str) -> bool:
        return path[1:].partition("/")[0] in self._roots

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = new_id("req")

        async def answer(headers: Headers) -> HttpResponse:
            return _identified(await self._answer(scope, _with_key(headers), receive, request_id), request_id)

        def refusal(failure: Failure, headers: Headers) -> HttpResponse:
            return _identified(self._refusal(failure, scope["path"], headers, request_id), request_id)

        await respond(scope, send, self._limits, answer, refusal)

    async def _answer(self, scope: Scope, headers: Headers, receive: Receive, request_id: str) -> HttpResponse:
        caller = self._access.auth.caller(headers)
        verb, segments = scope["method"], scope["path"].split("/")
        for route in self._routes:
            parameters = route.parameters(segments)
            if parameters is not None:
                break
        else:
            return _error(404, f"There is no {scope['path'][:256]}", request_id)
        method = route.methods.get(verb)
        if method is None:
            verbs = ", ".join(route.methods)
            return _error(405, f"Method not allowed, use {verbs}", request_id, (b"allow", verbs.encode()))
        body = b"{}" if verb == "GET" else await read_arguments(headers, receive, method.limits)
        if isinstance(body, Refusal):
            return _refused(body, request_id)
        entry, arguments = method.entry, self._arguments(method, scope["query_string"], body, parameters)
        if isinstance(arguments, Fault):
            return _error(400, arguments.message, request_id)
        async with self._access.tenants.use(caller.tenant) as dispatch:
            keyed_caller = with_idempotency_key(
                _with_client(caller, parameters.get(method.client, "")), headers.get(IDEMPOTENCY_KEY)
            )
            answer = await dispatch.call(entry, arguments, keyed_caller, NO_INTERACTION)
        if isinstance(answer, InputRequired):
            answer = fail(entry, Fault("disabled", "This requires input that only an MCP client can provide."))
        if answer.fault is None:
            return HttpResponse(200, answer.body)
        extra = (RETRY,) if answer.fault == "busy" else ()
        return HttpResponse(HTTP_STATUS[answer.fault], _wrapped(answer.body, request_id), extra)

    def _arguments(self, method: _Method, query: bytes, body: bytes, parameters: dict[str, str]) -> bytes | Fault:
        if too_much := excess(body, self._limits):
            return Fault("invalid", f"The body has {too_much}")
        try:
            pairs = parse_qsl(query.decode(), keep_blank_values=True, max_num_fields=_MAX_QUERY_FIELDS)
        except ValueError:
            return Fault("invalid", f"The query is not UTF-8, or has more than {_MAX_QUERY_FIELDS} fields")
        try:
            fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        except UNREADABLE:
            return Fault("invalid", "The body is not a JSON object")
        in_query: dict[str, Any] = {name: value for name, value in pairs if name in method.queried}
        in_body = {name: value for name, value in fields.items() if name not in in_query or bytes(value) != b"null"}
        return json_bytes({**in_query, **in_body, **parameters})

    def _refusal(self, failure: Failure, path: str, headers: Headers, request_id: str) -> HttpResponse:
        if isinstance(failure, Refusal):
            return _refused(failure, request_id)
        if isinstance(failure, Fault):  # of a tenant that cannot be opened now
            return _error(503, failure.message, request_id, RETRY)
        refusal = self._access.refusal(failure, path, headers)
        return _error(refusal.status, refusal.reason, request_id, *refusal.headers)


def _with_client(caller: Caller, name: str) -> Caller:
    return with_client_name(caller, name) if name and name.isascii() and len(name) <= _MAX_CLIENT_CHARS else caller


def _identified(response: HttpResponse, request_id: str) -> HttpResponse:
    return replace(response, headers=(*response.headers, (b"request-id", request_id.encode())))


def _with_key(headers: Headers) -> Headers:
    """Return the headers with a key that the vendor's clients send as `x-api-key`."""
    header = credentials(headers)
    return headers if header is None else {**headers, b"authorization": header}


def _error(status: int, message: str, request_id: str, *extra: Header) -> HttpResponse:
    error = msgspec.json.encode({"type": _TYPES.get(status, "invalid_request_error"), "message": message})
    return HttpResponse(status, _wrapped(error, request_id), extra)


def _wrapped(error: bytes, request_id: str) -> bytes:
    return b'{"type":"error","error":%b,"request_id":"%b"}' % (error, request_id.encode())


def _refused(refusal: Refusal, request_id: str) -> HttpResponse:
    # The body is not read, so the connection cannot carry another request.
    return _error(refusal.status, refusal.reason, request_id, CLOSE)
