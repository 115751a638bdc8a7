"""Messages as the APIs of models take them, which many programs keep: alone, by lines, or by conversations."""

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from hashlib import sha256
from pathlib import Path

from handlers.importers.archives import Part, parts_of, rows_of
from handlers.importers.chats import (
    AGENT,
    PERSON,
    TOOL,
    Message,
    Row,
    earliest,
    exchanges,
    first_bytes,
    parts_without_text,
    texts_in_parts,
)
from handlers.importers.importing import Read
from handlers.importers.records import Item, LeftOut, clean_line, list_in, mapping_in, text_of, time_in
from kernel.memories.import_records import Source
from kernel.memories.json_rows import without_blanks

MESSAGES = "messages"
_ROLE = re.compile(rb'"role"\s{0,9}:\s{0,9}"(?:user|human|assistant|system|developer)"')
_TIMES = ("created_at", "create_time", "timestamp")


def is_messages(path: Path) -> bool:
    """Return whether a file holds messages with a role and a content, and no memories of mem0, which have roles too."""
    head = without_blanks(first_bytes(path)) if path.is_file() else b""
    return head[:1] in {b"{", b"["} and b'"memory"' not in head and b'"content"' in head and bool(_ROLE.search(head))


def open_messages(source: Source, stack: ExitStack) -> Read:
    return partial(_items, parts_of(source, stack), source.path.name)


def _items(parts: Sequence[Part | LeftOut], name: str) -> Iterator[Item]:
    for part in parts:
        if isinstance(part, LeftOut):
            yield part
            continue
        place, alone = part.name or name, list[Message | LeftOut]()
        for element in rows_of(part):
            if isinstance(element, LeftOut):
                yield element
            elif "role" in element.row:
                alone.append(_message(element.row))
            elif messages := list_in(element.row.get("messages")):
                yield from _conversation(element.row, [_message(mapping_in(row)) for row in messages], place)
            else:
                yield LeftOut("is no message and no conversation", element.place, is_damage=True)
        if alone:
            yield from _conversation({}, alone, place)


def _message(row: Row) -> Message | LeftOut:
    role, content = text_of(row, "role"), row.get("content")
    text = texts_in_parts(content).strip()
    if not text and role in PERSON and list_in(content):
        text = parts_without_text(content)
    if text and role in PERSON | AGENT:
        return Message(role, text, time_in(row, *_TIMES))
    if role in {*AGENT, "tool", "function"}:
        return LeftOut(TOOL)
    return LeftOut(f"of a {clean_line(role, 40)}" if role else "without a role")


def _conversation(row: Row, items: Sequence[Message | LeftOut], name: str) -> Iterator[Item]:
    """Yield a memory an exchange. If a conversation has no id, its first question and answer identify it."""
    messages = [item for item in items if isinstance(item, Message)]
    first = "\n".join(message.text for message in messages[:2])
    number = text_of(row, "id", "conversation_id", "uuid") or sha256(first.encode()).hexdigest()[:16]
    at = time_in(row, *_TIMES) or earliest(messages)
    yield from exchanges(MESSAGES, number, clean_line(text_of(row, "title", "name"), 200), at, items, name)
