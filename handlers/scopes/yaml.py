"""Reads the YAML that exports are written in: block mappings and lists, literal blocks, and values on one line."""

import math
import re
from typing import Any

from msgspec import Struct

from kernel.lazy_regex import regex

_DEEPEST = 96
_LONGEST_NUMBER = 1000
_NUMBER = regex(r"[-+]?(?:0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?", re.ASCII)
_COLON = regex(r":(?= |$)")
_HEADER = regex(r"\|(?:([1-9])([-+]?)|([-+]?)([1-9]?))\s*(?:#.*)?")
_PLAIN_END = regex(r"[,\[\]{}]|: | #|$")
_ESCAPE = regex(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.)")
_SHORT = {
    "0": "\0",
    "a": "\a",
    "b": "\b",
    "t": "\t",
    "n": "\n",
    "v": "\v",
    "f": "\f",
    "r": "\r",
    "e": "\x1b",
    " ": " ",
    '"': '"',
    "/": "/",
    "\\": "\\",
    "N": "\x85",
    "_": "\xa0",
    "L": "\u2028",
    "P": "\u2029",
}
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}


class _Page(Struct):
    """The lines, and the number of the one that is read next."""

    lines: list[str]
    at: int = 0


def read(text: str) -> Any:
    """The value of a YAML document; raises ValueError naming the line for YAML that no export has.

    Keys are strings, and so is a plain value that is no number, `true`, `false` or `null` of JSON. Anchors, tags,
    folded blocks and values that go on in the next line are refused.
    """
    lines = text.removeprefix("\ufeff").removesuffix("\n").split("\n")
    page = _Page([line.removesuffix("\r") for line in lines])
    head = _next(page)
    if head is not None and page.lines[page.at].partition(" #")[0].rstrip() == "---":
        page.at += 1
    value = _block(page, -1, 0)
    if _next(page) is not None:
        raise _refusal(page, "this does not belong here")
    return value


def _refusal(page: _Page, why: str) -> ValueError:
    return ValueError(f"line {page.at + 1}: {why}")


def _next(page: _Page) -> tuple[int, str] | None:
    """Indent and words of the next line that says something, which the page then stands at."""
    while page.at < len(page.lines):
        line = page.lines[page.at]
        words = line.lstrip(" ")
        if words.startswith("\t") and words.strip():
            raise _refusal(page, "a tab cannot indent")
        if words.strip() and not words.startswith("#"):
            return len(line) - len(words), words.rstrip(" \t")
        page.at += 1
    return None


def _block(page: _Page, parent: int, depth: int) -> Any:
    """The value that stands deeper than `parent`; None where there is none."""
    found = _next(page)
    if found is None or found[0] <= parent:
        return None
    if depth > _DEEPEST:
        raise _refusal(page, f"more than {_DEEPEST} levels")
    indent, words = found
    if words == "-" or words.startswith("- "):
        return _sequence(page, indent, depth)
    if words.startswith("? ") or _key(page, words) is not None:
        return _mapping(page, indent, depth)
    return _value(page, words, parent, depth)


def _sequence(page: _Page, indent: int, depth: int) -> list[Any]:
    items: list[Any] = []
    while (found := _next(page)) is not None and found[0] == indent and (found[1] + " ").startswith("- "):
        words = found[1][1:].lstrip(" ")
        if words.startswith(("- ", "? ")) or words == "-" or (words and _key(page, words) is not None):
            # What begins on the line of the dash is a block whose indent is where it begins.
            line = page.lines[page.at]
            page.lines[page.at] = f"{line[:indent]} {line[indent + 1 :]}"
            items.append(_block(page, indent, depth + 1))
        else:
            items.append(_value(page, words, indent, depth))
    return items


def _mapping(page: _Page, indent: int, depth: int) -> dict[str, Any]:
    pairs: dict[str, Any] = {}
    while (found := _next(page)) is not None and found[0] == indent:
        words = found[1]
        if words.startswith("? "):
            key, words = _long_key(page, words[2:], indent)
        else:
            pair = _key(page, words)
            if pair is None:
                raise _refusal(page, "a key is missing")
            key, words = pair
        if key in pairs:
            raise _refusal(page, f"{key[:40]} stands here twice")
        pairs[key] = _value(page, words, indent, depth, in_mapping=True)
    if found is not None and found[0] > indent:
        raise _refusal(page, "this is indented further than what it follows")
    return pairs


def _long_key(page: _Page, words: str, indent: int) -> tuple[str, str]:
    key, end = _inline(page, words, 0, 0, flow=False)
    page.at += 1
    found = _next(page)
    if not isinstance(key, str) or words[end:].strip() or found is None or found[0] != indent or found[1][:1] != ":":
        raise _refusal(page, "a key marked with ? needs its value on the next line")
    return key, found[1][1:].lstrip(" ")


def _key(page: _Page, words: str) -> tuple[str, str] | None:
    """A key and what follows its colon, or None where the line is no key."""
    if words[0] in "\"'":
        key, end = _quoted(page, words, 0)
        after = words[end:].lstrip(" ")
        return (key, after[1:].lstrip(" ")) if after == ":" or after.startswith(": ") else None
    found = _COLON.search(words)
    if found is None or words[0] in "[{#&*!|>%@`" or " #" in words[: found.start()]:
        return None
    return words[: found.start()].rstrip(" "), words[found.end() :].lstrip(" ")


