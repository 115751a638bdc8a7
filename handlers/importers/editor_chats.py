"""Sessions of Gemini CLI, and chats that VS Code exports; one memory an exchange."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct, field

from handlers.importers.agent_sessions import NOTICE_OF_PROGRAM, OF_HELPER
from handlers.importers.archives import Part, parts_of, rows_of
from handlers.importers.chats import (
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
from kernel.memories.json_rows import Element, without_blanks

GEMINI, COPILOT = "gemini-cli", "copilot-chat"
_MESSAGES, _REQUESTS = {"messages", "history"}, {"requests"}
_SESSIONS = ("session-*.json", "session-*.jsonl", "checkpoint-*.json")
_FOLDERS = ("", "chats/", "*/chats/", "tmp/*/chats/")  # below which sessions are looked for
_SAVED = re.compile(rb'(?:\[|\{\s{0,99}"history"\s{0,99}:\s{0,99}\[)\s{0,99}\{\s{0,99}"(?:role|parts)"')
_GEMINI_ROLES = {"user": "user", "gemini": "assistant", "model": "assistant"}
# The beginnings of texts that Gemini CLI writes in the name of the person.
_NOTICES = ("<state_snapshot>", "<session_context>", "This is the Gemini CLI. We are setting up the context")
_FILES = ("inlineData", "fileData")
_LOG = "is a log of changes: write the chat to a file by `Chat: Export Chat...` in VS Code"


def is_gemini(path: Path) -> bool:
    """Return whether a file is a session of Gemini CLI, or one that it saved by name, or a folder holds sessions."""
    if path.is_dir():
        return any(True for place in _FOLDERS for _ in path.glob(f"{place}session-*.json*"))
    head = first_bytes(path)
    is_saved = bool(_SAVED.match(without_blanks(head))) and b'"parts"' in head
    return is_saved or (b'"sessionId"' in head and b'"projectHash"' in head)


def is_copilot(path: Path) -> bool:
    """Return whether a file is a chat of Copilot, or another program, in VS Code."""
    head = first_bytes(path) if path.is_file() else b""
    return b'"responderUsername"' in head and b'"requests"' in head


def open_gemini(source: Source, stack: ExitStack) -> Read:
    return partial(_files, _gemini_items, parts_of(source, stack), source.path.name)


def open_copilot(source: Source, stack: ExitStack) -> Read:
    return partial(_files, _copilot_items, parts_of(source, stack), source.path.name)


def _files(items: Callable[[Part, str], Iterator[Item]], parts: Sequence[Part | LeftOut], name: str) -> Iterator[Item]:
    for part in parts:
        if isinstance(part, LeftOut):
            yield part
        elif part.name and not any(PurePosixPath(part.name).match(pattern) for pattern in _SESSIONS):
            yield LeftOut("is no session", part.name)
        else:
            yield from items(part, part.name or name)


class _Session(Struct):
    """A session of Gemini CLI so far: its members, and its messages by their ids, without those that were taken back.

    A message is written again whenever a call of a tool has changed it.
    """

    members: dict[str, Any] = field(default_factory=dict[str, Any])
    messages: dict[str, Row] = field(default_factory=dict[str, Row])
    taken_back: list[Row] = field(default_factory=list[Row])


def _gemini_items(part: Part, name: str) -> Iterator[Item]:
    session = _Session()
    for element in rows_of(part, _MESSAGES):
        if isinstance(element, LeftOut):
            yield element
        else:
            _replay(session, element)
    number = text_of(session.members, "sessionId") or PurePosixPath(name).stem
    is_helper = text_of(session.members, "kind") == "subagent"
    taken_back = (item for row in session.taken_back for item in _of_gemini(row, is_helper=is_helper))
    items = [item._replace(is_given_up=True) if isinstance(item, Message) else item for item in taken_back]
    for row in session.messages.values():
        items += _of_gemini(row, is_helper=is_helper)
    at = time_in(session.members, "startTime") or earliest(item for item in items if isinstance(item, Message))
    title = clean_line(text_of(session.members, "summary"), 200)
    yield from exchanges(GEMINI, number, title, at, items, name)


def _replay(session: _Session, element: Element) -> None:
    """Take a record of a session: a message, other members, or the message before which it went back."""
    row, changed = element.row, mapping_in(element.row.get("$set"))
    number = text_of(row, "id") or element.place
    if element.member and element.member not in _MESSAGES:
        session.members[element.member] = element.value
    elif "$rewindTo" in row:
        numbers, target = [*session.messages], text_of(row, "$rewindTo")
        first = numbers.index(target) if target in session.messages else 0
        session.taken_back += [session.messages.pop(number) for number in numbers[first:]]
    elif element.member or "type" in row or "role" in row:
        session.messages[number] = row
    else:
        session.members |= {**row, **changed}
        for message in map(mapping_in, list_in(changed.get("messages"))):  # the context of the model, also shortened
            session.messages.setdefault(text_of(message, "id"), message)


def _of_gemini(row: Row, *, is_helper: bool) -> Iterator[Message | LeftOut]:
    role, content = _GEMINI_ROLES.get(text_of(row, "type", "role"), ""), row.get("displayContent") or row.get("content")
    content = content or row.get("parts")
    text = texts_in_parts(content).strip()
    parts = [*map(mapping_in, list_in(content))]
    if not text and any(name in part for part in parts for name in _FILES):
        text = "(attachment)"
    calls = [part for part in parts if "functionCall" in part or "functionResponse" in part]
    yield from [LeftOut(TOOL)] * sum(map(len, (calls, list_in(row.get("toolCalls")), list_in(row.get("thoughts")))))
    if is_helper or not role or text.startswith(_NOTICES):
        yield LeftOut(OF_HELPER if is_helper else NOTICE_OF_PROGRAM)
    elif text:
        yield Message(role, text, time_in(row, "timestamp"))


def _copilot_items(part: Part, name: str) -> Iterator[Item]:
    members, items = dict[str, Any](), list[Message | LeftOut]()
    for element in rows_of(part, _REQUESTS):
        if isinstance(element, LeftOut):
            yield element
        elif element.member in _REQUESTS:
            members.setdefault("requestId", element.row.get("requestId"))
            items += _of_request(element.row)
        elif element.member:
            members[element.member] = element.value
        else:
            yield LeftOut(_LOG if "kind" in element.row else "is no chat", element.place, is_damage=True)
    number = text_of(members, "sessionId", "requestId") or PurePosixPath(name).stem
    at = time_in(members, "creationDate") or earliest(item for item in items if isinstance(item, Message))
    title = clean_line(text_of(members, "customTitle"), 200)
    yield from exchanges(COPILOT, number, title, at, items, name)


def _of_request(row: Row) -> Iterator[Message | LeftOut]:
    """Yield the question of a person and the answer to it, and the parts of that which are no text."""
    message, at = row.get("message"), time_in(row, "timestamp")
    question = message if isinstance(message, str) else text_of(mapping_in(message), "text")
    if row.get("isSystemInitiated") or row.get("hiddenFromTranscript"):
        yield LeftOut(NOTICE_OF_PROGRAM)
        return
    yield Message("user", question.strip() or parts_without_text(row.get("attachments")), at)
    parts = list_in(row.get("response"))
    texts = [_of_answer(mapping_in(part)) for part in parts]
    yield from (LeftOut(TOOL) for text in texts if not text)
    if answer := "".join(texts).strip():
        yield Message("assistant", answer, at)


def _of_answer(part: Mapping[str, Any]) -> str:
    """Return the text of a part of an answer: Markdown, or the name of a file or symbol in it."""
    if "kind" not in part:
        return text_of(part, "value")
    if part["kind"] == "inlineReference":
        place = mapping_in(part.get("inlineReference"))
        path = text_of(mapping_in(place.get("uri")) or mapping_in(place.get("location")) or place, "path")
        return f"`{text_of(part, 'name') or text_of(place, 'name') or PurePosixPath(path).name}`"
    return text_of(mapping_in(part.get("content")), "value") if part["kind"] == "markdownContent" else ""
