"""Reads rows of JSON of any size in little memory: lists, objects with lists, lines. Damage is skipped and reported.

A row that cannot be read costs no other: after it, the reader goes on at the next row that begins as it did.
"""

import codecs
import io
import json
import math
import re
from collections.abc import Collection, Iterator
from typing import IO, Any, NamedTuple, cast

import msgspec

from kernel.core.errors import Fault
from kernel.memories.import_records import LeftOut

MAX_ITEM_BYTES = 64 << 20  # of one line, or of one row of a list
MAX_TEXT_BYTES = 16 << 20  # of a document that is written as a text
MAX_ITEMS = 10_000_000
MAX_PARTS = 1_000_000  # brackets and commas of one row: each value is many times as large in memory as here
_CHUNK_BYTES = 1 << 18
_MOST_ROW_BYTES = 4 << 20  # of an object that may be a row; the longest text that is a memory fits
_HEAD_BYTES = 1 << 20
_MOST_WASTED = 4  # times the bytes read, in which rows were looked for in vain
_BLANKS = b" \t\r\n\xef\xbb\xbf"
# A comment, which people write into files that they edit by hand, and its beginning, if the data cuts it off.
_OPEN_COMMENT = rb"/\*(?:[^*]++|\*(?!/))*+"
_COMMENT = rb"//[^\r\n]*+[\r\n]|%b\*/" % _OPEN_COMMENT
_BLANK = re.compile(rb"(?:[ \t\r\n\xef\xbb\xbf]++|%b)*+" % _COMMENT)
# Groups: a comment that the data cuts off, a string that it cuts off, and anything but a token. A line end in a string
# is that of a line that was cut off.
_TOKEN = re.compile(
    rb'(?:\s++|%b)*+(?:((?://[^\r\n]*+|%b|/)\Z)|"(?:[^"\\\r\n]++|\\.)*+(?:"|(\\?\Z))|'
    rb'[^\s"\[\]{},:/]++|[\[\]{},:]|())' % (_COMMENT, _OPEN_COMMENT),
    re.DOTALL,
)
# Texts, and what stands between them that JSON does not have: comments, and commas before a bracket.
_NO_PART = re.compile(
    rb'("(?:[^"\\]++|\\.)*+"?)|//[^\r\n]*+|%b(?:\*/|\Z)|,(?=(?:\s++|%b)*+[\]}])' % (_OPEN_COMMENT, _COMMENT), re.DOTALL
)
_COMMENT_STARTS = {b"/", b"//", b"/*"}
_HEAD = re.compile(rb'\{\s*+("[^"\\\r\n]{1,100}")\s*+:')
_MOST_HEAD = 200  # bytes; of a row that the data cuts off there, the beginning is looked for again
# Where a row or a member may begin, with a group if it does.
_NEXT_ROW = re.compile(rb"[,\n\]}]\s*+(?:(?=(\{))|)")
_NEXT_MEMBER = re.compile(rb',\s*+(?:(?=("[^"\\\r\n]{1,100}"\s*+:))|)')
_CUT_OFF = "was cut off"
_NO_JSON, _NO_OBJECT = "is no JSON", "is no JSON object"
_COMMA = ord(",")
_OPENING = {ord("]"): ord("["), ord("}"): ord("{")}


class Element(NamedTuple):
    """A row, of the list of a member or of none, or another member of a document; and its place."""

    member: str
    value: Any
    place: str

    @property
    def row(self) -> dict[str, Any]:
        """The value as an object; an empty object for any other value."""
        value: object = self.value
        return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


class _Damaged(Exception):
    """A problem of a row."""


