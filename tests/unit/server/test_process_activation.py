"""Sockets that were handed over are listened on, by the process they are meant for and no other."""

import os
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from kernel.core.errors import Fault
from kernel.server.process import inherited_sockets, most_reachable_host
from tests.support.server_process_activation import PATIENCE, ask, connected, status

ROOT = Path(__file__).resolve().parents[3]
SLOW = 10


def activated(listener: int, data: Path, log: Path) -> subprocess.Popen[bytes]:
    """A server that is given the socket as its descriptor 3, and ends after a second without requests."""
    shell = f'exec 3<&{listener}; LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"'
    command = [sys.executable, "-m", "kernel", "serve", "--data", str(data)]
    with log.open("ab") as file:
        return subprocess.Popen(
            ["bash", "-c", shell, "sh", *command],
            cwd=ROOT,
            pass_fds=[listener],
            stderr=file,
            env={**os.environ, "QUIPU_IDLE_EXIT": "1"},
        )


@pytest.mark.slow
def test_no_request_is_lost_between_servers_on_one_socket(tmp_path: Path) -> None:
    data, log = tmp_path / "data", tmp_path / "log"
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener, ExitStack() as closing:
        port = listener.getsockname()[1]
        clients = [closing.enter_context(connected(port))]
        ask(clients[0])
        first = activated(listener.fileno(), data, log)
        try:
            answers = [status(clients[0])]
            first.terminate()
            while first.poll() is None and len(clients) < 500:
                clients.append(closing.enter_context(connected(port)))
                if len(clients) > SLOW:
                    ask(clients[-SLOW])  # a moment after it connected
                time.sleep(0.005)
            for client in clients[1 - SLOW :]:
                ask(client)
            assert first.wait(PATIENCE) == 0, log.read_text()
        finally:
            end(first)
        second = activated(listener.fileno(), data, log)
        try:
            answers.extend(map(status, clients[1:]))
            assert second.wait(PATIENCE) == 0  # idle, although every client is still connected
        finally:
            end(second)
    assert len(answers) > 10
    assert set(answers) == {200}
    assert log.read_text().count("listens on a socket it was given") == 2


def end(server: subprocess.Popen[bytes]) -> None:
    """Nothing is left of it."""
    server.kill()
    server.wait(PATIENCE)


@pytest.mark.slow
def test_socket_that_does_not_listen_is_refused(tmp_path: Path) -> None:
    with socket.socket() as silent:
        server = activated(silent.fileno(), tmp_path / "data", tmp_path / "log")
        assert server.wait(PATIENCE) == 1
    line = "quipu: LISTEN_FDS: descriptor 3 is no stream socket that listens\n"
    assert (tmp_path / "log").read_text() == line


@pytest.mark.slow
def test_descriptor_that_is_no_socket_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file:
        server = activated(file.fileno(), tmp_path / "data", tmp_path / "log")
        assert server.wait(PATIENCE) == 1
    assert "descriptor 3 is no stream socket that listens" in (tmp_path / "log").read_text()


@pytest.mark.parametrize(
    "environment",
    [{}, {"LISTEN_FDS": "1"}, {"LISTEN_FDS": "1", "LISTEN_PID": "4"}, {"LISTEN_PID": "5"}, {"LISTEN_FDS": "x"}],
)
def test_sockets_for_another_process_are_ignored(environment: dict[str, str]) -> None:
    assert inherited_sockets(environment, 5) == []


def test_invalid_socket_count_is_refused() -> None:
    with pytest.raises(Fault) as raised:
        inherited_sockets({"LISTEN_PID": "5", "LISTEN_FDS": "1e3"}, 5)
    assert (raised.value.code, raised.value.message) == ("invalid", "LISTEN_FDS is a number")


def test_most_reachable_host_decides_whether_keys_are_required(tmp_path: Path) -> None:
    here, everywhere = socket.socket(), socket.socket(socket.AF_INET6)
    here.bind(("127.0.0.2", 0))
    everywhere.bind(("::", 0))
    path = socket.socket(socket.AF_UNIX)
    path.bind(str(tmp_path / "socket"))
    with here, everywhere, path:
        assert most_reachable_host([]) == ""
        assert most_reachable_host([path]) == "localhost"
        assert most_reachable_host([here, path]) == "127.0.0.2"
        assert most_reachable_host([path, here, everywhere]) == "::"
