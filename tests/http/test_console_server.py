"""The console of a server as a process: nothing of it is loaded before it is asked for, and `quipu ui` opens it."""

import http.client
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.reliability.server_process import ROOT, Client, Server, free_port, serving, until

PATIENCE = 60


def visited(server: Server, path: str = "/ui") -> str:
    client = Client(server.port)
    try:
        return client.text(path)
    finally:
        client.close()


def test_nothing_of_the_console_is_loaded_before_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    imports = [sys.executable, "-X", "importtime", "-m", "kernel", "serve"]
    server = Server(tmp_path / "data", imports, QUIPU_MODEL="none")
    try:
        client = Client(server.port)
        assert client.call("recall", query="anything")[0] == 200
        assert client.get("/tools") == 200
        client.close()
        loaded = server.log()
        assert "starlette" in loaded
        assert [name for name in ("jinja2", "markupsafe", "kernel.console", "call_log") if name in loaded] == []
        assert "Nothing is stored yet" in visited(server)
        until(lambda: "kernel.console.console" in server.log(), "the console is loaded")
        assert "jinja2" in server.log()
    finally:
        server.kill()


def test_server_prints_the_address_of_the_console(tmp_path: Path) -> None:
    with serving(tmp_path / "data", QUIPU_MODEL="none") as server:
        until(lambda: "listens on" in server.log(), "the address")
        assert f", the console is http://127.0.0.1:{server.port}/ui\n" in server.log()
    with serving(tmp_path / "closed", QUIPU_MODEL="none", QUIPU_UI="0") as server:
        until(lambda: "listens on" in server.log(), "the address")
        assert "console" not in server.log()


def ui(port: int, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "kernel", "ui", "--port", str(port)]
    given = {**os.environ, **environment}
    return subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, timeout=PATIENCE, check=False)


@pytest.mark.skipif(sys.platform == "win32", reason="the browser of the test is a script for sh")
def test_command_opens_the_console_in_the_browser(tmp_path: Path) -> None:
    opened, browser = tmp_path / "opened", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" >{opened}\n')
    browser.chmod(0o755)
    with serving(tmp_path / "data", QUIPU_MODEL="none") as server:
        done = ui(server.port, BROWSER=f"{browser} %s")
        assert (done.returncode, done.stderr) == (0, f"http://127.0.0.1:{server.port}/ui\n")
        assert opened.read_text() == f"http://127.0.0.1:{server.port}/ui\n"


def test_command_says_where_no_server_answers() -> None:
    port = free_port()
    done = ui(port)
    assert done.returncode == 1
    assert f"no answer on port {port}" in done.stderr
    assert ui(port, QUIPU_UI="0").stderr == "quipu: The console is switched off: QUIPU_UI=0.\n"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM")
def test_open_stream_of_calls_does_not_hold_up_the_end_of_the_server(tmp_path: Path) -> None:
    with serving(tmp_path / "data", QUIPU_MODEL="none") as server:
        line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        line.request("GET", "/ui/live")
        stream = line.getresponse()
        assert stream.readline().startswith(b"data: ")
        begun = time.monotonic()
        assert server.stop() in {0, -15}
        assert time.monotonic() - begun < 4  # the grace of requests under way is five seconds
        line.close()