def rows(file: IO[bytes], name: str = "", members: Collection[str] = (), text: str = "") -> Iterator[Element | LeftOut]:
    """Yield the rows of JSON in any form: lines, a list, several of either, or an object with lists.

    An object with a list of any of these members is a document: the elements of its lists are the rows, and its other
    members come as they are. Other objects are rows. Texts on lines, and of a list that begins with a text, are rows
    with the member `text`, if it is named. Places are within `name`.
    """
    head = file.read(_HEAD_BYTES)
    file.seek(0)
    if encoding := encoding_of_16_bits(head):
        file = cast("IO[bytes]", codecs.EncodedFile(file, "utf-8", encoding, "replace"))
        head = head.decode(encoding, "replace").encode()
    if without_blanks(head).startswith(b'"'):
        file = _unquoted(file)
        head = file.read(_HEAD_BYTES)
        file.seek(0)
    yield from (
        lines(file, name, members, text)
        if _is_by_lines(head, members, text)
        else _Reader(file, name, text=text).top(members)
    )


def _unquoted(file: IO[bytes]) -> IO[bytes]:
    """Return the JSON in a text, as some programs write it twice encoded; the file itself if it is no text."""
    data = file.read(MAX_TEXT_BYTES + 1)
    file.seek(0)
    try:
        value = decoded(data.strip(_BLANKS)) if len(data) <= MAX_TEXT_BYTES else None
    except _Damaged:
        return file
    return io.BytesIO(value.encode(errors="replace")) if isinstance(value, str) else file


def encoding_of_16_bits(head: bytes) -> str:
    """Return the encoding of a text with 16 bits a character: by its mark, else by its first two; empty for another."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    zeros = [at for at, byte in enumerate(head[:4]) if not byte]
    return "utf-16-le" if zeros == [1, 3] else "utf-16-be" if zeros == [0, 2] else ""


def without_blanks(head: bytes) -> bytes:
    """Return the beginning of JSON without blanks, byte order mark and comments before it."""
    return head[cast("re.Match[bytes]", _BLANK.match(head)).end() :]


def _is_by_lines(head: bytes, members: Collection[str], text: str = "") -> bool:
    """Return whether the first line is a row, also a `text`, or the next line begins though the first has not ended."""
    data = without_blanks(head)
    if b"/*" in head[: len(head) - len(data)]:  # a comment over several lines
        return False
    first, _, rest = data.partition(b"\n")
    bare = first.strip(_BLANKS + b",")
    if bare == b"[":
        return bool(rest) and _is_by_lines(rest, ())
    try:
        value = decoded(bare)
    except _Damaged:
        second = rest.lstrip(_BLANKS).partition(b"\n")[0].rstrip()
        is_document = bare.startswith(b"[") or bare[-1:] in b"{[:" or _is_like_document(head, 0, members)
        return not is_document and second.startswith(b"{") and second != b"{"
    is_row = isinstance(value, dict) and not _is_document(cast("dict[str, Any]", value), members)
    return is_row or bool(text and isinstance(value, str))


def _is_document(row: dict[str, Any], members: Collection[str]) -> bool:
    return any(isinstance(row.get(member), list) for member in members)


def _is_like_document(data: bytes, at: int, members: Collection[str]) -> bool:
    marks = "|".join(map(re.escape, members)).encode()
    return bool(marks and re.compile(rb'"(?:%b)"\s*+:\s*+\[' % marks).search(data, at))


def lines(
    file: IO[bytes], name: str = "", members: Collection[str] = (), text: str = ""
) -> Iterator[Element | LeftOut]:
    """Yield the rows of JSON lines; of the last line, if it is cut off, that it is."""
    number = 0
    while line := file.readline(MAX_ITEM_BYTES):
        number += 1
        place = _place(name, f"line {number}")
        if number > MAX_ITEMS:
            raise Fault("invalid", f"{place}: has more than {MAX_ITEMS:,} lines. Nothing was imported.")
        is_whole = line.endswith(b"\n")
        if not is_whole and (rest := file.readline(MAX_ITEM_BYTES)):
            while not rest.endswith(b"\n") and (rest := file.readline(MAX_ITEM_BYTES)):
                pass
            yield LeftOut(_too_large(), place, is_damage=True)
        elif bare := line.strip(_BLANKS):
            yield from _of_line(bare, place, members, text, is_whole=is_whole)


def _of_line(
    bare: bytes, place: str, members: Collection[str], text: str, *, is_whole: bool
) -> Iterator[Element | LeftOut]:
    """Yield the row of a line, or the rows, if brackets and commas stand around them."""
    if bare.count(b",") + bare.count(b"[") < MAX_PARTS:
        try:
            value = msgspec.json.decode(bare)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            value = None
        if text and isinstance(value, str):
            value = {text: value}
        if isinstance(value, dict) and not _is_document(cast("dict[str, Any]", value), members):
            yield Element("", value, place)
            return
    items = list(_Reader(io.BytesIO(), place, bare).top(members))
    if not is_whole and any(isinstance(item, LeftOut) for item in items):
        yield from (item for item in items if isinstance(item, Element))
        yield LeftOut(_CUT_OFF, place)
    else:
        yield from items


def decoded(data: bytes) -> Any:
    """Return a value, with U+FFFD for half a surrogate pair and for bytes that are no text, and without comments and
    commas before a bracket; raises for other damage.
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return _mended(data)
    except (ValueError, RecursionError, msgspec.MsgspecError):
        pass
    try:
        return _mended(_NO_PART.sub(rb"\1", data))
    except (ValueError, RecursionError, msgspec.MsgspecError):
        raise _Damaged(_NO_JSON) from None


