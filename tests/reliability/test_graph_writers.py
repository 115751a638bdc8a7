"""Several server processes on one store, as several clients start them, lose nothing that they answered."""

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.catalogue import Catalogue
from tests.reliability.server_process import ROOT

WRITERS, EACH = 4, 100
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


class Talk:
    """One `quipu stdio` with the dialect `graph`."""

    def __init__(self, data: Path) -> None:
        command = [sys.executable, "-m", "kernel", "stdio", "--dialect", "graph", "--data", str(data)]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ask("initialize", HELLO)

    def ask(self, method: str, params: object) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())["result"]

    def call(self, tool: str, arguments: object) -> Any:
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def close(self) -> None:
        self._process.communicate(timeout=60)


@pytest.mark.slow
def test_entities_that_four_processes_create_at_once_are_all_there(tmp_path: Path, catalogue: Catalogue) -> None:
    data, answered = tmp_path / "data", list[str]()
    Talk(data).close()
    talks = [Talk(data) for _ in range(WRITERS)]

    def write(talk: Talk, number: int) -> None:
        for one in range(EACH):
            name = f"{number}/{one}"
            entity = {"name": name, "entityType": "note", "observations": [f"written by {number}"]}
            if talk.call("create_entities", {"entities": [entity]})["structuredContent"] == {"entities": [entity]}:
                answered.append(name)

    threads = [threading.Thread(target=write, args=(talk, number)) for number, talk in enumerate(talks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for talk in talks:
        talk.close()
    last = Talk(data)
    stored = [one["name"] for one in last.call("read_graph", {})["structuredContent"]["entities"]]
    last.close()
    assert (len(answered), sorted(stored)) == (WRITERS * EACH, sorted(answered))
    outcome = f"{len(stored)} of {len(answered)} entities are there"
    catalogue("R22", injected=f"{WRITERS} processes write one graph at once", times=WRITERS * EACH, outcome=outcome)
