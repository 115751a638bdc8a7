"""Writers of JSON, block YAML and one-line summaries; no value can break out of them."""

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from typing import Any, Literal, TypeVar, cast

import msgspec

from kernel.core.lazy_regex import regex
from kernel.core.limits import Limits

RawJson = bytes | bytearray | memoryview | msgspec.Raw
T = TypeVar("T")

# Characters without a visible glyph: soft hyphen, fillers, bidi controls, tags, most variation selectors,
# byte order mark, noncharacters. U+FE0E and U+FE0F stay out, since they only choose between two shapes of one emoji.
_INVISIBLE = (
    r"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff"
)
_JOINERS = r"\u200c\u200d"
_CONTROLS = r"\x00-\x1f\x7f-\x9f"
# Every blank that could pass for a space or a line end; U+3000 stays out, since it is the space of CJK prose.
_BLANKS = r"\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f"

_MARKS_IN_A_ROW = 30  # more are in no writing: the Stream-Safe Text Format of Unicode (UAX 15)
_MANY_SIGNS = regex(rf"[^\w\x00-\xff]{{{_MARKS_IN_A_ROW + 1}}}")  # marks are no word characters
_KANA_MARKS = "\uff9e\uff9f"  # of half width; they are word characters
_MOST_MARKS = 64  # characters of a heading's marks and blanks before its text
# Escaped backslashes, and the escapes of half a pair or of a whole pair; the run of backslashes is looked at once.
_SURROGATES = re.compile(rb"(?<!\\)((?:\\\\)*+)\\u[dD](?:([89abAB]..\\u[dD][c-fC-F]..)|[89a-fA-F]..)", re.DOTALL)
_MOST_SURROGATES = 100_000  # .4 microseconds each, while no other call is answered
_LONGEST_NAME = 80  # of which the letters are compared
_LONG_TEXT = 4096  # characters, over which a regular expression takes half a millisecond
_CACHED_CHARACTERS = 24  # texts up to this length, such as states and times, are cached once quoted
_SURROGATE = regex(r"[\ud800-\udfff]")
_HIDDEN = regex(f"[{_INVISIBLE}{_JOINERS}{_CONTROLS}{_BLANKS}]")
_ESCAPED = regex(rf'["\\{_INVISIBLE}{_JOINERS}{_CONTROLS}{_BLANKS}]')
_UNBLOCKABLE = regex(rf"[{_INVISIBLE}{_JOINERS}{_BLANKS}\x00-\x08\x0b-\x1f\x7f-\x9f]")
_NAMED = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}

# Starts with a letter, underscore or slash, so it is no number, date, indicator, `=` or `<<` in either version of YAML.
_PLAIN = regex(rf"(?:[^\W\d]|/)[^:#{_CONTROLS}]*(?:(?::(?! |\Z)|(?<! )#)[^:#{_CONTROLS}]*)*(?<! )")
_RESERVED = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_LONGEST_RESERVED = 5
_LONGEST_KEY = 1000  # YAML wants a key and its colon within 1024 characters, unless the key is marked with `?`

# `Encoder.encode` of msgspec 0.22 ends the process if its buffer cannot grow; `encode_into` raises MemoryError.
encode_json_into = msgspec.json.Encoder().encode_into
_SQUARE = bytes.maketrans(b"{}", b"[]")
_PIECE_BYTES = 65536  # of JSON text that is split at its quotes at once
_NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_NOT_DIGITS = bytes(byte for byte in range(256) if byte not in b"0123456789")
_DIGITS_OF_VALUE = 25  # on average; a double has 17, and an integer takes the square of its digits
_DIGITS_OF_EXPONENT = 250  # msgspec 0.22 takes 8 microseconds to read 1e300, 200 times as long as 1e30
_LARGE_EXPONENT = re.compile(rb"[eE][+-]?[0-9]{3}")
_BACKSLASHES = re.compile(rb"\\*+")
_LARGE_JSON = 16_384

