"""Requests to the application without a socket."""

import asyncio
from typing import Any

import httpx

from kernel.server.app import Kernel
from kernel.server.asgi import Application

ROOT = "/v1/memory_stores"


class RestClient:
    """Requests to the application of a kernel; `headers` go with each."""

    def __init__(self, kernel: Kernel, runner: asyncio.Runner, **headers: str) -> None:
        self._runner = runner
        self.application = Application(kernel)
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(self.application), base_url="http://127.0.0.1", headers=headers
        )

    def send(self, verb: str, path: str, **more: Any) -> httpx.Response:
        """The response to a request."""
        return self._runner.run(self._client.request(verb, path, **more))

    def __call__(self, verb: str, path: str, body: Any = None, /, **query: Any) -> Any:
        """The result of a method of /v1/memory_stores, or its status and error."""
        given = {} if body is None else {"json": body}
        answer = self.send(verb, f"{ROOT}{path}", params=query, **given)
        found = answer.json()
        assert answer.headers["content-type"] == "application/json"
        if answer.status_code == 200:
            return found
        assert found == {"type": "error", "error": found["error"], "request_id": answer.headers["request-id"]}
        return answer.status_code, found["error"]

    def close(self) -> None:
        """Ends the client."""
        self._runner.run(self._client.aclose())
