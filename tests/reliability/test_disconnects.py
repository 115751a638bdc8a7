"""Who leaves in the middle of a call, at any moment, takes nothing with him: the call is done whole or not at all, and
the server keeps neither his connection nor a lock for him.

LEAVING sets how many calls are left.
"""

import json
import os
import random
import socket
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.catalogue import Catalogue
from tests.reliability.server_process import Client, Server, disagreements, memories, serving, until

LEAVING = int(os.environ.get("LEAVING", "90"))
ADDRESSES = ("/tools/add_memory", "/mcp", "/mcp stream")


def request(address: str, path: str, content: str) -> bytes:
    """The bytes of a call that adds a memory, as plain JSON or as MCP with an answer in one piece or as a stream."""
    arguments = {"path": path, "content": content}
    body: object = arguments
    accept = "application/json"
    if address.startswith("/mcp"):
        about = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
        params = {"name": "add_memory", "arguments": arguments, "_meta": about}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        accept = "text/event-stream, application/json" if address.endswith("stream") else "application/json"
    text = json.dumps(body).encode()
    head = (
        f"POST {address.removesuffix(' stream')} HTTP/1.1\r\nhost: localhost\r\naccept: {accept}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(text)}\r\n\r\n"
    )
    return head.encode() + text


def sockets(server: Server) -> int:
    """How many sockets the server has open; files it opens when it needs them, such as for folding a long log."""
    held = Path(f"/proc/{server.process.pid}/fd")
    names: list[str] = []
    for entry in held.iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            names.append(str(entry.readlink()))
    return sum(name.startswith("socket:") for name in names)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open descriptors are counted in /proc")
def test_who_leaves_in_the_middle_of_a_call_leaves_nothing_half_done(tmp_path: Path, catalogue: Catalogue) -> None:
    chance = random.Random()
    sent: dict[str, str] = {}
    whole: set[str] = set()
    with serving(tmp_path / "data") as server:
        client = Client(server.port)
        assert client.call("add_memory", path="first", content="x")[0] == 200
        before = sockets(server)
        for number in range(LEAVING):
            path, content = f"left/{number:04}", "many words " * chance.randrange(1, 3000)
            data = request(ADDRESSES[number % len(ADDRESSES)], path, content)
            cut = len(data) if chance.random() < 0.6 else chance.randrange(len(data))
            sent[path] = content
            with socket.create_connection(("127.0.0.1", server.port)) as leaving:
                leaving.sendall(data[:cut])
                if cut == len(data):
                    whole.add(path)
                    time.sleep(chance.choice((0, 0, 0.001, 0.005, 0.02)))
                if chance.random() < 0.5:  # gone with a reset instead of an end
                    leaving.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        assert client.call("add_memory", path="last", content="still served")[0] == 200
        until(lambda: sockets(server) <= before, "connections of those who left")
        client.close()
        log = server.log()
    there = memories(tmp_path / "data")
    assert set(there) - {"first", "last"} <= whole
    assert all(there[path] == sent[path] for path in there if path in sent)
    assert disagreements(tmp_path / "data") == []
    assert "Traceback" not in log
    outcome = f"{len(there) - 2} done whole, {LEAVING - len(there) + 2} not at all, no connection kept"
    catalogue("R26", injected="connections closed in the middle of a call", times=LEAVING, outcome=outcome)
