"""The route that erases a tenant, /tenants/{name}, for an operator and for an admin of that tenant."""

import asyncio
from collections.abc import Callable
from functools import partial

from starlette.types import Receive, Scope, Send

from kernel.calls.dispatch import catch_faults
from kernel.core.data_dir import tenant_name
from kernel.core.errors import Fault
from kernel.core.limits import Headers, Limits
from kernel.http.access import AccessControl
from kernel.http.edge import Failure, HttpResponse, error_response, failure_response, respond
from kernel.security.permissions import Forbidden, Permission

PREFIX = "/tenants/"


class TenantRoutes:
    """An ASGI application for DELETE; `erase` returns the receipt of a tenant as JSON, in a thread."""

    def __init__(self, limits: Limits, access: AccessControl, erase: Callable[[str], bytes]) -> None:
        self._limits = limits
        self._access = access
        self._erase = erase

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        def refusal(failure: Failure, headers: Headers) -> HttpResponse:
            return failure_response(self._access, failure, scope["path"], headers)

        await respond(scope, send, self._limits, partial(self._answer, scope), refusal)

    async def _answer(self, scope: Scope, headers: Headers) -> HttpResponse:
        caller = self._access.caller(headers)
        if scope["method"] != "DELETE":
            return error_response(405, "method_not_allowed", "Method not allowed, use DELETE.", (b"allow", b"DELETE"))
        name, grant = scope["path"].removeprefix(PREFIX), caller.grant
        least = Permission.admin if caller.tenant == name and not grant.dialects else Permission.operator
        if grant.permission < least:
            raise Forbidden(PREFIX, least)
        tenant_name(name)
        await self._access.tenants.shut(name)
        receipt = await asyncio.to_thread(catch_faults, self._erase, name)
        self._access.auth.checked_until = 0.0  # the next call with an erased key does not open the tenant anew
        if isinstance(receipt, Fault):
            raise receipt
        return HttpResponse(200, receipt)
