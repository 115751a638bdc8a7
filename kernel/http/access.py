"""What both HTTP edges ask before they serve: who calls, where that caller's store is, and how to say no."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple

from kernel.dispatch import Dispatch
from kernel.security.auth import METADATA, Auth, Challenge, Unauthenticated
from kernel.security.permissions import Caller, Forbidden, Permission
from kernel.tenants import Tenants

Headers = Mapping[bytes, bytes]


class AccessRefusal(NamedTuple):
    """A refusal: HTTP status, a code for JSON, the reason, and the value of WWW-Authenticate."""

    status: int
    code: str
    reason: str
    challenge: bytes


class AccessControl(NamedTuple):
    """Who may come in, and where to."""

    auth: Auth
    challenge: Challenge
    tenants: Tenants

    def caller(self, headers: Headers) -> Caller:
        """Who sends these headers; raises Stranger."""
        return self.auth.caller(headers)

    def open_dispatch(self, caller: Caller) -> Dispatch | None:
        """The tools of the caller's tenant if it is open, for what is begun at once."""
        return self.tenants.open_dispatch(caller.tenant)

    def dispatch_of(self, caller: Caller) -> AbstractAsyncContextManager[Dispatch]:
        """The tools of the caller's tenant, until the end of the block; raises Fault where it cannot be opened."""
        return self.tenants.use(caller.tenant)

    def metadata(self, path: str, headers: Headers) -> dict[str, Any] | None:
        """What tells a stranger how to get in, if it is asked for and a key is needed."""
        asked = path.startswith(METADATA) and self.auth.needed()
        return self.challenge.metadata(path.removeprefix(METADATA), headers) if asked else None

    def refusal(self, why: Unauthenticated | Forbidden, path: str, headers: Headers) -> AccessRefusal:
        """The refusal of a request to the resource at `path`."""
        reason = str(why)
        if isinstance(why, Unauthenticated):
            told = {"error": why.error, "why": reason} if why.error else {}
            status, code = (403, why.error) if why.error == "insufficient_scope" else (401, "unauthorized")
            return AccessRefusal(
                status, code, reason, self.challenge.header(path, headers, scope=Permission.read, **told)
            )
        error = "insufficient_scope"
        header = self.challenge.header(path, headers, scope=why.needed, error=error, why=reason)
        return AccessRefusal(403, error, reason, header)
