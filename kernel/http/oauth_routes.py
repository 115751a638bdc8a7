"""The routes of the server's own authorization server; consent is a page of the console."""

import asyncio
from functools import partial
from urllib.parse import parse_qsl

import msgspec
from starlette.types import Receive, Scope, Send

from kernel.calls.dispatch import catch_faults
from kernel.core.errors import Fault
from kernel.core.ids import utc_now
from kernel.core.limits import Headers, Limits, read_body
from kernel.http.access import AccessControl
from kernel.http.edge import Failure, HttpResponse, error_response, failure_response, respond
from kernel.security.sign_in import METADATA, REGISTER, REVOKE, TOKEN, OAuthError, SignIn

_BODY_BYTES = 16_384
_MOST_FIELDS = 32
_NOT_STORED = (b"cache-control", b"no-store")
_JSON, _FORM = b"application/json", b"application/x-www-form-urlencoded"


class OAuthRoutes:
    """An ASGI application for the metadata, registration, tokens and their revocation."""

    def __init__(self, limits: Limits, access: AccessControl) -> None:
        self._limits = limits
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        def refusal(failure: Failure, headers: Headers) -> HttpResponse:
            return failure_response(self._access, failure, scope["path"], headers)

        await respond(scope, send, self._limits, partial(self._answer, scope, receive), refusal)

    async def _answer(self, scope: Scope, receive: Receive, headers: Headers) -> HttpResponse:
        path, method = scope["path"], scope["method"]
        if self._access.sign_in is None or not self._access.auth.needed():
            return error_response(404, "not_found", "There is no sign-in: this server needs no keys.")
        sign_in = self._access.sign_in()
        if path == METADATA and method in {"GET", "HEAD"}:
            return HttpResponse(200, msgspec.json.encode(sign_in.metadata()))
        if path not in {REGISTER, TOKEN, REVOKE}:
            return error_response(404, "not_found", "There is no such address.")
        if method != "POST":
            return error_response(405, "method_not_allowed", "Method not allowed, use POST.", (b"allow", b"POST"))
        media = _JSON if path == REGISTER else _FORM
        if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != media:
            return _refusal(415, "invalid_request", f"The body must be {media.decode()}.")
        body = await read_body(receive, _BODY_BYTES)
        if body is None:
            return _refusal(413, "invalid_request", f"The body may have {_BODY_BYTES} bytes.")
        answer = await asyncio.to_thread(catch_faults, _answered, sign_in, path, body)
        if isinstance(answer, Fault):
            raise answer
        self._access.auth.checked_until = 0.0  # a new token counts from now on, and one that was revoked no longer
        return answer


def _answered(sign_in: SignIn, path: str, body: bytes) -> HttpResponse:
    try:
        if path == REGISTER:
            return HttpResponse(201, msgspec.json.encode(sign_in.register(body)), (_NOT_STORED,))
        form = _form(body)
        if path == REVOKE:
            sign_in.revoke(form, utc_now())
            return HttpResponse(200, b"")
        return HttpResponse(200, msgspec.json.encode(sign_in.redeem(form, utc_now())), (_NOT_STORED,))
    except OAuthError as error:
        return _refusal(400, error.code, str(error))


def _form(body: bytes) -> dict[str, str]:
    """Return the fields of a form; raises OAuthError for no form, and for a field that comes twice."""
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise OAuthError("invalid_request", "The body is no form.") from None
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise OAuthError("invalid_request", "A field comes twice.")
    return fields


def _refusal(status: int, code: str, message: str) -> HttpResponse:
    body = msgspec.json.encode({"error": code, "error_description": message})
    return HttpResponse(status, body, (_NOT_STORED,))
