"""A clone: `make run` installs the needs of a run, and `.venv/bin/quipu` is the command, called from anywhere."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernel.core.config import VERSION
from tests.packaging.programs import environment, running
from tests.reliability.server_process import ROOT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="make and sh are those of POSIX")

CODE = ("kernel", "handlers", "sql")
INSTALLED_MB = 200


def printed(*command: str | Path, **more: str) -> str:
    done = subprocess.run(command, cwd="/", env=environment(**more), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def command(tmp_path: Path) -> Path:
    """The command in a folder with a blank in its name, whose Python is that of the tests."""
    programs = tmp_path / "a clone" / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in CODE:
        (tmp_path / "a clone" / name).symlink_to(ROOT / name)
    (programs / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (programs / "python").chmod(0o755)
    return Path(shutil.copy(ROOT / ".ci" / "quipu", programs / "quipu"))


def test_command_of_a_clone_runs_from_any_folder_and_through_a_link(command: Path, tmp_path: Path) -> None:
    link = tmp_path / "quipu"
    link.symlink_to(command)
    assert [printed(command, "--version"), printed(link, "--version")] == [f"quipu {VERSION}\n"] * 2


def test_clients_start_the_command_of_a_clone(command: Path, tmp_path: Path) -> None:
    shown = printed(command, "setup", "--client", "cursor", "--stdio", "--print", HOME=str(tmp_path))
    words = ["stdio", "--dialect", "paths", "--dialect", "common"]
    assert json.loads(shown) == {"mcpServers": {"quipu": {"command": str(command), "args": words}}}


@pytest.mark.parametrize("status", [0, 3])
def test_what_takes_long_while_an_environment_is_made_is_never_silent(status: int) -> None:
    words = [ROOT / ".ci" / "patience", "sh", "-c", f"sleep 3; exit {status}"]
    done = subprocess.run(words, capture_output=True, text=True, env=environment(PATIENCE="1"), timeout=60)
    assert (done.returncode, done.stdout, done.stderr[:22]) == (status, "", "  still at it, 1 s\n  s")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    makers = [line for line in makefile.splitlines() if " pip install --" in line or " -m pip install $(PIP)" in line]
    assert [line for line in makers if ".ci/patience" not in line] == []


@pytest.mark.ship
def test_make_run_installs_only_what_running_needs(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    for name in (*CODE, ".ci"):
        shutil.copytree(ROOT / name, clone / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
    for name in ("Makefile", "requirements.lock", "LICENSE"):
        shutil.copy(ROOT / name, clone)
    printed("make", "-C", clone, ".venv/.run")
    size = sum(file.lstat().st_size for file in (clone / ".venv").rglob("*") if file.is_file()) / 1e6
    assert size <= INSTALLED_MB
    with running([str(clone / ".venv" / "bin" / "quipu")], tmp_path / "data") as server:
        server.add("car", "My automobile goes to the garage in May.")
        assert server.finds("car", "vehicle maintenance")
