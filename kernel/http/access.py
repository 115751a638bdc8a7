"""Authentication and tenant selection for the HTTP endpoints, and the content of a refusal."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

from kernel.calls.dispatch import Dispatch
from kernel.calls.tenants import Tenants
from kernel.core.limits import Headers
from kernel.security.auth import METADATA, Auth, Challenge, Unauthenticated
from kernel.security.permissions import Caller, Forbidden, Permission

if TYPE_CHECKING:
    from kernel.security.sign_in import SignIn


class AccessRefusal(NamedTuple):
    """HTTP status, code for JSON, reason, and the value of WWW-Authenticate."""

    status: int
    code: str
    reason: str
    challenge: bytes


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
        reason = str(error)
        if isinstance(error, Unauthenticated):
            details = {"error": error.error, "why": reason} if error.error else {}
            status, code = (403, error.error) if error.error == "insufficient_scope" else (401, "unauthorized")
            return AccessRefusal(
                status, code, reason, self.challenge.header(path, headers, scope=Permission.read, **details)
            )
        code = "insufficient_scope"
        challenge = self.challenge.header(path, headers, scope=error.needed, error=code, why=reason)
        return AccessRefusal(403, code, reason, challenge)
