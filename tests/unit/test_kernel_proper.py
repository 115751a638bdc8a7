"""The packages a served call passes through serve calls and pass their tests if all other packages are deleted."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.reliability.server_process import ROOT, free_port, until

pytestmark = pytest.mark.slow

DELETED = ("kernel/observe", "kernel/engines/postgres", "handlers/console", "handlers/importers")
PACKAGES = "core store engines/sqlite search embed calls security mcp http server".split()
# These reach the kernel through commands, or compare it with the deleted parts.
OF_OTHER_PACKAGES = (
    "calls/test_dispatch_observers.py",
    "core/test_ordinary_files.py",
    "http/test_openapi.py",
    "store/test_audit.py",
    "store/test_long_work_progress.py",
)
_LOADED = "import sys, kernel.cli.main; print(*(name for name in sys.modules if name.startswith('kernel.cli.')))"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout without other packages, and of the command line with the modules that every command loads."""
    root = tmp_path_factory.mktemp("proper")
    ignored = shutil.ignore_patterns("__pycache__", "node_modules", ".*")
    for name in ("docs", "handlers", "kernel", "loadtests", "sql", "tests"):
        shutil.copytree(ROOT / name, root / name, ignore=ignored)
    for file in ROOT.glob("*.*"):
        if file.is_file():
            shutil.copy(file, root)
    for name in DELETED:
        shutil.rmtree(root / name)
    loaded = {name.rpartition(".")[2] for name in _run(root, "-c", _LOADED).split()}
    for file in (root / "kernel" / "cli").glob("*.py"):
        if file.stem not in {"__init__", "entry", *loaded}:
            file.unlink()
    return root


def test_it_serves_a_write_and_a_recall(copy: Path, tmp_path: Path) -> None:
    with _served(copy, tmp_path) as address:
        added = _ask(address, "add_memory", {"path": "a", "content": "deploys need two reviewers"})
        assert added.startswith("status: ok\n")
        hits = json.loads(_ask(address, "recall", {"query": "reviewers"}))["memories"]
        assert [hit["id"] for hit in hits] == ["paths/a"]


def test_its_tests_pass(copy: Path) -> None:
    folders = [f"tests/unit/{name}" for name in PACKAGES]
    ignored = [f"--ignore=tests/unit/{name}" for name in OF_OTHER_PACKAGES]
    options = ("-q", "-m", "quick and not hypothesis", "-n", "2", "-p", "no:cacheprovider")
    _run(copy, "-m", "pytest", *options, *ignored, *folders)


@contextmanager
def _served(root: Path, data: Path) -> Iterator[str]:
    port = free_port()
    command = [sys.executable, "-m", "kernel", "serve", "--port", str(port), "--data", str(data)]
    with subprocess.Popen(command, cwd=root, env=os.environ | {"QUIPU_UI": "0"}) as server:
        try:
            until(lambda: _is_ready(port), "an answer of the server")
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


def _is_ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz").is_success
    except httpx.TransportError:
        return False


def _ask(address: str, tool: str, arguments: dict[str, str]) -> str:
    return httpx.post(f"{address}/tools/{tool}", json=arguments).text


def _run(root: Path, *arguments: str) -> str:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=root, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout
