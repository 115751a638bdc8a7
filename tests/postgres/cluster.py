"""A private PostgreSQL for tests, in a temporary folder and on a free port of the loopback address.

`python -m tests.postgres.cluster COMMAND...` runs a command with the address of one in TEST_POSTGRES, or with POOLER=1
with that of a PgBouncer before it.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

_UNPACKED = Path(__file__).parents[2] / ".venv-postgres-server"  # where .ci/unpack unpacks one
_ACCOUNTS = ("postgres", "nobody")  # PostgreSQL refuses to run as root
_SETTINGS = {"max_connections": "100", "shared_buffers": "64MB", "fsync": "on", "unix_socket_directories": ""}
_START_SECONDS = 60


def programs() -> Path:
    """The folder of initdb and postgres, of the newest version."""
    roots = (_UNPACKED, Path("/"))
    found = [path.parent for root in roots for path in root.glob("usr/lib/postgresql/*/bin/initdb")]
    if not found and (known := shutil.which("initdb")):
        found = [Path(known).resolve().parent]
    if not found:
        raise RuntimeError("PostgreSQL is not installed: `make test-postgres` gets it")
    return max(found, key=lambda path: int(path.parent.name) if path.parent.name.isdigit() else 0)


class Cluster:
    """A database server of its own, which can be killed and started again; it may follow that of an address."""

    def __init__(self, folder: Path, follows: str = "") -> None:
        self.data = folder / "data"
        self.port = free_port()
        self.address = f"postgresql://postgres@127.0.0.1:{self.port}"
        self._log = folder / "log"
        self._user = account()
        self._server: subprocess.Popen[Any] | None = None
        if self._user:
            shutil.chown(folder, self._user)
        command: tuple[str | Path, ...] = (
            *("initdb", "-D", self.data, "-A", "trust", "-U", "postgres"),
            *("-E", "UTF8", "--locale=C", "--no-sync"),
        )
        if follows:
            command = ("pg_basebackup", "-d", follows, "-D", self.data, "-R", "-c", "fast", "--no-sync")
        program, *options = command
        subprocess.run([programs() / program, *options], check=True, stdout=subprocess.DEVNULL, **self._as_user())

    def _as_user(self) -> dict[str, Any]:
        return {"user": self._user, "cwd": str(self.data.parent)} if self._user else {}

    def start(self) -> None:
        """Starts the server and waits until it takes connections."""
        end = time.monotonic() + _START_SECONDS
        server = self._started()
        while not self._answers():
            if server.poll() is not None:  # what the one before had started still holds its memory
                server = self._started()
            if time.monotonic() > end:
                raise RuntimeError(self._log.read_text(errors="replace")[-2000:])
            time.sleep(0.05)
        self._server = server

    def _started(self) -> subprocess.Popen[Any]:
        settings = {**_SETTINGS, "port": str(self.port), "listen_addresses": "127.0.0.1"}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        command = [programs() / "postgres", "-D", self.data, *options]
        with self._log.open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, **self._as_user())

    def _answers(self) -> bool:
        ready = [programs() / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(ready).returncode == 0

    @property
    def pid(self) -> int:
        """The process that has started all others of the server."""
        assert self._server is not None
        return self._server.pid

    def kill(self) -> None:
        """Ends the server as a power cut of its process would; its own processes end by themselves."""
        assert self._server is not None
        self._server.kill()
        self._server.wait()
        while self._answers():
            time.sleep(0.02)

    def stop(self) -> None:
        """Stops the server at once, if it runs."""
        if self._server is not None and self._server.poll() is None:
            self._server.send_signal(signal.SIGINT)
            try:
                self._server.wait(10)
            except subprocess.TimeoutExpired:
                self._server.kill()
                self._server.wait()


def account() -> str | None:
    """The account to run a server as; None for our own."""
    if os.geteuid() != 0:
        return None
    import pwd

    names = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in _ACCOUNTS if name in names), None)


def free_port() -> int:
    """A port of the loopback address that nothing listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextmanager
def running(follows: str = "", *, on_disk: bool = False) -> Iterator[Cluster]:
    """A cluster in a temporary folder, in memory where there is one and not `on_disk`, deleted with the block."""
    memory = None if on_disk else next((str(one) for one in [Path("/dev/shm")] if one.is_dir()), None)
    with tempfile.TemporaryDirectory(prefix="quipu-postgres-", dir=memory) as folder:
        made = Cluster(Path(folder), follows)
        made.start()
        try:
            yield made
        finally:
            made.stop()


if __name__ == "__main__":
    from tests.postgres.pooler import pooled

    with (
        running() as cluster,
        pooled(cluster.address) if os.environ.get("POOLER") else nullcontext(cluster.address) as to,
    ):
        sys.exit(subprocess.run(sys.argv[1:], env={**os.environ, "TEST_POSTGRES": to}).returncode)
