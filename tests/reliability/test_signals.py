"""Signals end servers and commands, as at the loss of a terminal."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from kernel.server.worker import Worker
from tests.reliability.server_process import Client, Server, serving, until
from tests.reliability.workers import pids

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")]

QUIPU = (sys.executable, "-m", "kernel")


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
