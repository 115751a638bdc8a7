"""GET /hook/proof: a server proves to a hook that it is the user's own, before the hook says anything.

Another user of the machine can listen on the port while the server is down. The hook sends a nonce, and gets its keyed
hash: by the token in the data directory, and by the hash of a key. Neither leaves the two programs.
"""

import secrets

from starlette.types import Receive, Scope, Send

from kernel.core.limits import Headers, Limits, refuse
from kernel.http.edge import HttpResponse, error_response, refusal_response, send_response
from kernel.security.auth import Auth
from kernel.security.local_access import LocalAccess, proof

PATH = "/hook/proof"
_NONCE, _KEY_ID = b"x-quipu-nonce", b"x-quipu-key"
_MOST_NONCE = 64


class ProofRoute:
    """An ASGI application for this path; without a key, since a hook shows its own to a server that it knows only."""

    def __init__(self, limits: Limits, auth: Auth, local: LocalAccess | None) -> None:
        self._limits = limits
        self._auth = auth
        self._nobodys = secrets.token_hex()  # an answer for an unknown id looks like any other
        self._token = local.token if local else self._nobodys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        refusal = refuse(scope["headers"], headers, self._limits)
        await send_response(send, refusal_response(refusal) if refusal else self._answer(scope, headers))

    def _answer(self, scope: Scope, headers: Headers) -> HttpResponse:
        if scope["method"] != "GET":
            return error_response(405, "method_not_allowed", "Method not allowed, use GET.", (b"allow", b"GET"))
        nonce = headers.get(_NONCE, b"")
        if not nonce or len(nonce) > _MOST_NONCE:
            return error_response(400, "invalid", f"x-quipu-nonce has 1 to {_MOST_NONCE} characters")
        port = int((scope.get("server") or ("", 0))[1] or 0)
        key = self._auth.hash_of_key(headers.get(_KEY_ID, b"").decode("latin-1")) or self._nobodys
        hashes = b" ".join(proof(secret, nonce, port) for secret in (self._token, key))
        return HttpResponse(200, hashes, (), b"text/plain")
