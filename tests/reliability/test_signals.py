"""Signals end servers and commands: the loss of a terminal, and SIGTERM to the first process of a container."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from kernel.server.worker import Worker
from tests.reliability.server_process import ROOT, Client, Server, free_port, serving, until
from tests.reliability.workers import pids

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")]

QUIPU = (sys.executable, "-m", "kernel")


@pytest.fixture(autouse=True)
def default_action() -> Iterator[None]:
    """The default action of SIGHUP, which the processes of a test inherit: these tests may be run by `nohup` too."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("workers", [1, 2])
def test_loss_of_the_terminal_ends_a_server_with_grace(tmp_path: Path, workers: int) -> None:
    with serving(tmp_path / "data", QUIPU_WORKERS=workers) as server:
        if workers > 1:
            until(lambda: len(pids(server)) == workers, "all workers")
        client = Client(server.port)
        assert client.call("add_memory", path="tea", content="Ada likes tea.")[0] == 200
        client.close()
        server.process.send_signal(signal.SIGHUP)
        assert server.process.wait(30) == 0, server.log()
        assert "Traceback" not in server.log()


def test_server_of_nohup_outlives_its_terminal(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    server = Server(data, ("nohup", *QUIPU, "serve"))
    try:
        server.process.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        assert server.ready()
        assert server.stop() in {0, -signal.SIGTERM}
    finally:
        server.kill()


def test_worker_that_has_lost_its_parent_reports_to_nothing() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    worker = object.__new__(Worker)
    worker._opened = write_end
    worker.report_opened()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(write_end)


@contextmanager
def first_process(
    *words: str, environment: dict[str, str] | None = None
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A command as process 1 of its own namespace, and its number outside of that."""
    unshare = shutil.which("unshare")
    if sys.platform != "linux" or os.geteuid() != 0 or unshare is None:
        pytest.skip("only root can make a namespace of processes")
    whole = (unshare, "--pid", "--fork", "--mount-proc", "--kill-child", *words)
    with subprocess.Popen(
        whole,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as parent:
        try:
            until(lambda: bool(psutil.Process(parent.pid).children()) or parent.poll() is not None, "the child")
            if parent.poll() is not None:
                pytest.skip("no namespace of processes can be made here")
            yield parent, psutil.Process(parent.pid).children()[0].pid
        finally:
            parent.kill()


def blocked_in_read(pid: int) -> bool:
    return "pipe" in Path(f"/proc/{pid}/wchan").read_text(encoding="ascii")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_first_process_is_ended_by_a_signal_as_any_other(tmp_path: Path, number: int) -> None:
    words = ("setup", "--client", "cursor", "--key", "-", "--print")
    with first_process(*QUIPU, *words, environment={**os.environ, "HOME": str(tmp_path)}) as (parent, pid):
        until(lambda: blocked_in_read(pid), "the question for the key")
        os.kill(pid, number)
        assert parent.wait(10) == 128 + number


@pytest.mark.parametrize("words", [(), ("--workers", "2")])
def test_server_as_first_process_hears_a_signal_before_it_serves(tmp_path: Path, words: Sequence[str]) -> None:
    data = tmp_path / "data"
    os.mkfifo(tmp_path / "begun")
    program = (
        f"import sys\nfrom kernel.cli import entry, main\nsys.argv[1:] = {['serve', *words]!r}\n"
        "def begun(*_):\n"
        f"    open({str(tmp_path / 'begun')!r}, 'w').close()\n"
        "    import time\n"
        "    time.sleep(20)\n"
        "main.config_of = begun\nsys.exit(entry.main())"
    )
    environment = {**os.environ, "QUIPU_DATA": str(data), "PORT": str(free_port())}
    with first_process(sys.executable, "-c", program, environment=environment) as (parent, pid):
        (tmp_path / "begun").open().close()
        os.kill(pid, signal.SIGTERM)
        assert parent.wait(10) == 128 + signal.SIGTERM


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGHUP, 0), (signal.SIGINT, 130)])
def test_backups_as_first_process_end_by_a_signal(tmp_path: Path, number: int, status: int) -> None:
    data, target = tmp_path / "data", tmp_path / "copies"
    subprocess.run([*QUIPU, "add", "Tea at five.", "--data", str(data)], cwd=ROOT, check=True, capture_output=True)
    words = ("backup", "--data", str(data), "--to", str(target), "--every", "1h")
    with first_process(*QUIPU, *words) as (parent, pid):
        until(lambda: any(target.glob("quipu-*")), "the first backup")
        os.kill(pid, number)
        _, errors = parent.communicate(timeout=10)
        assert (parent.returncode, "Traceback" in errors) == (status, False)
