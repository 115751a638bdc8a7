"""A terminal window: a pseudo-terminal that a command runs on, as it would for a person at a keyboard."""

import errno
import os
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self

from tests.reliability.server_process import PATIENCE

_ROWS, _COLUMNS = 40, 120
_CTRL_C = b"\x03"
# Makes standard input the controlling terminal of a session of its own, so that Ctrl-C typed there becomes SIGINT.
_SESSION = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp("sh", ["sh", "-c", sys.argv[1]])
"""


class Terminal:
    """One command of a shell on a terminal of its own."""

    def __init__(self, command: str, folder: Path, environment: Mapping[str, str]) -> None:
        import pty
        import termios

        self._keyboard, screen = pty.openpty()
        termios.tcsetwinsize(screen, (_ROWS, _COLUMNS))
        arguments = [sys.executable, "-c", _SESSION, command]
        self._process = subprocess.Popen(
            arguments, cwd=folder, env=environment, stdin=screen, stdout=screen, stderr=screen
        )
        os.close(screen)

    def pieces(self) -> Iterator[str]:
        """Yield its output from now on, piece by piece as it comes."""
        while more := self._read():
            yield more.decode(errors="replace")

    def status(self) -> int:
        """Its exit status, once it has ended."""
        return self._process.wait(PATIENCE)

    def first_line(self) -> str:
        """Its first line of output."""
        shown = b""
        while not shown.endswith(b"\n") and (more := self._read()):
            shown += more
        return _text(shown)

    def press_ctrl_c(self) -> None:
        """Types Ctrl-C."""
        os.write(self._keyboard, _CTRL_C)

    def rest(self) -> tuple[str, int]:
        """Return its output from now on, and its exit status."""
        shown = b""
        while more := self._read():
            shown += more
        return _text(shown), self.status()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        """Ends the command if it still runs, as closing the window does."""
        os.close(self._keyboard)
        self._process.kill()
        self._process.wait(PATIENCE)

    def _read(self) -> bytes:
        assert select.select([self._keyboard], [], [], PATIENCE)[0], f"{self._process.args} shows nothing"
        try:
            return os.read(self._keyboard, 4096)
        except OSError as error:
            if error.errno == errno.EIO:  # how Linux says that nobody has the terminal open any more
                return b""
            raise


def _text(shown: bytes) -> str:
    return shown.decode().replace("\r\n", "\n")
