"""The answers the contract shows as JSON, and the shape an answer has."""

import json
import re
from typing import Any

from tests.contracts.seed_texts import HERE, fences, sections


def example(tool: str) -> Any:
    """The answer of a tool as the contract shows it; omitted parts are empty."""
    (body,) = (
        body for name, body in sections((HERE / "brain.md").read_text(encoding="utf-8"), r"### `(\w+)`") if name == tool
    )
    (shown, *_) = fences(body.partition("**Returns**")[2])
    return json.loads(re.sub(r"/\*.*?\*/|(?<=[\[{ ])\.\.\.(?=[\]} ])", "", shown))


def shape(value: Any, under: str = "") -> Any:
    """Keys in order and kinds of value, a list by its first item; the content of `data` is ignored."""
    if under == "data":
        return type(value)
    if isinstance(value, dict):
        return [(key, shape(inner, key)) for key, inner in value.items()]
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return "number" if isinstance(value, int | float) else type(value).__name__
