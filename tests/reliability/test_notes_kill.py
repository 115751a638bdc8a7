"""A process killed at any step of writing a memory loses none: the next recall finds each of them.

A process is forked for each step of a call and killed, by SIGKILL, before that step: a call of the operating system on
a file, or the commit of the transaction around it.
"""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernel import app
from kernel.config import Config
from tests.catalogue import Catalogue
from tests.conftest import Call
from tests.reliability.server_process import ROOT
from tests.unit.handlers.notes.conftest import put

OLD, NEW, OTHER = "the old words", "the new words", "somebody else"

FORKING = """
import asyncio, os, shutil, signal, sys
from pathlib import Path
from kernel import app
from kernel.config import Config
from kernel.security.permissions import ANONYMOUS_CALLER
from kernel.store.sqlite.connection import Connection
from kernel.store.transaction import Tx

STEPS = ("mkdir", "open", "write", "fsync", "link", "unlink", "replace")
base, tool, arguments = Path(sys.argv[1]), sys.argv[2], sys.argv[3].encode()

def arm(point):
    count = 0

    def counted(call):
        def step(*args, **more):
            nonlocal count
            count += 1
            if count == point:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **more)
        return step

    for name in STEPS:
        setattr(os, name, counted(getattr(os, name)))
    Connection.commit = counted(Connection.commit)
    Tx.flush_deferred = counted(Tx.flush_deferred)

def run(data, point):
    kernel = app.open_kernel(Config(data=data))
    arm(point)
    reply = asyncio.run(kernel.dispatch.call(kernel.dispatch.tools[tool], arguments, ANONYMOUS_CALLER))
    os._exit(0 if reply.fault is None else 1)

for point in range(1, 100):
    data = base / str(point)
    shutil.copytree(base / "0", data)
    child = os.fork()
    if not child:
        run(data, point)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
    if status == 0:
        break
"""


def killed(base: Path, tool: str, arguments: dict[str, Any]) -> list[int]:
    """How the call ended when it was to die at its first step, its second, and so on until it had fewer."""
    command = [sys.executable, "-c", FORKING, str(base), tool, json.dumps(arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return [int(line) for line in done.stdout.split()]


def found(call: Call) -> dict[str, list[str]]:
    """What every way of recalling finds: contents, sorted."""
    ways: dict[str, dict[str, Any]] = {
        "all": {"isAll": True},
        "words": {"query": "words somebody", "type": "search"},
        "meaning": {"query": "old new words somebody else"},
    }
    shown: dict[str, list[str]] = {}
    for way, arguments in ways.items():
        reply = call("memory_recall", **arguments)
        assert reply.fault is None, reply.body
        shown[way] = sorted(memory["content"] for memory in json.loads(reply.body)["memories"])
    return shown


CALLS: dict[str, tuple[str, dict[str, Any], list[list[str]]]] = {
    "create": (
        "memory_remember",
        {"title": "New one", "content": NEW, "memoryType": "learning"},
        [[OTHER, OLD], [OTHER, NEW, OLD]],
    ),
    "update": (
        "memory_remember",
        {"title": "x", "content": NEW, "memoryType": "issue", "filePath": "issue/old.md"},
        [[OTHER, OLD], [OTHER, NEW]],
    ),
    "move": (
        "memory_remember",
        {"title": "x", "content": NEW, "memoryType": "learning", "filePath": "issue/old.md"},
        [[OTHER, OLD], [OTHER, NEW], [OTHER, NEW, NEW]],  # for a moment a file has both its names
    ),
    "forget": ("memory_forget", {"filePaths": ["issue/old.md"]}, [[OTHER, OLD], [OTHER]]),
}


@pytest.mark.parametrize("name", CALLS)
def test_no_memory_is_lost_wherever_its_writer_is_killed(
    name: str, tmp_path: Path, caller: Any, catalogue: Catalogue
) -> None:
    tool, arguments, allowed = CALLS[name]
    template = tmp_path / "0"
    for path, content in (("issue/old.md", OLD), ("issue/other.md", OTHER)):
        put(template / "notes" / ".mnemonics", path, f"---\nmemory_type: issue\n---\n\n{content}\n")
    kernel = app.open_kernel(Config(data=template))
    assert found(caller(kernel.dispatch))["all"] == allowed[0]
    kernel.store.close()
    deaths = killed(tmp_path, tool, arguments)
    assert deaths == [-signal.SIGKILL] * (len(deaths) - 1) + [0]

    outcomes: list[list[str]] = []
    for point in range(1, len(deaths) + 1):
        kernel = app.open_kernel(Config(data=tmp_path / str(point)))
        shown = found(caller(kernel.dispatch))
        kernel.store.close()
        assert shown["all"] in allowed, (point, shown)
        assert shown["words"] == shown["meaning"] == shown["all"], (point, shown)
        outcomes.append(shown["all"])
    assert len(outcomes) > 5
    assert outcomes[0] == allowed[0]
    assert outcomes[-1] == allowed[1]
    # Once the new state is reached no later death brings the old one back.
    assert sorted(outcomes, key=lambda state: state != allowed[0]) == outcomes
    assert outcomes.index(allowed[1]) < len(outcomes) - 1
    told = "the old or the new, found by all"
    catalogue("R01", injected=f"kill -9 within a call on files: {name}", times=len(outcomes), outcome=told)