_JSON_ESCAPE = regex(r"\\(?:u[0-9a-fA-F]{4}|.)")
_BRACKETS = regex(r"[,\[\]{}:?]")

# Changes within a name of ASCII, such as getUserById and utf8, at a capital, a digit or an underscore. These are rare
# in prose, so a pattern that begins with them passes over it quickly.
CHANGES_OF_NAMES = (
    r"(?<=[a-z][A-Z])|(?<=[A-Za-z][0-9])|(?<=[0-9])(?=[A-Za-z])|(?<=[A-Z][A-Z])(?=[a-z][a-z])"
    r"|(?<=[A-Za-z0-9]_)(?=[A-Za-z0-9])"
)

_WORD = regex(rf"[^\s{_CONTROLS}]+")
_ONE_WORD = regex(r'[^\s"=,\\\ud800-\udfff]+')
_DROPPED = regex(f"[{_INVISIBLE}]")
# A line end of Windows is none of them; a surrogate stands for a byte of a file name.
_OBEYED = regex(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n)")
# Characters that joiners stand between in writing: of Arabic, Syriac, Indic and Mongolian script, and pictures.
_JOINED = r"\u0600-\u0dff\u0f00-\u109f\u1780-\u18af\u20e3\u2190-\u2bff\ufe0f\U0001f000-\U0001faff"
_STRAY_JOINER = regex(f"(?<![{_JOINED}])[{_JOINERS}]|[{_JOINERS}](?![{_JOINED}])")
# Characters that are invisible or reorder the text around them: shown by their number.
_SHOWN_BY_NUMBER = {
    code: f"\u27e8U+{code:04X}\u27e9"
    for first, last in (
        (0x00, 0x08),
        (0x0B, 0x1F),
        (0x7F, 0x9F),
        (0xAD, 0xAD),
        (0x61C, 0x61C),
        (0x180E, 0x180E),
        (0x200B, 0x200B),
        (0x200E, 0x200F),
        (0x2028, 0x202E),
        (0x2060, 0x206F),
        (0xFE00, 0xFE0E),
        (0xFEFF, 0xFEFF),
        (0xE0000, 0xE01EF),
    )
    for code in range(first, last + 1)
}


def json_decoder(kind: type[T], *, strict: bool = True) -> Callable[[RawJson], T]:
    """Return the function that decodes JSON of clients; it raises MemoryError if the texts do not fit into memory."""
    decode = msgspec.json.Decoder(kind, strict=strict).decode

    def decode_json(data: RawJson) -> T:
        if len(data) > _LARGE_JSON:  # msgspec 0.22 copies a text to address 0 if it gets no memory for it
            bytearray(2 * len(data))
        return decode(data)

    return decode_json


def excess(body: bytes, limits: Limits) -> str:
    """Return which limit JSON text exceeds, in words, or an empty text; a short and flat text costs two counts."""
    if len(body) <= limits.values and body.count(b"{") + body.count(b"[") <= limits.depth:
        return ""
    values, digits, open_brackets = 1, 0, bytearray()
    for part in _outside_strings(body):
        brackets = part.translate(_SQUARE, _NOT_BRACKETS)
        values += part.count(b",") + brackets.count(b"[")
        if values > limits.values:
            return "too many values"
        digits += _digits(part)
        if digits > _DIGITS_OF_VALUE * limits.values:
            return "too many digits"
        open_brackets += brackets
    for _ in range(limits.depth):
        if not open_brackets:
            return ""
        open_brackets = open_brackets.replace(b"[]", b"")  # removes the innermost level, and only that
    return "nested too deeply" if open_brackets else ""


def is_of_long_numbers(body: bytes) -> bool:
    """Return whether the numbers of JSON text have more digits than a request may have."""
    return sum(map(_digits, _outside_strings(body))) > _DIGITS_OF_VALUE * Limits().values


def _digits(part: bytes) -> int:
    return len(part.translate(None, _NOT_DIGITS)) + _DIGITS_OF_EXPONENT * len(_LARGE_EXPONENT.findall(part))


