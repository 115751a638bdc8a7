"""Authentication and tenant selection for the HTTP endpoints, and the content of a refusal."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

from kernel.calls.dispatch import Dispatch
from kernel.calls.tenants import Tenants
from kernel.core.limits import Header, Headers
from kernel.security.auth import METADATA, Auth, Challenge, Unauthenticated
from kernel.security.permissions import Caller, Forbidden, Permission

if TYPE_CHECKING:
    from kernel.security.sign_in import SignIn

CLOSE = (b"connection", b"close")


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

    def caller(self, headers: Headers) -> Caller:
        return self.auth.caller(headers)

    def open_dispatch(self, caller: Caller) -> Dispatch | None:
        return self.tenants.open_dispatch(caller.tenant)

    def dispatch_of(self, caller: Caller) -> AbstractAsyncContextManager[Dispatch]:
        return self.tenants.use(caller.tenant)

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
