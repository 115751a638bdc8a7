"""Reads JSON of any size in little memory: one line, or one element of a list, at a time; damage is named by place."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec
from msgspec import Struct

from handlers.importers.records import damaged

MAX_ITEM_BYTES = 64 << 20  # of one line, or of one element of a list
MAX_ITEMS = 10_000_000
MAX_PARTS = 1_000_000  # brackets and commas of one element: each value is many times as large in memory as here
_CHUNK_BYTES = 1 << 18
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_OPENING, _CLOSING = (b"[", b"{"), (b"]", b"}")
_BLANKS = b" \t\r\n\xef\xbb\xbf"
# Brackets, which change the depth, and strings; a string that the chunk cuts has a group.
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|(\\?\Z))|[\[\]{},]', re.DOTALL)


class Element(NamedTuple):
    """A value of a document: the member that it is, or whose list it stands in, empty for a list at the top."""

    member: str
    value: Any
    place: str


class _State(Struct):
    """The state of a reader: the bracket of the document, the depth, that of the elements, and a part of an element."""

    top: bytes = b""
    depth: int = 0
    level: int = 1
    member: str = ""
    held: bytearray = msgspec.field(default_factory=bytearray)
    parts: int = 0
    count: int = 0
    may_be_empty: bool = True  # nothing may stand before the next comma or bracket


def decoded(data: bytes, place: str) -> Any:
    """Return one JSON value; raises Fault naming its place."""
    try:
        return msgspec.json.decode(data)
    except _UNREADABLE as error:
        raise damaged(place, f"is no JSON: {error}") from None


def lines(file: IO[bytes], name: str) -> Iterator[Element]:
    """Yield the objects of JSON lines; blank lines are skipped."""
    number = 0
    while line := file.readline(MAX_ITEM_BYTES):
        number += 1
        if number > MAX_ITEMS:
            raise damaged(name, f"has more than {MAX_ITEMS:,} lines")
        if line.strip(_BLANKS):
            place = f"{name}, line {number}"
            value = decoded(line.strip(_BLANKS), place)
            if not isinstance(value, dict):
                raise damaged(place, "is no JSON object")
            yield Element("", value, place)


def elements_of(path: Path) -> Iterator[Element]:
    """Yield the elements of a file, see `elements`."""
    with path.open("rb") as file:
        yield from elements(file, path.name)


def elements(file: IO[bytes], name: str) -> Iterator[Element]:
    """Yield the elements of the list that a document is, or the members of the object that it is.

    Of a member that is a list each element comes by itself. Raises Fault for a document that is not whole.
    """
    state = _State()
    for segment, token, offset in _tokens(file, name):
        place = f"{name}, near byte {offset}"
        if not state.top:
            _begin(state, segment, token, place)
        elif not state.depth:
            raise damaged(place, "goes on after its end")
        elif token in _OPENING:
            _open(state, segment, token, place)
        elif token in _CLOSING or (token == b"," and state.depth == state.level):
            yield from _close(state, segment, token, place)
        else:
            _keep(state, segment, place)
    if not state.top or state.depth:
        raise damaged(name, "ends before its end" if state.top else "holds no JSON list and no object")


def _tokens(file: IO[bytes], name: str) -> Iterator[tuple[bytes, bytes, int]]:
    """Yield the document in segments that each end in a token, with the tokens and the places in the file."""
    rest, offset = b"", 0
    while chunk := file.read(max(_CHUNK_BYTES, len(rest))):
        data, at = rest + chunk, 0
        for match in _TOKEN.finditer(data):
            if match.lastindex:
                break
            yield data[at : match.end()], match[0], offset + match.start()
            at = match.end()
        rest, offset = data[at:], offset + at
        if len(rest) > MAX_ITEM_BYTES:
            raise damaged(f"{name}, near byte {offset}", f"holds a text of more than {MAX_ITEM_BYTES >> 20} MB")
    if rest.strip(_BLANKS):
        yield rest, b"", offset


def _keep(state: _State, segment: bytes, place: str) -> None:
    """Adds a part to an element; raises Fault if it is too large, before all of it is in memory."""
    state.held += segment
    state.parts += 1
    if len(state.held) > MAX_ITEM_BYTES or state.parts > MAX_PARTS:
        raise damaged(place, f"has an element of more than {MAX_ITEM_BYTES >> 20} MB or {MAX_PARTS:,} values")


def _begin(state: _State, segment: bytes, token: bytes, place: str) -> None:
    if segment.strip(_BLANKS) != token or token not in _OPENING:
        raise damaged(place, "is no JSON list and no object")
    state.top, state.depth = token, 1


def _open(state: _State, segment: bytes, token: bytes, place: str) -> None:
    """Begins a list that is a member of the document, to be read by its elements, or a part of an element."""
    if token == b"[" and state.top == b"{" and state.depth == 1:
        head = bytes(state.held + segment)
        state.member = next(iter(decoded(b"{" + head + b"]}", place)), "")
        state.held, state.parts, state.level, state.may_be_empty = bytearray(), 0, 2, True
    else:
        _keep(state, segment, place)
    state.depth += 1


def _close(state: _State, segment: bytes, token: bytes, place: str) -> Iterator[Element]:
    """Yield a comma or bracket: the end of an element, of a list, or of something inside an element."""
    if state.depth > state.level:
        state.depth -= 1
        _keep(state, segment, place)
        return
    in_list = state.top == b"[" or state.level == 2
    body = bytes(state.held + segment[:-1]).strip(_BLANKS)
    if token in _CLOSING and token != (b"]" if in_list else b"}"):
        raise damaged(place, "closes with another bracket than it opened with")
    if not body and not state.may_be_empty:
        raise damaged(place, "lacks an element")
    if len(body) > MAX_ITEM_BYTES or state.count > MAX_ITEMS:
        raise damaged(place, "is larger than what is imported")
    if body:
        state.count += 1
        if in_list:
            yield Element(state.member, decoded(body, place), place)
        else:
            members: dict[str, Any] = decoded(b"{" + body + b"}", place)
            yield from (Element(name, value, place) for name, value in members.items())
    at_end = token in _CLOSING
    state.held, state.parts, state.may_be_empty = bytearray(), 0, at_end and state.level == 2
    state.depth -= at_end
    if at_end:
        state.level, state.member = 1, ""
