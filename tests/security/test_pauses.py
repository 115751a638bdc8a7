"""However long and strange a text is, the server answers others meanwhile.

PAUSE_SECONDS is how long a probe may wait (0.5 by default, for a machine with other work), PAUSE_TEXTS how many texts
are sent to each place (12).
"""

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.catalogue import Catalogue
from tests.reliability.server_process import Server, serving
from tests.support.security_growth import texts

PAUSE = float(os.environ.get("PAUSE_SECONDS", "0.5"))
TEXTS = int(os.environ.get("PAUSE_TEXTS", "12"))
HOOK = {"client": "claude", "session_id": "s", "cwd": "/w/web"}
# The place of a text, and its role; at most so many characters.
PLACES: Mapping[str, tuple[str, dict[str, Any], int]] = {
    "/hook/claude/first-prompt": ("prompt", HOOK, 60_000),
    "/hook/claude/post-compact": ("compact_summary", HOOK, 60_000),
    "/hook/claude/session-start": ("intro", HOOK, 60_000),
    "/prime": ("intro", {"root": "/w/web", "query": "web"}, 60_000),
    "/tools/recall": ("query", {}, 4_096),
    "/tools/add_memory": ("content", {}, 60_000),
    "/tools/remember": ("content", {"session_id": "s"}, 60_000),
    "/tools/save_memory": ("content", {"db": "core", "category": "fact"}, 60_000),
    "/tools/memory_knowledge": ("content", {"action": "add", "scopeType": "global", "title": "long"}, 60_000),
}
# Texts that stopped the server for minutes.
SHAPES = (
    lambda size: "Please look at [a" + "/" * (size // 3) + ", " * (size // 3),
    lambda size: f"We changed [{', '.join(f'src/part/file{number}.py' for number in range(300))}] and its tests."[
        :size
    ],
    lambda size: ("<quipu-memories>" * 4000)[:size],
    lambda size: "a" + "\u0300\u0316" * ((size - 1) // 2),
)
_FACT: dict[str, Any] = {"category": "fact", "content": "x"}
_LONG = [{**_FACT, "content": '\\\n"' * 330_000}] * 2
_MEMORY = {"db": "core", **_FACT}
# Bodies of a few megabytes that were decoded for seconds: many values to mend, slow numbers, one run of escapes.
BODIES = {
    "numbers to mend": (
        "/tools/bulk_save_memories",
        {"db": "core", "memories": [*_LONG, *([{**_FACT, "importance": 5.0}] * 64)]},
    ),
    "objects to mend": (
        "/tools/bulk_save_memories",
        {"db": "core", "memories": [*_LONG, *([{**_FACT, "metadata": "{}"}] * 64)]},
    ),
    "large numbers": ("/tools/save_memory", {**_MEMORY, "metadata": {"long": ["@"] * 49_000}}),
    "an object in a text": ("/tools/save_memory", {**_MEMORY, "metadata": '{"a":[' + "{}," * 1_300_000 + "0]}"}),
    "large numbers in an import": (
        "/tools/memory_import",
        {"action": "import", "content": f'{{"more":[{",".join(["1e300"] * 49_000)}],"entries":{{}}}}'},
    ),
    "large numbers in observations": (
        "/tools/upsert_entity",
        {"name": "a", "observations_json": f"[{','.join(['1e300'] * 43_000)}]"},
    ),
    "large numbers in many texts": (
        "/tools/bulk_save_memories",
        {"db": "core", "memories": [{**_FACT, "metadata": f'{{"a":[{",".join(["1e300"] * 4_900)}]}}'}] * 64},
    ),
    "backslashes": ("/tools/save_memory", {**_MEMORY, "content": "\\" * 2_000_000}),
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path / "data", QUIPU_LIMIT_RATE=0, CODE_MEMORY_ENABLE_GRAPH=1) as running:
        yield running


class Probe(threading.Thread):
    """Asks for the health again and again on a connection of its own; `longest` is the longest wait in seconds."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._connection = HTTPConnection("127.0.0.1", port, timeout=60)
        self.begun, self.ended = threading.Event(), threading.Event()
        self.longest = 0.0
        self.waits = list[float]()

    def run(self) -> None:
        while not self.ended.wait(0.002 if self.waits else 0):
            begun = time.monotonic()
            self._connection.request("GET", "/healthz")
            assert self._connection.getresponse().read()
            self.waits.append(time.monotonic() - begun)
            self.begun.set()
        self.longest = max(self.waits)
        self._connection.close()


def test_a_probe_is_answered_at_once_whatever_text_another_client_sends(server: Server, catalogue: Catalogue) -> None:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
    probe = Probe(server.port)
    statuses = set[int]()
    sent, slowest = 0, 0.0

    def send(path: str, body: dict[str, Any]) -> None:
        connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        statuses.add(answer.status)

    for path, (field, more, _) in PLACES.items():  # modules are loaded at the first call
        send(path, {**more, field: "warm", **({"path": "a"} if path.endswith("add_memory") else {})})
    probe.start()
    probe.begun.wait(60)
    try:
        for path, (field, more, most) in PLACES.items():
            step = max(1, len([*texts()]) // TEXTS)
            for made in (*SHAPES, *islice(texts(), sent % step, None, step)):
                own = {"path": f"long/{sent}"} if path.endswith("add_memory") else {}
                begun = time.monotonic()
                send(path, {**more, **own, field: made(most)[:most]})
                slowest = max(slowest, time.monotonic() - begun)
                sent += 1
    finally:
        probe.ended.set()
        probe.join(60)
        connection.close()
    outcome = f"the longest wait of a probe {1000 * probe.longest:.0f} ms, of the call itself {1000 * slowest:.0f} ms"
    print(outcome)
    assert max(statuses) < 500
    assert probe.longest <= PAUSE, outcome
    catalogue("S11", injected="long texts by hooks and tools beside a probe", times=sent, outcome=outcome)


@pytest.mark.parametrize("name", BODIES)
def test_a_probe_is_answered_at_once_whatever_json_another_client_sends(server: Server, name: str) -> None:
    path, arguments = BODIES[name]
    body = json.dumps(arguments).replace('"@"', "1e300")
    connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
    probe = Probe(server.port)

    def send(text: str) -> int:
        connection.request("POST", path, text, {"content-type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        return answer.status

    send(json.dumps({"db": "core", "importance": None}))  # modules are loaded at the first call
    probe.start()
    probe.begun.wait(60)
    try:
        status = send(body)
    finally:
        probe.ended.set()
        probe.join(60)
        connection.close()
    assert status < 500
    assert probe.longest <= PAUSE, f"the longest wait of a probe {1000 * probe.longest:.0f} ms"


# A memory with a page that was laid out for seconds, and one with such parts beside its text.
PAGES: Mapping[str, dict[str, Any]] = {
    "a link after many brackets": {**_MEMORY, "content": "[" * 200_000 + "](x)"},
    "invisible characters": {**_MEMORY, "metadata": {"signs": "\u202e" * 1_200_000}},
}


@pytest.mark.parametrize("name", PAGES)
def test_a_probe_is_answered_at_once_while_a_long_memory_is_shown(server: Server, name: str) -> None:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
    probe = Probe(server.port)

    def ask(method: str, path: str, body: Mapping[str, Any] | None = None) -> bytes:
        content = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        connection.request(method, path, content, {"content-type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        assert answer.status == 200, content[:200]
        return content

    memory = f"brain:core/{json.loads(ask('POST', '/tools/save_memory', PAGES[name]))['id']}"
    ask("GET", "/ui/memory?id=" + memory)  # modules are loaded at the first call
    probe.start()
    probe.begun.wait(60)
    try:
        ask("GET", "/ui/memory?all=1&id=" + memory)
        ask("POST", "/memories/show?as=text", {"id": memory})
    finally:
        probe.ended.set()
        probe.join(60)
        connection.close()
    assert probe.longest <= PAUSE, f"the longest wait of a probe {1000 * probe.longest:.0f} ms"
