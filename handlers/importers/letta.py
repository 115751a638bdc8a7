"""Letta: agent files, with their memory blocks, passages and messages."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from handlers.importers.archives import head_of, unknown_member
from handlers.importers.records import (
    EMPTY,
    Item,
    LeftOut,
    Values,
    filled,
    is_deleted,
    list_in,
    mapping_in,
    other_members,
    tags_of,
    text_of,
    time_in,
)
from kernel.core.lazy_regex import regex
from kernel.memories.import_records import GONE, Record, shown, stable_id
from kernel.memories.json_rows import Element, rows

SYSTEM = "letta"
_PASSAGES = ("passages", "archival_memory")
_MEMBERS = {"agents", "blocks", "core_memory", "messages", *_PASSAGES}
_OF_AGENT = ("id", "name", "block_ids", "messages", "in_context_message_ids", "created_at", "updated_at")
_OF_PASSAGE = ("id", "text", "content", "tags", "created_at", "metadata")
_NAMELESS = "agent"
_HEAD_BYTES = 1 << 16
_SAID = {"user", "assistant"}
_EVENTS = ("heartbeat", "login", "system_alert")  # which the server writes in the name of the person
_THOUGHT, _CALL = "a thought", "a call of a tool"
_PRIORITY = 5
_OF_FILE = regex(r"[a-z]+-\d{1,9}", 0)  # an id that counts within its file, and is another memory in another file
_WORD = regex(r"[\w-]+", 0)  # the parts of a label that a path keeps


def is_of_blocks(path: Path) -> bool:
    """Return whether a file is a list of memory blocks, by the first of them."""
    if b'"label"' not in head_of(path, _HEAD_BYTES):
        return False
    first = next(_elements(path), None)
    return isinstance(first, Element) and _is_block(first)


def read_file(path: Path) -> Iterator[Item]:
    """Yield the blocks, passages and messages of an agent file, in today's form or the older form of a single agent."""
    owners: dict[str, str] = {}
    single = ""
    for element in _elements(path):
        if isinstance(element, Element) and element.member == "agents":
            owners |= {str(number): _name(element.row) for number in _list(element.row, "block_ids")}
            single = single or _name(element.row)
        elif isinstance(element, Element) and element.member == "name":
            single = text_of({"name": element.value}, "name") or single
    single = single or _NAMELESS
    counts, talk = Counter[tuple[str, str]](), _Talk(single)
    for element in _elements(path):
        if isinstance(element, LeftOut):
            yield element
        elif element.member in {"blocks", "core_memory"} or _is_block(element):
            yield _block(element.row, owners.get(text_of(element.row, "id"), single), path.name, counts)
        else:
            yield from _others(element, talk, path.name)


def _is_block(element: Element) -> bool:
    return not element.member and bool(text_of(element.row, "label")) and isinstance(element.row.get("value"), str)


class _Talk(Struct):
    """The messages of an agent so far: how many there are, the last text, and how often each text came."""

    agent: str
    count: int = 0
    last: str = ""
    texts: Counter[str] = field(default_factory=Counter[str])


def _others(element: Element, talk: _Talk, name: str) -> Iterator[Item]:
    """Yield the passage or the messages of an element that is no block; `talk` has the messages beside agents."""
    if element.member in _PASSAGES:
        yield _passage(element.row, talk.agent, name)
    elif element.member == "messages":
        yield from _message(element.row, talk, name)
    elif element.member == "agents":
        agent = _name(element.row)
        own = _Talk(agent)
        for row in map(mapping_in, _list(element.row, "messages")):
            yield from _message(row, own, name)
        yield from (
            LeftOut(f"of the member {shown(member)}", agent) for member in other_members(element.row, *_OF_AGENT)
        )
    else:
        yield from unknown_member(element)


def _elements(path: Path) -> Iterator[Element | LeftOut]:
    with path.open("rb") as file:
        yield from rows(file, members=_MEMBERS)


