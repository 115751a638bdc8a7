"""Stores and calls larger than one value may be: they are cleared, purged, forgotten, undone, repaired and imported.

One value in the store is bounded by QUIPU_LIMIT_STORE_VALUE; the changes of a call, and the reads of a repair, are not.
LARGE_MIB is how much is stored: a little more than the smallest limit, and ten times the usual one in `make faults`.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.catalogue import Catalogue
from tests.reliability.server_process import ROOT, Client, Server, serving

LARGE_MIB = int(os.environ.get("LARGE_MIB", "36"))
LIMIT = (32 if LARGE_MIB < 64 else 64) << 20
BOUND = 200_000_000  # bytes of memory of its own that any of it may take
GROWTH = 70_000_000  # of a server, while it deletes everything
PATIENCE = 60 + LARGE_MIB  # seconds; one transaction deletes all of it, text by text
SETTINGS = {"QUIPU_LIMIT_STORE_VALUE": LIMIT, "QUIPU_LIMIT_RATE": 1_000_000, "QUIPU_LIMIT_BURST": 1_000_000}
WORD = "tide" * 250 + " "  # few words, which take less time than prose of the same size


def text(number: int) -> str:
    """A memory of nearly one MiB."""
    return f"Memory {number}. " + WORD * ((1_000_000 - 40) // len(WORD))


def quipu(data: Path, *arguments: str) -> tuple[int, str, int]:
    """Exit status, output and largest memory of its own of one command."""
    environment = {**os.environ, **{name: str(value) for name, value in SETTINGS.items()}}
    process = subprocess.Popen(
        [sys.executable, "-m", "kernel", *arguments, "--data", str(data)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with watched(process.pid) as most:
        output, _ = process.communicate(timeout=10 * PATIENCE)
    return process.returncode, output, most()


@contextmanager
def watched(pid: int) -> Iterator[Callable[[], int]]:
    """The most memory of its own that a process has had, in bytes."""
    seen, done = [0], threading.Event()

    def look() -> None:
        while not done.wait(0.02):
            try:
                lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
            except OSError:
                return
            seen[0] = max(seen[0], *(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon")), 0)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield lambda: seen[0]
    finally:
        done.set()
        thread.join()


def called(client: Client, tool: str, **arguments: Any) -> Any:
    status, answer = client.call(tool, **arguments)
    assert status == 200, answer
    return answer


def fill_paths(client: Client) -> None:
    for number in range(LARGE_MIB):
        called(client, "add_memory", path=f"p{number:04}", content=text(number))


def fill_sessions(client: Client) -> None:
    for number in range(LARGE_MIB):
        called(client, "remember", session_id="s", content=text(number))


def fill_notes(client: Client) -> list[str]:
    kept = {"memoryType": "context"}
    notes = ({**kept, "title": f"note {number:04}", "content": text(number)} for number in range(LARGE_MIB))
    return [called(client, "memory_remember", **note)["filePath"] for note in notes]


def forget(client: Client, paths: list[str]) -> None:
    assert called(client, "memory_forget", filePaths=paths)["deletedCount"] == LARGE_MIB


DELETIONS: dict[str, tuple[Callable[[Client], Any], Callable[[Client, Any], Any], str]] = {
    "clear_memory": (fill_paths, lambda client, _: called(client, "clear_memory"), "paths_memory"),
    "maintenance": (
        fill_sessions,
        lambda client, _: called(client, "maintenance", action="purge_all", confirm=True),
        "sessions_memory",
    ),
    "memory_forget": (fill_notes, forget, "notes_file"),
}


def rows(data: Path, table: str) -> int:
    db = apsw.Connection(str(data / "quipu.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        ((count,),) = db.execute(f"SELECT count(*) FROM {table}").fetchall()
        assert isinstance(count, int)
        return count
    finally:
        db.close()


@contextmanager
def bounded(server: Server) -> Iterator[Callable[[], int]]:
    before = server.memory
    with watched(server.process.pid) as most:
        yield most
    assert most() < before + GROWTH, f"{before / 1e6:.0f} MB grew to {most() / 1e6:.0f} MB"


@pytest.mark.parametrize("tool", DELETIONS)
def test_more_than_one_value_is_deleted_and_undone(tool: str, tmp_path: Path, catalogue: Catalogue) -> None:
    fill, delete, table = DELETIONS[tool]
    data = tmp_path / "data"
    with serving(data, **SETTINGS) as server:
        client = Client(server.port, PATIENCE)
        filled = fill(client)
        with bounded(server) as server_most:
            delete(client, filled)
        client.close()
        assert server.stop() == 0
    assert rows(data, table) == 0

    newest = json.loads(quipu(data, "audit", "--json", "--limit", "1")[1])
    status, output, most = quipu(data, "undo", str(newest["id"]))

    assert (status, output.splitlines()[-1]) == (0, "undone")
    assert most < BOUND, f"{most / 1e6:.0f} MB"
    assert rows(data, table) == LARGE_MIB
    assert quipu(data, "check")[:2] == (0, "ok\n")
    outcome = f"done with {server_most() / 1e6:.0f} MB, taken back with {most / 1e6:.0f} MB"
    catalogue("L01", injected=f"{tool} of {LARGE_MIB} MiB, then undo", times=1, outcome=outcome)


@pytest.mark.parametrize("command", [("check", "--repair"), ("reindex",)], ids=lambda command: command[0])
def test_an_index_of_more_than_one_value_is_built_again(
    command: tuple[str, ...], tmp_path: Path, catalogue: Catalogue
) -> None:
    data = tmp_path / "data"
    with serving(data, **SETTINGS) as server:
        client = Client(server.port)
        fill_paths(client)
        client.close()
        assert server.stop() == 0
    if command[0] == "check":
        db = apsw.Connection(str(data / "quipu.db"))
        db.execute("DELETE FROM doc")
        db.close()

    begun = time.monotonic()
    _status, output, most = quipu(data, *command)

    assert most < BOUND, f"{most / 1e6:.0f} MB"
    assert "Traceback" not in output
    assert quipu(data, "check")[:2] == (0, "ok\n"), output
    outcome = f"built again in {time.monotonic() - begun:.0f} s with {most / 1e6:.0f} MB"
    catalogue("L02", injected=f"{' '.join(command)} of {LARGE_MIB} MiB", times=1, outcome=outcome)


def test_a_document_of_more_than_one_value_is_imported(tmp_path: Path, catalogue: Catalogue) -> None:
    data, file = tmp_path / "data", tmp_path / "export.json"
    entries = LARGE_MIB * 100
    with file.open("w", encoding="utf-8") as out:
        out.write('{"entries":{"guidelines":[')
        for number in range(entries):
            held = {"id": f"g{number}", "name": f"rule {number}", "content": f"{number} " + WORD * 10}
            out.write(("," if number else "") + json.dumps(held))
        out.write("]}}")
    assert file.stat().st_size > LARGE_MIB * 1_000_000

    status, output, most = quipu(data, "import", "memory-export", str(file))

    assert (status, output.splitlines()[-4:-1]) == (0, [f"created: {entries}", "updated: 0", "skipped: 0"])
    assert most < BOUND, f"{most / 1e6:.0f} MB"
    catalogue("L03", injected=f"an import of {LARGE_MIB} MiB", times=1, outcome=f"done with {most / 1e6:.0f} MB")
