"""Arguments as what a tool takes, and what is wrong with them, in words that name the field."""

import re
from collections.abc import Callable
from typing import Any

import msgspec

from kernel.lazy_regex import regex
from kernel.tools import Misread, Tool

_PLACE = regex(r" - at `\$\.?([^`]*)`\Z")
_FIELD = regex(r"Object (missing required|contains unknown) field `(.*)`", re.DOTALL)


def decoder(request: Any) -> Callable[[Any], Any]:
    """Decodes JSON to `request`; made at its first use, since a start would wait for all of them."""
    made: list[Callable[[Any], Any]] = []

    def decode(arguments: Any) -> Any:
        if not made:
            made.append(msgspec.json.Decoder(request).decode)
        return made[0](arguments)

    return decode


def argument_message(error: Exception) -> str:
    """What is wrong with the arguments, in words that name the field."""
    if isinstance(error, msgspec.ValidationError):
        text = (
            str(error).replace("`$.", "`").replace("Object missing", "Missing").replace("Object contains", "Contains")
        )
        return f"Invalid arguments: {text[:1].lower()}{text[1:]}"
    return "Invalid arguments: not valid JSON"


def misread(tool: Tool, error: Exception) -> Misread:
    """Which field of the arguments does not fit, and in what way."""
    if not isinstance(error, msgspec.ValidationError):
        return Misread(tool, "unreadable", "", argument_message(error))
    text = str(error)
    place = _PLACE.search(text)
    path, said = (place[1], text[: place.start()]) if place else ("", text)
    named = _FIELD.fullmatch(said)
    if named is None:
        return Misread(tool, "wrong", path, said)
    field = f"{path}.{named[2]}" if path else named[2]
    return Misread(tool, "missing" if named[1].startswith("missing") else "unknown", field, said)
