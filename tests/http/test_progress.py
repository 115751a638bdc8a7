"""Progress of imports, syncs and backups: as notifications for MCP clients, as a bar in a terminal."""

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


def progress_of(target: Any, mode: str, tool: str, arguments: dict[str, Any]) -> Steps:
    """Return the progress reports of a call."""
    steps: Steps = []

    async def step(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total))

    async def call() -> None:
        async with Client(target, mode=mode) as client:
            answer = await client.call_tool(tool, arguments, progress_callback=step)
            assert not answer.is_error, answer

    asyncio.run(call())
    return steps


@pytest.mark.parametrize("mode", ["legacy", MODERN])
def test_import_reports_progress(server: Server, mode: str) -> None:
    steps = progress_of(
        f"http://127.0.0.1:{server.port}/mcp", mode, "memory_import", {"action": "import", "content": EXPORT}
    )
    assert steps[0] == (1, COUNT)
    assert steps[-1] == (COUNT, COUNT)
    assert steps == sorted(set(steps))


def test_backup_reports_progress(server: Server) -> None:
    reset = {"action": "reset", "confirm": True}
    steps = progress_of(f"http://127.0.0.1:{server.port}/mcp", MODERN, "memory_init", reset)
    assert steps[-1][0] == steps[-1][1]


def test_sync_reports_progress(server: Server) -> None:
    steps = progress_of(f"http://127.0.0.1:{server.port}/mcp", MODERN, "memory_sync", {})
    assert steps[-1] == (COUNT, COUNT)


def test_progress_is_reported_over_stdio(tmp_path: Path) -> None:
    program = StdioServerParameters(
        command=sys.executable,
        args=["-m", "kernel", "stdio", "--data", str(tmp_path / "data")],
        cwd=str(ROOT),
        env={**os.environ, "QUIPU_MODEL": "none"},
    )
    steps = progress_of(program, "legacy", "memory_import", {"action": "import", "content": EXPORT})
    assert steps[-1] == (COUNT, COUNT)


@pytest.mark.parametrize("command", [["import", "memory-export", "FILE"], ["reindex"], ["backup", "COPY"]])
def test_terminal_shows_a_progress_bar(command: list[str], tmp_path: Path) -> None:
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
