"""Reads the YAML of an export: PyYAML's safe parser, with bounds and without anchors, tags and repeated keys."""

import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from kernel.lazy_regex import regex

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


def read(text: str, max_nodes: int | None = None) -> Any:
    """The value of a YAML document of at most `max_nodes` scalars, lists and mappings; None where it is empty.

    Plain scalars are resolved as in JSON: what is no number, `true`, `false` or `null` is a string, and so is every
    key. Raises ValueError naming the line for malformed YAML and for anchors, aliases, tags, repeated keys, several
    documents and more than 96 levels.
    """
    import yaml

    text = text.removeprefix("\ufeff")
    if found := _NOT_PRINTABLE.search(text):
        raise _error(text.count("\n", 0, found.start()), f"the character U+{ord(found[0]):04X} must be escaped")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast where PyYAML was built with libyaml
    events = cast("Iterator[Event]", yaml.parse(text, Loader=loader))  # pyright: ignore[reportUnknownMemberType]
    return _Composer(events, max_nodes).document()


def _error(line: int, problem: str) -> ValueError:
    return ValueError(f"line {line + 1}: {problem}")


class _Composer:
    """Builds values from parser events, so that a bound stops the parser where it is exceeded."""

    def __init__(self, events: "Iterator[Event]", max_nodes: int | None) -> None:
        import yaml

        self._yaml = yaml
        self._events = events
        self._line = 0
        self._nodes = 0
        self._max_nodes = max_nodes or math.inf

    def document(self) -> Any:
        """The value of the only document of the stream."""
        self._next()  # StreamStartEvent
        if isinstance(self._next(), self._yaml.StreamEndEvent):
            return None
        value = self._node(self._next(), 0)
        self._next()  # DocumentEndEvent
        if not isinstance(self._next(), self._yaml.StreamEndEvent):
            raise _error(self._line, "a second document begins")
        return value

    def _next(self) -> Any:
        try:
            event = next(self._events)
        except self._yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise _error(mark.line if mark else self._line, error.problem or "malformed") from None
        except (ValueError, OverflowError):  # PyYAML's own parser calls chr() on any number of an escape
            raise _error(self._line, "an escape beyond U+10FFFF") from None
        self._line = event.start_mark.line
        return event

    def _node(self, event: Any, depth: int) -> Any:
        self._check(event, depth)
        if isinstance(event, self._yaml.ScalarEvent):
            return _resolve(event.value) if event.implicit[0] else self._text(event)
        if isinstance(event, self._yaml.MappingStartEvent):
            return self._mapping(depth + 1)
        items: list[Any] = []
        while not isinstance(item := self._next(), self._yaml.SequenceEndEvent):
            items.append(self._node(item, depth + 1))
        return items

    def _mapping(self, depth: int) -> dict[str, Any]:
        pairs: dict[str, Any] = {}
        while not isinstance(event := self._next(), self._yaml.MappingEndEvent):
            self._check(event, depth)
            if not isinstance(event, self._yaml.ScalarEvent):
                raise _error(self._line, "a key must be a string")
            key = self._text(event)
            if key in pairs:
                raise _error(self._line, f"duplicate key {key[:_MAX_KEY_SHOWN]}")
            pairs[key] = self._node(self._next(), depth)
        return pairs

    def _check(self, event: Any, depth: int) -> None:
        self._nodes += 1
        if event.anchor is not None:
            raise _error(self._line, "anchors and aliases (& and *) are not read")
        if event.tag is not None:
            raise _error(self._line, "tags (!) are not read")
        if depth > _MAX_DEPTH:
            raise _error(self._line, f"more than {_MAX_DEPTH} levels")
        if self._nodes > self._max_nodes:
            raise _error(self._line, f"more than {self._max_nodes} values")

    def _text(self, event: Any) -> str:
        text: str = event.value
        if not text.isascii() and _SURROGATE.search(text):  # PyYAML's own parser takes them as escapes
            raise _error(self._line, "an escape for half a surrogate pair")
        return text


def _resolve(word: str) -> Any:
    """A plain scalar as JSON has it; numbers that Python cannot hold stay text."""
    if word in _CONSTANTS:
        return _CONSTANTS[word]
    number = _NUMBER.fullmatch(word)
    if number is None:
        return word
    if number[1] or number[2]:
        value = float(word)
        return value if math.isfinite(value) else word
    return int(word) if len(word) <= _MAX_INT_DIGITS else word
