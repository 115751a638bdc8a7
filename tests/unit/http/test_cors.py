"""A page of an accepted origin may call the server; a page of another is left to the application, which refuses it."""

import asyncio
from typing import Any

from starlette.types import Receive, Scope, Send

from kernel.core.limits import Limits
from kernel.http.cors import Cors

OURS, OTHER = "https://inspector.example", "https://evil.example"
LIMITS = Limits(origins=frozenset({OURS}))
Answer = tuple[int, dict[str, str]]


async def application(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 403, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def answer(method: str, origin: str, **headers: str) -> Answer:
    raw = {"origin": origin, **{name.replace("_", "-"): value for name, value in headers.items()}}
    scope = {
        "type": "http",
        "method": method,
        "path": "/mcp",
        "headers": [(name.encode(), value.encode()) for name, value in raw.items()],
    }
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    asyncio.run(Cors(application, LIMITS)(scope, receive, send))
    return sent[0]["status"], {name.decode(): value.decode() for name, value in sent[0]["headers"]}


def test_a_preflight_is_answered_without_a_body() -> None:
    status, headers = answer("OPTIONS", OURS, access_control_request_method="POST")
    assert status == 204
    assert headers["access-control-allow-origin"] == OURS
    assert "PATCH" in headers["access-control-allow-methods"]
    assert "content-length" not in headers


def test_a_preflight_for_a_method_that_no_page_needs_is_refused() -> None:
    assert answer("OPTIONS", OURS, access_control_request_method="PUT")[0] == 400


def test_the_answer_to_an_accepted_origin_says_which_headers_a_page_may_read() -> None:
    status, headers = answer("POST", OURS)
    assert status == 403
    assert headers["access-control-allow-origin"] == OURS
    assert "mcp-session-id" in headers["access-control-expose-headers"]
    assert "access-control-allow-credentials" not in headers


def test_another_origin_gets_the_answer_of_the_application() -> None:
    assert answer("OPTIONS", OTHER, access_control_request_method="POST") == (403, {})
    assert answer("POST", OTHER) == (403, {})
