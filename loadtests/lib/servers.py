"""Server subprocesses with their processor time and memory, alternating rounds, and printed tables."""

import argparse
import http.client
import importlib.metadata
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

import psutil

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[2]
_TIMEOUT_SECONDS = 60.0
_PACKAGES = ("uvicorn", "uvloop", "httptools", "starlette", "msgspec", "apsw", "sqlite-vec", "simsimd", "numpy", "mcp")


_RUN_FROM = """
import os, runpy, sys
os.chdir({checkout!r})
sys.path[0] = {checkout!r}
del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


class Server:
    """One server process on a free loopback port."""

    def __init__(
        self,
        arguments: Sequence[str],
        environ: Mapping[str, str] | None,
        log: IO[bytes],
        program: Sequence[str] | None = None,
    ) -> None:
        self.port = free_port()
        command = [*(program or (sys.executable, "-m")), *arguments, "--port", str(self.port)]
        self.started = time.perf_counter()
        self._log = log
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**clean_environ(), **(environ or {})},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        self._seen = psutil.Process(self._process.pid)

    def wait(self, path: str = "/healthz", piece: bytes = b"", *, status: int = 200) -> float:
        """Wait until GET `path` answers with this status (0: any) and `piece`; return the seconds since the start."""
        while time.perf_counter() - self.started < _TIMEOUT_SECONDS:
            if self._answers(path, piece, status):
                return time.perf_counter() - self.started
            if self._process.poll() is not None:
                break
            time.sleep(0.002)
        self._log.seek(0)
        raise RuntimeError(f"the server did not start: {self._log.read()[-2000:].decode(errors='replace')}")

    def cpu(self) -> float:
        """Seconds of processor time so far, in nanoseconds resolution where /proc has schedstat."""
        return _cpu(self._seen)

    def cpu_by_worker(self) -> list[float]:
        """`cpu` of each of several workers, or of the only process."""
        return [_cpu(one) for one in self._seen.children() or [self._seen]]

    def rss(self) -> float:
        """Resident memory in MB of 10**6 bytes."""
        return self._seen.memory_info().rss / 1e6

    def threads(self) -> int:
        """The number of threads."""
        return self._seen.num_threads()

    def anonymous(self) -> float:
        """Anonymous resident memory in MB of 10**6 bytes; all resident memory if /proc does not report it."""
        try:
            lines = Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8").splitlines()
            return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("RssAnon:"))
        except (OSError, StopIteration):
            return self.rss()

    def stop(self) -> None:
        """Terminate the process, and kill it if it does not exit."""
        self._process.terminate()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(15)

    def _answers(self, path: str, piece: bytes, status: int) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 0.2):
                pass
        except OSError:
            return False
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", path)
            reply = connection.getresponse()
            return reply.status == (status or reply.status) and piece in reply.read()
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def _cpu(seen: psutil.Process) -> float:
    try:
        tasks = Path(f"/proc/{seen.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
    except (OSError, IndexError):
        times = seen.cpu_times()
        return times.user + times.system


@contextmanager
def served(
    *arguments: str, environ: Mapping[str, str] | None = None, program: Sequence[str] | None = None
) -> Generator[Server]:
    """Run `python -m *arguments --port N`, or another program, without waiting for it; stopped with the block."""
    with tempfile.TemporaryFile() as log:
        server = Server(arguments, environ, log, program)
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def quipu(data: Path, *, checkout: Path | None = None, **settings: str) -> Generator[Server]:
    """Quipu, or that of another checkout, over a data directory, with the model loaded.

    Settings are QUIPU_... variables in lower case.
    """
    environ = {f"QUIPU_{name.upper()}": value for name, value in settings.items()}
    program = (sys.executable, "-c", _RUN_FROM.format(checkout=str(checkout.resolve()))) if checkout else None
    with served("kernel", "serve", "--data", str(data), environ=environ, program=program) as server:
        server.wait("/readyz", b'"model":"ready"')
        yield server


def clean_environ() -> dict[str, str]:
    """The environment without settings of Quipu, so that results do not depend on it.

    Bytecode caching stays on, as it is in an installation.
    """
    ours = ("HOST", "PORT", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
    return {name: value for name, value in os.environ.items() if not name.startswith("QUIPU_") and name not in ours}


def free_port() -> int:
    """A free loopback port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def rounds(count: int, contenders: Mapping[str, Callable[[], T]]) -> dict[str, list[T]]:
    """Run the contenders in turn, every second round in reverse order, so that load of the machine affects all."""
    found: dict[str, list[T]] = {name: [] for name in contenders}
    for number in range(count):
        for name in list(contenders)[:: -1 if number % 2 else 1]:
            found[name].append(contenders[name]())
    return found


def paired(one: Sequence[float], other: Sequence[float]) -> float:
    """The median of the ratios of paired rounds."""
    return statistics.median(a / b for a, b in zip(one, other, strict=True) if b) if any(other) else 0.0


def options(
    about: str | None, arguments: Sequence[str] | None, rounds: int = 0, **more: dict[str, Any]
) -> argparse.Namespace:
    """The options of a benchmark: `--quick`, with one round, `--rounds`, with its default, and its own."""
    parser = argparse.ArgumentParser(description=(about or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="run a few seconds to check that it works")
    parser.add_argument("--rounds", type=int, default=0, help="rounds of each side")
    for name, settings in more.items():
        parser.add_argument(f"--{name}", **settings)
    chosen = parser.parse_args(arguments)
    chosen.rounds = chosen.rounds or (min(rounds, 1) if chosen.quick else rounds)
    return chosen


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table: the first column to the left, numbers to the right."""
    cells = [list(header)] + [[shown(value) for value in row] for row in rows]
    widths = [max(len(row[at]) for row in cells) for at in range(len(header))]
    print(f"\n{title}")
    for row in cells:
        rest = (text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True))
        print("  ".join([row[0].ljust(widths[0]), *rest]).rstrip())


def shown(value: Any) -> str:
    """A number with about three significant digits; any other value as text."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def budget(what: str, value: float, bound: float, *, least: bool = False) -> tuple[str, str, str, str]:
    """A row of the budget table: met if `value` is at most `bound`, with `least` at least."""
    met = value >= bound if least else value <= bound
    return what, f"{value:.2f}", f"{'>=' if least else '<='} {bound:g}", "met" if met else "MISSED"


def budgets(rows: Sequence[tuple[str, str, str, str]]) -> None:
    """Print measured ratios and their budgets."""
    table("budgets", ("ratio", "measured", "budget", ""), rows)


def machine() -> None:
    """Print processor, load and versions, without the name of the machine."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _PACKAGES)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, load {load:.1f}"
    print(f"{system}, {platform.python_implementation()} {platform.python_version()}\n{versions}")


def finish(complaints: Sequence[str]) -> int:
    """The exit status: 1 if any answer was wrong; missed budgets do not count."""
    for complaint in complaints:
        print(f"WRONG: {complaint}")
    print("\nanswers: " + ("WRONG" if complaints else "all checked, none wrong"))
    return 1 if complaints else 0
