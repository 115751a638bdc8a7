"""Reads YAML of other programs: PyYAML's safe parser, with bounds, without anchors, tags and repeated keys."""

import math
import re
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from kernel.core.lazy_regex import regex

if TYPE_CHECKING:
    from yaml import Event

_MAX_DEPTH = 96  # levels; values of an import nest up to 64 deep, the document around them adds less than 10
_MAX_INT_DIGITS = 1000  # int() takes quadratic time and refuses more than 4300 digits
_MAX_KEY_SHOWN = 40
_NUMBER = regex(r"[-+]?(?:0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?", re.ASCII)
# YAML has these as escapes only. Found here because libyaml reports a byte and PyYAML a character, and neither a line.
_NOT_PRINTABLE = regex(r"[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SURROGATE = regex(r"[\ud800-\udfff]")
_CONSTANTS = {"": None, "~": None, "null": None, "true": True, "false": False}


def read(text: str, max_nodes: int | None = None, max_depth: int = _MAX_DEPTH) -> Any:
    """Return the value of a YAML document of at most `max_nodes` scalars, lists and mappings; None if it is
    empty.

    Plain scalars are resolved as in JSON: all but numbers, `true`, `false` and `null` are strings, and so is every key.
    Raises ValueError naming the line for malformed YAML and for anchors, aliases, tags, repeated keys, several
    documents and more than `max_depth` levels.
    """
    import yaml

    text = text.removeprefix("\ufeff")
    if match := _NOT_PRINTABLE.search(text):
        raise _error(text.count("\n", 0, match.start()), f"the character U+{ord(match[0]):04X} must be escaped")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast if PyYAML was built with libyaml
    events = cast("Iterator[Event]", yaml.parse(text, Loader=loader))
    return _document(_Parser(events, yaml, max_nodes or math.inf, max_depth))


class _Parser(Struct):
    """The events of the parser, the line and number of those read, and the bound that stops it."""

    events: "Iterator[Event]"
    yaml: ModuleType
    max_nodes: float
    max_depth: int
    nodes: int = 0
    line: int = 0


def _error(line: int, problem: str) -> ValueError:
    return ValueError(f"line {line + 1}: {problem}")


def _document(parser: _Parser) -> Any:
    _next(parser)  # StreamStartEvent
    if isinstance(_next(parser), parser.yaml.StreamEndEvent):
        return None
    value = _node(parser, _next(parser), 0)
    _next(parser)  # DocumentEndEvent
    if not isinstance(_next(parser), parser.yaml.StreamEndEvent):
        raise _error(parser.line, "a second document begins")
    return value


def _next(parser: _Parser) -> Any:
    try:
        event = next(parser.events)
    except parser.yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _error(mark.line if mark else parser.line, error.problem or "malformed") from None
    except (ValueError, OverflowError):  # PyYAML's own parser calls chr() on any number of an escape
        raise _error(parser.line, "an escape beyond U+10FFFF") from None
    parser.line = event.start_mark.line  # pyrefly: ignore[missing-attribute]
    return event


def _node(parser: _Parser, event: Any, depth: int) -> Any:
    _check(parser, event, depth)
    if isinstance(event, parser.yaml.ScalarEvent):
        return _resolve(event.value) if event.implicit[0] else _text(parser, event)
    if isinstance(event, parser.yaml.MappingStartEvent):
        return _mapping(parser, depth + 1)
    items: list[Any] = []
    while not isinstance(item := _next(parser), parser.yaml.SequenceEndEvent):
        items.append(_node(parser, item, depth + 1))
    return items


def _mapping(parser: _Parser, depth: int) -> dict[str, Any]:
    pairs: dict[str, Any] = {}
    while not isinstance(event := _next(parser), parser.yaml.MappingEndEvent):
        _check(parser, event, depth)
        if not isinstance(event, parser.yaml.ScalarEvent):
            raise _error(parser.line, "a key must be a string")
        key = _text(parser, event)
        if key in pairs:
            raise _error(parser.line, f"duplicate key {key[:_MAX_KEY_SHOWN]}")
        pairs[key] = _node(parser, _next(parser), depth)
    return pairs


def _check(parser: _Parser, event: Any, depth: int) -> None:
    parser.nodes += 1
    if event.anchor is not None:
        raise _error(parser.line, "anchors and aliases (& and *) are not read")
    if event.tag is not None:
        raise _error(parser.line, "tags (!) are not read")
    if depth > parser.max_depth:
        raise _error(parser.line, f"more than {parser.max_depth} levels")
    if parser.nodes > parser.max_nodes:
        raise _error(parser.line, f"more than {parser.max_nodes} values")


def _text(parser: _Parser, event: Any) -> str:
    text: str = event.value
    if not text.isascii() and _SURROGATE.search(text):  # PyYAML's own parser takes them as escapes
        raise _error(parser.line, "an escape for half a surrogate pair")
    return text


def _resolve(word: str) -> Any:
    """Return a plain scalar as JSON has it; numbers that Python cannot hold stay text."""
    if word in _CONSTANTS:
        return _CONSTANTS[word]
    number = _NUMBER.fullmatch(word)
    if number is None:
        return word
    if number[1] or number[2]:
        value = float(word)
        return value if math.isfinite(value) else word
    return int(word) if len(word) <= _MAX_INT_DIGITS else word
