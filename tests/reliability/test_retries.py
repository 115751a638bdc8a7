"""Writes that are retried under kill -9 until they are answered are stored once each."""

import http.client
import json
import random
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.catalogue import Catalogue
from tests.reliability.server_process import LOST, Server

WRITES, WRITERS, KILLS = 1000, 8, 8
DOORS = ("rest", "mcp", "command")
JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


def request(door: str, number: int) -> tuple[str, bytes, dict[str, str]]:
    """Path, body and headers of one write by one of the doors."""
    key = f"write-{number}"
    fact: dict[str, Any] = {"db": "core", "content": f"Fact number {number} of the ledger.", "category": "fact"}
    if door == "rest":
        return "/tools/save_memory", json.dumps(fact).encode(), {**JSON, "idempotency-key": key}
    if door == "command":
        return "/memories/add", json.dumps({"text": fact["content"]}).encode(), {**JSON, "idempotency-key": key}
    params = {"name": "save_memory", "arguments": fact, "_meta": {"idempotencyKey": key}}
    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    return "/mcp", json.dumps(message).encode(), JSON


class Lives:
    """A server that is killed and started again; the port stays."""

    def __init__(self, data: Path) -> None:
        self.data, self.server = data, Server(data)

    def send(self, path: str, body: bytes, headers: dict[str, str]) -> bytes | None:
        """The body of a success; None if the answer was lost."""
        try:
            with closing(http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)) as line:
                line.request("POST", path, body, headers)
                answer = line.getresponse()
                said = answer.read()
        except LOST:
            return None
        assert answer.status in {200, 503}, said
        return said if answer.status == 200 else None

    def kill(self) -> None:
        self.server.kill()
        self.server = Server(self.data)


def insist(lives: Lives, pending: list[int], differing: list[tuple[bytes, bytes]]) -> None:
    """Sends each write until it is answered, and once more."""
    while pending:
        whole = request(DOORS[pending[-1] % 3], pending.pop())
        answers: list[bytes] = []
        while len(answers) < 2:
            answer = lives.send(*whole)
            if answer is None:
                time.sleep(0.02)
            else:
                answers.append(answer)
        if answers[0] != answers[1]:
            differing.append((answers[0], answers[1]))


def test_a_thousand_retried_writes_are_a_thousand_memories(tmp_path: Path, catalogue: Catalogue) -> None:
    lives, chance, differing = Lives(tmp_path / "data"), random.Random(7), list[tuple[bytes, bytes]]()
    shares = [[*range(writer, WRITES, WRITERS)] for writer in range(WRITERS)]
    writers = [threading.Thread(target=insist, args=(lives, share, differing), daemon=True) for share in shares]
    try:
        for writer in writers:
            writer.start()
        for _ in range(KILLS):
            time.sleep(chance.uniform(0.1, 0.6))
            lives.kill()
        for writer in writers:
            writer.join(120)
    finally:
        lives.server.kill()
    with closing(sqlite3.connect(tmp_path / "data" / "quipu.db")) as db:
        texts = [*db.execute("SELECT content FROM brain_memory UNION ALL SELECT content FROM paths_memory")]
    assert (len(texts), len({*texts}), differing) == (WRITES, WRITES, [])
    catalogue("R01", injected="kill -9 under retried writes", times=KILLS, outcome=f"{WRITES} writes, none twice")
