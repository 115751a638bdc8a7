"""The edge of HTTP beside the fast path: a request is refused or answered, and its response is sent, in one place."""

from collections.abc import Awaitable, Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

import msgspec
from starlette.types import Receive, Scope, Send

from kernel.core.errors import HTTP_STATUS, NO_MEMORY, Fault
from kernel.core.limits import (
    MISDIRECTED,
    Header,
    Headers,
    Limits,
    Refusal,
    read_body,
    refuse,
    refuse_body,
)
from kernel.http.access import CLOSE, AccessControl
from kernel.security.auth import Unauthenticated
from kernel.security.permissions import Forbidden

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


class HttpResponse(NamedTuple):
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


async def begin_response(send: Send, status: int, headers: Iterable[Header]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})


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


def failure_response(access: AccessControl, failure: Failure, path: str, headers: Headers) -> HttpResponse:
    """Return the response to a request that was not answered; a Fault has the status of its code."""
    if isinstance(failure, Refusal):
        return refusal_response(failure)
    if isinstance(failure, Fault):
        return error_response(HTTP_STATUS[failure.code], failure.code, failure.message)
    return access_refusal(access, failure, path, headers)


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
