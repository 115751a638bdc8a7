"""A copy taken under load, an export brought in elsewhere and a migration that is killed hold all of it or nothing.

BACKUPS sets how many copies are taken, EXPORTED how many entries make the journey, and KILLED_EVERY at which statements
of a migration its process is killed.
"""

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernel.calls.dispatch import Dispatch
from kernel.cli.main import main
from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.engines.migrations import migrate
from kernel.engines.sqlite.connection import Connection
from kernel.server import app
from kernel.store.context import StoreContext
from kernel.store.statements import ROOT as SQL
from tests.catalogue import Catalogue
from tests.conftest import Call
from tests.reliability.server_process import ROOT, Client, disagreements, memories, serving
from tests.reliability.write_scenario import told

BACKUPS = int(os.environ.get("BACKUPS", "1"))
EXPORTED = int(os.environ.get("EXPORTED", "80"))
WRITERS = 8
KILLED_EVERY = int(os.environ.get("KILLED_EVERY", "9"))


class Adding(threading.Thread):
    """Adds memories one after the other; when each was asked for and answered."""

    def __init__(self, port: int, name: str) -> None:
        super().__init__(daemon=True)
        self.told: list[tuple[float, float]] = []
        self.refused: list[int] = []
        self.stopping = threading.Event()
        self.going = threading.Event()
        self.going.set()
        self._port, self._name = port, name

    def run(self) -> None:
        client = Client(self._port)
        while self.going.wait() and not self.stopping.is_set():
            begun = time.monotonic()
            status, _ = client.call("add_memory", path=f"{self._name}/{len(self.told):05}", content="cord " * 50)
            if status != 200:
                self.refused.append(status)
                break
            self.told.append((begun, time.monotonic()))
        client.close()


def test_a_backup_under_load_is_what_had_been_answered_at_one_moment(tmp_path: Path, catalogue: Catalogue) -> None:
    held = 0
    with serving(tmp_path / "data") as server:
        writers = [Adding(server.port, f"w{number}") for number in range(WRITERS)]
        for writer in writers:
            writer.start()
        for number in range(BACKUPS):
            for writer in writers:
                writer.going.set()
            time.sleep(0.3)
            copy = tmp_path / f"copy{number}"
            copy.mkdir()
            begun = time.monotonic()
            command = [sys.executable, "-m", "kernel", "backup", str(copy / "quipu.db"), "--data", str(server.data)]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
            ended = time.monotonic()
            for writer in writers:  # or every look at a copy would take longer than the one before
                writer.going.clear()
            assert done.returncode == 0, done.stderr
            there = memories(copy)
            held += len(there)
            for at, writer in enumerate(writers):
                told = list(writer.told)
                mine = sorted(path for path in there if path.startswith(f"w{at}/"))
                assert mine == [f"w{at}/{nth:05}" for nth in range(len(mine))]  # nothing in between is missing
                assert len(mine) >= sum(answered < begun for _, answered in told)
                assert len(mine) <= sum(asked < ended for asked, _ in told) + 1
            assert disagreements(copy) == []
        for writer in writers:
            writer.stopping.set()
            writer.going.set()
        for writer in writers:
            writer.join()
    assert [writer.refused for writer in writers] == [[]] * WRITERS
    with serving(tmp_path / "copy0") as restored:
        client = Client(restored.port)
        assert client.call("add_memory", path="after", content="goes on")[0] == 200
        client.close()
    outcome = f"{held:,} memories, each copy a moment of the ledger, sound and served"
    catalogue("R19", injected=f"backup under {WRITERS} writers", times=BACKUPS, outcome=outcome)


def exported(call: Call, shape: str) -> str:
    """All entries with all of their versions as text, less the time of the export."""
    reply = call("memory_export", action="export", format=shape, includeVersions=True, includeInactive=True)
    said = told(reply)
    return said["content"].replace(said["metadata"]["exportedAt"], "")


@pytest.mark.parametrize("shape", ["json", "yaml"])
def test_what_is_exported_comes_back_as_it_was_however_often(
    tmp_path: Path, call: Call, caller: Callable[[Dispatch], Call], shape: str, catalogue: Catalogue
) -> None:
    words = ["plain", "日本語", "naïve café", "one \u0001", "\U0001f9f6 cord", "line\nbreak", "- x: 'y'", '"quoted"']
    count = min(EXPORTED, 2000) if shape == "yaml" else EXPORTED
    for number in range(count):
        entry = {"title": f"entry {number}", "content": f"{words[number % len(words)]} {number}"}
        assert call("memory_knowledge", action="add", scopeType="global", **entry).fault is None
    whole = exported(call, shape)
    file, data = tmp_path / f"export.{shape}", tmp_path / "there"
    with file.open("w", encoding="utf-8", newline="") as opened:
        opened.write(told(call("memory_export", action="export", format=shape, includeVersions=True))["content"])
    for _ in range(2):
        assert main(["import", "memory-export", str(file), "--data", str(data)]) == 0
        there = app.open_kernel(Config(data=data))
        assert exported(caller(there.dispatch), shape) == whole
        there.store.close()
    assert disagreements(data) == []
    catalogue("R20", injected=f"entries as {shape}, brought in twice", times=count, outcome="equal byte for byte")