def _mended(data: bytes) -> Any:
    text = data.decode("utf-8", "replace")
    value = json.loads(text, strict=False, parse_int=_number, parse_float=_number, parse_constant=_number)
    plain = json.dumps(value, ensure_ascii=False).encode("utf-16-le", "surrogatepass")
    return msgspec.json.decode(plain.decode("utf-16-le", "replace"))


def _number(digits: str) -> int | float | None:
    if len(digits) < 19 and digits.lstrip("-").isdecimal():
        return int(digits)
    number = float(digits)
    return number if math.isfinite(number) else None


def _place(name: str, place: str) -> str:
    return f"{name}, {place}" if name else place


def _beginning(data: bytes, at: int) -> bytes:
    """Return the name of the first member of an object, by which a row begins; nothing of another value."""
    match = _HEAD.match(data, at)
    return match[1] if match else b""


def _element(member: str, value: bytes, place: str, *, of_rows: bool = True) -> Element | LeftOut:
    """Return a value as a row; if it is no object, as damage of a list of rows, and as it is of another list."""
    try:
        row = decoded(value)
    except _Damaged as damage:
        return LeftOut(str(damage), place, is_damage=True)
    if isinstance(row, dict):
        return Element(member, row, place)
    return LeftOut(_NO_OBJECT, place, is_damage=True) if of_rows else Element(member, [row], place)


def _too_large() -> str:
    return f"has more than {MAX_ITEM_BYTES >> 20} MB or {MAX_PARTS:,} values"


