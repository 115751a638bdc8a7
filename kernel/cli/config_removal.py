"""Remove one value from a JSON, JSONC or TOML file of another program; the rest of the file stays as it is."""

import tomllib
from collections.abc import Sequence
from typing import Any, cast

from kernel.cli.config_files import Object, parses_as, read_json, read_toml, unsafe
from kernel.cli.jsonc import parse, skip_blank

_AFTER_A_MEMBER = ("", "\r", "\n", "}")  # what may follow on a line that is removed with it


def remove_json(text: str, keys: Sequence[str]) -> str:
    """Return the document without the member at the path `keys`, unchanged if there is none."""
    wanted = without(read_json(text), keys)
    if wanted is None:
        return text
    changed = _cut_member(text, keys)
    if read_json(changed) != wanted:
        raise unsafe(keys)
    return changed


def remove_toml(text: str, keys: Sequence[str]) -> str:
    """Return the document without the table at the path `keys`, unchanged if there is none."""
    wanted = without(read_toml(text), keys)
    if wanted is None:
        return text
    for edit in (_cut_tables, _delete_table):
        changed = edit(text, keys)
        # A file that had nothing else may lose the parent with its only table.
        if parses_as(changed, wanted) or parses_as(changed, without(wanted, keys[:-1]) or {}):
            return changed
    raise unsafe(keys)


def without(document: Any, keys: Sequence[str]) -> Object | None:
    """Return a copy of nested objects without the value at `keys`, None if there is none."""
    if not isinstance(document, dict) or keys[0] not in document:
        return None
    here = cast("Object", document)
    head, rest = keys[0], keys[1:]
    if not rest:
        return {key: value for key, value in here.items() if key != head}
    inner = without(here[head], rest)
    return None if inner is None else {**here, head: inner}


def _cut_member(text: str, keys: Sequence[str]) -> str:
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
    if behind is None and number:  # the last one: the comma before it has nothing behind it any more
        at = here.members[number - 1][2].end
        comma = _comma_behind(text, at)
        before = before if comma is None else text[:at] + text[comma + 1 : start].rstrip(" \t")
    return before + text[end:]


def _comma_behind(text: str, at: int) -> int | None:
    """Return the offset of the comma behind a value, None if none follows."""
    found = skip_blank(text, at)
    return found if text[found : found + 1] == "," else None


def _cut_tables(text: str, keys: Sequence[str]) -> str:
    """Return the text without the lines of a table and of the tables below it; comments before the next header stay."""
    kept: list[str] = []
    held: list[str] = []
    cutting = False
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("["):
            cutting = _header(line)[: len(keys)] == list(keys)
            kept += [] if cutting else held
            held = []
        if not cutting:
            kept.append(line)
        elif not line.strip() or line.lstrip().startswith("#"):
            held.append(line)
        else:
            held = []
    return "".join([*kept, *(line for line in held if line.strip())])


def _header(line: str) -> list[str]:
    """Return the keys of a TOML table header."""
    keys: list[str] = []
    try:
        here: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return keys
    while isinstance(here, dict) and here:
        key, here = next(iter(cast("Object", here).items()))
        keys.append(key)
    return keys


def _delete_table(text: str, keys: Sequence[str]) -> str:
    """Return the text without a table that is not written as one, such as an inline table; "" on failure."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        parent: Any = document
        for key in keys[:-1]:
            parent = parent[key]
        del parent[keys[-1]]
        return document.as_string()
    except (TOMLKitError, KeyError, RecursionError):
        return ""
