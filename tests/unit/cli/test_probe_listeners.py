"""Identify the listener of a port by an MCP handshake and by /proc."""

import os
import socket
import sys
import threading
from pathlib import Path

import pytest

from kernel.cli.probe import Handshake, handshake, listening_process
from kernel.core.config import VERSION
from tests.reliability.server_process import free_port, serving
from tests.support.cli_probe_listeners import answering


@pytest.mark.slow
def test_quipu_is_identified_by_its_server_info(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server:
        assert handshake(f"http://127.0.0.1:{server.port}/mcp") == Handshake(200, "quipu", VERSION)


@pytest.mark.parametrize(
    ("status", "body", "found"),
    [
        (404, b"nothing here", Handshake(404)),
        (401, b'{"error": {"code": "unauthorized"}}', Handshake(401)),
        (200, b'{"result": {"serverInfo": {"name": "other", "version": "9"}}}', Handshake(200, "other", "9")),
        (200, b'{"result": 1}', Handshake(200)),
        (200, b"[" * 5000, Handshake(200)),
        (200, b"\xff", Handshake(200)),
    ],
)
def test_other_responses_are_accepted(status: int, body: bytes, found: Handshake) -> None:
    with answering(status, body) as port:
        assert handshake(f"http://127.0.0.1:{port}/mcp") == found


def test_absent_listener_is_none_and_silent_one_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert handshake(f"http://127.0.0.1:{free_port()}/mcp") is None
    monkeypatch.setattr("kernel.cli.probe._TIMEOUT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(OSError, match="timed out"):
        handshake(f"http://127.0.0.1:{silent.getsockname()[1]}/mcp")


def test_response_that_is_not_http_is_an_error() -> None:
    def respond() -> None:
        with listener.accept()[0] as connection:
            connection.sendall(b"SSH-2.0-OpenSSH\r\n")
            connection.recv(4096)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=respond)
        thread.start()
        with pytest.raises(OSError, match="SSH"):
            handshake(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp")
        thread.join()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
def test_listening_process_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as ours:
        port = ours.getsockname()[1]
        assert listening_process(port).endswith(f" (process {os.getpid()})")
        assert listening_process(free_port()) == ""


def test_process_name_is_empty_without_proc(tmp_path: Path) -> None:
    assert listening_process(80, tmp_path) == ""
