"""A parser for JSON with comments and trailing commas that keeps the span of every value."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from kernel.core.errors import Fault
from kernel.core.lazy_regex import regex

_BLANK = regex(r"(?:[ \t\r\n\ufeff]|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = regex(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = regex(r"true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_MAX_DEPTH = 100  # nested values; the parser recurses three frames a level, Python allows 1,000


class Node(NamedTuple):
    """A parsed JSON value and its span; its `members` are (key or number, offset of the member, value)."""

    start: int
    end: int
    value: Any
    members: tuple[tuple[str | int, int, "Node"], ...] = ()


def parse(text: str) -> Node | None:
    """Return the root value, None if the text holds none; raises Fault("invalid") with line and column."""
    start = skip_blank(text, 0)
    if start == len(text):
        return None
    node = _value(text, start, 0)
    end = skip_blank(text, node.end)
    if end < len(text):
        raise _syntax_error(text, end)
    return node


def _value(text: str, at: int, depth: int) -> Node:
    if depth > _MAX_DEPTH:
        raise _syntax_error(text, at)
    if text[at : at + 1] == "{":
        return _object(text, at, depth)
    if text[at : at + 1] == "[":
        pairs = list(_items(text, at, "]", depth))
        items = tuple((number, start, node) for number, (start, node) in enumerate(pairs) if node)
        return Node(at, pairs[-1][0], [node.value for *_, node in items], items)
    scalar = _STRING.match(text, at) or _SCALAR.match(text, at)
    if scalar is None:
        raise _syntax_error(text, at)
    return Node(at, scalar.end(), _scalar(text, scalar))


def _object(text: str, at: int, depth: int) -> Node:
    items = list(_items(text, at, "}", depth))
    members = tuple(
        (cast("str", _scalar(text, _string(text, start))), start, node) for start, node in items[:-1] if node
    )
    return Node(at, items[-1][0], {name: node.value for name, _, node in members}, members)


def _items(text: str, at: int, close: str, depth: int) -> Iterator[tuple[int, Node | None]]:
    """Yield (offset, value) for each item of a bracket, and last (offset after the bracket, None)."""
    at = skip_blank(text, at + 1)
    while text[at : at + 1] != close:
        start = at
        if close == "}":
            at = skip_blank(text, _string(text, at).end())
            if text[at : at + 1] != ":":
                raise _syntax_error(text, at)
            at = skip_blank(text, at + 1)
        node = _value(text, at, depth + 1)
        yield start, node
        at = skip_blank(text, node.end)
        if text[at : at + 1] == ",":
            at = skip_blank(text, at + 1)
        elif text[at : at + 1] != close:
            raise _syntax_error(text, at)
    yield at + 1, None


def _string(text: str, at: int) -> re.Match[str]:
    match = _STRING.match(text, at)
    if match is None:
        raise _syntax_error(text, at)
    return match


def _scalar(text: str, match: re.Match[str]) -> Any:
    try:
        return json.loads(match[0])
    except ValueError:
        raise _syntax_error(text, match.start()) from None


def skip_blank(text: str, at: int) -> int:
    """Return the offset behind blanks and comments."""
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _syntax_error(text: str, at: int) -> Fault:
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    return Fault("invalid", f"invalid JSON at line {line}, column {column}")
