"""No damaged request makes the server fail: every answer is defined, and the next good call is answered."""

import collections
import json
import os
import time
from contextlib import closing
from typing import Any

import pytest

from tests.catalogue import Catalogue
from tests.reliability import mutations
from tests.reliability.server_process import LATE, Server, serving
from tests.support.reliability_mutations import Wire

COUNT = int(os.environ.get("FUZZ_REQUESTS", "4000"))
BATCH = int(os.environ.get("FUZZ_BATCH", "500"))
ROOM = 1.10  # of the memory at the end to that of the settled server
GIVEN_BACK = 90  # seconds: freed memory goes back to the system once a minute
SEED = int(os.environ.get("FUZZ_SEED", "20261121"))
STATUSES = {200, 202, 400, 403, 404, 405, 406, 408, 409, 411, 413, 415, 421, 431}
CODES = {-32700, -32600, -32601, -32602, -32002, -32020, -32021, -32022}
FAULTS = {
    "invalid",
    "not_found",
    "conflict",
    "disabled",
    "blocked",
    "forbidden",
    "too_large",
    "method_not_allowed",
    "unsupported_media_type",
    "misdirected_request",
    "headers_too_large",
    "timeout",
}
SETTLED = 10_000  # requests after which every tool has run, every page of the model is read, every cache full
_GOOD = mutations.Call(
    "POST", "/tools/recall", (("Host", "localhost"), ("Content-Type", "application/json")), b'{"query":"x"}'
)


def _works(server: Server) -> bool:
    begun = time.monotonic()
    with closing(Wire(server.port)) as wire:
        return wire.send(_GOOD)[0] == 200 and time.monotonic() - begun < LATE


def _given_back(server: Server, room: float) -> int:
    deadline = time.monotonic() + GIVEN_BACK
    while server.memory > room and time.monotonic() < deadline:
        time.sleep(1)
    return server.memory


def _wrong(call: mutations.Call, status: int, body: bytes) -> str:
    if status not in STATUSES:
        return f"status {status}"
    if b"Traceback" in body or b'File "' in body:
        return "a traceback"
    if not body.startswith(b"{"):
        return ""
    found: Any = json.loads(body)
    error = found.get("error")
    if isinstance(error, dict) and error.get("code") not in CODES | FAULTS:
        return f"error code {error.get('code')}"
    if call.path == "/mcp" and "jsonrpc" in found and ("result" in found) == ("error" in found):
        return "neither a result nor an error"
    return ""


@pytest.mark.parametrize("part", range(4))
def test_damaged_requests_get_a_defined_answer_and_leave_the_server_sound(
    tmp_path: Any, part: int, catalogue: Catalogue
) -> None:
    seen: collections.Counter[int] = collections.Counter()
    count, held = COUNT // 4, 0
    with serving(tmp_path / "data") as server, closing(Wire(server.port)) as wire:
        for number, call in enumerate(mutations.mutations(SEED + part, count)):
            status, body = wire.send(call)
            wrong = _wrong(call, status, body)
            assert not wrong, f"seed {SEED + part}, request {number}: {wrong}\n{call}\n{body[:500]!r}"
            seen[status] += 1
            if number % BATCH == BATCH - 1:
                assert _works(server)
            if number == min(count - 1, SETTLED):
                held = server.memory
        assert _works(server)
        now = _given_back(server, held * ROOM) if count > SETTLED else server.memory
        assert "Traceback" not in server.log()
    outcome = f"seed {SEED + part}: {dict(sorted(seen.items()))}; {held >> 20} MB held, {now >> 20} at the end"
    catalogue("S24", injected=f"damaged request, served after each {BATCH}", times=seen.total(), outcome=outcome)
    if count > SETTLED:
        assert now <= held * ROOM