def _outside_strings(body: bytes) -> Iterator[bytes]:
    """Yield the parts of JSON text outside strings; split piece by piece, so that many quotes do not make one huge
    list.
    """
    at, quotes = 0, 0
    while at < len(body):
        end = at + _PIECE_BYTES
        if body[end - 1 : end] == b"\\" and (escapes := _BACKSLASHES.match(body, end)):
            end = escapes.end() + 1
        parts = body[at:end].replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        yield b"".join(parts[quotes % 2 :: 2])
        quotes += len(parts) - 1
        at = end


def json_bytes(value: Any) -> bytes:
    buffer = bytearray()
    encode_json_into(value, buffer)
    return bytes(buffer)


def json_text(value: Any) -> str:
    buffer = bytearray()
    encode_json_into(value, buffer)
    return buffer.decode()


def yaml_block(pairs: Mapping[str, object] | Iterable[tuple[str, object]]) -> str:
    """Return a YAML block mapping with its keys in the order given; every loader of YAML 1.1 or 1.2 reads the same
    values.
    """
    lines: list[str] = []
    items = cast("Mapping[str, object]", pairs).items() if isinstance(pairs, Mapping) else pairs
    _mapping(lines, items, "")
    return "\n".join(lines or ["{}"]) + "\n"


def yaml_flow(items: Iterable[str]) -> str:
    """Return a YAML flow sequence of texts, on one line."""
    return f"[{', '.join(_quoted(item) if _BRACKETS.search(item) else _string(item) for item in items)}]"


def distinct_words(text: str) -> Iterable[str]:
    """Return a short text whole, or the distinct words of a long text, split at blanks.

    A regular expression that crosses no blank finds the same in it, sooner, and in many calls: during a call no other
    thread runs.
    """
    return (text,) if len(text) < _LONG_TEXT else _distinct(text.replace("\n", " ").split(" "))


def _distinct(words: Sequence[str]) -> Iterator[str]:
    """Return `dict.fromkeys(words)`, during which other threads run."""
    seen_words: set[str] = set()
    for word in words:
        if word not in seen_words:
            seen_words.add(word)
            yield word


