"""Large files of other programs for imports, in each form that may be large, with the memories of `corpus`."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile

from loadtests.lib import corpus

_IN_CONVERSATION = 10  # exchanges
_IN_SESSION = 100
_TIME = "2026-03-01T10:00:00Z"
_CREATED = 1_772_359_200  # the same in seconds
_TABLES = """
CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY, memory_session_id TEXT, platform_source TEXT);
CREATE TABLE observations (
    id INTEGER PRIMARY KEY, memory_session_id TEXT, project TEXT, type TEXT, title TEXT, facts TEXT, narrative TEXT,
    concepts TEXT, created_at TEXT, created_at_epoch INTEGER
);
CREATE TABLE session_summaries (id INTEGER PRIMARY KEY, memory_session_id TEXT);
CREATE TABLE user_prompts (id INTEGER PRIMARY KEY, prompt_text TEXT);
"""


class _Turn(NamedTuple):
    """A question or its answer: its number, the id of its message, and that of the message before."""

    number: int
    id: str
    before: str | None
    role: str
    text: str


def write(kind: str, path: Path, size: int) -> Path:
    """Write a source of so many memories to a path without an ending; return the path of the file."""
    if kind == "claude-mem":
        return _write_database(path.with_suffix(".db"), size)
    if kind in _LINES:
        return _write_text(path.with_suffix(".jsonl"), (f"{json.dumps(row)}\n" for row in _LINES[kind](size)))
    rows = (f"{',' if number else '['}{json.dumps(row)}\n" for number, row in enumerate(_LISTS[kind](size)))
    listed = _write_text(path.with_suffix(".json"), rows, "]")
    if kind == "mem0":
        return listed
    with ZipFile(path.with_suffix(".zip"), "w", ZIP_DEFLATED) as archive:
        archive.write(listed, "conversations.json")
    return path.with_suffix(".zip")


def _write_text(path: Path, parts: Iterable[str], end: str = "") -> Path:
    with path.open("w") as file:
        file.writelines(parts)
        file.write(end)
    return path


def _mem0(size: int) -> Iterator[Mapping[str, Any]]:
    for number, memory in enumerate(corpus.memories(size)):
        yield {"id": f"m{number}", "memory": memory.text, "created_at": _TIME}


def _server_memory(size: int) -> Iterator[Mapping[str, Any]]:
    for number, memory in enumerate(corpus.memories(size)):
        yield {"type": "entity", "name": f"Entity {number}", "entityType": "note", "observations": [memory.text]}


def _turns(size: int, first: int = 0) -> Iterator[_Turn]:
    before = None
    for number, memory in enumerate(corpus.memories(size, first), first):
        for role, text in (("user", f"Question {number}: is it so? {memory.text}"), ("assistant", memory.text)):
            yield _Turn(number, f"{number}-{role}", before, role, text)
            before = f"{number}-{role}"


def _chatgpt(size: int) -> Iterator[Mapping[str, Any]]:
    for first in range(0, size, _IN_CONVERSATION):
        turns = [*_turns(_IN_CONVERSATION, first)]
        messages = {
            turn.id: {
                "author": {"role": turn.role},
                "create_time": _CREATED + turn.number,
                "content": {"content_type": "text", "parts": [turn.text]},
            }
            for turn in turns
        }
        nodes = {turn.id: {"parent": turn.before, "message": messages[turn.id]} for turn in turns}
        title = f"Conversation {first}"
        yield {"id": f"c{first}", "title": title, "current_node": turns[-1].id, "mapping": nodes}


def _claude(size: int) -> Iterator[Mapping[str, Any]]:
    for first in range(0, size, _IN_CONVERSATION):
        messages = [
            {
                "uuid": turn.id,
                "parent_message_uuid": turn.before,
                "sender": "human" if turn.role == "user" else turn.role,
                "content": [{"type": "text", "text": turn.text}],
                "created_at": _time(turn.number),
            }
            for turn in _turns(_IN_CONVERSATION, first)
        ]
        yield {"uuid": f"c{first}", "name": f"Conversation {first}", "chat_messages": messages}


def _claude_code(size: int) -> Iterator[Mapping[str, Any]]:
    for turn in _turns(size):
        yield {
            "type": turn.role,
            "uuid": turn.id,
            "parentUuid": turn.before,
            "sessionId": "s1",
            "timestamp": _time(turn.number),
            "message": {"role": turn.role, "content": [{"type": "text", "text": turn.text}]},
        }


def _time(number: int) -> str:
    return f"{2000 + number // 86_400:04}-03-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z"


def _write_database(path: Path, size: int) -> Path:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(_TABLES)
        rows = (
            (f"s{number // _IN_SESSION}", f"Title {number}", json.dumps([memory.text]), _TIME, _CREATED * 1000 + number)
            for number, memory in enumerate(corpus.memories(size))
        )
        columns = "memory_session_id, title, facts, created_at, created_at_epoch, project, type, concepts"
        values = "?, ?, ?, ?, ?, 'shop', 'decision', '[\"how\"]'"
        database.executemany(f"INSERT INTO observations ({columns}) VALUES ({values})", rows)
        database.commit()
    return path


_LINES = {"server-memory": _server_memory, "claude-code": _claude_code}
_LISTS = {"mem0": _mem0, "chatgpt": _chatgpt, "claude": _claude}
KINDS = (*_LISTS, *_LINES, "claude-mem")
