"""The console of a server as a process: nothing of it is loaded before it is asked for, and `quipu ui` opens it."""

import http.client
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import pytest

from kernel.security import api_keys
from tests.reliability.server_process import ROOT, Client, Server, free_port, serving, until
from tests.security.authenticated_server import EXPIRED

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
        assert [name for name in ("jinja2", "markupsafe", "handlers.console", "call_log") if name in loaded] == []
        assert "Nothing is stored yet" in visited(server)
        until(lambda: "handlers.console.rendering" in server.log(), "the console is loaded")
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


@pytest.mark.parametrize("workers", ["1", "2"])
def test_server_on_any_free_port_prints_it(tmp_path: Path, workers: str) -> None:
    command = [sys.executable, "-m", "kernel", "serve", "--port", "0", "--data", str(tmp_path), "--workers", workers]
    environment = {**os.environ, "QUIPU_MODEL": "none"}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            ports = set(re.findall(r"http://127\.0\.0\.1:(\d+)/", server.stderr.readline()))
            (port,) = map(int, ports)
            client = Client(port)
            assert client.get("/healthz") == 200
            client.close()
        finally:
            server.terminate()


def ui(port: int, *options: str, typed: str | None = None, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "kernel", "ui", "--port", str(port), *options]
    return subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        input=typed,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


class Browser(NamedTuple):
    """Make a program that notes the address it should open."""

    opened: Path
    variables: dict[str, str]


@pytest.fixture
def browser(tmp_path: Path) -> Browser:
    opened, program = tmp_path / "opened", tmp_path / "browser"
    program.write_text(f'#!/bin/sh\necho "$1" >{opened}\n')
    program.chmod(0o755)
    return Browser(opened, {"BROWSER": f"{program} %s", "HOME": str(tmp_path)})


def entered(port: int, address: str) -> tuple[int, str]:
    """The status of a login with the code of an address, and who is logged in."""
    start, _, code = address.strip().partition("#")
    assert start == f"http://127.0.0.1:{port}/ui/login"
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    headers = {"content-type": "application/x-www-form-urlencoded", "origin": f"http://127.0.0.1:{port}"}
    line.request("POST", "/ui/do/login", urlencode({"code": code}), headers)
    answer = line.getresponse()
    answer.read()
    cookie = (answer.getheader("set-cookie") or "").partition(";")[0]
    line.request("GET", "/ui", headers={"cookie": cookie})
    shown = line.getresponse().read().decode()
    line.close()
    return answer.status, "".join(re.findall(r"<span>(key [^<]*)</span>", shown))


@pytest.mark.skipif(sys.platform == "win32", reason="the browser of the test is a script for sh")
def test_command_opens_the_console_in_the_browser(tmp_path: Path, browser: Browser) -> None:
    with serving(tmp_path / "data", QUIPU_MODEL="none") as server:
        done = ui(server.port, **browser.variables)
        assert (done.returncode, done.stderr) == (0, f"http://127.0.0.1:{server.port}/ui\n")
        assert browser.opened.read_text() == f"http://127.0.0.1:{server.port}/ui\n"


@pytest.mark.skipif(sys.platform == "win32", reason="the browser of the test is a script for sh")
def test_command_logs_the_browser_in_with_a_code_that_works_once(tmp_path: Path, browser: Browser) -> None:
    made, key = api_keys.create(tmp_path / "data", api_keys.Key("", "read", EXPIRED))
    with serving(tmp_path / "data", QUIPU_MODEL="none") as server:
        done = ui(server.port, "--key", "-", typed=f"{key}\n", **browser.variables)
        assert (done.returncode, done.stderr) == (0, f"http://127.0.0.1:{server.port}/ui\n")
        address = browser.opened.read_text()
        assert key not in address
        assert entered(server.port, address) == (303, f"key {made.id} · read · main")
        assert entered(server.port, address) == (401, "")
        assert key not in server.log()
        assert address.partition("#")[2].strip() not in server.log()


@pytest.mark.skipif(sys.platform == "win32", reason="the browser of the test is a script for sh")
def test_command_takes_the_key_of_a_client_of_this_machine(tmp_path: Path, browser: Browser) -> None:
    made, key = api_keys.create(tmp_path / "data", api_keys.Key("", "write", EXPIRED))
    with serving(tmp_path / "data", QUIPU_MODEL="none") as server:
        assert ui(server.port, **browser.variables).returncode == 0
        assert browser.opened.read_text() == f"http://127.0.0.1:{server.port}/ui\n"  # which asks for a key
        entries = {
            "elsewhere": {"url": "http://127.0.0.1:1/mcp", "headers": {"Authorization": f"Bearer {key}"}},
            "quipu": {"url": f"http://127.0.0.1:{server.port}/mcp", "headers": {"Authorization": f"Bearer {key}"}},
        }
        (tmp_path / ".cursor").mkdir()
        (tmp_path / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": entries}))
        assert ui(server.port, **browser.variables).returncode == 0
        assert entered(server.port, browser.opened.read_text()) == (303, f"key {made.id} · write · main")


@pytest.mark.skipif(sys.platform == "win32", reason="the browser of the test is a script for sh")
def test_command_refuses_a_key_that_the_server_does_not_know(tmp_path: Path, browser: Browser) -> None:
    api_keys.create(tmp_path / "data", api_keys.Key("", "read", EXPIRED))
    with serving(tmp_path / "data", QUIPU_MODEL="none") as server:
        for wrong, told in (("quipu_00000000_" + "A" * 43, "does not know that key"), ("a b", "printable ASCII")):
            done = ui(server.port, "--key", wrong, **browser.variables)
            assert (done.returncode, browser.opened.exists()) == (1, False)
            assert told in done.stderr
            assert wrong not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="the browser of the test is a script for sh")
def test_command_prints_the_address_with_the_code_where_no_browser_opens(tmp_path: Path) -> None:
    made, key = api_keys.create(tmp_path / "data", api_keys.Key("", "read", EXPIRED))
    with serving(tmp_path / "data", QUIPU_MODEL="none") as server:
        done = ui(server.port, "--key", key, BROWSER="false", PATH="/nowhere")
        first, second = done.stderr.splitlines()
        assert first == "No browser could be opened here."
        address, told = second.split(" ", 1)
        assert told == "opens it within 60 seconds, once."
        assert entered(server.port, address) == (303, f"key {made.id} · read · main")


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
