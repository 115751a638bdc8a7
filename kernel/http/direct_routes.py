"""The routes without Starlette: the proof of a server to a hook, the authorization server, the end of a tenant."""

import asyncio
import secrets
from collections.abc import Callable
from urllib.parse import parse_qsl

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from kernel.calls.dispatch import catch_faults
from kernel.core.data_dir import tenant_name
from kernel.core.errors import unless_fault
from kernel.core.ids import utc_now
from kernel.core.limits import Headers, Limits, read_body, refuse
from kernel.http.edge import AccessControl, HttpResponse, application, error_response, refusal_response, send_response
from kernel.security.auth import Auth
from kernel.security.local_access import LocalAccess, proof
from kernel.security.permissions import Forbidden, Permission
from kernel.security.sign_in import METADATA, REGISTER, REVOKE, TOKEN, OAuthError, SignIn

PREFIX = "/tenants/"


def tenant_routes(limits: Limits, access: AccessControl, erase: Callable[[str], bytes]) -> ASGIApp:
    """Return an ASGI application for DELETE; `erase` returns the receipt of a tenant as JSON, in a thread."""

    async def answer(scope: Scope, _receive: Receive, headers: Headers) -> HttpResponse:
        caller = access.auth.caller(headers)
        if scope["method"] != "DELETE":
            return error_response(405, "method_not_allowed", "Method not allowed, use DELETE.", (b"allow", b"DELETE"))
        name, grant = scope["path"].removeprefix(PREFIX), caller.grant
        least = Permission.admin if caller.tenant == name and not grant.dialects else Permission.operator
        if grant.permission < least:
            raise Forbidden(PREFIX, least)
        tenant_name(name)
        await access.tenants.shut(name)
        receipt = await asyncio.to_thread(catch_faults, erase, name)
        access.auth.checked_until = 0.0  # the next call with an erased key does not open the tenant anew
        return HttpResponse(200, unless_fault(receipt))

    return application(limits, access, answer)


PROOF_PATH = "/hook/proof"
_NONCE, _KEY_ID = b"x-quipu-nonce", b"x-quipu-key"
_MOST_NONCE = 64


def proof_route(limits: Limits, auth: Auth, local: LocalAccess | None) -> ASGIApp:
    """Return an ASGI application for this path; it takes no key, since a hook shows its key to a proved server only."""
    nobodys = secrets.token_hex()  # an answer for an unknown id looks like any other
    token = local.token if local else nobodys

    def answer(scope: Scope, headers: Headers) -> HttpResponse:
        if scope["method"] != "GET":
            return error_response(405, "method_not_allowed", "Method not allowed, use GET.", (b"allow", b"GET"))
        nonce = headers.get(_NONCE, b"")
        if not nonce or len(nonce) > _MOST_NONCE:
            return error_response(400, "invalid", f"x-quipu-nonce has 1 to {_MOST_NONCE} characters")
        port = int((scope.get("server") or ("", 0))[1] or 0)
        key = auth.hash_of_key(headers.get(_KEY_ID, b"").decode("latin-1")) or nobodys
        hashes = b" ".join(proof(secret, nonce, port) for secret in (token, key))
        return HttpResponse(200, hashes, (), b"text/plain")

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        refusal = refuse(scope["headers"], headers, limits)
        await send_response(send, refusal_response(refusal) if refusal else answer(scope, headers))

    return app


_BODY_BYTES = 16_384
_MOST_FIELDS = 32
_NOT_STORED = (b"cache-control", b"no-store")
_JSON, _FORM = b"application/json", b"application/x-www-form-urlencoded"


def oauth_routes(limits: Limits, access: AccessControl) -> ASGIApp:
    """Return an ASGI application for the metadata, registration, tokens and their revocation."""

    async def answer(scope: Scope, receive: Receive, headers: Headers) -> HttpResponse:
        path, method = scope["path"], scope["method"]
        if access.sign_in is None or not access.auth.needed():
            return error_response(404, "not_found", "There is no sign-in: this server needs no keys.")
        sign_in = access.sign_in()
        if path == METADATA and method in {"GET", "HEAD"}:
            return HttpResponse(200, msgspec.json.encode(sign_in.metadata()))
        if path not in {REGISTER, TOKEN, REVOKE}:
            return error_response(404, "not_found", "There is no such address.")
        if method != "POST":
            return error_response(405, "method_not_allowed", "Method not allowed, use POST.", (b"allow", b"POST"))
        response = await _posted(sign_in, path, headers, receive)
        access.auth.checked_until = 0.0  # a new token counts from now on, a revoked token no longer
        return response

    return application(limits, access, answer)


async def _posted(sign_in: SignIn, path: str, headers: Headers, receive: Receive) -> HttpResponse:
    media = _JSON if path == REGISTER else _FORM
    if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != media:
        return _refusal(415, "invalid_request", f"The body must be {media.decode()}.")
    body = await read_body(receive, _BODY_BYTES)
    if body is None:
        return _refusal(413, "invalid_request", f"The body may have {_BODY_BYTES} bytes.")
    return unless_fault(await asyncio.to_thread(catch_faults, _answered, sign_in, path, body))


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