def _name(agent: Values) -> str:
    return text_of(agent, "name") or text_of(agent, "id") or _NAMELESS


def _list(row: Values, name: str) -> Sequence[Any]:
    return list_in(row.get(name))


def _block(row: Values, agent: str, name: str, counts: Counter[tuple[str, str]]) -> Item:
    """Return a block at a path of agent and label; agents of one name each keep theirs, by a number."""
    label = "-".join(_WORD.findall(text_of(row, "label"))) or "block"
    counts[agent, label] += 1
    label += f"-{counts[agent, label]}" if counts[agent, label] > 1 else ""
    origin, text = (
        filled({"system": SYSTEM, "id": text_of(row, "id"), "file": name}),
        "" if is_deleted(row) else text_of(row, "value"),
    )
    kind = "memory block" if text else GONE  # emptied, if it was imported before
    title, details = ("", {}) if text else (label, {"why": EMPTY})
    return Record("paths", kind, label, text, f"agents/{agent}", title, origin=origin, details=details)


def _passage(row: Values, agent: str, name: str) -> Item:
    text, number = text_of(row, "text", "content"), text_of(row, "id")
    number = f"{agent}:{number}" if _OF_FILE.fullmatch(number) else number
    return Record(
        "brain",
        GONE if is_deleted(row) else "memory",
        f"{SYSTEM}:{number or text}",
        text,
        tags=tags_of(row.get("tags")),
        created_at=time_in(row, "created_at"),
        origin=filled({"system": SYSTEM, "id": text_of(row, "id"), "file": name}),
        details={"metadata": {**other_members(row, *_OF_PASSAGE), **mapping_in(row.get("metadata"))}},
    )


def _message(row: Values, talk: _Talk, name: str) -> Iterator[Item]:
    """Yield a message, and its calls of tools.

    Without an id its position distinguishes it from others of its time, and without a time the text before it.
    """
    role, text, calls = text_of(row, "role"), _text(row), [*map(mapping_in, _list(row, "tool_calls"))]
    talk.count += 1
    packed = mapping_in(text)
    if role not in _SAID or text_of(packed, "type") in _EVENTS:
        yield LeftOut(f"a message of {role or 'nobody'}"[:60] if role not in _SAID else "a notice of the program")
        return
    sent = "\n\n".join(filter(None, map(_sent, calls)))
    yield from [LeftOut(_THOUGHT)] * bool(sent and text) + [LeftOut(_CALL)] * sum(not _sent(call) for call in calls)
    text = sent or (text_of(packed, "message") if packed.get("type") == "user_message" else "") or text
    at, number = time_in(row, "created_at"), text_of(row, "id")
    if not number:
        talk.texts[talk.last] += 1
        before = f"after {stable_id('text', talk.last)} ({talk.texts[talk.last]})"
        number = f"message {talk.count}" if at else before if talk.last else ""
    talk.last = text
    if is_deleted(row):
        yield LeftOut("deleted there", number)
    elif text or not calls:
        yield Record(
            "sessions",
            "memory",
            f"{SYSTEM}:{number or text}",
            text,
            place=f"{SYSTEM}:{talk.agent}",
            category=role,
            created_at=at,
            origin=filled({"system": SYSTEM, "id": number, "file": name}),
            details={"priority": _PRIORITY, "has_own_id": bool(number), "stands_alone": True},
        )


def _text(row: Values) -> str:
    parts = row.get("content")
    texts = [part if isinstance(part, str) else text_of(mapping_in(part), "text") for part in _list(row, "content")]
    return parts if isinstance(parts, str) else text_of(row, "text") or "\n\n".join(filter(None, texts))


def _sent(call: Values) -> str:
    """Return the message of a call of the tool by which older agents answer; what they say otherwise is a thought."""
    function = mapping_in(call.get("function"))
    is_answer = text_of(function, "name") == "send_message"
    return text_of(mapping_in(function.get("arguments")), "message") if is_answer else ""
