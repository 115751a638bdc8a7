"""A progress bar on a terminal."""

import shutil
import sys
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import TextIO

_REDRAW_SECONDS = 0.1
_WORKING_SECONDS = 1.0
_MIN_BAR_COLUMNS = 20  # narrower terminals get the numbers alone
_MINUTE, _HOUR = 60, 3600
_SLOW = 10  # steps a second, below which tenths are shown
_MIN_SECONDS_LEFT = 3.0  # shorter estimates are not shown


class ProgressBar:
    """Redraws one line on a terminal and writes nothing elsewhere; call it with the steps done and in total.

    Until the first step it shows for how long the work goes on, as it counts its steps.
    """

    def __init__(self, label: str, stream: TextIO) -> None:
        self._label = label
        self._stream = stream
        self._enabled = stream.isatty()
        self._started = 0.0
        self._next_redraw = 0.0
        self._drawn = ""
        self._until_steps = ExitStack()
        self._until_steps.enter_context(working(label, stream))

    def __call__(self, steps: int, total: int) -> None:
        self._until_steps.close()
        now = time.monotonic()
        self._started = self._started or now
        if self._enabled and (now >= self._next_redraw or steps == total):
            self._next_redraw = now + _REDRAW_SECONDS
            self._draw(render(self._label, steps, total, now - self._started, shutil.get_terminal_size().columns))

    def close(self) -> None:
        self._until_steps.close()
        if self._drawn:
            self._stream.write("\n")
            self._stream.flush()
            self._drawn = ""

    def _draw(self, text: str) -> None:
        self._stream.write(f"\r{text.ljust(len(self._drawn))}")
        self._stream.flush()
        self._drawn = text


@contextmanager
def working(label: str, stream: TextIO | None = None) -> Generator[None]:
    """Show on a terminal for how long work goes on that counts no steps."""
    ended, stream = threading.Event(), stream or sys.stderr
    thread = threading.Thread(target=_draw_seconds, args=(label, stream, ended), daemon=True)
    if stream.isatty():
        thread.start()
    try:
        yield
    finally:
        ended.set()
        if thread.ident is not None:
            thread.join()


def _draw_seconds(label: str, stream: TextIO, ended: threading.Event) -> None:
    started, text = time.monotonic(), ""
    while not ended.wait(_WORKING_SECONDS):
        text = f"{label} {_duration(time.monotonic() - started)}"
        _write(stream, text)
    if text:
        _write(stream, " " * len(text))


def _write(stream: TextIO, text: str) -> None:
    stream.write(f"{text}\r")  # the next line of output begins over it
    stream.flush()


def render(label: str, steps: int, total: int, seconds: float, columns: int) -> str:
    """Return one line shorter than `columns`: bar, percentage, counts, steps a second and the estimated time left."""
    share = min(1.0, steps / total) if total else 1.0
    left = seconds / share - seconds if share else 0.0
    speed = steps / seconds if seconds > 1 else 0.0
    rate = f" {speed:,.{int(speed < _SLOW)}f}/s" if speed else ""
    rest = f" {_duration(left)} left" if seconds > 1 and left > _MIN_SECONDS_LEFT else ""
    status = f" {share:4.0%} {steps:,} of {total:,}{rate}{rest}"
    width = min(40, columns - len(label) - len(status) - 4)
    if width < _MIN_BAR_COLUMNS:
        return f"{label}{status}"[: columns - 1]
    full = round(share * width)
    return f"{label} [{'#' * full}{'-' * (width - full)}]{status}"


def _duration(seconds: float) -> str:
    if seconds < 2 * _MINUTE:
        return f"{seconds:.0f} s"
    return f"{seconds / _MINUTE:.0f} min" if seconds < 2 * _HOUR else f"{seconds / _HOUR:.1f} h"
