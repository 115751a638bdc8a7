"""TOML of other programs: read it, and set one table in it without touching anything else."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, cast

from kernel.cli.jsonc import Object, placed
from kernel.errors import Fault
from kernel.lazy_regex import regex

_HEADER = regex(r"\A[ \t]*\[(\[)?([^\r\n]*?)\](?(1)\])[ \t]*(?:#[^\r\n]*)?")
_BARE = regex(r"[A-Za-z0-9_-]+")


def read(text: str) -> Object:
    """The document; raises Fault("invalid") with the place where it is none."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise Fault("invalid", f"no TOML: {error}") from None


def put(text: str, keys: Sequence[str], table: Mapping[str, Any]) -> str:
    """The document with `table` at `keys`, every other line as it was; equal text where it holds that already.

    Raises Fault("invalid") where it stands there in a way that cannot be changed line by line.
    """
    wanted = placed(read(text), keys, dict(table))
    if wanted == read(text):
        return text
    newline = "\r\n" if "\r\n" in text else "\n"
    block = [f"[{'.'.join(_key(key) for key in keys)}]", *(f"{_key(key)} = {_text(table[key])}" for key in table)]
    kept, place = _without(text.splitlines(), keys)
    if place == len(kept) and kept and kept[-1].strip():
        block = ["", *block]
    changed = newline.join([*kept[:place], *block, *kept[place:]]) + newline
    try:
        safe = tomllib.loads(changed) == wanted
    except tomllib.TOMLDecodeError:
        safe = False
    if not safe:
        raise Fault("invalid", f"{'.'.join(keys)} is written in a way that only its author should change")
    return changed


def _without(lines: list[str], keys: Sequence[str]) -> tuple[list[str], int]:
    """The lines without those of the table and of the tables in it, and where its first line was, or else the end."""
    kept: list[str] = []
    place: int | None = None
    ours = False
    for line in lines:
        header = _header(line)
        if header is not None:
            ours = header[: len(keys)] == list(keys)
        if not ours:
            kept.append(line)
            continue
        place = len(kept) if place is None else place
        if header is None and (not line.strip() or line.lstrip().startswith("#")):
            kept.append(line)
    return kept, len(kept) if place is None else place


def _header(line: str) -> list[str] | None:
    """The keys of a line such as `[a."b c"]`, None for any other line."""
    found = _HEADER.fullmatch(line)
    if found is None:
        return None
    try:
        here: Any = tomllib.loads(f"[{found[2]}]")
    except tomllib.TOMLDecodeError:
        return None
    keys: list[str] = []
    while here:
        ((key, here),) = here.items()
        keys.append(key)
    return keys


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _string(key)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, list):
        return f"[{', '.join(_text(item) for item in cast('list[Any]', value))}]"
    if isinstance(value, dict):
        inner = ", ".join(f"{_key(key)} = {_text(item)}" for key, item in cast("Object", value).items())
        return f"{{ {inner} }}" if inner else "{}"
    raise Fault("invalid", f"{value!r} stands beside what would change, and cannot be written again")


def _string(text: str) -> str:
    """A basic string; JSON's escapes are TOML's, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