class _Reader:
    """Reads values from the bytes of a file, of which it keeps those of one value."""

    def __init__(self, file: IO[bytes], name: str, line: bytes | None = None, *, text: str = "") -> None:
        self._file = file
        self._name = name
        self._is_line = line is not None
        self._data = line or b""
        self._at = self._offset = self._count = self._wasted = 0
        self._has_told_end = False
        self._beginning = b""  # of the first row
        self._text = text
        self._is_of_texts: bool | None = None

    def top(self, members: Collection[str]) -> Iterator[Element | LeftOut]:
        """Yield the rows of all that is there, whatever stands between."""
        while mark := self._mark():
            place = self._here()
            try:
                if mark == b"[":
                    self._at += 1
                    yield from self._list("")
                elif mark == b"{":
                    yield from self._object(members, place)
                elif mark in b",]":
                    self._at += 1
                else:
                    raise _Damaged(_NO_OBJECT)
            except _Damaged as damage:
                yield self._damage(damage, place)

    def _object(self, members: Collection[str], place: str) -> Iterator[Element | LeftOut]:
        """Yield an object as a row, or the rows of its lists, if it is a document or too large to look at."""
        try:
            while not (end := self._end()) and not self._is_large(members):
                if not self._more():
                    self._wasted += len(self._data) - self._at
                    raise _Damaged(_CUT_OFF)
        except _Damaged:
            if not _is_like_document(self._data, self._at, members):
                raise
            end = 0
        item = _element("", self._data[self._at : end], place) if end else None
        if isinstance(item, Element):
            is_document = _is_document(item.row, members)
        else:
            is_document = item is None or _is_like_document(self._data, self._at, members)
        if item is None or is_document:
            yield from self._members(members)
        else:
            self._beginning = self._beginning or _beginning(self._data, self._at)
            self._at = end
            yield item

    def _is_large(self, members: Collection[str]) -> bool:
        """Return whether more of the object here is at hand than is looked at, before it is read by its members."""
        size = 0 if self._is_line else len(self._data) - self._at
        most = _CHUNK_BYTES if _is_like_document(self._data, self._at, members) else _MOST_ROW_BYTES
        return size >= most

    def _members(self, members: Collection[str]) -> Iterator[Element | LeftOut]:
        """Yield the rows of the lists that are members of the object here, and its other members."""
        self._at += 1
        while (mark := self._mark_before(b"}")) != b"}":
            place = self._here()
            try:
                name = decoded(self._value()) if mark == b'"' else None
                if name is None or self._mark() != b":":
                    raise _Damaged(_NO_JSON)
                self._at += 1
                if self._mark() == b"[":
                    self._at += 1
                    yield from self._list(name, of_rows=name in members)
                else:
                    value = decoded(self._value())
                    if value is not None:  # as Go writes a list without elements
                        yield Element(name, value, place)
            except _Damaged as damage:
                yield self._damage(damage, place, _NEXT_MEMBER)
        self._at += 1

    def _list(self, member: str, *, of_rows: bool = True) -> Iterator[Element | LeftOut]:
        """Yield the rows of a list to its end, and of lists in it; other values of a list of rows are damage."""
        depth = 1
        while depth:
            mark, place = self._mark_before(b"]"), self._here()
            if mark in b"[]":
                depth += 1 if mark == b"[" else -1
                self._at += 1
                continue
            try:
                value = self._value()
            except _Damaged as damage:
                yield self._damage(damage, place)
            else:
                self._beginning = self._beginning or _beginning(value, 0)
                item = self._text_row(member, value, place) if of_rows else None
                item = item or _element(member, value, place, of_rows=of_rows)
                is_inside_out = isinstance(item, LeftOut) and self._mark() not in b",]{"
                yield self._damage(_Damaged(_NO_JSON), place) if is_inside_out else item

    def _text_row(self, member: str, value: bytes, place: str) -> Element | None:
        """Return a text as a row, if the first value of the first list is a text; a damaged list may show others."""
        is_text = value.startswith(b'"')
        self._is_of_texts = is_text if self._is_of_texts is None else self._is_of_texts
        if not (self._text and is_text and self._is_of_texts and self._mark() in b",]"):
            return None
        return Element(member, {self._text: decoded(value)}, place)

    def _mark_before(self, end: bytes) -> bytes:
        while (mark := self._mark()) == b",":
            self._at += 1
        if not (mark or self._has_told_end or (self._is_line and end == b"]")):  # a bracket may have a line of its own
            raise _Damaged(_CUT_OFF)
        return mark or end

    def _damage(self, damage: _Damaged, place: str, pattern: re.Pattern[bytes] = _NEXT_ROW) -> LeftOut:
        """Go on after the damage, at the next row that begins as the one here or the first; return what is left out."""
        beginnings = {self._beginning, _beginning(self._data, self._at)} - {b""}
        if beginnings and pattern is _NEXT_ROW:
            names = b"|".join(re.escape(name) for name in beginnings)
            pattern = re.compile(rb"(\{\s*+(?:%b)\s*+:)" % names)
        is_wasteful = self._wasted > _MOST_WASTED * (self._offset + len(self._data) + _MOST_HEAD)
        self._at = min(self._at + 1, len(self._data))
        while is_wasteful or not (match := self._found(pattern)):
            self._at = len(self._data) if is_wasteful else max(self._at, len(self._data) - _MOST_HEAD)
            if not self._more():
                self._at, self._has_told_end = len(self._data), True
                break
        else:
            self._at = match
        return LeftOut(str(damage), place, is_damage=True)

    def _found(self, pattern: re.Pattern[bytes]) -> int:
        matches = pattern.finditer(self._data, self._at)
        return next((match.start(1) for match in matches if match.lastindex), 0)

    def _here(self) -> str:
        return self._name if self._is_line else _place(self._name, f"near byte {self._offset + self._at}")

    def _more(self) -> bool:
        """Read on, more at a time the longer the value is; return whether there was more."""
        chunk = self._file.read(max(_CHUNK_BYTES, len(self._data) - self._at))
        if chunk:
            self._offset += self._at
            self._data, self._at = self._data[self._at :] + chunk, 0
        return bool(chunk)

    def _mark(self) -> bytes:
        """Return the next byte that is neither blank nor of a comment; none at the end."""
        while True:
            self._at = cast("re.Match[bytes]", _BLANK.match(self._data, self._at)).end()
            left = len(self._data) - self._at
            start = self._data[self._at : self._at + 2]
            is_open = start in _COMMENT_STARTS and left < MAX_ITEM_BYTES
            if (left and not is_open) or not self._more():
                break
        if is_open and start == b"//":  # the last line
            self._at += left
        elif is_open:
            self._wasted += left
        return self._data[self._at : self._at + 1]

    def _value(self) -> bytes:
        """Return the next value; raises if it has no end."""
        self._count += 1
        if self._count > MAX_ITEMS:
            raise Fault("invalid", f"{self._here()}: has more than {MAX_ITEMS:,} rows. Nothing was imported.")
        while not (end := self._end()):
            if not self._more():
                self._wasted += len(self._data) - self._at
                raise _Damaged(_CUT_OFF)
        value = self._data[self._at : end]
        self._at = end
        return value

    def _end(self) -> int:
        """Return the end of the value here; 0 if the data end before it. Raises for what is no value."""
        brackets = bytearray()
        parts, at, was_value, was_comma = 0, self._at, False, False
        for match in _TOKEN.finditer(self._data, at):
            is_cut_off = match.lastindex in (1, 2) or (match.lastindex == 3 and match.end() == len(self._data))
            if is_cut_off:
                return 0
            mark = self._data[match.end() - 1]
            is_early = not brackets or (mark in b":" and not was_value)  # a name stands before a colon
            is_wrong = bool(match.lastindex) or (is_early if mark in b"]},:" else was_value)
            if mark in b"[{":
                is_wrong = is_wrong or (was_comma and brackets.endswith(b"{"))
                brackets.append(mark)
            elif mark in b"]}":
                is_wrong = is_wrong or brackets.pop() != _OPENING[mark]
            at, was_value, was_comma = match.end(), mark not in b"[{,:", mark == _COMMA
            parts += mark in b"[{,"
            if is_wrong or parts > MAX_PARTS or at - self._at > MAX_ITEM_BYTES:
                self._wasted += at - self._at
                raise _Damaged(_NO_JSON if is_wrong else _too_large())
            if not brackets and (mark in b'"]}' or at < len(self._data)):
                return at
        return 0