def normalized(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Return `unicodedata.normalize` in linear time: it sorts marks in a row in the square of their number."""
    may_have_many = not text.isascii() and (_MANY_SIGNS.search(text) or any(mark in text for mark in _KANA_MARKS))
    if not may_have_many or not _many_marks().search(text):
        return unicodedata.normalize(form, text)
    return "".join(unicodedata.normalize(form, part) for part in _parts_with_few_marks(text))


@cache
def _many_marks() -> re.Pattern[str]:
    marks = (letter for letter in map(chr, range(0x300, 0x10000)) if unicodedata.category(letter)[0] == "M")
    # Beyond these a mark or another sign: the class is a table of bits then.
    return re.compile(f"[{''.join(marks)}{_KANA_MARKS}\U00010000-\U0010ffff]{{{_MARKS_IN_A_ROW + 1}}}")


def _parts_with_few_marks(text: str) -> Iterator[str]:
    begin = count = 0
    for at, letter in enumerate(text):
        count = count + 1 if letter in _KANA_MARKS or unicodedata.category(letter)[0] == "M" else 0
        if count > _MARKS_IN_A_ROW:
            yield text[begin:at]
            begin, count = at, 1
    yield text[begin:]


def composed(text: str) -> str:
    """Return a text in the form in which texts that look the same are equal (NFC)."""
    return normalized("NFC", text)


def spellings(words: Sequence[str]) -> list[str]:
    """Return words as they are, composed and decomposed (NFC, NFD): they look the same, and are stored in any form."""
    forms = (normalized(form, word) for word in words for form in ("NFC", "NFD"))
    return [*dict.fromkeys((*words, *forms))]


def count_of_memories(count: int) -> str:
    return "1 memory" if count == 1 else f"{count:,} memories"


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def one_line(text: str, limit: int) -> str:
    """Return the start of a text on one line of at most `limit` characters, cut between words and closed with an
    ellipsis.
    """
    head = text[: limit * 2]
    if head.isascii():  # most texts, and some times as fast
        line = head.replace("\n", " ").strip()
        plain = "  " not in line and line.isprintable()
        if not plain:
            line = " ".join(line.split())
        if (plain or line.isprintable()) and (len(line) > limit or len(head) == len(text)):
            return line if len(line) <= limit else _cut(line, limit)
    words, length = list[str](), -1
    for match in _WORD.finditer(text):  # stops at the limit, so a long text costs no more than a short one
        if word := _DROPPED.sub("", _SURROGATE.sub("\ufffd", match[0])):
            words.append(word)
            length += 1 + len(word)
            if length > limit:
                return _cut(" ".join(words), limit)
    return " ".join(words)


def begins_with(text: str, title: str) -> bool:
    """Return whether a text begins with a title: as its first words or heading, or, for a title that ends in an
    ellipsis, as far as that goes. Case and blanks do not count.
    """
    bare = title.strip().removesuffix("…")
    beginning = text[: 2 * len(title) + _MOST_MARKS].lstrip("# \t\r\n")  # twice for further blanks
    name, start = (" ".join(part.split()).casefold() for part in (bare, beginning))
    if not name or not start.startswith(name):
        return False
    return bare != title.strip() or not start[len(name) : len(name) + 1].isalnum()


def _cut(line: str, limit: int) -> str:
    if limit < 1:
        return ""
    head = line[: limit - 1]
    space = head.rfind(" ")
    if line[limit - 1] != " " and space >= limit // 2:  # a word longer than half the line is cut rather than dropped
        head = head[:space]
    return head.rstrip() + "…"


def _mapping(lines: list[str], pairs: Iterable[tuple[str, object]], pad: str) -> None:
    for name, value in pairs:
        key = _key(name)
        mark = f"{pad}{key}:" if len(key) < _LONGEST_KEY else f"{pad}? {key}\n{pad}:"
        _entry(lines, mark, value, pad)


def _entry(lines: list[str], mark: str, value: object, pad: str) -> None:
    if isinstance(value, str):
        if "\n" in value and _blockable(value := _SURROGATE.sub("\ufffd", value)):
            _literal(lines, mark, value, pad + "  ")
        else:
            lines.append(f"{mark} {_key(value) if len(value) <= _CACHED_CHARACTERS else _string(value)}")
    elif value is None or isinstance(value, int | float):
        lines.append(f"{mark} {_constant(value)}")
    elif isinstance(value, list | tuple):
        items = cast("Iterable[object]", value)
        lines.append(mark if value else f"{mark} []")
        for item in items:
            _item(lines, item, pad + "  ")
    elif isinstance(value, Mapping):
        pairs = cast("Mapping[str, object]", value)
        lines.append(mark if pairs else f"{mark} {{}}")
        _mapping(lines, pairs.items(), pad + "  ")
    else:
        raise TypeError(f"YAML has no plain form for {type(value).__name__}")


def _item(lines: list[str], value: object, pad: str) -> None:
    """Append an item of a list; a nested value starts on the line of its own dash."""
    dash = len(lines)
    _entry(lines, f"{pad}-", value, pad)
    if lines[dash] == f"{pad}-":
        lines[dash : dash + 2] = [f"{pad}- {lines[dash + 1][len(pad) + 2 :]}"]


def _blockable(text: str) -> bool:
    return not text.isspace() and not _UNBLOCKABLE.search(text)  # readers differ on a block of nothing but blanks


def _literal(lines: list[str], mark: str, text: str, pad: str) -> None:
    """A literal block; its indentation is stated if a first line that starts blank would leave it to be guessed."""
    body = text.removesuffix("\n")
    chomp = "-" if body == text else "+" if body.endswith("\n") else ""
    depth = "2" if text[0] in " \t\n" else ""
    lines.append(f"{mark} |{depth}{chomp}")
    lines.extend(pad + line if line else "" for line in body.split("\n"))


def _string(text: str) -> str:
    if (
        _PLAIN.fullmatch(text)
        and (text.isascii() or not (_HIDDEN.search(text) or _SURROGATE.search(text)))
        and (len(text) > _LONGEST_RESERVED or text.lower() not in _RESERVED)
    ):
        return text
    return _quoted(text)


def _quoted(text: str) -> str:
    escaped_text = _ESCAPED.sub(_escape, _SURROGATE.sub("\ufffd", text))
    return f'"{escaped_text}"'


_key = lru_cache(maxsize=1024)(_string)  # field names, states and the time of a group come back with every call


def _escape(match: re.Match[str]) -> str:
    escape = _NAMED.get(match[0])
    if escape:
        return escape
    point = ord(match[0])
    return f"\\x{point:02x}" if point < 0x100 else f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def _constant(value: float | None) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _float(value) if isinstance(value, float) else str(value)


def _float(value: float) -> str:
    if math.isnan(value):
        return ".nan"
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    digits = repr(value)
    # YAML 1.1 takes 1e+16 for a string: a float needs its point.
    return digits if "." in digits else digits.replace("e", ".0e")


def one_word(text: str) -> str:
    """Return a text as one word of a line: quoted, with escapes, unless it is plain. No text can pass for
    more fields.
    """
    return text if _ONE_WORD.fullmatch(text) and not _HIDDEN.search(text) else _quoted(text)


def stored_object(text: str | None) -> dict[str, Any]:
    """Return a JSON object of a row; empty if the text is not a JSON object, as in a row from elsewhere."""
    try:
        value: Any = msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def nested_deeper(value: Any, levels: int) -> bool:
    level = [value]
    for _ in range(levels):
        level = [part for child in level for part in _children(child) if isinstance(part, dict | list)]
        if not level:
            return False
    return True


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).values()
    return cast("list[Any]", value) if isinstance(value, list) else ()


def words_of_json(text: str) -> str:
    """Return JSON text without escapes, of which a tokenizer takes some for letters."""
    if "\\" not in text:
        return text
    with suppress(msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        text = json_text(msgspec.json.decode(text))
    return _JSON_ESCAPE.sub(" ", text)


def harmless(text: str) -> str:
    """Return the text with marks such as `⟨U+001B⟩` for characters that a terminal obeys: control characters but tabs
    and line ends, and overrides of the reading order.
    """
    return text if text.isascii() and text.isprintable() else _OBEYED.sub(_number, text)


def _number(match: re.Match[str]) -> str:
    return f"\u27e8U+{ord(match[0]):04X}\u27e9"


def visible(text: str) -> str:
    """Return the text with invisible and reordering characters as marks, but for joiners within words and emoji."""
    if text.isascii() and text.isprintable():
        return text
    if "\u200c" in text or "\u200d" in text:
        text = _STRAY_JOINER.sub(_number, text)
    return text.translate(_SHOWN_BY_NUMBER)


def whole_characters(data: bytes) -> bytes:
    r"""Return JSON text with U+FFFD for each escape of half a surrogate pair.

    JavaScript writes `\ud83d` for an emoji that was cut in the middle, and no decoder takes it (RFC 8259 section 8.2).
    Text with more escapes of surrogates than any cut text has is left as it is.
    """
    return data if data.count(b"\\ud") + data.count(b"\\uD") > _MOST_SURROGATES else _SURROGATES.sub(_whole, data)


def _whole(escape: re.Match[bytes]) -> bytes:
    return escape[0] if escape[2] is not None else escape[1] + b"\\ufffd"


def did_you_mean(word: str, names: Iterable[str], prefix: str = "") -> str:
    """Return a question for a misspelt word, such as ": did you mean recall?"; empty if no name is near.

    The prefix, which all names have, would make all of them near.
    """
    from difflib import get_close_matches

    names_by_start = {name[:_LONGEST_NAME]: name for name in names}
    near = get_close_matches(word[:_LONGEST_NAME], names_by_start, 1)
    return "".join(f": did you mean {prefix}{names_by_start[start]}?" for start in near)
