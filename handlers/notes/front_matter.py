"""Front matter: splits a file into entries, reads the values people write, and replaces single entries.

A YAML library would not do: unchanged lines must stay byte for byte, and a file with invalid YAML must stay readable.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kernel.core.lazy_regex import regex

_FENCES = {"---", "..."}
_QUOTED = regex(r""""(?:[^"\\]|\\.)*"|'(?:[^']|'')*'""")
_ITEM = regex(rf"""{_QUOTED.pattern}|[^ \t\r,\[\]"'][^,\[\]]*""")
_COLON = regex(r":(?=[ \t\r]|$)")
_NOT_KEY_START = frozenset(" \t\r\"'#[]{},&*!|>%@`")
_INDICATORS = frozenset("-?:")  # these start a key only if no space follows
_COMMENT = regex(r"(?:^|[ \t])#.*")
_YAML_SPACE = " \t\r"  # the only white space of YAML
_ESCAPE = regex(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_NAMED_ESCAPES = {
    "0": "\0",
    "a": "\a",
    "b": "\b",
    "t": "\t",
    "n": "\n",
    "v": "\v",
    "f": "\f",
    "r": "\r",
    "e": "\x1b",
    "N": "\x85",
    "_": "\xa0",
    "L": "\u2028",
    "P": "\u2029",
}
_NULLS = {"", "~", "null", "Null", "NULL"}

Value = str | list[str] | None


class Entry(NamedTuple):
    """Unchanged lines of front matter; `key` is empty for lines without one, such as a comment."""

    key: str
    lines: tuple[str, ...]


class Page(NamedTuple):
    """A parsed file; `entries` is None without front matter, `bom` is a byte order mark or empty."""

    bom: str
    entries: tuple[Entry, ...] | None
    body: str
    line_end: str


def parse(text: str) -> Page:
    """Parses any text; front matter is a first block between fences whose first entry is a key with a value."""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    lines = text[len(mark) :].split("\n")
    end = "\r\n" if lines[0].endswith("\r") else "\n"
    close = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip(_YAML_SPACE) in _FENCES), 0)
    entries = tuple(_entries(lines[1:close])) if close and lines[0].rstrip(_YAML_SPACE) == "---" else None
    if entries and not any(entry.key for entry in entries[: 1 + _count_leading_comments(entries)]):
        entries = None
    body = text[len(mark) :] if entries is None else "\n".join(lines[close + 1 :])
    return Page(mark, entries, body, end)


def content(page: Page) -> str:
    """Return the text after the front matter, without the blank line before it and the line end after it."""
    body = page.body if page.entries is None else page.body.removeprefix(page.line_end)
    return body.removesuffix(page.line_end)


def render(page: Page, changes: Mapping[str, str], text: str) -> str:
    """Return the text of a file: the entries of `page` with `changes` (key to its whole line) applied, then `text`."""
    entries = list(page.entries or ())
    for key, line in changes.items():
        lines = (line + page.line_end[:-1],)
        at = max((number for number, entry in enumerate(entries) if entry.key == key), default=len(entries))
        entries[at : at + 1] = [Entry(key, lines)]
    head = "".join(f"{line}\n" for entry in entries for line in entry.lines)
    return f"{page.bom}---{page.line_end}{head}---{page.line_end}{page.line_end}{text}{page.line_end}"


def value(page: Page, key: str) -> Value:
    """Return the value of a key, None for none. The last of repeated keys counts, as in YAML loaders."""
    entries = [entry for entry in page.entries or () if entry.key == key]
    return _value(entries[-1].lines) if entries else None


def to_list(texts: Value) -> list[str]:
    """Return a list written as a list, as one text with commas, or as a list inside a text."""
    if isinstance(texts, str):
        texts = _flow(texts) if texts.lstrip().startswith("[") else texts.split(",")
    return [part for part in (part.strip() for part in texts or []) if part]


def _count_leading_comments(entries: Sequence[Entry]) -> int:
    for number, entry in enumerate(entries):
        line = entry.lines[0].strip(_YAML_SPACE)
        if entry.key or (line and not line.startswith("#")):
            return number
    return len(entries)


def _key(line: str) -> tuple[str, str] | None:
    quotation = _QUOTED.match(line)
    colon = _COLON.search(line, quotation.end() if quotation else 0)
    if not line or colon is None or (quotation is None and line[0] in _NOT_KEY_START):
        return None
    if line[0] in _INDICATORS and line[1] in _YAML_SPACE:
        return None
    if quotation and line[quotation.end() : colon.start()].strip(_YAML_SPACE):
        return None
    return _unquoted(line[: colon.start()].rstrip(_YAML_SPACE)), line[colon.end() :].strip(_YAML_SPACE)


def _entries(lines: Sequence[str]) -> Iterator[Entry]:
    key, own, blank = "", list[str](), list[str]()
    for line in lines:
        bare = line.strip(_YAML_SPACE)
        pair = _key(line)
        if pair is None and (not bare or line.startswith("#")):
            blank.append(line)
        elif pair is None and own and (line[0] in " \t-" or bare[0] in "]}"):
            own += [*blank, line]
            blank = []
        else:
            yield from _finish_entry(key, own, blank)
            key, own, blank = (pair[0] if pair else ""), [line], []
    yield from _finish_entry(key, own, blank)


def _finish_entry(key: str, own: list[str], blank: list[str]) -> Iterator[Entry]:
    if own:
        yield Entry(key, tuple(own))
    for line in blank:
        yield Entry("", (line,))


def _value(lines: Sequence[str]) -> Value:
    first = (_key(lines[0]) or ("", ""))[1]
    more = [line.strip(_YAML_SPACE) for line in lines[1:]]
    if first.startswith("["):
        return _flow(" ".join([first, *more]))
    if first[:1] in {"|", ">"}:
        return _block(first, lines[1:])
    if not _COMMENT.sub("", first).strip(_YAML_SPACE) and any(line.startswith("-") for line in more):
        return _scalars(line[1:].strip(_YAML_SPACE) for line in more if line == "-" or line.startswith("- "))
    return _scalar(" ".join([first, *more]).strip(_YAML_SPACE))


def _scalar(text: str) -> str | None:
    if quotation := _QUOTED.match(text):
        return _unquoted(quotation[0])
    plain = _COMMENT.sub("", text).strip(_YAML_SPACE)
    return None if plain in _NULLS else plain


def _scalars(texts: Iterable[str]) -> list[str]:
    return [item for item in map(_scalar, texts) if item is not None]


def _flow(text: str) -> list[str]:
    return _scalars(match[0].strip(_YAML_SPACE) for match in _ITEM.finditer(text))


def _block(header: str, lines: Sequence[str]) -> str:
    texts = [line.rstrip("\r") for line in lines]
    depth = min((len(line) - len(line.lstrip(_YAML_SPACE)) for line in texts if line.strip(_YAML_SPACE)), default=0)
    return (" " if header[0] == ">" else "\n").join(line[depth:] for line in texts).strip("\n")


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) > 1 and text[0] == text[-1] == '"':
        plain = _ESCAPE.sub(_unescaped, text[1:-1])
        return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _unescaped(match: re.Match[str]) -> str:
    digits = match[1] or match[2] or match[3]
    if digits is None:
        return _NAMED_ESCAPES.get(match[4], match[4])
    point = int(digits, 16)
    return chr(point) if point < 0x110000 else "\ufffd"
