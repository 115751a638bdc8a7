"""The first ten minutes of a newcomer in two terminal windows, compared as a whole with the recording: with clients
and keys, and with memories on the command line.

The recording is the script too: `$ ` begins a command, `2$ ` one that goes on in the second window until `2^C`. After a
change of either, RECORD=1 .venv/bin/python -m pytest tests/packaging/test_first_minutes.py writes the output anew.
"""

import os
import re
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from kernel.core.config import DEFAULT_PORT, VERSION
from tests.contracts.pages import blocks
from tests.packaging.terminal import Terminal
from tests.reliability.server_process import ROOT, free_port

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the files of clients are elsewhere on other systems")

RECORDINGS = ("first_minutes.txt", "memory_minutes.txt")
PROGRAM = next(block.text for block in blocks("python") if block.name.startswith("README.md:"))
COMMAND = re.compile(r"^(?:\$ |2\$ |2\^C$).*$", re.MULTILINE)
CHANGING = (
    (re.compile(r"^.*\r(?!\n)", re.MULTILINE), ""),  # overwritten, as by a progress bar
    (re.compile(r"\x1b"), "^["),
    (re.compile(r"^[a-z0-9]{8}  (?=active)", re.MULTILINE), "KEY  "),
    (re.compile(r"(?<=% )[\d,]+ of [\d,]+.*$", re.MULTILINE), "PAGES of PAGES"),
    (re.compile(r"schema \d+, \d+ bytes"), "schema NUMBER, SIZE bytes"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)"), "TIME"),
    (re.compile(r"(?<!\d)\d{4}-\d\d-\d\d \d\d:\d\d (?:[A-Z]{3,4}|[+-]\d{2,4})"), "TIME"),
    (re.compile(r"(?<=quipu-)\d{8}T\d{6}Z"), "TIME"),
    (re.compile(r"( files?), \d+ bytes"), r"\1, SIZE bytes"),
    (re.compile(r"\b[\d,.]+ MiB"), "SIZE MiB"),
    (re.compile(r"SQLite [\d.]+"), "SQLite VERSION"),
    (re.compile(rf"\b{re.escape(VERSION)}\b"), "VERSION"),
)


class Newcomer:
    """A clone in a home folder of its own, and its two windows."""

    def __init__(self, home: Path, windows: ExitStack) -> None:
        self._windows = windows
        self._home, self._clone, self._port = home, home / "quipu", str(free_port())
        programs = self._clone / ".venv" / "bin"
        programs.mkdir(parents=True)
        for name in ("kernel", "handlers", "sql"):
            (self._clone / name).symlink_to(ROOT / name)
        (programs / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        (programs / "python").chmod(0o755)
        shutil.copy(ROOT / ".ci" / "quipu", programs)
        (self._clone / "car.py").write_text(self._with_port(PROGRAM))
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "PORT": self._port,
            "TERM": "xterm",
            "LANG": "C.UTF-8",
            "PYTHON_COLORS": "0",  # argparse of Python 3.14 colours help
        }

    def types(self, line: str) -> str:
        """Return the output for a line of the recording without parts that differ from run to run."""
        marker, _, command = line.partition(" ")
        if marker == "$":
            return self._ended(self._window(command))
        if marker == "2$":
            self._second = self._window(command)
            return self._normalized(self._second.first_line())
        self._second.press_ctrl_c()
        return self._ended(self._second)

    def _window(self, command: str) -> Terminal:
        return self._windows.enter_context(Terminal(self._with_port(command), self._clone, self._environment))

    def _ended(self, window: Terminal) -> str:
        shown, status = window.rest()
        status = status if status >= 0 else 128 - status  # as shells report a signal
        return self._normalized(shown) + (f"(exit status {status})\n" if status else "")

    def _with_port(self, text: str) -> str:
        return text.replace(str(DEFAULT_PORT), self._port)

    def _normalized(self, shown: str) -> str:
        shown = shown.replace(str(self._home), "/home/ada").replace(self._port, str(DEFAULT_PORT))
        for pattern, name in CHANGING:
            shown = pattern.sub(name, shown)
        return shown if shown.endswith("\n") or not shown else f"{shown}\n"


@pytest.mark.parametrize("name", RECORDINGS)
def test_first_ten_minutes_show_what_was_recorded(name: str, tmp_path: Path) -> None:
    recording = Path(__file__).with_name(name)
    recorded = recording.read_text(encoding="utf-8")
    with ExitStack() as windows:
        newcomer = Newcomer(tmp_path, windows)
        shown = "".join(f"{line}\n{newcomer.types(line)}" for line in COMMAND.findall(recorded))
    if os.environ.get("RECORD"):
        recording.write_text(shown, encoding="utf-8")
    else:
        assert shown == recorded
