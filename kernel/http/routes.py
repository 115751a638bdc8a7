"""What is asked by GET: the tools, their OpenAPI document, the health probes and the metrics, through Starlette."""

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kernel.calls import ToolEntry
from kernel.config import VERSION
from kernel.dispatch import Dispatch
from kernel.http.access import AccessControl
from kernel.http.openapi import document
from kernel.http.rest import Ready, access_refusal
from kernel.schema import input_schema, output_schema
from kernel.security.permissions import Forbidden, Grant, Permission

_JSON = "application/json"


def routes(dispatch: Dispatch, ready: Callable[[], Ready]) -> list[Route]:
    """GET /tools, /openapi.json, /healthz and /readyz, which says `ready()`; the first two tell what is in reach."""

    def within(reach: Grant) -> list[ToolEntry]:
        return [bound for bound in dispatch.tools.values() if bound.visible_to(reach)]

    @cache
    def listing(reach: Grant) -> bytes:
        return msgspec.json.encode({"tools": [_listed(bound) for bound in within(reach)]})

    @cache
    def description(reach: Grant) -> bytes:
        shown = {bound.tool.name for bound in within(reach)}
        tools = [(d, tuple(tool for tool in d.tools if tool.name in shown)) for d in dispatch.dialects]
        return msgspec.json.encode(document([d._replace(tools=some) for d, some in tools if some], VERSION))

    async def tools(request: Request) -> Response:
        return Response(listing(request.scope["caller"].grant), media_type=_JSON)

    async def openapi(request: Request) -> Response:
        return Response(description(request.scope["caller"].grant), media_type=_JSON)

    async def readyz(_request: Request) -> Response:
        return Response(msgspec.json.encode({"status": "ready", **ready()._asdict()}), media_type=_JSON)

    return [
        Route("/tools", tools),
        Route("/openapi.json", openapi),
        Route("/healthz", Response(b'{"status":"ok"}', media_type=_JSON), methods=["GET"]),
        Route("/readyz", readyz),
    ]


def metrics_route(doors: AccessControl, text: Callable[[], bytes], media: str) -> Route:
    """GET /metrics for those who may hear of the machine."""

    async def metrics(request: Request) -> Response:
        if request.scope["caller"].grant.permission >= Permission.admin:
            return Response(text(), media_type=media)
        answer = access_refusal(
            doors, Forbidden("/metrics", Permission.admin), "/metrics", dict(request.scope["headers"])
        )
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in answer.headers}
        return Response(answer.body, answer.status, headers, _JSON)

    return Route("/metrics", metrics)


def _listed(bound: ToolEntry) -> dict[str, Any]:
    dialect, tool = bound.dialect, bound.tool
    shown = {
        "name": tool.name,
        "dialect": dialect.name,
        "description": tool.description,
        "mode": tool.mode,
        "input_schema": input_schema(tool),
    }
    output = output_schema(tool)
    return shown if output is None else {**shown, "output_schema": output}
