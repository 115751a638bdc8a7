"""The JSON edge: tools by POST, and who may see the rest."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import msgspec

from kernel.dispatch import Bound, Dispatch, refused
from kernel.errors import HTTP_STATUS, Fault
from kernel.http.access import Doors
from kernel.http.fast_path import Answer, Begun, Direct, Done
from kernel.limits import Header, Headers, Limits, Receive, Refusal, excess, read_body, refuse, refuse_body
from kernel.security.auth import Stranger
from kernel.security.permissions import Denied
from kernel.store.queue import Job
from kernel.tools import Ask, Reply, Turn

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
_EVERYBODYS = frozenset({"/healthz"})


class Ready(NamedTuple):
    """What a store that is open and migrated says of itself; the model may still be loading."""

    model: Literal["loading", "ready"]
    schema: int


def _unheard(*_emitted: object) -> None:
    """Progress and log lines have nowhere to go in one JSON answer."""


_SILENT = Turn({}, None, {}, _unheard, _unheard)


def edge_answer(status: int, code: str, message: str, *extra: Header, **more: Any) -> Answer:
    """An error of the edge itself, where no dialect is there to word it."""
    return Answer(status, msgspec.json.encode({"error": {"code": code, "message": message, **more}}), extra)


_NO_TOOL = edge_answer(404, "not_found", "There is no such tool; GET /tools lists them.")
_WRONG_METHOD = edge_answer(405, "method_not_allowed", "A tool is called by POST.", (b"allow", b"POST"))
_TOO_LARGE = Refusal(413, "Body too large or too slow")


class Tools:
    """POST /tools/{name}: arguments in as a JSON object, the dialect's own answer out.

    An ASGI callable, and for each tool a way around ASGI.
    """

    def __init__(self, dispatch: Dispatch, limits: Limits, doors: Doors) -> None:
        self._dispatch = dispatch
        self._limits = limits
        self._doors = doors
        simple = [bound for bound in dispatch.tools.values() if not (bound.tool.talk or bound.stepwise)]
        self.hot: dict[bytes, Direct] = {
            f"{_PREFIX}{bound.tool.name}".encode(): partial(self._direct, bound) for bound in simple
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        raw = scope["headers"]
        headers: dict[bytes, bytes] = dict(raw)
        path: str = scope["path"]
        refusal = refuse(raw, headers, self._limits)
        try:
            answer = _refused(refusal) if refusal else await self._answer(scope["method"], path, headers, receive)
        except (Stranger, Denied) as why:
            answer = shut(self._doors, why, path, headers)
        except Fault as fault:
            answer = edge_answer(503, fault.code, fault.message, _RETRY)
        await _send(send, answer)

    async def _answer(self, method: str, path: str, headers: Headers, receive: Receive) -> Answer:
        caller = self._doors.caller(headers)
        bound = self._dispatch.tools.get(path.partition(_PREFIX)[2])
        if bound is None:
            return _NO_TOOL
        if method != "POST":
            return _WRONG_METHOD
        body = await _arguments(headers, receive, self._limits)
        if isinstance(body, Refusal):
            return _refused(body)
        if too_much := excess(body, self._limits):
            return _answer(refused(bound, Fault("invalid", f"Invalid arguments: {too_much}")), headers)
        async with self._doors.use(caller) as dispatch:
            return _answer(await dispatch.call(bound, body, caller, _SILENT), headers)

    def _direct(self, bound: Bound, raw: Sequence[Header], body: bytes, done: Done) -> Answer | Begun | None:
        headers: dict[bytes, bytes] = dict(raw)
        refusal = refuse(raw, headers, self._limits) or (
            None if _empty(headers) else refuse_body(headers, self._limits)
        )
        if refusal is not None:
            return _refused(refusal)
        try:
            return self._begin(bound, headers, body, done)
        except (Stranger, Denied) as why:
            return shut(self._doors, why, f"{_PREFIX}{bound.tool.name}", headers)

    def _begin(self, bound: Bound, headers: Headers, body: bytes, done: Done) -> Answer | Begun | None:
        caller = self._doors.caller(headers)
        dispatch = self._doors.at_hand(caller)
        if dispatch is None or len(body) > self._limits.body:
            return None
        if too_much := excess(body, self._limits):
            return _answer(refused(bound, Fault("invalid", f"Invalid arguments: {too_much}")), headers)

        def heard(reply: Reply) -> None:
            done(_answer(reply, headers))

        begun = dispatch.start(bound, body or b"{}", caller, heard)
        return Begun(None) if isinstance(begun, Job) else _answer(begun, headers)


class Guarded:
    """Everything else by GET: nobody gets past without a key but to what tells a stranger how to get one.

    `behind` gives what answers those who do, and is not asked before.
    """

    def __init__(self, behind: Callable[[], Any], limits: Limits, doors: Doors) -> None:
        self._behind = behind
        self._limits = limits
        self._doors = doors

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Answers one request."""
        raw = scope.get("headers", ())
        headers: dict[bytes, bytes] = dict(raw)
        path: str = scope.get("path", "")  # the lifespan has none
        if scope["type"] == "http" and path not in _EVERYBODYS:
            refusal = refuse(raw, headers, self._limits)
            told = self._doors.metadata(path, headers) if scope["method"] in {"GET", "HEAD"} else None
            if refusal is not None or told is not None:
                await _send(send, _refused(refusal) if refusal else Answer(200, msgspec.json.encode(told)))
                return
            try:
                scope["caller"] = self._doors.caller(headers)
            except Stranger as why:
                await _send(send, shut(self._doors, why, path, headers))
                return
        await self._behind()(scope, receive, send)


def shut(doors: Doors, why: Stranger | Denied, path: str, headers: Headers) -> Answer:
    """The refusal of a stranger, or of what is out of a caller's reach, as the edge words it."""
    found = doors.shut(why, path, headers)
    extra = (b"www-authenticate", found.challenge)
    # A stranger's body may still be on its way, and nobody will read it.
    closing = () if found.status == 403 else ((b"connection", b"close"),)
    return edge_answer(found.status, found.code, found.reason, extra, *closing)


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


def _answer(reply: Reply | Ask, headers: Headers) -> Answer:
    if isinstance(reply, Ask):
        return _asked(reply)
    status = 200 if reply.fault is None else HTTP_STATUS[reply.fault]
    extra = (_RETRY,) if reply.fault == "busy" else ()
    wants_json = b"application/json" in headers.get(b"accept", b"").lower()
    if wants_json and reply.structured is not None and not reply.media.startswith(_JSON):
        return Answer(status, reply.structured, extra)
    return Answer(status, reply.body, extra, reply.media.encode())


def _asked(ask: Ask) -> Answer:
    names = ", ".join(sorted(ask.inputs)) or "another round"
    message = f"The tool asks for {names} first, which a client can answer over MCP only."
    return edge_answer(409, "input_required", message, inputs=ask.inputs)


def _refused(refusal: Refusal) -> Answer:
    # A body may still be on its way, and nobody will read it.
    return edge_answer(refusal.status, _EDGE_CODES[refusal.status], refusal.reason, (b"connection", b"close"))


async def _send(send: Send, answer: Answer) -> None:
    head = [(b"content-type", answer.media), (b"content-length", b"%d" % len(answer.body)), *answer.extra]
    await send({"type": "http.response.start", "status": answer.status, "headers": head})
    await send({"type": "http.response.body", "body": answer.body})
