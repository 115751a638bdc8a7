"""A server in a process of its own, writers that remember their answers, and a look at the stored state."""

import http.client
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from kernel.core.config import MODEL
from kernel.operations import consistency
from kernel.operations.index_check import Finding
from kernel.server import app

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60
# How late an answer or the end of a connection may be; a busy machine is given more than the promised second.
LATE = float(os.environ.get("LATE_SECONDS", "15"))
LOST = (http.client.HTTPException, OSError)
Content = str | None  # None: dropped


class Client:
    """One keep-alive connection to the front door."""

    def __init__(self, port: int, patience: float = PATIENCE) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=patience)

    def call(self, tool: str, **arguments: Any) -> tuple[int, Any]:
        """Status and answer of one tool, decoded where it is a success as JSON."""
        headers = {"content-type": "application/json", "accept": "application/json"}
        self._connection.request("POST", f"/tools/{tool}", json.dumps(arguments), headers)
        answer = self._connection.getresponse()
        body = answer.read()
        decoded = answer.status == 200 and "json" in answer.headers["content-type"]
        return answer.status, json.loads(body) if decoded else body

    def get(self, path: str) -> int:
        """The status of a GET."""
        self._connection.request("GET", path)
        answer = self._connection.getresponse()
        answer.read()
        return answer.status

    @property
    def local_port(self) -> int:
        """The port of this end."""
        if not hasattr(self._connection.sock, "getsockname"):
            self._connection.connect()
        return self._connection.sock.getsockname()[1]

    def text(self, path: str) -> str:
        """The body of a GET."""
        self._connection.request("GET", path)
        return self._connection.getresponse().read().decode()

    def close(self) -> None:
        self._connection.close()


class Server:
    """`python -m kernel serve`, or another command with its options, on a port of its own; `settings` are variables of
    its environment. It is ready, or has only begun to start."""

    def __init__(
        self,
        data: Path,
        command: Sequence[str] = (sys.executable, "-m", "kernel", "serve"),
        *,
        ready: bool = True,
        **settings: Any,
    ) -> None:
        self.data = data
        self.port = free_port()
        begun = time.monotonic()
        self._log = data.parent / f"server-{self.port}.log"
        with self._log.open("wb") as log:
            whole = [*command, "--data", str(data), "--port", str(self.port)]
            given = {name: str(value) for name, value in settings.items()}
            # Servers start from compiled files, as anybody's do; hundreds of starts would compile everything again.
            environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", **given}
            self.process = subprocess.Popen(whole, cwd=ROOT, env=environment, stdout=log, stderr=log)
        try:
            until(lambda: not ready or self.ready(), f"server on port {self.port}")
        except BaseException:
            self.kill()
            raise
        self.seconds = time.monotonic() - begun

    @property
    def memory(self) -> int:
        """The bytes of the server's own memory; the pages of files that are mapped grow with the store."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon"))

    def log(self) -> str:
        """Return the output of the server so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def ready(self) -> bool:
        """Whether its store is open, be it only for those with a key; a server that has ended is an error."""
        assert self.process.poll() is None, f"the server has ended: {self.log()}"
        client = Client(self.port)
        try:
            return client.get("/readyz") != 503
        except LOST:
            return False
        finally:
            client.close()

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait(PATIENCE)

    def stop(self) -> int:
        """SIGTERM; the exit status."""
        self.process.terminate()
        return self.process.wait(PATIENCE)


@contextmanager
def serving(data: Path, **settings: Any) -> Iterator[Server]:
    """A server that is gone at the end of the block in any case."""
    data.mkdir(parents=True, exist_ok=True)
    server = Server(data, **settings)
    try:
        yield server
    finally:
        server.kill()


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(met: Callable[[], bool], what: str) -> None:
    """Waits for an effect of another process."""
    deadline = time.monotonic() + PATIENCE
    while not met():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


