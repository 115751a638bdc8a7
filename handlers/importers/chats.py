"""Chats: the exports of ChatGPT and Claude, and the session files of Claude Code; one memory an exchange."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple
from zipfile import ZipFile

from handlers.importers.archives import UNREADABLE, is_zip, open_zip
from handlers.importers.importing import Read
from handlers.importers.records import (
    Item,
    LeftOut,
    clean_line,
    damaged,
    filled,
    left_out,
    list_in,
    mapping_in,
    text_of,
    time_in,
)
from kernel.memories.import_records import Record, Source
from kernel.memories.json_rows import lines, rows

CHATGPT, CLAUDE, CLAUDE_CODE = "chatgpt", "claude", "claude-code"
MAX_EXCHANGE = 2000  # characters of a question, and of its answer
_PRIORITY = 5
_HEAD_BYTES = 1 << 16
_MOST_STEPS = 100_000  # messages of one conversation
_MEMBERS = {"conversations"}
_PERSON, _AGENT = {"user", "human"}, {"assistant"}
Row = Mapping[str, Any]


class _Message(NamedTuple):
    role: str
    text: str
    at: str


def is_chatgpt(path: Path) -> bool:
    """Return whether a ZIP archive or a file holds conversations with a mapping of nodes."""
    return b'"mapping"' in _first_bytes(path)


def is_claude(path: Path) -> bool:
    """Return whether a ZIP archive or a file holds conversations with a list of messages."""
    return b'"chat_messages"' in _first_bytes(path)


def is_session(path: Path) -> bool:
    """Return whether a file of JSON lines is a session of Claude Code."""
    return path.suffix == ".jsonl" and path.is_file() and b'"sessionId"' in _first_bytes(path)


def _first_bytes(path: Path) -> bytes:
    """Return the beginning of the conversations, wherever they are; nothing if there are none."""
    if not path.is_file():
        return b""
    try:
        if not is_zip(path):
            with path.open("rb") as file:
                return file.read(_HEAD_BYTES)
        with ZipFile(path) as archive:
            name = next(iter(_conversation_files(archive)), None)
            if name is None:
                return b""
            with archive.open(name) as file:
                return file.read(_HEAD_BYTES)
    except UNREADABLE:
        return b""


def _conversation_files(archive: ZipFile) -> list[str]:
    names = (name for name in archive.namelist() if name.endswith(".json"))
    return sorted(name for name in names if name.rpartition("/")[2].startswith("conversations"))


def open_export(system: str, source: Source, stack: ExitStack) -> Read:
    """Return the conversations of an export, as it was downloaded or unpacked."""
    if is_zip(source.path):
        archive = open_zip(source.path, stack)
        if not _conversation_files(archive):
            raise damaged(source.path.name, "holds no conversations.json")
        return partial(_from_zip, system, archive, source.path.name)
    return partial(_from_file, system, source.path)


def _from_file(system: str, path: Path) -> Iterator[Item]:
    with path.open("rb") as file:
        yield from _conversations(system, file, path.name)


def _from_zip(system: str, archive: ZipFile, name: str) -> Iterator[Item]:
    conversations = set(_conversation_files(archive))
    for member in archive.namelist():
        base = member.rpartition("/")[2]
        try:
            if member in conversations:
                with archive.open(member) as file:
                    yield from _conversations(system, file, f"{name}, {member}", member)
            elif system == CLAUDE and base == "projects.json":
                with archive.open(member) as file:
                    yield from _projects(file, f"{name}, {member}", member)
        except UNREADABLE as error:
            yield left_out(damaged(member, str(error)))


def _conversations(system: str, file: IO[bytes], name: str, place: str = "") -> Iterator[Item]:
    for element in rows(file, place, _MEMBERS):
        if isinstance(element, LeftOut):
            yield element
            continue
        row = element.row
        number = text_of(row, "uuid", "conversation_id", "id")
        messages = _claude_messages(row) if system == CLAUDE else _chatgpt_messages(row)
        at = time_in(row, "create_time", "created_at") or time_in(row, "update_time", "updated_at")
        title = clean_line(text_of(row, "title", "name"), 200)
        yield from _exchanges(system, number or title, title, at, messages, name)


def _exchanges(
    system: str, number: str, title: str, at: str, messages: Sequence[_Message], name: str
) -> Iterator[Item]:
    """Yield a memory for each message of the person, with the answers to it."""
    turns: list[_Message] = []
    groups: list[list[_Message]] = []
    for message in messages:
        if message.role in _PERSON:
            turns = [message]
            groups.append(turns)
        elif message.role in _AGENT and turns:
            turns.append(message)
    earliest = min((message.at for message in messages if message.at), default="")
    for place, group in enumerate(groups):
        answer = "\n\n".join(message.text for message in group[1:])
        yield Record(
            "sessions",
            "memory",
            f"{system}:{number}#{place}",
            f"Question: {_cut(group[0].text)}\n\nAnswer: {_cut(answer)}"
            if answer
            else f"Question: {_cut(group[0].text)}",
            place=f"{system}:{number}",
            title=title,
            category="conversation",
            created_at=group[0].at or at or earliest,
            origin=filled({"system": system, "id": number, "exchange": place + 1, "file": name}),
            details={"priority": _PRIORITY},
        )
    if not groups:
        yield LeftOut("a conversation without a question")


def _cut(text: str) -> str:
    bare = text.strip()
    return bare if len(bare) <= MAX_EXCHANGE else f"{bare[: MAX_EXCHANGE - 1].rstrip()}\u2026"


def _chatgpt_messages(row: Row) -> list[_Message]:
    """Return the messages from the current node up to the root, oldest first; other branches are answers given up."""
    nodes, number = mapping_in(row.get("mapping")), text_of(row, "current_node")
    messages: list[_Message] = []
    path = set[str]()
    while number in nodes and number not in path and len(path) < _MOST_STEPS:
        path.add(number)
        node = mapping_in(nodes[number])
        message = mapping_in(node.get("message"))
        if not mapping_in(message.get("metadata")).get("is_visually_hidden_from_conversation"):
            role = text_of(mapping_in(message.get("author")), "role")
            text = _parts(mapping_in(message.get("content")).get("parts"))
            messages += [_Message(role, text, time_in(message, "create_time"))] * bool(text)
        number = text_of(node, "parent")
    return messages[::-1]


def _claude_messages(row: Row) -> list[_Message]:
    return [
        _Message(text_of(message, "sender"), text, time_in(message, "created_at"))
        for message in map(mapping_in, list_in(row.get("chat_messages")))
        if (text := text_of(message, "text") or _parts(message.get("content")))
    ]


def _parts(value: object) -> str:
    parts: list[Any] = list_in(value) or [value]
    texts = (part if isinstance(part, str) else text_of(mapping_in(part), "text") for part in parts)
    return "\n\n".join(text for text in texts if text.strip())


def _projects(file: IO[bytes], name: str, place: str) -> Iterator[Item]:
    """Yield a note for each document of a project."""
    for element in rows(file, place):
        if isinstance(element, LeftOut):
            yield element
            continue
        project = element.row
        for doc in map(mapping_in, list_in(project.get("docs"))):
            number = text_of(doc, "uuid") or f"{text_of(project, 'uuid')}:{text_of(doc, 'filename')}"
            yield Record(
                "brain",
                "note",
                f"{CLAUDE}:{number}",
                text_of(doc, "content"),
                title=clean_line(text_of(doc, "filename") or "Untitled"),
                category=clean_line(text_of(project, "name"), 200),
                created_at=time_in(doc, "created_at"),
                origin=filled({"system": CLAUDE, "id": number, "file": name}),
                details={"note_type": "document"},
            )


def session_items(path: Path) -> Iterator[Item]:
    """Yield the exchanges of a session."""
    messages: list[_Message] = []
    number = path.stem
    with path.open("rb") as file:
        for element in lines(file):
            if isinstance(element, LeftOut):
                yield element
                continue
            row: Row = element.value
            message = mapping_in(row.get("message"))
            text = _parts(message.get("content"))
            if text_of(row, "type") in {"user", "assistant"} and text and not row.get("isMeta"):
                number = text_of(row, "sessionId") or number
                messages.append(_Message(text_of(row, "type"), text, time_in(row, "timestamp")))
    yield from _exchanges(CLAUDE_CODE, number, "", "", messages, path.name)
