"""The output of commands: a line for people or JSON, colours on terminals, silent exit on a closed pipe."""

import errno
import io
import os
import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Literal, TextIO

import msgspec

from kernel.cli import local_client
from kernel.core.errors import NO_SPACE, Fault, is_disk_full
from kernel.core.ids import utc_now
from kernel.core.text import harmless
from kernel.core.times import COMING_WORDINGS, WORDINGS, coming_time, past_time, stored_time

Colour = Literal["green", "yellow", "red"]
_CODES: Mapping[Colour, int] = {"green": 32, "yellow": 33, "red": 31}
CLOSED_PIPE = 141  # 128 + SIGPIPE, the status of a program that the signal ended


def show(value: object, text: str, *, as_json: bool) -> None:
    print(msgspec.json.encode(value).decode() if as_json else text)


def note(text: str) -> None:
    """Print a remark on standard error, which a pipe does not get; a name in it gives a terminal no orders."""
    print(harmless(text), file=sys.stderr)


def confirm(question: str, command: str) -> None:
    """Ask a person; raises Fault if the answer is no, or if there is no terminal."""
    if not sys.stdin.isatty():
        raise Fault("invalid", f"{command} needs --yes if there is no terminal. Nothing was changed.")
    if input(f"{question} [y/N] ").strip().lower() not in {"y", "yes"}:
        raise Fault("invalid", "Nothing was changed.")


def local_time(at: str) -> str:
    return local_client.local_time(int(stored_time(at).timestamp()))


def moment(option: str, text: str) -> str:
    """Return the time that a person has typed, as it is stored; empty for none."""
    return _read(option, text, past_time, WORDINGS)


def coming_moment(option: str, text: str) -> str:
    """Return the time to come that a person has typed, as it is stored; empty for none."""
    return _read(option, text, coming_time, COMING_WORDINGS)


def _read(option: str, text: str, read: Callable[[str, datetime], str | None], wordings: str) -> str:
    now = datetime.fromisoformat(utc_now()).astimezone()
    at = read(text, now.replace(tzinfo=None))  # a day of summer has another zone than one of winter
    if text and at is None:
        raise Fault("invalid", f"{option} must be {wordings}.")
    return at or ""


def has_colours(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Return whether a stream is a terminal that has colours, and NO_COLOR does not forbid them."""
    able = stream.isatty() and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"
    # The console of Windows shows codes as they are, unless it is a terminal of today.
    return able and (sys.platform != "win32" or bool({"WT_SESSION", "TERM"} & set(environment)))


def paint(text: str, colour: Colour, stream: TextIO, environment: Mapping[str, str]) -> str:
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m" if has_colours(stream, environment) else text


def accept_any_text() -> None:
    """Let characters that the encoding of a stream lacks be written as escapes, such as \\u65e5."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def is_closed_pipe(error: OSError) -> bool:
    """Return whether the reader of the output has ended; Windows reports it by EINVAL."""
    return isinstance(error, BrokenPipeError) or (sys.platform == "win32" and error.errno == errno.EINVAL)


def discard_rest() -> None:
    """Drop buffered output, so that the interpreter can end without a complaint."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is None:
            continue
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def describe(fault: Fault) -> str:
    """Return the message of a fault, with the path of its file unless it names that or its folder."""
    cause = fault.__context__
    if is_disk_full(cause):
        return NO_SPACE
    path = str(cause.filename) if isinstance(cause, OSError) and cause.filename is not None else ""
    is_named = path in fault.message or str(Path(path).parent) in fault.message
    return fault.message if is_named else f"{fault.message} ({path})"
