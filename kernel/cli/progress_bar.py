"""How far a command is, as a bar on a terminal."""

import shutil
import time
from typing import TextIO

_INTERVAL = 0.1
_NARROW = 20
_WORTH_SAYING = 3.0


class Bar:
    """Draws itself over itself on a terminal, and nothing anywhere else; call it with the steps done and known of."""

    def __init__(self, what: str, stream: TextIO) -> None:
        self._what = what
        self._stream = stream
        self._shown = stream.isatty()
        self._begun = 0.0
        self._next = 0.0
        self._drawn = ""

    def __call__(self, done: int, total: int) -> None:
        """Shows so many steps of so many."""
        now = time.monotonic()
        self._begun = self._begun or now
        if self._shown and (now >= self._next or done == total):
            self._next = now + _INTERVAL
            self._draw(line(self._what, done, total, now - self._begun, shutil.get_terminal_size().columns))

    def close(self) -> None:
        """Leaves the last state on a line of its own."""
        if self._drawn:
            self._stream.write("\n")
            self._stream.flush()
            self._drawn = ""

    def _draw(self, text: str) -> None:
        self._stream.write(f"\r{text.ljust(len(self._drawn))}")
        self._stream.flush()
        self._drawn = text


def line(what: str, done: int, total: int, seconds: float, columns: int) -> str:
    """One line of less than `columns`: a bar, how much of it is done, and how long the rest takes at this pace."""
    share = min(1.0, done / total) if total else 1.0
    left = seconds / share - seconds if share else 0.0
    rest = f" {left:.0f} s left" if seconds > 1 and left > _WORTH_SAYING else ""
    told = f" {share:4.0%} {done:,} of {total:,}{rest}"
    width = min(40, columns - len(what) - len(told) - 4)
    if width < _NARROW:
        return f"{what}{told}"[: columns - 1]
    full = round(share * width)
    return f"{what} [{'#' * full}{'-' * (width - full)}]{told}"
