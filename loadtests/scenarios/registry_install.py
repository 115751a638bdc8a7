"""Install programs from registries into throwaway environments, pinned by version."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from loadtests.lib.servers import ROOT

_SUITS = """
import sqlite3, sys
sys.exit(sys.version_info < (3, 11) or not hasattr(sqlite3.Connection, "enable_load_extension"))
"""
_NPM = ("npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts")


class Installed(NamedTuple):
    """A startable program, and the size of its environment in MB of 10**6 bytes."""

    program: str
    megabytes: float


def python_package(folder: Path, requirement: str, program: str) -> Installed:
    """A PyPI package in its own virtual environment."""
    bare = _environment(folder)
    _pip(folder, requirement)
    return _installed(folder, f"bin/{program}", bare)


def ours(folder: Path) -> Installed:
    """The wheel of this tree with the packages of its lock file."""
    bare = _environment(folder)
    wheels = folder.with_name("wheels")
    _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels)])
    _pip(folder, "--require-hashes", "-r", str(ROOT / ".ci" / "runtime.lock"))
    _pip(folder, "--no-deps", str(next(wheels.glob("*.whl"))))
    shutil.rmtree(wheels)
    return _installed(folder, "bin/quipu", bare)


def node_package(folder: Path, requirement: str, program: str) -> Installed:
    """An npm package in its own folder."""
    folder.mkdir(parents=True, exist_ok=True)
    _run([*_NPM, "--prefix", str(folder), requirement])
    return _installed(folder, f"node_modules/.bin/{program}", 0)


def _environment(folder: Path) -> int:
    """Create a virtual environment with a SQLite that can load extensions; return its size in bytes."""
    named = os.environ.get("PEERS_PYTHON")
    candidates = [named] if named else [sys.executable, "python3", "/usr/bin/python3", "python3.13", "python3.12"]
    for python in candidates:
        if shutil.which(python) and subprocess.run([python, "-c", _SUITS]).returncode == 0:
            _run([python, "-m", "venv", str(folder)])
            return _weight(folder)
    raise RuntimeError("no Python with a sqlite3 that loads extensions was found; name one in PEERS_PYTHON")


def _pip(folder: Path, *arguments: str) -> None:
    _run([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments])


def _installed(folder: Path, program: str, bare: int) -> Installed:
    return Installed(str(folder / program), (_weight(folder) - bare) / 1e6)


def _weight(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and not file.is_symlink())


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:4])} failed: {done.stderr[-1500:]}")
