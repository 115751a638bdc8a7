"""A server answers its health probe before the kernel is open, and lets calls wait for it."""

import asyncio
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from kernel.core.config import VERSION, Config
from kernel.core.limits import Limits
from kernel.server import server as serve
from kernel.server.app import open_kernel
from kernel.server.asgi import Application
from tests.reliability.server_process import ROOT, free_port, serving, until

ASKED = json.dumps({"path": "absent"}).encode()


async def asked(front: serve.StartupGate, method: str, path: str, body: bytes = b"") -> list[dict[str, Any]]:
    """Return the answer of the front to one request."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: Any) -> None:
        sent.append({**message, "headers": sorted(message["headers"])} if "headers" in message else dict(message))

    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers,
        "http_version": "1.1",
        "scheme": "http",
        "root_path": "",
    }
    await front(scope, receive, send)
    return sent


def response(status: int, body: bytes) -> list[dict[str, Any]]:
    head = [(b"content-length", b"%d" % len(body)), (b"content-type", b"application/json")]
    return [
        {"type": "http.response.start", "status": status, "headers": head},
        {"type": "http.response.body", "body": body},
    ]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_server_is_alive_and_not_ready_before_the_kernel_is_open(method: str) -> None:
    front = serve.StartupGate(Limits())
    assert asyncio.run(asked(front, method, "/healthz")) == response(200, b'{"status":"ok"}')
    assert asyncio.run(asked(front, method, "/readyz")) == response(503, b'{"status":"starting"}')


def test_early_call_waits_for_the_kernel(tmp_path: Path) -> None:
    kernel = open_kernel(Config(data=tmp_path))

    async def calls() -> list[list[dict[str, Any]]]:
        front = serve.StartupGate(Limits())
        early = asyncio.create_task(asked(front, "POST", "/tools/drop_memory", ASKED))
        await asyncio.sleep(0.05)
        assert not early.done()
        front.set_application(Application(kernel))
        late = await asked(front, "POST", "/tools/drop_memory", ASKED)
        health = await asked(front, "GET", "/healthz")
        return [await early, late, health]

    early, late, health = asyncio.run(calls())
    kernel.store.close()

    assert early == late
    assert early[0]["status"] == 404
    assert health == response(200, b'{"status":"ok"}')


def test_early_call_is_a_503_when_the_kernel_does_not_open() -> None:
    async def call() -> list[dict[str, Any]]:
        front = serve.StartupGate(Limits())
        early = asyncio.create_task(asked(front, "POST", "/tools/drop_memory", ASKED))
        await asyncio.sleep(0)
        front.set_application(None)
        return await early

    assert asyncio.run(call()) == response(503, b'{"error":{"code":"busy","message":"The server is stopping."}}')


def start(data: Path, port: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "kernel", "serve", "--data", str(data), "--port", str(port)]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)


def test_unusable_data_directory_ends_the_server_with_a_message(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("no folder")

    server = start(file, free_port())
    _, complaint = server.communicate(timeout=60)

    assert (server.returncode, complaint) == (
        1,
        f"quipu: Cannot use the data directory {file}: {file} is not a folder\n",
    )


def test_sigterm_during_startup_ends_the_server_cleanly(tmp_path: Path) -> None:
    port = free_port()
    server = start(tmp_path, port)

    def healthy() -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    until(healthy, "health")
    server.send_signal(signal.SIGTERM)
    _, complaint = server.communicate(timeout=60)

    assert server.returncode in {0, -signal.SIGTERM}
    assert "Traceback" not in complaint


def test_first_calls_of_many_callers_are_all_answered(tmp_path: Path) -> None:
    port = free_port()
    server = start(tmp_path, port)
    answers: list[int] = []

    def call() -> None:
        for _ in range(6000):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            try:
                connection.request("POST", "/tools/drop_memory", ASKED, {"content-type": "application/json"})
                answers.append(connection.getresponse().status)
                return
            except ConnectionRefusedError:
                time.sleep(0.01)
            finally:
                connection.close()

    callers = [threading.Thread(target=call) for _ in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    server.send_signal(signal.SIGTERM)
    server.communicate(timeout=60)

    assert answers == [404] * 8


def test_commands_find_the_server_of_the_data_directory_on_any_port(tmp_path: Path) -> None:
    data = tmp_path / "data"
    environment = {name: value for name, value in os.environ.items() if name not in {"HOST", "PORT"}}
    environment["QUIPU_DATA"] = str(data)

    def ran(*words: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "kernel", *words]
        process = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        return process.returncode, process.stdout

    def of_server(*words: str) -> list[str]:
        findings = map(json.loads, ran("doctor", "--json", *words)[1].splitlines())
        return [f"{found['grade']} {found['detail']}" for found in findings if found["subject"] == "server"]

    with serving(data) as server:
        assert ran("health") == (0, "")
        assert of_server() == [f"ok Quipu {VERSION} listens on 127.0.0.1:{server.port}"]
        other = free_port()
        assert of_server("--port", str(other)) == [f"hint nothing listens on 127.0.0.1:{other}"]
        assert f"http://127.0.0.1:{server.port}/mcp" in ran("setup", "--client", "cursor", "--print")[1]