KILLING = """
import os, shutil, signal, sys
from pathlib import Path
from kernel.engines.migrations import migrate
from kernel.engines.sqlite.connection import Connection
from kernel.store.context import StoreContext

base, root = Path(sys.argv[1]), Path(sys.argv[2])

def run(folder, point):
    db = Connection(folder / "quipu.db", StoreContext({}), readonly=False)
    count = 0

    def step(*_):
        nonlocal count
        count += 1
        if count == point:
            os.kill(os.getpid(), signal.SIGKILL)
        return True

    db._db.exec_trace = step
    migrate(db, root)
    os._exit(0)

for point in range(1, 1000, int(sys.argv[3])):
    folder = base / f"{point:03}"
    shutil.copytree(base / "before", folder)
    child = os.fork()
    if child == 0:
        run(folder, point)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
        print(point)
        sys.exit(0)
"""
REBUILD = """
CREATE TABLE paths_new (path TEXT PRIMARY KEY, content TEXT NOT NULL, size INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO paths_new (path, content, size) SELECT path, content, content_size FROM paths_memory;
DROP TABLE paths_memory;
ALTER TABLE paths_new RENAME TO paths_memory;
CREATE INDEX paths_memory_by_size ON paths_memory (size);
UPDATE paths_memory SET size = size + 0;
"""


def contents(db: Connection) -> list[tuple[Any, ...]]:
    """Return the parts that are the same under every schema."""
    return db.values("SELECT path, content FROM paths_memory ORDER BY path")


@pytest.mark.parametrize("start", ["an early schema", "the newest schema"])
def test_a_migration_killed_at_any_statement_leaves_the_old_schema_or_the_new_with_every_row(
    tmp_path: Path, start: str, catalogue: Catalogue
) -> None:
    early, late = tmp_path / "early", tmp_path / "late"
    for root in (early, late):
        shutil.copytree(SQL / "schema", root / "schema")
    files = sorted((early / "schema").glob("*.sql"))
    if start == "an early schema":
        for file in files[2:]:
            file.unlink()
    else:
        (late / "schema" / "9999_rebuild.sql").write_text(REBUILD, encoding="utf-8")
    before = tmp_path / "images" / "before"
    before.mkdir(parents=True)
    db = Connection(before / "quipu.db", StoreContext({}), readonly=False)
    migrate(db, early)
    insert = "INSERT INTO paths_memory (path, content, content_size, created_at, updated_at) VALUES (?, ?, 9, 'a', 'b')"
    with db.writing():
        for number in range(1000):
            db._db.execute(insert, (f"m/{number:04}", f"content of {number} " * 20))
    wanted, old = contents(db), db.pragma("user_version")
    db.close()
    command = [sys.executable, "-c", KILLING, str(tmp_path / "images"), str(late), str(KILLED_EVERY)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    refused = ", going back refused" if start == "the newest schema" else ""
    points, seen = range(1, int(done.stdout), KILLED_EVERY), set[int]()
    new = len(list((late / "schema").glob("*.sql")))
    for point in points:
        db = Connection(tmp_path / "images" / f"{point:03}" / "quipu.db", StoreContext({}), readonly=False)
        seen.add(db.pragma("user_version"))
        assert contents(db) == wanted
        assert db.integrity_errors() == []
        migrate(db, late)
        assert (db.pragma("user_version"), contents(db)) == (new, wanted)
        if refused:
            with pytest.raises(Fault, match="newer than this program"):
                migrate(db, early)
            with pytest.raises(Fault, match="newer than this program"):
                app.open_kernel(Config(data=tmp_path / "images" / f"{point:03}", model=None))
        db.close()
    assert old in seen
    assert seen <= set(range(old, new + 1))
    assert len(points) * KILLED_EVERY > 15
    outcome = f"a whole schema each time ({len(seen)} of them), 1,000 rows kept{refused}"
    catalogue("R18", injected=f"migration killed at each statement, from {start}", times=len(points), outcome=outcome)
