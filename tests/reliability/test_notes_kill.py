"""A process killed at any step of writing a memory loses none: the next recall finds each of them.

A process is forked for each step of a call and killed, by SIGKILL, before that step: a call of the operating system on
a file, or the commit of a transaction. A server and `quipu undo` are killed at random moments over a thousand files,
NOTES_KILL_ROUNDS times (2), while an outside ledger has the content of each file.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from kernel.core.config import Config
from kernel.engines.sqlite.connection import Connection
from kernel.operations.undo import undo
from kernel.server import app
from kernel.store import audit
from kernel.store.context import CallContext
from tests.catalogue import Catalogue
from tests.conftest import Call
from tests.reliability.notes_ledger import TYPES, Ledger, NotesWriter, on_disk
from tests.reliability.server_process import PATIENCE, ROOT, Client, Countdown, disagreements, serving
from tests.unit.handlers.notes.conftest import put

OLD, NEW, OTHER = "the old words", "the new words", "somebody else"

FORKING = """
import asyncio, os, shutil, signal, sys
from pathlib import Path
from kernel.server import app
from kernel.core.config import Config
from kernel.security.permissions import ANONYMOUS_CALLER
from kernel.engines.sqlite.connection import Connection
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
    """Return the contents that every way of recall finds, sorted."""
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


ROUNDS = int(os.environ.get("NOTES_KILL_ROUNDS", "2"))
WRITERS, FILES, UNDONE = 4, 1000, 4


def test_no_file_is_lost_half_written_or_back_again_when_the_server_is_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], catalogue: Catalogue
) -> None:
    data = tmp_path / "data"
    folder = data / "notes" / ".mnemonics"
    for number in range(FILES):
        kind = TYPES[number % 3]
        text = f"---\nmemory_type: {kind}\n---\n\nwords {number}\n"
        put(folder, f"{kind}/w{number % WRITERS}-{number}.md", text)
    ledger, chance, undone = Ledger(folder), random.Random(), 0
    table = ["round  answered  in doubt  made  undone  undo killed"]
    for number in range(ROUNDS):
        row = one_round(data, ledger, chance)
        undone += row[3]
        table.append(f"{number:5} {row[0]:9} {row[1]:9} {row[2]:5} {row[3]:7}  {row[4]}")
    staged = list(folder.rglob(".quipu_*"))
    assert len(staged) <= 13 * ROUNDS  # the stages of a killed call; a recall deletes it an hour later
    outcome = f"{len(ledger.states):,} files, {undone} calls undone: none lost, half or back"
    catalogue("R01", injected="kill -9 under 4 writers of notes", times=ROUNDS, outcome=outcome)
    with capsys.disabled():
        print("", *table, outcome, f"{len(staged)} staged files left", sep="\n")


def one_round(data: Path, ledger: Ledger, chance: random.Random) -> tuple[int, int, int, int, str]:
    """Writes until the server is killed, and compares the files with the answers; then undoes the last calls."""
    before = sum(map(len, ledger.states.values()))
    with serving(data) as server:
        recalled(server.port)
        countdown = Countdown(chance.randrange(5, 60))
        seeds = (chance.randrange(1 << 30) for _ in range(WRITERS))
        writers = [NotesWriter(server.port, f"w{name}", ledger, seed, countdown) for name, seed in enumerate(seeds)]
        for writer in writers:
            writer.start()
        assert countdown.done.wait(PATIENCE)
        Event().wait(chance.random() * 0.03)
        server.kill()
    for writer in writers:
        writer.join(PATIENCE)
    assert [error for writer in writers for error in writer.errors] == []
    doubts = [writer.doubt for writer in writers if writer.doubt]
    touched = {path for step in doubts for path in (*step.deleted, *step.written)}
    left = on_disk(ledger.folder)
    assert {path: left[path] for path in left.keys() - touched} == ledger.expected(touched)
    answered = sum(map(len, ledger.states.values())) - before

    with serving(data) as server:
        recalled(server.port)
        made = sum([ledger.settle(step) for step in doubts])
        assert on_disk(ledger.folder) == ledger.expected()
        undone = undo_last(data, ledger, server.port)
        killed = undo_killed(data, ledger, server.port, chance)
    assert disagreements(data) == []
    return answered, len(doubts), made, undone, killed


def recalled(port: int) -> None:
    """Recalls everything, as the next call after a crash."""
    client = Client(port)
    status, _ = client.call("memory_recall", isAll=True, limit=1)
    client.close()
    assert status == 200


def calls(data: Path, count: int) -> list[audit.Entry]:
    """The last calls that can be undone, newest first."""
    db = Connection(data / "quipu.db", app.base_context(None), readonly=True)
    found = db.read(CallContext(), lambda tx: audit.read(tx, 100))
    db.close()
    return [entry for entry in found if entry.undoable][:count]


def undo_last(data: Path, ledger: Ledger, port: int) -> int:
    """Undoes the last calls, newest first; every file must be as it was before each of them."""
    entries = calls(data, UNDONE)
    context = app.context_of(Config(data=data))
    for entry in entries:
        undo(data / "quipu.db", context, app.DIALECTS, entry.id)
        ledger.undo([key for _, key, _ in audit.targets(entry)])
        assert on_disk(ledger.folder) == ledger.expected(), entry
    recalled(port)
    assert on_disk(ledger.folder) == ledger.expected()
    return len(entries)


def undoing(data: Path, number: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "kernel", "undo", str(number), "--data", str(data)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def undo_killed(data: Path, ledger: Ledger, port: int, chance: random.Random) -> str:
    """Kills the undo of the last call; afterwards every file is as it was before the undo, or as before the call."""
    (entry,) = calls(data, 1)
    process = undoing(data, entry.id)
    begun = time.monotonic()
    undoing(data, 0).wait(PATIENCE)  # there is no call 0: this takes as long as the start of the other server
    Event().wait(chance.uniform(-0.2, 0.5) * (time.monotonic() - begun))
    process.kill()
    process.wait(PATIENCE)
    recalled(port)
    (last,) = calls(data, 1)
    if last.id != entry.id:
        ledger.undo([key for _, key, _ in audit.targets(entry)])
    assert on_disk(ledger.folder) == ledger.expected(), entry
    return "not done" if last.id == entry.id else "done"
