"""Texts that a person types: as an option, on standard input, or in an editor."""

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from kernel.core.errors import Fault

_STDIN = "-"
_PREFIX = "quipu-edit-"


def checked(asked: dict[str, Any]) -> dict[str, Any]:
    """Return the same; raises Fault("invalid") if an argument of the command line held bytes that are no text."""
    for name, value in asked.items():
        for one in cast("list[object]", value) if isinstance(value, list) else [value]:
            if isinstance(one, str):
                _check(name, one)
    return asked


def _check(name: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Fault("invalid", f"{name}: these bytes are no text in UTF-8; nothing was written.") from None


def to_add(given: str | None, environment: Mapping[str, str]) -> str:
    """Return the text of a new memory; raises Fault if there is none."""
    if given is not None and given != _STDIN:
        text = given
    elif given is None and sys.stdin.isatty():
        text = _from_editor("", environment)
    else:
        text = _from_stdin()
    if not text.strip():
        raise Fault("invalid", "text: is empty; nothing was written.")
    return text


def to_edit(given: str | None, before: str, environment: Mapping[str, str]) -> str:
    """Return the new text of a memory."""
    if given == _STDIN:
        return _from_stdin()
    return _from_editor(before, environment) if given is None else given


def kept(text: str) -> Path:
    """Return the name of a new file with the text, for its owner alone."""
    descriptor, name = tempfile.mkstemp(prefix=_PREFIX, suffix=".md")
    with os.fdopen(descriptor, "wb") as file:
        file.write(text.encode())
    return Path(name)


def _from_stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise Fault("invalid", f"text: byte {error.start} is no text in UTF-8; nothing was written.") from None


def _from_editor(before: str, environment: Mapping[str, str]) -> str:
    """Return a text as a person has edited it, without the line end that editors add at the end of a file."""
    file = kept(before)
    command = environment.get("VISUAL") or environment.get("EDITOR") or ("notepad" if sys.platform == "win32" else "vi")
    try:
        status = subprocess.run([*_words(command), str(file)], check=False).returncode  # noqa: S603  # chosen by the user
    except OSError as error:
        file.unlink()
        raise Fault("invalid", f"Cannot run the editor {command}: {error.strerror}; EDITOR names another.") from None
    if status:
        raise Fault("invalid", f"The editor has ended with status {status}; nothing was written. See {file}.")
    try:
        text = file.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise Fault("invalid", f"{file}: byte {error.start} is no text in UTF-8; nothing was written.") from None
    file.unlink()
    return text if before.endswith("\n") else text.removesuffix("\n").removesuffix("\r")


def _words(command: str) -> list[str]:
    """Return the words of a command; on Windows a backslash is part of a path."""
    return shlex.split(command, posix=sys.platform != "win32")
