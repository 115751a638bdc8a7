"""The official Python SDK logs in from an address alone, as a program: `python -m tests.support.sign_in_client URL`.

It writes `open URL` for the browser, and `tools NAME ...` once it is in. Of each line that it reads it makes a memory,
and writes `called`, or `failed` with the reason.
"""

import asyncio
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
from mcp import ClientSession
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

Answers = asyncio.Queue[dict[str, str]]


class Storage:
    """Tokens and registration, in memory."""

    def __init__(self) -> None:
        self._tokens: OAuthToken | None = None
        self._client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


def say(*words: object) -> None:
    print(*words, flush=True)


def listening(answers: Answers, loop: asyncio.AbstractEventLoop) -> HTTPServer:
    """A server to which the browser is sent back."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"Close this page.")
            parts = urlsplit(self.path)
            if parts.path == "/callback":
                loop.call_soon_threadsafe(answers.put_nowait, dict(parse_qsl(parts.query)))

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    return server


async def main(url: str) -> None:
    answers = Answers()
    port = listening(answers, asyncio.get_running_loop()).server_port

    async def visit(address: str) -> None:
        say("open", address)

    async def back() -> AuthorizationCodeResult:
        answer = await answers.get()
        if "error" in answer:
            say("failed", answer["error"])  # the SDK ends with this error
            raise PermissionError(answer["error"])
        return AuthorizationCodeResult(code=answer["code"], state=answer["state"], iss=answer["iss"])

    metadata = OAuthClientMetadata(client_name="Python", redirect_uris=[AnyUrl(f"http://127.0.0.1:{port}/callback")])
    provider = OAuthClientProvider(url, metadata, Storage(), visit, back)
    async with (
        httpx2.AsyncClient(auth=provider, timeout=60) as http,
        streamable_http_client(url, http_client=http) as streams,
        ClientSession(streams[0], streams[1]) as client,
    ):
        await client.initialize()
        say("tools", *(tool.name for tool in (await client.list_tools()).tools))
        while text := (await asyncio.to_thread(sys.stdin.readline)).strip():
            result = await client.call_tool("add_memory", {"path": text, "content": text})
            say("called", result.is_error)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