def _value(page: _Page, words: str, parent: int, depth: int, *, in_mapping: bool = False) -> Any:
    """The value whose first words follow a key or a dash at column `parent`; the page moves behind it."""
    if not words or words.startswith("#"):
        page.at += 1
        found = _next(page)
        level = in_mapping and found is not None and found[0] == parent and (found[1] + " ").startswith("- ")
        return _sequence(page, parent, depth + 1) if level else _block(page, parent, depth + 1)
    if words[0] == "|":
        return _literal(page, words, parent)
    value, end = _inline(page, words, 0, depth, flow=False)
    rest = words[end:]
    if rest.strip() and not (rest[0] == " " and rest.lstrip(" ")[0] == "#"):
        raise _refusal(page, "more follows a value that has ended")
    page.at += 1
    return value


def _literal(page: _Page, words: str, parent: int) -> str:
    header = _HEADER.fullmatch(words)
    if header is None:
        raise _refusal(page, "this block has a header nobody knows")
    stated = header[1] or header[4]
    chomp = header[2] or header[3]
    indent = max(parent, 0) + int(stated) if stated else None
    body: list[str] = []
    page.at += 1
    while page.at < len(page.lines):
        line = page.lines[page.at]
        deep = len(line) - len(line.lstrip(" "))
        if deep < len(line):
            indent = max(deep, parent + 1) if indent is None else indent
            if deep < indent:
                break
        body.append(line if indent is None else line[indent:])
        page.at += 1
    text = "\n".join(body).rstrip("\n") if chomp != "+" else "\n".join(body)
    return text if chomp == "-" or not body or (not text and not chomp) else f"{text}\n"


def _inline(page: _Page, words: str, at: int, depth: int, *, flow: bool) -> tuple[Any, int]:
    """A value within one line, and where it ends; `flow` within brackets."""
    first = words[at : at + 1]
    if first in {'"', "'"}:
        return _quoted(page, words, at)
    if first in {"[", "{"}:
        return _flow(page, words, at, depth)
    if first and (first in "&*!|>%@`" or (first in "?-:" and words[at + 1 : at + 2] in {"", " "})):
        raise _refusal(page, f"{first} has a meaning in YAML that is not read here: put the value into quotes")
    end = at
    while True:
        found = _PLAIN_END.search(words, end)
        end = found.start() if found else len(words)
        if flow or found is None or found[0] in {" #", ""}:
            break
        if found[0] == ": ":
            raise _refusal(page, "a value that holds a colon and a space needs quotes")
        end += 1
    return _plain(words[at:end].strip(" ")), end


def _plain(word: str) -> Any:
    if word in _WORDS:
        return _WORDS[word]
    number = _NUMBER.fullmatch(word)
    if number is None:
        return word
    if number[1] or number[2]:
        value = float(word)
        return value if math.isfinite(value) else word
    return int(word) if len(word) <= _LONGEST_NUMBER else word


def _flow(page: _Page, words: str, at: int, depth: int) -> tuple[Any, int]:
    if depth > _DEEPEST:
        raise _refusal(page, f"more than {_DEEPEST} levels")
    close = {"[": "]", "{": "}"}[words[at]]
    items: list[Any] = []
    pairs: dict[str, Any] = {}
    at = _blanks(words, at + 1)
    while words[at : at + 1] != close:
        item, at = _inline(page, words, at, depth + 1, flow=True)
        at = _blanks(words, at)
        if close == "}":
            if words[at : at + 1] != ":" or not isinstance(item, str):
                raise _refusal(page, "a key within braces is a word, and its value follows a colon")
            pairs[item], at = _inline(page, words, _blanks(words, at + 1), depth + 1, flow=True)
            at = _blanks(words, at)
        items.append(item)
        if words[at : at + 1] == ",":
            at = _blanks(words, at + 1)
        elif words[at : at + 1] != close:
            raise _refusal(page, f"{close} is missing")
    return pairs if close == "}" else items, at + 1


def _blanks(words: str, at: int) -> int:
    while words[at : at + 1] == " ":
        at += 1
    return at


def _quoted(page: _Page, words: str, at: int) -> tuple[str, int]:
    quote = words[at]
    parts: list[str] = []
    at += 1
    while at < len(words):
        letter = words[at]
        if letter == quote:
            if quote == '"' or words[at + 1 : at + 2] != "'":
                return "".join(parts), at + 1
            at += 1
        elif letter == "\\" and quote == '"':
            letter, at = _escaped(page, words, at + 1)
        parts.append(letter)
        at += 1
    raise _refusal(page, "a quote is not closed")


def _escaped(page: _Page, words: str, at: int) -> tuple[str, int]:
    """The character that an escape stands for, and where its last letter stands."""
    found = _ESCAPE.match(words, at)
    digits = found and (found[1] or found[2] or found[3])
    if digits:
        point = int(digits, 16)
        if point <= 0x10FFFF and not 0xD800 <= point < 0xE000:
            return chr(point), at + len(digits)
    elif found and found[4] in _SHORT:
        return _SHORT[found[4]], at
    raise _refusal(page, "a backslash begins an escape nobody knows")
