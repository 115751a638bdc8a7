"""Litestream and the shell of SQLite read, write and checkpoint the file beside the server, and all three are killed.

FOREIGN_ROUNDS sets how often they are (2 by default), FOREIGN_SECONDS how long they run at most before (4).
"""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.catalogue import Catalogue
from tests.reliability.server_process import (
    PATIENCE,
    ROOT,
    Client,
    Content,
    Ledger,
    Writer,
    disagreements,
    finish,
    memories,
    serving,
    until,
)

ROUNDS = int(os.environ.get("FOREIGN_ROUNDS", "2"))
SECONDS = float(os.environ.get("FOREIGN_SECONDS", "4"))
WRITERS = 4
LITESTREAM = ROOT / ".venv-litestream" / "bin" / "litestream"
SYNCS = 2  # the next one may have begun before the moment that is looked at, the one after it did not
# A program with another library of SQLite that opens, reads, writes, folds the log, and closes, again and again.
STATEMENTS = """
PRAGMA busy_timeout = 200;
SELECT count(*), max(length(content)) FROM paths_memory;
CREATE TABLE IF NOT EXISTS theirs (id INTEGER PRIMARY KEY, at TEXT);
INSERT INTO theirs (at) VALUES (datetime('now'));
PRAGMA wal_checkpoint(TRUNCATE);
"""
WITHOUT_SHELL = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
for statement in sys.stdin.read().split(";"):
    try:
        db.execute(statement).fetchall()
    except sqlite3.OperationalError:
        pass
"""
STAND_IN = """
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA busy_timeout = 1000")
while True:
    db.execute("BEGIN")
    db.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    time.sleep(0.5)
    db.execute("ROLLBACK")
    db.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
