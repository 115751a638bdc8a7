"""A server ends within five seconds of SIGTERM, and a worker with its parent, even with busy threads."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.catalogue import Catalogue
from tests.reliability.server_process import LATE, LOST, ROOT, Client, Server, until
from tests.reliability.server_process import serving as sound
from tests.reliability.workers import kill_all, owner, pids

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM")

PROMISED = 5.0  # seconds
COMMAND = (sys.executable, str(Path(__file__).with_name("stuck_server.py")), "serve")
WAYS = ("loop", "pattern")


@contextmanager
def serving(data: Path, **settings: Any) -> Iterator[Server]:
    data.mkdir()
    server = Server(data, COMMAND, PYTHONPATH=str(ROOT), **settings)
    try:
        yield server
    finally:
        kill_all(server)


@contextmanager
def stuck(server: Server, way: str, *, loop: bool) -> Iterator[int]:
    """Keeps the loop or a reader of a process in this way; the process, 0 where there are no workers."""
    client = Client(server.port)
    port = client.local_port
    if server.data.parent.joinpath("two").exists():
        until(lambda: owner(server, port) > 0, "a worker that has the connection")
    found = owner(server, port)

    def ask() -> None:
        with suppress(*LOST):
            if loop:
                client.get(f"/stuck/{way}")
            else:
                client.call("recall", query=f"stuck/{way}")

    asking = threading.Thread(target=ask, daemon=True)
    process = psutil.Process(found or server.process.pid)
    before = sum(process.cpu_times()[:2])
    asking.start()
    until(lambda: sum(process.cpu_times()[:2]) > before + 0.2, "a thread that is stuck")
    yield found
    asking.join(60)
    client.close()


def ended(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    return True


@pytest.mark.parametrize(("way", "loop"), [("loop", True), ("pattern", True), ("loop", False)])
def test_a_server_told_to_stop_ends_in_time_whatever_is_stuck(
    tmp_path: Path, way: str, loop: bool, catalogue: Catalogue
) -> None:
    with serving(tmp_path / "data") as server:
        client = Client(server.port)
        assert client.call("add_memory", path="kept", content="hello")[0] == 200
        client.close()
        with stuck(server, way, loop=loop):
            begun = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(30) == 1
            seconds = time.monotonic() - begun
        assert "stuck_server.py" in server.log()
    assert seconds < max(PROMISED, LATE)
    with sound(tmp_path / "data") as server:
        client = Client(server.port)
        assert client.call("read_memory", path="kept")[1]["content"] == "hello"
        client.close()
    catalogue("R16", injected=f"SIGTERM beside a stuck {way}", times=1, outcome=f"ended in {seconds:.1f} s")


@pytest.mark.parametrize("loop", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_workers_told_to_stop_end_in_time_whatever_is_stuck(
    tmp_path: Path, way: str, loop: bool, catalogue: Catalogue
) -> None:
    (tmp_path / "two").touch()
    with serving(tmp_path / "data", QUIPU_WORKERS=2) as server:
        until(lambda: len(pids(server)) == 2, "both workers")
        workers = pids(server)
        with stuck(server, way, loop=loop):
            begun = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            server.process.wait(30)
            seconds = time.monotonic() - begun
            assert all(ended(pid) for pid in workers)
    assert seconds < max(PROMISED, LATE)
    catalogue("R16", injected=f"SIGTERM beside a worker with a stuck {way}", times=1, outcome=f"{seconds:.1f} s")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has died")
@pytest.mark.parametrize(("way", "loop"), [("loop", True), ("pattern", True), ("loop", False)])
def test_a_stuck_worker_ends_without_its_parent(tmp_path: Path, way: str, loop: bool, catalogue: Catalogue) -> None:
    (tmp_path / "two").touch()
    with serving(tmp_path / "data", QUIPU_WORKERS=2) as server:
        until(lambda: len(pids(server)) == 2, "both workers")
        workers = pids(server)
        try:
            with stuck(server, way, loop=loop):
                begun = time.monotonic()
                server.kill()
                until(lambda: all(ended(pid) for pid in workers), "the end of the workers")
                seconds = time.monotonic() - begun
        finally:
            for pid in workers:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    assert seconds < max(PROMISED, LATE)
    catalogue("R16", injected=f"kill -9 of the parent of a stuck {way}", times=1, outcome=f"{seconds:.1f} s")
