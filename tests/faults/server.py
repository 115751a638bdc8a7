"""The real server as a process of its own: started as the README says, on a free loopback port."""

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_PATIENCE = 30.0


class Server:
    """One running server; `log` is what it wrote to standard error so far."""

    def __init__(self, data: Path, port: int) -> None:
        self.data = data
        self.port = port
        self._log = data.parent / f"server-{port}.log"
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "kernel", "serve", "--data", str(data), "--port", str(port)],
                cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, "PYTHONFAULTHANDLER": "1"},
            )  # fmt: skip

    def wait_until_ready(self) -> None:
        """Returns once /readyz answers 200; raises if the process ends before."""
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with {self.process.returncode}:\n{self.log()}")
            if _status(self.port) == 200:
                return
        raise TimeoutError(f"the server is not ready:\n{self.log()}")

    def log(self) -> str:
        """What the server wrote so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def kill(self) -> None:
        """kill -9, and wait for the process to be gone."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """SIGTERM; the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(_PATIENCE)


@contextmanager
def running(folder: Path) -> Iterator[Server]:
    """A server over `folder/data`, ready when the block begins and stopped when it ends."""
    server = Server(folder / "data", free_port())
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.stop()


def free_port() -> int:
    """A loopback port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _status(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()
