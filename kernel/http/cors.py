"""CORS for clients in a browser, such as the MCP Inspector: from the origins that are accepted anyway."""

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from kernel.core.limits import Limits, origin_allowed

_METHODS = ("GET", "POST", "PATCH", "DELETE")
# Of answers; a page may read no other headers.
_EXPOSED = ("mcp-session-id", "mcp-protocol-version", "www-authenticate", "retry-after", "request-id", "x-request-id")


class Cors(CORSMiddleware):
    """Answers preflights with 204, and marks the answers to requests; from an accepted origin only.

    No credentials of the browser are allowed: a key goes into the Authorization header.
    """

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        super().__init__(app, allow_methods=_METHODS, allow_headers=("*",), expose_headers=_EXPOSED)
        self._origins = limits.origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request; a request from another origin is left to the application, which refuses it."""
        ours = self.is_allowed_origin(Headers(scope=scope)["origin"])
        await (super().__call__ if ours else self.app)(scope, receive, send)

    def is_allowed_origin(self, origin: str) -> bool:
        return origin_allowed(origin.encode("latin-1", "replace"), self._origins)

    def preflight_response(self, request_headers: Headers) -> Response:
        """Return 204, or 400 with the reason if the page asks for more."""
        response = super().preflight_response(request_headers)
        if response.status_code != 200:
            return response
        headers = {
            name: value for name, value in response.headers.items() if name.startswith(("access-control", "vary"))
        }
        return Response(status_code=204, headers=headers)