"""


class Shell(threading.Thread):
    """Runs the shell of SQLite over the file until it is stopped; `runs` counts how often it ended by itself."""

    def __init__(self, file: Path) -> None:
        super().__init__(daemon=True)
        self.runs = 0
        self._file = file
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._process: subprocess.Popen[str] | None = None

    def run(self) -> None:
        shell = shutil.which("sqlite3")
        command = [shell, str(self._file)] if shell else [sys.executable, "-c", WITHOUT_SHELL, str(self._file)]
        while True:
            with self._lock:
                if self._stopping.is_set():
                    return
                pipe = subprocess.PIPE
                self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
            self._process.communicate(STATEMENTS, timeout=PATIENCE)
            self.runs += self._process.returncode != -signal.SIGKILL
            self._stopping.wait(0.1)

    def kill(self) -> None:
        """kill -9, and no further run."""
        with self._lock:
            self._stopping.set()
            if self._process is not None:
                self._process.kill()
        self.join(PATIENCE)


class Recorded(Writer):
    """A writer that keeps every state of a path that was answered, in order."""

    def __init__(self, port: int, name: str, seed: int, states: dict[str, list[Content]]) -> None:
        super().__init__(port, name, seed, lambda: None)
        self._states = states

    def ended(self, path: str, content: Content) -> None:
        self._states[path].append(content)


class Replication:
    """Litestream with the configuration of the documentation, or a program that checkpoints as it does."""

    def __init__(self, data: Path, copy: Path) -> None:
        self.copy = copy
        self._config = copy.with_suffix(".yml")
        page = (ROOT / "docs" / "backup.md").read_text(encoding="utf-8")
        (text,) = re.findall(r"```text\n# litestream\.yml\n(.*?)```", page, re.DOTALL)
        text = text.replace("/srv/quipu/quipu.db", str(data / "quipu.db")).replace("/mnt/copies/quipu", str(copy))
        self._config.write_text(text, encoding="utf-8")

    @contextmanager
    def running(self) -> Iterator["subprocess.Popen[bytes]"]:
        """The process, gone at the end of the block."""
        command = [sys.executable, "-c", STAND_IN, str(self.file)]
        if LITESTREAM.exists():
            command = [str(LITESTREAM), "replicate", "-config", str(self._config)]
        with self.copy.with_suffix(".log").open("ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.kill()
            process.wait(PATIENCE)

    @property
    def file(self) -> Path:
        """The file that is replicated."""
        return Path(re.findall(r"path: (\S+)", self._config.read_text(encoding="utf-8"))[0])

    def read(self) -> int:
        """The number of the last change that Litestream has read from the file."""
        return last_change(self.file.with_name(f".{self.file.name}-litestream"))

    def sync(self) -> None:
        """Waits until all that is answered by now is in the copy."""
        wanted = self.read() + SYNCS
        until(lambda: last_change(self.copy) >= wanted, "Litestream has synced")

    def restore(self, target: Path) -> None:
        """Puts the copy into an empty folder."""
        target.mkdir()
        command = [LITESTREAM, "restore", "-config", self._config, "-o", target / "quipu.db", self.file]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stderr


def test_no_answered_write_is_lost_beside_litestream_and_the_shell_that_are_killed_with_the_server(
    tmp_path: Path, catalogue: Catalogue
) -> None:
    chance, data, ledger = random.Random(), tmp_path / "data", Ledger()
    replication, states = Replication(data, tmp_path / "copy"), defaultdict[str, list[Content]](list)
    runs = kept = 0
    for number in range(ROUNDS):
        with serving(data) as server, replication.running() as litestream:
            shell = Shell(data / "quipu.db")
            writers = [
                Recorded(server.port, f"{number}-{at}", chance.randrange(1 << 30), states) for at in range(WRITERS)
            ]
            for thread in (shell, *writers):
                thread.start()
            until(partial(has_answers, writers), "the writers are answered")
            time.sleep(chance.uniform(0, SECONDS))
            marked = {path: len(every) for path, every in list(states.items())}
            if LITESTREAM.exists():
                replication.sync()
            victims: list[Callable[[], object]] = [server.kill, litestream.kill, shell.kill]
            chance.shuffle(victims)
            for kill in victims:
                kill()
                time.sleep(chance.choice((0, 0, 0.05, 0.5)))
            finish(writers)
            runs += shell.runs
        refused = [error for writer in writers for error in writer.errors]
        assert refused == [], (len(refused), refused[0])
        if chance.random() < 0.5:  # the shell alone opens the killed server's file, and folds the log when it closes
            folding = Shell(data / "quipu.db")
            folding.start()
            until(lambda folding=folding: folding.runs > 0, "the shell has closed the file")
            folding.kill()
        if LITESTREAM.exists():
            kept += compare_copy(replication, tmp_path / f"restored{number}", states, marked, writers)
        assert ledger.take(writers, data) == []
        states.update({path: [*states[path], content] for path, content in ledger.known.items()})
        assert disagreements(data) == []
    with serving(data) as server:
        client = Client(server.port)
        assert client.call("add_memory", path="last", content="still here")[0] == 200
        client.close()
        assert server.stop() == 0
    name = "Litestream" if LITESTREAM.exists() else "a program like Litestream"
    outcome = (
        f"{len(ledger.known):,} paths, 0 lost, 0 refused; {runs} runs of the shell; {kept:,} paths of copies right"
    )
    catalogue("R37", injected=f"kill -9 of server, {name}, sqlite3", times=3 * ROUNDS, outcome=outcome)


def last_change(folder: Path) -> int:
    """The number of the last change in a folder of Litestream."""
    return max((int(path.stem.partition("-")[2], 16) for path in folder.rglob("*.ltx")), default=0)


def has_answers(writers: Sequence[Writer]) -> bool:
    """Whether the writers have been answered so often that the copies hold something."""
    return sum(len(writer.known) for writer in writers) > 50


def compare_copy(
    replication: Replication,
    target: Path,
    states: Mapping[str, list[Content]],
    marked: Mapping[str, int],
    writers: list[Recorded],
) -> int:
    """Compare a restored copy: it is sound, and each path has its state at the last sync or a later one; the paths."""
    replication.restore(target)
    assert disagreements(target) == []
    stored = memories(target)
    doubts = dict(writer.doubt for writer in writers if writer.doubt is not None)
    for path, count in marked.items():
        later = [*states[path][count - 1 :], *([doubts[path]] if path in doubts else [])]
        assert stored.get(path) in later, path
    with serving(target) as server:
        client = Client(server.port)
        path = next(path for path in marked if stored.get(path) is not None)
        assert client.call("read_memory", path=path)[1]["content"] == stored[path]
        client.close()
    return len(marked)
