"""The edge of HTTP beside the fast path: a request is refused or answered, and its response is sent, in one place."""

from collections.abc import Awaitable, Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Struct
from starlette.types import ASGIApp, Receive, Scope, Send

from kernel.calls.tenants import Tenants
from kernel.core.errors import HTTP_STATUS, NO_MEMORY, Fault
from kernel.core.limits import MISDIRECTED, Header, Headers, Limits, Refusal, read_body, refuse, refuse_body
from kernel.security.auth import METADATA, Auth, Challenge, Unauthenticated
from kernel.security.permissions import Forbidden, Permission

if TYPE_CHECKING:
    from kernel.security.sign_in import SignIn

CLOSE = (b"connection", b"close")
RETRY = (b"retry-after", b"1")
_TOO_LARGE = Refusal(413, "Body too large or too slow")
_CODES = {
    400: "invalid",
    403: "forbidden",
    413: "too_large",
    415: "unsupported_media_type",
    MISDIRECTED: "misdirected_request",
    431: "headers_too_large",
}


class AccessRefusal(NamedTuple):
    """HTTP status, code for JSON, reason, and the headers: WWW-Authenticate, and if need be Connection."""

    status: int
    code: str
    reason: str
    headers: tuple[Header, ...]


class AccessControl(NamedTuple):
    """The callers a server accepts, the challenge to others, and the stores of the tenants.

    `sign_in` makes the server's own authorization server, if it has one.
    """

    auth: Auth
    challenge: Challenge
    tenants: Tenants
    sign_in: "Callable[[], SignIn] | None" = None

    def metadata(self, path: str, headers: Headers) -> dict[str, Any] | None:
        """Return the OAuth protected resource metadata (RFC 9728) at `path`, if keys are required."""
        if not path.startswith(METADATA) or not self.auth.needed():
            return None
        return self.challenge.metadata(path.removeprefix(METADATA), headers)

    def refusal(self, error: Unauthenticated | Forbidden, path: str, headers: Headers) -> AccessRefusal:
        reason, code = str(error), "insufficient_scope"
        if isinstance(error, Forbidden):
            status, scope, details = 403, error.needed, {"error": code, "why": reason}
        else:
            status, code = (403, code) if error.error == code else (401, "unauthorized")
            scope, details = Permission.read, {"error": error.error, "why": reason} if error.error else {}
        challenge = (b"www-authenticate", self.challenge.header(path, headers, scope=scope, **details))
        # The body of an unauthenticated request is not read, so the connection cannot carry another request.
        return AccessRefusal(status, code, reason, (challenge,) if status == 403 else (challenge, CLOSE))


class HttpResponse(Struct, frozen=True):
    """A status, a body, and the headers that those two do not imply."""

    status: int
    body: bytes
    headers: tuple[Header, ...] = ()
    media: bytes = b"application/json"


Failure = Refusal | Unauthenticated | Forbidden | Fault
Answer = Callable[[Headers], Awaitable[HttpResponse]]
Refuse = Callable[[Failure, Headers], HttpResponse]


async def respond(scope: Scope, send: Send, limits: Limits, answer: Answer, refusal: Refuse) -> None:
    """Send the answer to a request, or its refusal: by its headers, of its caller, or a Fault of the answer."""
    raw = scope["headers"]
    headers: dict[bytes, bytes] = dict(raw)
    try:
        failure: Failure | None = refuse(raw, headers, limits)
        if failure is None:
            await send_response(send, await answer(headers))
            return
    except (Unauthenticated, Forbidden, Fault) as error:
        failure = error
    except MemoryError:
        failure = Fault("busy", NO_MEMORY)
    await send_response(send, refusal(failure, headers))


def application(
    limits: Limits,
    access: AccessControl,
    answer: Callable[[Scope, Receive, Headers], Awaitable[HttpResponse]],
    failed: Callable[[Fault], HttpResponse] | None = None,
) -> ASGIApp:
    """Return an ASGI application of these answers; without `failed` a Fault has the status of its code."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        def refusal(failure: Failure, headers: Headers) -> HttpResponse:
            if isinstance(failure, Refusal):
                return refusal_response(failure)
            if not isinstance(failure, Fault):
                return access_refusal(access, failure, scope["path"], headers)
            if failed is not None:
                return failed(failure)
            return error_response(HTTP_STATUS[failure.code], failure.code, failure.message)

        await respond(scope, send, limits, lambda headers: answer(scope, receive, headers), refusal)

    return app


async def begin_response(send: Send, status: int, headers: Iterable[Header]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def send_part(send: Send, data: bytes, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": more})


async def left(receive: Receive) -> None:
    """Return when the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def send_response(send: Send, answer: HttpResponse) -> None:
    """Send a whole response; as on the fast path, without a body it has no content type."""
    head = (*entity_headers(answer.media, len(answer.body)), *answer.headers)
    await begin_response(send, answer.status, head)
    await send({"type": "http.response.body", "body": answer.body})


@lru_cache(maxsize=4096)
def entity_headers(media: bytes, length: int) -> tuple[Header, ...]:
    size = (b"content-length", b"%d" % length)
    return ((b"content-type", media), size) if length else (size,)


def error_response(status: int, code: str, message: str, *extra: Header, **more: object) -> HttpResponse:
    return HttpResponse(status, msgspec.json.encode({"error": {"code": code, "message": message, **more}}), extra)


def refusal_response(refusal: Refusal) -> HttpResponse:
    # The body is not read, so the connection cannot carry another request.
    return error_response(refusal.status, _CODES[refusal.status], refusal.reason, CLOSE)


def access_refusal(
    access: AccessControl, error: Unauthenticated | Forbidden, path: str, headers: Headers
) -> HttpResponse:
    """Return 401 with a challenge for an unauthenticated request, or 403 if the caller lacks the permission."""
    refusal = access.refusal(error, path, headers)
    return error_response(refusal.status, refusal.code, refusal.reason, *refusal.headers)


def has_no_body(headers: Headers) -> bool:
    return headers.get(b"content-length", b"0") == b"0" and b"transfer-encoding" not in headers


async def read_arguments(headers: Headers, receive: Receive, limits: Limits) -> bytes | Refusal:
    """Return the body as JSON, `{}` if there is none, or its refusal."""
    if has_no_body(headers):
        return b"{}"
    refusal = refuse_body(headers, limits)
    if refusal is not None:
        return refusal
    body = await read_body(receive, limits.body)
    return _TOO_LARGE if body is None else body or b"{}"
