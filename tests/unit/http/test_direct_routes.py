"""A server proves to a hook that it has the hook's key, without a key in the request."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kernel.core.limits import Limits
from kernel.http.direct_routes import PROOF_PATH, proof_route
from kernel.security.auth import Auth
from kernel.security.local_access import LocalAccess, proof

PORT = 7847


def ask(folder: Path, local: LocalAccess | None, method: str = "GET", **headers: bytes) -> tuple[int, bytes]:
    app = proof_route(Limits(), Auth(folder), local)
    raw = {b"host": b"127.0.0.1", **{f"x-quipu-{name}".encode(): value for name, value in headers.items()}}
    scope = {"type": "http", "method": method, "path": PROOF_PATH, "headers": [*raw.items()], "server": ("", PORT)}
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async def run() -> None:
        await app(scope, receive, send)

    asyncio.run(run())
    return sent[0]["status"], sent[1]["body"]


def test_the_first_proof_is_that_of_the_token_of_this_machine(tmp_path: Path) -> None:
    local = LocalAccess.fresh(tmp_path)
    status, body = ask(tmp_path, local, nonce=b"n1")
    assert status == 200
    assert body.split()[0] == proof(local.token, b"n1", PORT)


def test_an_unknown_key_gets_an_answer_like_any_other(tmp_path: Path) -> None:
    status, body = ask(tmp_path, None, nonce=b"n1", key=b"k_unknown")
    assert status == 200
    assert [len(part) for part in body.split()] == [128, 128]


@pytest.mark.parametrize("nonce", [b"", b"n" * 65])
def test_a_nonce_is_short_and_not_empty(tmp_path: Path, nonce: bytes) -> None:
    assert ask(tmp_path, None, nonce=nonce)[0] == 400


def test_another_method_is_refused(tmp_path: Path) -> None:
    assert ask(tmp_path, None, "POST", nonce=b"n1")[0] == 405
