"""The shipped programs, run as its users run it: any command that begins like `quipu`, on a port of its own."""

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.reliability.server_process import LOST, PATIENCE, Client, free_port, until

_OURS = ("HOST", "PORT", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "LISTEN_FDS", "LISTEN_PID")


def environment(**more: str) -> dict[str, str]:
    """This process's environment without settings of a server."""
    kept = {name: value for name, value in os.environ.items() if name not in _OURS and not name.startswith("QUIPU_")}
    return {**kept, **more}


class Running:
    """A server that answers on `port`, in any environment."""

    def __init__(self, port: int) -> None:
        self.port = port

    def healthy(self) -> bool:
        """Whether /healthz answers."""
        client = Client(self.port)
        try:
            return client.get("/healthz") == 200
        except LOST:
            return False
        finally:
            client.close()

    def add(self, path: str, content: str) -> None:
        """Stores a memory."""
        client = Client(self.port)
        try:
            status, body = client.call("add_memory", path=path, content=content)
            assert status == 200, body
        finally:
            client.close()

    def finds(self, path: str, question: str) -> bool:
        """Whether a recall by meaning brings that memory first; waits while the model is being read."""
        client = Client(self.port)
        try:
            deadline = time.monotonic() + PATIENCE
            while time.monotonic() < deadline:
                _, answer = client.call("recall", query=question)
                if "meaning" in answer["signals"]:
                    return bool(answer["memories"]) and answer["memories"][0]["id"] == f"paths/{path}"
                time.sleep(0.05)
            return False
        finally:
            client.close()

    def remembers(self, path: str, content: str, question: str) -> bool:
        """Stores a memory and finds it by a question that has no word of it."""
        self.add(path, content)
        return self.finds(path, question)


class Program(Running):
    """A server process."""

    def __init__(self, command: Sequence[str], data: Path | str, log: Path, **more: str) -> None:
        super().__init__(free_port())
        self._log = log
        arguments = [*command, "serve", "--data", str(data), "--port", str(self.port)]
        with log.open("ab") as file:
            self.process = subprocess.Popen(arguments, env=environment(**more), stdout=file, stderr=file)

    def healthy(self) -> bool:
        """Whether /healthz answers; a server that has ended is an error."""
        assert self.process.poll() is None, self._log.read_text(encoding="utf-8", errors="replace")
        return super().healthy()

    def stop(self) -> int:
        """SIGTERM; the exit status."""
        self.process.terminate()
        return self.process.wait(PATIENCE)


@contextmanager
def running(command: Sequence[str], data: Path | str, log: Path | None = None, **more: str) -> Iterator[Program]:
    """A healthy server of `command`, gone at the end of the block in any case."""
    server = Program(command, data, log or Path(f"{data}.log"), **more)
    try:
        until(server.healthy, f"{command[0]} on port {server.port}")
        yield server
    finally:
        server.process.kill()
        server.process.wait(PATIENCE)