class Writer(threading.Thread):
    """Adds, replaces and drops memories under a prefix of its own; `known` is the ledger of the answers."""

    def __init__(self, port: int, name: str, seed: int, answered: Callable[[], object]) -> None:
        super().__init__(name=name, daemon=True)
        self.known: dict[str, Content] = {}
        self.doubt: tuple[str, Content] | None = None
        self.errors: list[bytes] = []
        self.stopping = threading.Event()
        self.fragile = False  # whether the first refusal ends it
        self.dark = threading.Event()  # from here on no answer counts: the machine that gave it has no power
        self._port = port
        self._random = random.Random(seed)
        self._answered = answered

    def run(self) -> None:
        client = Client(self._port)
        try:
            while not self.stopping.is_set():
                self._step(client)
        except LOST:
            return  # the server is gone: calls under way stay in doubt
        finally:
            client.close()

    def began(self) -> None:
        """A call is about to be sent."""

    def ended(self, path: str, content: Content) -> None:
        """A call has been answered."""

    def _step(self, client: Client) -> None:
        tool, path = self._choice()
        content = None if tool == "drop_memory" else self._text()
        arguments = {"path": path} if content is None else {"path": path, "content": content}
        self.doubt = (path, content)
        self.began()
        status, body = client.call(tool, **arguments)
        if self.dark.is_set():
            raise ConnectionError("after the power: what was under way stays in doubt")
        if status == 200:
            self.known[path] = content
            self.ended(path, content)
            self._answered()
        elif self.fragile:
            raise ConnectionError("refused: what was under way stays in doubt")
        else:
            self.errors.append(body)
        self.doubt = None

    def _choice(self) -> tuple[str, str]:
        living = [path for path, content in self.known.items() if content is not None][-20:]
        dice = self._random.random()
        if living and dice < 0.3:
            return "replace_memory" if dice < 0.2 else "drop_memory", self._random.choice(living)
        return "add_memory", f"{self.name}/{len(self.known):05}"

    def _text(self) -> str:
        words = self._random.choices(("quipu", "knots", "cords", "números", "日本語", "nul\0", '"', "\n"), k=8)
        return " ".join([*words, str(self._random.random())])


class Countdown:
    """Sets `done` at the Nth answer."""

    def __init__(self, count: int) -> None:
        self.done = threading.Event()
        self._lock = threading.Lock()
        self._left = count

    def __call__(self) -> None:
        with self._lock:
            self._left -= 1
            if self._left <= 0:
                self.done.set()


def finish(writers: Sequence[Writer]) -> None:
    """Lets every writer end its call and waits for it."""
    for writer in writers:
        writer.stopping.set()
    for writer in writers:
        writer.join(PATIENCE)
        assert not writer.is_alive()


class Ledger:
    """Return the knowledge of every path, over all writers and all lives of the server."""

    def __init__(self) -> None:
        self.known: dict[str, Content] = {}
        self.doubts = 0

    def take(self, writers: Sequence[Writer], data: Path) -> list[str]:
        """Takes in the answers to the writers, and settles each doubt by looking; the paths that are wrong."""
        stored = memories(data)
        for writer in writers:
            self.known |= writer.known
            if writer.doubt is not None:
                self.doubts += 1
                path, new = writer.doubt
                if stored.get(path) in (self.known.get(path), new):
                    self.known[path] = stored.get(path)
        expected = {path: content for path, content in self.known.items() if content is not None}
        return sorted(path for path in expected.keys() | stored.keys() if expected.get(path) != stored.get(path))


@contextmanager
def engine(data: Path) -> Iterator[apsw.Connection]:
    """The file as SQLite has it, read-only."""
    db = apsw.Connection(str(data / "quipu.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        yield db
    finally:
        db.close()


def memories(data: Path) -> Mapping[str, str]:
    """Content by path."""
    with engine(data) as db:
        rows: Any = db.execute("SELECT path, content FROM paths_memory")
        return dict(rows)


def disagreements(data: Path) -> list[Finding | tuple[Any, ...]]:
    """Where file, row, document, full text, vector and history do not tell the same story."""
    with engine(data) as db:
        rows = db.execute(
            "SELECT coalesce(m.path, h.key), m.content, h.after FROM paths_memory AS m FULL JOIN ("
            "SELECT key, after, max(id) FROM history WHERE space = 'paths' GROUP BY key) AS h ON h.key = m.path "
            "WHERE m.content IS NOT h.after"
        ).fetchall()
    return [*consistency.check(data / "quipu.db", app.base_context(MODEL), app.DIALECTS), *rows]
