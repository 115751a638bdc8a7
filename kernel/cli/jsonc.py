"""JSON with comments and trailing commas: read it, and set one value in it without touching anything else."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

from kernel.errors import Fault
from kernel.lazy_regex import regex

_BLANK = regex(r"(?:[ \t\r\n\ufeff]|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = regex(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = regex(r"true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_INDENT = regex(r"^([ \t]+)\S", re.MULTILINE)
_DEEPEST = 100
_USUAL_INDENT = "  "

Object = dict[str, Any]


class Node(NamedTuple):
    """A value and where it stands; `members` are an object's keys, each with where it begins and its value."""

    start: int
    end: int
    value: Any
    members: tuple[tuple[str, int, "Node"], ...] = ()


def read(text: str) -> Any:
    """The value of a document, None for one that holds nothing; raises Fault("invalid") with line and column."""
    node = _document(text)
    return None if node is None else node.value


def put(text: str, keys: Sequence[str], value: Any) -> str:
    """The document with `value` at `keys`, every other byte as it was; equal text where it holds that already.

    Raises Fault("invalid") where something on the way is no object, or stands there twice.
    """
    changed = _changed(text, keys, value)
    if read(changed) != placed(read(text) or {}, keys, value):
        raise Fault("invalid", f"{'.'.join(keys)} cannot be set without changing more than that")
    return changed


def placed(document: Object, keys: Sequence[str], value: Any) -> Object:
    """A copy of nested objects with `value` at `keys`; raises Fault("invalid") where something on the way is none."""
    head, rest = keys[0], keys[1:]
    if not rest:
        return {**document, head: value}
    inner: Any = document.get(head, {})
    if not isinstance(inner, dict):
        raise Fault("invalid", f"{head} holds something else than names")
    return {**document, head: placed(cast("Object", inner), rest, value)}


def _changed(text: str, keys: Sequence[str], value: Any) -> str:
    here = _document(text)
    if here is None:
        newline = _newline(text)
        gap = newline if text.strip() and not text.endswith(newline) else ""
        return text + gap + _written(_nested(keys, value), _USUAL_INDENT, 0, newline) + newline
    for depth, key in enumerate(keys):
        found = [node for name, _, node in here.members if name == key]
        if not isinstance(here.value, dict):
            raise Fault("invalid", f"{'.'.join(keys[:depth]) or 'the document'} holds something else than names")
        if len(found) > 1:
            raise Fault("invalid", f"{'.'.join(keys[: depth + 1])} stands there twice")
        if not found:
            return _inserted(text, here, key, _nested(keys[depth + 1 :], value), depth)
        here = found[0]
    if here.value == value:
        return text
    unit, newline = _unit(text), _newline(text)
    return text[: here.start] + _written(value, unit, len(keys), newline) + text[here.end :]


def _nested(keys: Sequence[str], value: Any) -> Any:
    for key in reversed(keys):
        value = {key: value}
    return value


def _inserted(text: str, parent: Node, key: str, value: Any, depth: int) -> str:
    """`text` with a member more at the end of `parent`, which is `depth` objects below the document."""
    unit, newline = _unit(text), _newline(text)
    close = parent.end - 1
    member = f"{json.dumps(key, ensure_ascii=False)}: {_written(value, unit, depth + 1, newline)}"
    if not parent.members:
        inside = text[parent.start + 1 : close].rstrip()
        opened = f"{text[: parent.start + 1]}{inside}{newline}{unit * (depth + 1)}{member}"
        return f"{opened}{newline}{unit * depth}{text[close:]}"
    if "\n" not in text[parent.start : close]:
        member = f"{json.dumps(key, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False)}"
        end = parent.members[-1][2].end
        return f"{text[:end]}, {member}{text[end:]}"
    first, last = parent.members[0][1], parent.members[-1][2].end
    lead = text[text.rfind("\n", 0, first) + 1 : first]
    indent = lead if not lead.strip() else unit * (depth + 1)
    rest = text[last:close]
    trailing = _trailing_comma(rest)
    kept = rest.rstrip()
    comma, end = ("", ",") if trailing else (",", "")
    closing = rest[len(kept) :]
    closing = closing if "\n" in closing else newline + unit * depth
    return f"{text[:last]}{comma}{kept}{newline}{indent}{member}{end}{closing}{text[close:]}"


def _trailing_comma(rest: str) -> bool:
    return "," in re.sub(r"//[^\r\n]*|/\*.*?\*/", "", rest, flags=re.DOTALL)


def _written(value: Any, unit: str, depth: int, newline: str) -> str:
    lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
    return (newline + unit * depth).join(lines)


def _unit(text: str) -> str:
    found = _INDENT.search(text)
    return found[1] if found else _USUAL_INDENT


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _document(text: str) -> Node | None:
    start = _blank(text, 0)
    if start == len(text):
        return None
    node = _value(text, start, 0)
    end = _blank(text, node.end)
    if end < len(text):
        raise _wrong(text, end)
    return node


def _value(text: str, at: int, depth: int) -> Node:
    if depth > _DEEPEST:
        raise _wrong(text, at)
    if text[at : at + 1] == "{":
        return _object(text, at, depth)
    if text[at : at + 1] == "[":
        items = list(_items(text, at, "]", depth))
        return Node(at, items[-1][0], [node.value for _, node in items[:-1] if node])
    found = _STRING.match(text, at) or _SCALAR.match(text, at)
    if found is None:
        raise _wrong(text, at)
    return Node(at, found.end(), _scalar(text, found))


def _object(text: str, at: int, depth: int) -> Node:
    items = list(_items(text, at, "}", depth))
    members = tuple(
        (cast("str", _scalar(text, _string(text, start))), start, node) for start, node in items[:-1] if node
    )
    return Node(at, items[-1][0], {name: node.value for name, _, node in members}, members)


def _items(text: str, at: int, close: str, depth: int) -> Iterator[tuple[int, Node | None]]:
    """Each item of a bracket as (where it begins, its value), and last (where the bracket ends, None)."""
    at = _blank(text, at + 1)
    while text[at : at + 1] != close:
        start = at
        if close == "}":
            at = _blank(text, _string(text, at).end())
            if text[at : at + 1] != ":":
                raise _wrong(text, at)
            at = _blank(text, at + 1)
        node = _value(text, at, depth + 1)
        yield start, node
        at = _blank(text, node.end)
        if text[at : at + 1] == ",":
            at = _blank(text, at + 1)
        elif text[at : at + 1] != close:
            raise _wrong(text, at)
    yield at + 1, None


def _string(text: str, at: int) -> re.Match[str]:
    found = _STRING.match(text, at)
    if found is None:
        raise _wrong(text, at)
    return found


def _scalar(text: str, found: re.Match[str]) -> Any:
    try:
        return json.loads(found[0])
    except ValueError:
        raise _wrong(text, found.start()) from None


def _blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _wrong(text: str, at: int) -> Fault:
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    return Fault("invalid", f"no JSON from line {line}, column {column} on")
