"""A fresh user's walk to the first memory that is found, in a terminal, by each of the three ways in of the README.

Each way has a home folder of its own, so that the caches of pip and uv are empty, and takes its packages from the
registries that the machine is configured for. Prints the commands, their seconds, and the longest silence of each.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from loadtests.lib.servers import ROOT, budget, budgets, finish, free_port, machine, options, table
from tests.packaging.containers import podman, settings, why_not
from tests.packaging.terminal import Terminal

_FACT, _QUESTION = "My automobile goes to the garage in May.", "vehicle maintenance"
_SILENT_SECONDS = 5.0
_MOST_SECONDS = {"uvx": 10.0, "clone": 45.0, "container": 60.0}
_TOOL_VARIABLES = ("PIP_", "UV_", "SSL_", "REQUESTS_", "HTTP", "CONTAINERS_")


class Step(NamedTuple):
    """A command that was typed: its seconds, and the longest time in which it printed nothing."""

    command: str
    seconds: float
    silence: float


class Walk:
    """A newcomer with an empty home folder, who types one command after another."""

    def __init__(self, home: Path, windows: ExitStack, programs: Path | None = None) -> None:
        home.mkdir()
        self.home, self.port, self.steps = home, free_port(), list[Step]()
        self._windows = windows
        path = [str(programs)] if programs else []
        self._environment = {
            **{name: value for name, value in settings().items() if name.startswith(_TOOL_VARIABLES)},
            "PATH": os.pathsep.join([*path, os.environ["PATH"]]),
            "HOME": str(home),
            "PORT": str(self.port),
            "TERM": "xterm",
            "LANG": "C.UTF-8",
        }
        of_pip = Path.home() / ".config" / "pip" / "pip.conf"
        if of_pip.exists():
            self._environment.setdefault("PIP_CONFIG_FILE", str(of_pip))

    def types(self, command: str, folder: Path, until: str = "") -> str:
        """Type a command, and wait for its end or for these words; return its output."""
        begun = latest = time.monotonic()
        silence, shown = 0.0, ""
        window = self._windows.enter_context(Terminal(command, folder, self._environment))
        for piece in window.pieces():
            now = time.monotonic()
            silence, latest, shown = max(silence, now - latest), now, shown + piece
            if until and until in shown:
                break
        now = time.monotonic()
        self.steps.append(Step(command, now - begun, max(silence, now - latest)))
        if until not in shown or (not until and window.status()):
            raise RuntimeError(f"{command} failed: {shown[-1500:]}")
        return shown

    def remembers(self, quipu: str, folder: Path) -> None:
        """Store a memory and find it by a question without a word of it."""
        self.types(f'{quipu} add "{_FACT}" --name car', folder)
        if "garage" not in self.types(f'{quipu} recall "{_QUESTION}"', folder):
            raise RuntimeError("the memory was not found")


def main(arguments: "list[str] | None" = None) -> int:
    """Walk each way; return 1 if one does not end with the memory."""
    chosen = options(__doc__, arguments, only={"nargs": "+", "default": list(_WAYS), "choices": list(_WAYS)})
    machine()
    complaints, promised = list[str](), list[tuple[str, str, str, str]]()
    for name in chosen.only:
        with tempfile.TemporaryDirectory() as folder, ExitStack() as windows:
            try:
                steps = _WAYS[name](Path(folder), windows)
            except RuntimeError as error:
                complaints.append(f"{name}: {error}")
                continue
        if isinstance(steps, str):
            print(f"\n{name}: {steps}")
            continue
        table(name, ("command", "seconds", "longest silence"), [_short(step) for step in steps])
        seconds = sum(step.seconds for step in steps)
        promised += [
            budget(f"{name}: seconds of {len(steps)} commands", seconds, _MOST_SECONDS[name]),
            budget(f"{name}: longest silence", max(step.silence for step in steps), _SILENT_SECONDS),
        ]
    budgets(promised)
    return finish(complaints)


def _short(step: Step) -> Step:
    return step._replace(command=step.command if len(step.command) < 70 else f"{step.command[:67]}...")


def _uvx(folder: Path, windows: ExitStack) -> "list[Step] | str":
    programs = _with_uv(folder / "tools")
    _run([sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder / "dist")])
    [wheel] = (folder / "dist").glob("*.whl")
    walk = Walk(folder / "home", windows, programs)
    quipu = f"uvx --from dist/{wheel.name} quipu-memory"
    walk.types(f"{quipu} setup --client cursor --stdio", folder)
    walk.remembers(quipu, folder)
    return walk.steps


def _with_uv(folder: Path) -> Path | None:
    """Return the folder of uv, which is installed where the machine has none; a user of uvx has it."""
    if shutil.which("uvx"):
        return None
    _run([sys.executable, "-m", "venv", str(folder)])
    _run([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "uv"])
    return folder / "bin"


def _clone(folder: Path, windows: ExitStack) -> "list[Step] | str":
    walk = Walk(folder / "home", windows)
    clone = walk.home / "quipu"
    walk.types(f"git clone --depth 1 file://{ROOT} quipu", walk.home)
    walk.types("make run", clone, until=f"http://127.0.0.1:{walk.port}/mcp")
    walk.types(".venv/bin/quipu setup --client cursor", clone)
    walk.remembers(".venv/bin/quipu", clone)
    return walk.steps


def _container(folder: Path, windows: ExitStack) -> "list[Step] | str":
    reason = why_not("localhost/quipu:edge")
    if reason:
        return reason
    walk = Walk(folder / "home", windows)
    run = f"podman run --detach --rm --publish 127.0.0.1:{walk.port}:7847 --env QUIPU_OPEN=1 --name quipu-{walk.port}"
    windows.callback(podman, "rm", "--force", "--time", "0", f"quipu-{walk.port}", check=False)
    walk.types(f"{run} localhost/quipu:edge", folder)
    _until_healthy(walk.port)
    walk.remembers(f"podman exec quipu-{walk.port} quipu", folder)
    return walk.steps


def _until_healthy(port: int) -> None:
    end = time.monotonic() + _MOST_SECONDS["container"]
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=1).close()
        except (OSError, urllib.error.URLError):
            time.sleep(0.1)
        else:
            return
    raise RuntimeError("the container does not answer")


def _run(command: "list[str]") -> None:
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:4])} failed: {done.stderr[-1500:]}")


_WAYS: Mapping[str, Callable[[Path, ExitStack], "list[Step] | str"]] = {
    "uvx": _uvx,
    "clone": _clone,
    "container": _container,
}


if __name__ == "__main__":
    raise SystemExit(main())
