"""The server reaches for nothing outside, runs nothing, and unpickles nothing, for any request."""

import ast
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from kernel.calls.dispatch import Dispatch
from kernel.core.config import Config
from kernel.server.app import open_kernel
from tests.catalogue import Catalogue
from tests.conftest import Call
from tests.reliability.server_process import Server
from tests.security.authenticated_server import House
from tests.security.calls import CALLS
from tests.unit.sql.code import ROOT, modules

URLS = (
    "http://127.0.0.1:9/x",
    "http://169.254.169.254/latest/",
    "https://example.invalid/a",
    "file:///etc/passwd",
    "//example.invalid/share",
    "\\\\example.invalid\\share",
    "ftp://example.invalid",
    "gopher://127.0.0.1:9/_x",
    "jar:http://127.0.0.1:9/!/",
    "memory://paths/../../x",
    "ldap://127.0.0.1:9/x",
    "http://[::1]:9/",
)
REACHING = (
    "socket.connect",
    "socket.getaddrinfo",
    "socket.gethostbyname",
    "socket.sendto",
    "urllib.Request",
    "os.system",
    "subprocess.Popen",
    "os.exec",
    "os.posix_spawn",
    "os.fork",
    "pty.spawn",
    "webbrowser.open",
)
FORBIDDEN_CALLS = {"eval", "exec", "__import__", "open_connection", "create_connection", "system", "popen"}
FORBIDDEN_IMPORTS = {
    "pickle",
    "marshal",
    "shelve",
    "subprocess",
    "yaml",
    "urllib.request",
    "http.client",
    "ftplib",
    "smtplib",
    "requests",
    "httpx",
    "aiohttp",
    "telnetlib",
    "xmlrpc",
    "multiprocessing",
    "ctypes",
}
# The effects of a command of the user: it asks servers of this machine how they are, and calls its service manager.
COMMANDS = {
    "kernel.cli.hook_client: create_connection",  # to the server that its client names
    "kernel.cli.exchange: import http.client",
    "kernel.cli.hook_client: import http.client",
    "kernel.cli.hook_files: import subprocess",  # quotes a command for Windows
    "kernel.cli.memory_commands: import http.client",
    "kernel.cli.memory_commands: import subprocess",  # runs the editor of the user
    "kernel.cli.probe: import http.client",
    "kernel.cli.service: import subprocess",
}
# Functions of the C library, by names that stand there: memory goes back to the system, a worker ends with its parent.
LIBRARY = {"kernel.server.process: import ctypes", "kernel.server.worker: import ctypes"}
YAML = {"kernel.core.yaml: import yaml"}  # the safe loader's parser; values are built without tags
_watched: list[list[str]] = []


def _hook(event: str, arguments: Any) -> None:
    if _watched and event in REACHING:
        _watched[-1].append(f"{event} {arguments!r:.200}")


sys.addaudithook(_hook)


@contextmanager
def watched() -> Iterator[list[str]]:
    """Record the accesses of the process within the block."""
    found: list[str] = []
    _watched.append(found)
    try:
        yield found
    finally:
        _watched.remove(found)


def asked() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every call with an address in the place of each text."""
    for (tool, _), arguments in CALLS.items():
        for field, value in arguments.items():
            if isinstance(value, str) and field != "action":
                for url in URLS:
                    yield tool, {**arguments, field: url}
            elif isinstance(value, list):
                yield tool, {**arguments, field: list(URLS)}


def test_no_argument_makes_the_server_reach_for_anything(
    tmp_path: Path, caller: Callable[[Dispatch], Call], catalogue: Catalogue
) -> None:
    running = open_kernel(Config(data=tmp_path / "data"))
    call, times = caller(running.dispatch), 0
    try:
        call("recall", query="x")  # the model is read
        with watched() as found:
            for tool, arguments in asked():
                call(tool, **arguments)
                times += 1
    finally:
        running.store.close()
    assert found == []
    catalogue("S17", injected="addresses as arguments", times=times, outcome="0 connections, 0 processes")


def _traces() -> bool:
    """Whether strace is there and may trace."""
    found = shutil.which("strace")
    return found is not None and subprocess.run([found, "-qq", "true"], capture_output=True).returncode == 0


@pytest.mark.skipif(not _traces(), reason="needs strace, and leave to trace")
def test_the_system_sees_no_connection_either(tmp_path: Path, catalogue: Catalogue) -> None:
    """From the first moment to the last, in all threads: native code is seen too."""
    trace, data = tmp_path / "trace", tmp_path / "data"
    seen = ["-f", "-qq", "-e", "trace=connect,sendto,execve", "-o", str(trace)]
    data.mkdir()
    server = Server(data, ["strace", *seen, sys.executable, "-m", "kernel", "serve"])
    (child,) = psutil.Process(server.process.pid).children()
    client, times = House(server.port, None, data), 0
    try:
        for tool, arguments in list(asked())[::11]:
            client.tool(tool, arguments)
            times += 1
    finally:
        client.close()
        child.terminate()
        server.process.wait(60)
    calls = re.findall(r"\b(?:connect|sendto|execve)\(.*", trace.read_text(errors="replace"))
    outward = [line for line in calls if not line.startswith(("execve", "sendto")) or "AF_INET" in line]
    assert [line for line in outward if "AF_UNIX" not in line] == []
    assert sum(line.startswith("execve") for line in calls) == 1
    catalogue("S17", injected="addresses, seen by strace", times=times, outcome="0 connections")


def test_nothing_is_run_that_came_as_text(catalogue: Catalogue) -> None:
    found: list[str] = []
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                named = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [str(node.module)]
                found += [f"{name}: import {one}" for one in named if one in FORBIDDEN_IMPORTS]
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if called in FORBIDDEN_CALLS or called.partition(".")[2] in FORBIDDEN_CALLS:
                    found.append(f"{name}: {called}")
    assert set(found) == COMMANDS | LIBRARY | YAML
    catalogue(
        "S30", injected="modules read for eval, pickle, processes and sockets", times=len(modules()), outcome="none"
    )


def test_every_package_is_pinned_by_its_hash(catalogue: Catalogue) -> None:
    """And none of them is one that a known weakness is of: below these versions each of ours has one."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pinned = {name.lower(): version for name, version in re.findall(r"^([A-Za-z0-9_.-]+)==(\S+)", text, re.M)}
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    allowed = re.findall(r'"([A-Za-z0-9_.-]+)(?:\[\w+\])?>=([0-9.]+)', project)
    blocks = re.split(r"^(?=[A-Za-z0-9_.-]+==)", text, flags=re.M)[1:]
    assert all("--hash=sha256:" in block for block in blocks)
    least = json.loads((Path(__file__).parent / "advisories.json").read_text(encoding="utf-8"))
    fixed = {name.lower(): version for name, (version, _) in least.items()}
    versions = [*pinned.items(), *((name.lower(), version) for name, version in allowed)]
    below = [f"{name} {version}" for name, version in versions if name in fixed and _lower(version, fixed[name])]
    assert below == []
    assert {"starlette", "pyjwt"} <= set(fixed) & set(pinned) & {name.lower() for name, _ in allowed}
    catalogue("S30", injected="packages of the lock", times=len(blocks), outcome="by hash, none known to be weak")


def _lower(version: str, fixed: str) -> bool:
    def parts(text: str) -> list[int]:
        return [int(part) for part in re.findall(r"\d+", text)[:3]]

    return parts(version) < parts(fixed)
