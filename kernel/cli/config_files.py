"""Set one value in a JSON, JSONC or TOML file of another program; everything else in the file stays byte for byte."""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import delitem
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from kernel.core.errors import Fault
from kernel.core.lazy_regex import regex

if TYPE_CHECKING:
    from tomlkit.items import Item

_INDENT = regex(r"^([ \t]+)\S", re.MULTILINE)
_DEFAULT_INDENT = "  "

_BLANK = regex(r"(?:[ \t\r\n\ufeff]|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = regex(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = regex(r"true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_MAX_DEPTH = 100  # nested values; the parser recurses three frames a level, Python allows 1,000

Object = dict[str, Any]
Keys = Sequence[str | int]  # a number is that of an item of a list, which is appended if the list has so many


class Node(NamedTuple):
    """A parsed JSON value and its span; its `members` are (key or number, offset of the member, value)."""

    start: int
    end: int
    value: Any
    members: tuple[tuple[str | int, int, "Node"], ...] = ()


def read_json(text: str) -> Any:
    """Parse JSON with comments and trailing commas; None if empty. Raises Fault("invalid") with line and column."""
    node = parse(text)
    return None if node is None else node.value


def read_strict_json(text: str) -> Any:
    """Parse JSON for a program that refuses comments and trailing commas; None if empty. Raises as `read_json` does."""
    value = read_json(text)
    try:
        return json.loads(text.lstrip("\ufeff")) if text.strip("\ufeff \t\r\n") else value
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise Fault("invalid", f"invalid JSON at {where}: it may hold neither comments nor trailing commas") from None


def set_json(text: str, keys: Keys, value: object) -> str:
    """Return the document with `value` at the path `keys`, unchanged if it is already there.

    Raises Fault("invalid") if a key on the path is duplicated or its value has no such members.
    """
    new_text = _changed(text, keys, value)
    # The edit is textual; parsing it again proves that nothing else changed its value.
    if read_json(new_text) != with_value(read_json(text) or {}, keys, value):
        raise unsafe(keys)
    return new_text


def read_toml(text: str) -> Object:
    """Parse TOML; raises Fault("invalid") with the position of the error."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise Fault("invalid", f"invalid TOML: {error}") from None


def set_toml(text: str, keys: Sequence[str], table: Mapping[str, object]) -> str:
    """Return the document with `table` at the path `keys`, unchanged if it is already there.

    A new table is appended to the file, an existing table is edited in place. Raises Fault("invalid") if a value on the
    path is not a table.
    """
    before = read_toml(text)
    new_document = with_value(before, keys, dict(table))
    if new_document == before:
        return text
    # Duplicate headers do not parse, so the first candidate fails for an existing table and for an inline parent.
    for edit in (_append_table, _edit_table):
        new_text = edit(text, keys, table)
        if parses_as(new_text, new_document):
            return new_text
    raise unsafe(keys)


def with_value(document: Any, keys: Keys, value: object) -> Any:
    """Return a copy of nested objects and lists with `value` at `keys`; raises Fault("invalid") for another parent."""
    head, *rest = keys
    if isinstance(head, int):
        return [*document[:head], value, *document[head + 1 :]]
    if not rest:
        return {**document, head: value}
    inner: Any = document.get(head)
    if inner is None:  # as some programs write what they have none of
        inner = [] if isinstance(rest[0], int) else {}
    _require_members(inner, rest[0], head)
    return {**document, head: with_value(inner, rest, value)}


def _require_members(value: object, key: str | int, name: str) -> None:
    if not isinstance(value, list if isinstance(key, int) else dict):
        raise Fault("invalid", f"{name} is not {'a list' if isinstance(key, int) else 'an object'}")


def unsafe(keys: Keys) -> Fault:
    """Return the refusal of an edit that could not be made without changing other parts of the file."""
    return Fault("invalid", f"{_dotted(keys)} cannot be set without changing other parts of the file")


def _dotted(keys: Keys) -> str:
    return ".".join(map(str, keys))


def _changed(text: str, keys: Keys, value: object) -> str:
    here = parse(text)
    if here is None:
        newline = newline_of(text)
        gap = newline if text.strip() and not text.endswith(newline) else ""
        return text + gap + _rendered(_nested(keys, value), _DEFAULT_INDENT, 0, newline) + newline
    for depth, key in enumerate(keys):
        nodes = [node for name, _, node in here.members if name == key]
        _require_members(here.value, key, _dotted(keys[:depth]) or "the document")
        if len(nodes) > 1:
            raise Fault("invalid", f"{_dotted(keys[: depth + 1])} is a duplicate key")
        if not nodes:
            return _inserted(text, here, key, _nested(keys[depth + 1 :], value), depth)
        here = nodes[0]
        if here.value is None:
            return _replaced(text, here, _nested(keys[depth + 1 :], value), depth + 1)
    return text if here.value == value else _replaced(text, here, value, len(keys))


def _replaced(text: str, node: Node, value: object, depth: int) -> str:
    return text[: node.start] + _rendered(value, _indent_unit(text), depth, newline_of(text)) + text[node.end :]


def _nested(keys: Keys, value: object) -> object:
    for key in reversed(keys):
        nested: object = [value] if isinstance(key, int) else {key: value}
        value = nested
    return value


def _inserted(text: str, parent: Node, key: str | int, value: object, depth: int) -> str:
    unit, newline = _indent_unit(text), newline_of(text)
    close = parent.end - 1
    name = "" if isinstance(key, int) else f"{json.dumps(key, ensure_ascii=False)}: "
    member = name + _rendered(value, unit, depth + 1, newline)
    if not parent.members:
        inside = text[parent.start + 1 : close].rstrip()
        head = f"{text[: parent.start + 1]}{inside}{newline}{unit * (depth + 1)}{member}"
        return f"{head}{newline}{unit * depth}{text[close:]}"
    if "\n" not in text[parent.start : close]:
        member = name + json.dumps(value, ensure_ascii=False)
        end = parent.members[-1][2].end
        return f"{text[:end]}, {member}{text[end:]}"
    first, last = parent.members[0][1], parent.members[-1][2].end
    lead = text[text.rfind("\n", 0, first) + 1 : first]
    indent = lead if not lead.strip() else unit * (depth + 1)
    rest = text[last:close]
    trimmed_rest = rest.rstrip()
    comma, end = ("", ",") if _has_trailing_comma(rest) else (",", "")
    closing = rest[len(trimmed_rest) :]
    closing = closing if "\n" in closing else newline + unit * depth
    return f"{text[:last]}{comma}{trimmed_rest}{newline}{indent}{member}{end}{closing}{text[close:]}"


def _has_trailing_comma(rest: str) -> bool:
    return "," in re.sub(r"//[^\r\n]*|/\*.*?(?:\*/|\Z)", "", rest, flags=re.DOTALL)


def _rendered(value: object, unit: str, depth: int, newline: str) -> str:
    lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
    return (newline + unit * depth).join(lines)


def _indent_unit(text: str) -> str:
    match = _INDENT.search(text)
    return match[1] if match else _DEFAULT_INDENT


def newline_of(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def parses_as(text: str, document: Object) -> bool:
    try:
        return tomllib.loads(text) == document
    except tomllib.TOMLDecodeError:
        return False


def _append_table(text: str, keys: Sequence[str], table: Mapping[str, object]) -> str:
    import tomlkit

    block = f"[{tomlkit.key(list(keys)).as_string()}]\n{_table(table).as_string()}"
    newline = newline_of(text)
    end = newline if text and not text.endswith("\n") else ""
    gap = newline if text.strip() else ""
    return text + end + gap + block.replace("\n", newline)


def _edit_table(text: str, keys: Sequence[str], table: Mapping[str, object]) -> str:
    from tomlkit.container import OutOfOrderTableProxy

    def edit(parent: Any, key: str) -> None:
        old = parent.get(key)
        if isinstance(old, OutOfOrderTableProxy):
            raise ValueError("its parts are separated by other tables; tomlkit loses comments between them")
        if isinstance(old, dict):
            _update(old, table, newline_of(text))
        else:
            parent[key] = _inline(table) if old is None else _table(table)

    return _edited(text, keys, edit)


def _edited(text: str, keys: Sequence[str], edit: Callable[[Any, str], None]) -> str:
    """Return the text after `edit(parent, key)` of the value at `keys`; "" on failure.

    The parent is a table of tomlkit, which keeps comments and the spelling of unchanged keys.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        parent: Any = document
        for key in keys[:-1]:
            parent = parent[key]
        edit(parent, keys[-1])
        return document.as_string()
    except (TOMLKitError, KeyError, ValueError, RecursionError):
        return ""


def _update(here: Any, table: Mapping[str, object], newline: str) -> None:
    """Give a tomlkit table exactly the members of `table`; comments after its last key stay after it."""
    # tomlkit counts comments before the next header to this table, but they describe that header.
    body = _body(here)
    trailing: list[Any] = []
    while body and body[-1][0] is None:
        trailing.insert(0, body.pop())
    for key in [key for key in here if key not in table]:
        trailing += _comments(here[key])
        del here[key]
    for key, value in table.items():
        old: Any = here.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            _update(old, cast("Object", value), newline)
        elif old is None or old != value:
            new = _inline(value)
            new.trivia.trail = newline
            here[key] = new
    body += trailing


def _comments(item: object) -> Iterator[Any]:
    """Yield the comments and blank lines of a tomlkit table and of the tables below it, as (None, item)."""
    for key, inner in _body(item):
        if key is None:
            yield key, inner
        else:
            yield from _comments(inner)


def _body(item: object) -> list[Any]:
    from tomlkit.items import Table

    return item.value.body if isinstance(item, Table) else []


def _table(members: Mapping[str, object]) -> "Item":
    import tomlkit

    item = tomlkit.table()
    for key, value in members.items():
        item[key] = _inline(value)
    return item


def _inline(value: object) -> "Item":
    """Return the tomlkit item of a value; an object becomes an inline table."""
    import tomlkit

    if not isinstance(value, Mapping):
        return tomlkit.item(value)
    item = tomlkit.inline_table()
    for key, inner in cast("Object", value).items():
        item[key] = _inline(inner)
    return item


_AFTER_A_MEMBER = ("", "\r", "\n", "}")  # text that may follow on a line that is removed with it


def remove_json(text: str, keys: Keys) -> str:
    """Return the document without the member at the path `keys`, unchanged if there is none."""
    new_document = without(read_json(text), keys)
    if new_document is None:
        return text
    new_text = _cut_member(text, keys)
    if read_json(new_text) != new_document:
        raise unsafe(keys)
    return new_text


def remove_toml(text: str, keys: Sequence[str]) -> str:
    """Return the document without the table at the path `keys`, unchanged if there is none."""
    new_document = without(read_toml(text), keys)
    if new_document is None:
        return text
    for edit in (_cut_tables, partial(_edited, edit=delitem)):
        new_text = edit(text, keys)
        # A file that had nothing else may lose the parent with its only table.
        if parses_as(new_text, new_document) or parses_as(new_text, without(new_document, keys[:-1]) or {}):
            return new_text
    raise unsafe(keys)


def without(document: Any, keys: Keys) -> Any:
    """Return a copy of a document without the member at `keys`, None if there is none."""
    head, *rest = keys
    if isinstance(head, int):
        return document[:head] + document[head + 1 :]
    if not isinstance(document, dict) or head not in document:
        return None
    here = cast("Object", document)
    if not rest:
        return {key: value for key, value in here.items() if key != head}
    inner = without(here[head], rest)
    return None if inner is None else {**here, head: inner}


def _cut_member(text: str, keys: Keys) -> str:
    """Return the text without the member at `keys`, its line, and the comma that it needed."""
    here = parse(text)
    for key in keys[:-1]:
        here = next(node for name, _, node in here.members if name == key) if here else None
    assert here is not None
    number = next(number for number, (name, _, _) in enumerate(here.members) if name == keys[-1])
    _, start, node = here.members[number]
    end = node.end
    behind = _comma_behind(text, end)
    if behind is not None:
        end = behind + 1
    lead = text[:start].rstrip(" \t")
    if lead.endswith("\n") and text[end:].lstrip(" \t")[:1] in _AFTER_A_MEMBER:
        start = len(lead.rstrip("\r\n"))
    before = text[:start]
    if behind is None and number:  # of the last member: nothing follows the comma before it any more
        at = here.members[number - 1][2].end
        comma = _comma_behind(text, at)
        before = before if comma is None else text[:at] + text[comma + 1 : start].rstrip(" \t")
    return before + text[end:]


def _comma_behind(text: str, at: int) -> int | None:
    """Return the offset of the comma behind a value, None if none follows."""
    comma = skip_blank(text, at)
    return comma if text[comma : comma + 1] == "," else None


def _cut_tables(text: str, keys: Sequence[str]) -> str:
    """Return the text without the lines of a table and of the tables below it; comments before the next header stay."""
    rest: list[str] = []
    margin: list[str] = []
    cutting = False
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("["):
            cutting = _header(line)[: len(keys)] == list(keys)
            rest += [] if cutting else margin
            margin = []
        if not cutting:
            rest.append(line)
        elif not line.strip() or line.lstrip().startswith("#"):
            margin.append(line)
        else:
            margin = []
    return "".join([*rest, *(line for line in margin if line.strip())])


def _header(line: str) -> list[str]:
    keys: list[str] = []
    try:
        here: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return keys
    while isinstance(here, dict) and here:
        key, here = next(iter(cast("Object", here).items()))
        keys.append(key)
    return keys


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
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _syntax_error(text: str, at: int) -> Fault:
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    return Fault("invalid", f"invalid JSON at line {line}, column {column}")
