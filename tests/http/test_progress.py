"""An MCP client that asks to hears how far an import, a sync or a backup is; a terminal shows a bar."""

import asyncio
import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from tests.http.http_requests import MODERN
from tests.reliability.server_process import ROOT, Server, serving

COUNT = 300
EXPORT = json.dumps(
    {
        "version": "1.0",
        "entries": {
            "knowledge": [
                {
                    "id": f"know_{number}",
                    "scopeType": "global",
                    "title": f"Fact {number}",
                    "currentVersion": {"content": f"The number of room {number} is {number * 7}."},
                }
                for number in range(COUNT)
            ]
        },
    }
)
Steps = list[tuple[float, float | None]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    data = tmp_path_factory.mktemp("progress") / "data"
    files = data / "notes" / ".mnemonics" / "context"
    files.mkdir(parents=True)
    for number in range(COUNT):
        (files / f"fact-{number}.md").write_text(f"---\nmemory_type: context\n---\nRoom {number} is red.\n")
    with serving(data, QUIPU_MODEL="none") as running:
        yield running


def heard(target: Any, mode: str, tool: str, arguments: dict[str, Any]) -> Steps:
    """What a call reports on its way."""
    told: Steps = []

    async def step(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total))

    async def call() -> None:
        async with Client(target, mode=mode) as client:
            answer = await client.call_tool(tool, arguments, progress_callback=step)
            assert not answer.is_error, answer

    asyncio.run(call())
    return told


@pytest.mark.parametrize("mode", ["legacy", MODERN])
def test_a_client_hears_how_far_an_import_is(server: Server, mode: str) -> None:
    told = heard(f"http://127.0.0.1:{server.port}/mcp", mode, "memory_import", {"action": "import", "content": EXPORT})
    assert told[0] == (1, COUNT)
    assert told[-1] == (COUNT, COUNT)
    assert told == sorted(set(told))


def test_a_client_hears_how_far_a_backup_is(server: Server) -> None:
    reset = {"action": "reset", "confirm": True}
    told = heard(f"http://127.0.0.1:{server.port}/mcp", MODERN, "memory_init", reset)
    assert told[-1][0] == told[-1][1]


def test_a_client_hears_how_many_files_are_taken_in(server: Server) -> None:
    told = heard(f"http://127.0.0.1:{server.port}/mcp", MODERN, "memory_sync", {})
    assert told[-1] == (COUNT, COUNT)


def test_a_client_hears_of_it_over_a_pipe(tmp_path: Path) -> None:
    program = StdioServerParameters(
        command=sys.executable,
        args=["-m", "kernel", "stdio", "--data", str(tmp_path / "data")],
        cwd=str(ROOT),
        env={**os.environ, "QUIPU_MODEL": "none"},
    )
    told = heard(program, "legacy", "memory_import", {"action": "import", "content": EXPORT})
    assert told[-1] == (COUNT, COUNT)


@pytest.mark.parametrize("command", [["import", "memory-export", "FILE"], ["reindex"], ["backup", "COPY"]])
def test_a_terminal_shows_a_bar(command: list[str], tmp_path: Path) -> None:
    export, data, env = tmp_path / "export.json", tmp_path / "data", {**os.environ, "COLUMNS": "100"}
    export.write_text(EXPORT)

    def run(words: list[str], stderr: int) -> None:
        named = [{"FILE": str(export), "COPY": str(tmp_path / "copy.db")}.get(word, word) for word in words]
        program = [sys.executable, "-m", "kernel", *named, "--data", str(data)]
        subprocess.run(program, check=True, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=stderr)

    if command[0] != "import":
        run(["import", "memory-export", "FILE"], subprocess.DEVNULL)
    ours, theirs = pty.openpty()
    run(command, theirs)
    drawn = os.read(ours, 100_000).decode()
    os.close(theirs)
    os.close(ours)
    assert drawn.startswith(f"\r{command[0]} [")
    assert "#] 100% " in drawn
    assert drawn.endswith("\r\n")
