"""Podman, where it is, and servers in containers."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.packaging.programs import Running, environment
from tests.reliability.server_process import ROOT, free_port, until

LATEST, EDGE, BASE = "localhost/quipu:latest", "localhost/quipu:edge", "localhost/quipu-base"
USER = 65532
_REASON = ROOT / "build" / "container.skipped"
# The most that a container may do: no writing but to its data and a small /tmp that nothing may run from, no rights.
CONFINED = (
    "--read-only",
    "--tmpfs",
    "/tmp:noexec,size=16m,mode=1777",
    "--cap-drop",
    "ALL",
    "--security-opt",
    "no-new-privileges",
    "--memory",
    "256m",
    "--pids-limit",
    "64",
)


def settings() -> dict[str, str]:
    """Variables for podman, also where no systemd runs."""
    beside = {"CONTAINERS_CONF": str(ROOT / ".ci" / "ship" / "containers.conf")}
    return environment(**({} if Path("/run/systemd/system").is_dir() else beside))


def podman(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Runs podman; its output, and its errors where it fails."""
    done = subprocess.run(["podman", *arguments], env=settings(), capture_output=True, text=True, timeout=300)
    assert not check or done.returncode == 0, done.stderr
    return done


def why_not(image: str) -> str:
    """The reason why containers of this image cannot run here; empty if they can."""
    if _REASON.exists():
        return f"no containers here: {_REASON.read_text(encoding='utf-8').strip()}"
    if os.name != "posix" or os.geteuid() != 0:
        return "no containers here: only root may run them"
    if shutil.which("podman") is None:
        return "no containers here: make container installs podman and builds them"
    return "" if podman("image", "exists", image, check=False).returncode == 0 else f"make container makes no {image}"


def needs(image: str) -> None:
    """Skips a test that cannot run here."""
    if reason := why_not(image):
        pytest.skip(reason)


class Container(Running):
    """A server in a container of its own, with `data` as its volume."""

    def __init__(self, image: str, data: Path, *options: str, port: int = 7847) -> None:
        super().__init__(free_port())
        data.mkdir(exist_ok=True)
        os.chown(data, USER, USER)
        self.data = data
        where = ["--publish", f"127.0.0.1:{self.port}:{port}", "--volume", f"{data}:/data"]
        self.id = podman("run", "--detach", *where, *CONFINED, *options, image).stdout.strip()

    def healthy(self) -> bool:
        """Whether /healthz answers; a container that has ended is an error."""
        assert self.inspect("{{.State.Running}}") == "true", podman("logs", self.id).stderr
        return super().healthy()

    def inspect(self, what: str) -> str:
        """Return a part of its state as podman has it."""
        return podman("inspect", "--format", what, self.id).stdout.strip()

    def stop(self) -> int:
        """SIGTERM, and ten seconds to follow it; the exit status."""
        podman("stop", "--time", "10", self.id)
        return int(self.inspect("{{.State.ExitCode}}"))

    def start(self) -> None:
        """Starts it again; asking podman whether it runs would take longer than the program does."""
        podman("start", self.id)
        until(super().healthy, "the container, started again")


@contextmanager
def contained(image: str, data: Path, *options: str, port: int = 7847) -> Iterator[Container]:
    """A healthy container, gone at the end of the block in any case."""
    container = Container(image, data, *options, port=port)
    try:
        until(container.healthy, f"a container of {image}")
        yield container
    finally:
        podman("rm", "--force", "--time", "0", container.id, check=False)


@contextmanager
def booted(*folders: str) -> Iterator[str]:
    """The id of a container with systemd as its first process."""
    volumes = [option for folder in folders for option in ("--volume", folder)]
    init = "/lib/systemd/systemd"
    container = podman("run", "--detach", "--privileged", "--systemd", "always", *volumes, BASE, init).stdout.strip()
    state = ("exec", container, "systemctl", "is-system-running")
    try:
        until(lambda: podman(*state, check=False).stdout.strip() in {"running", "degraded"}, "systemd")
        yield container
    finally:
        podman("rm", "--force", "--time", "0", container, check=False)
