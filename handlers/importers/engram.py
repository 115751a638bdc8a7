"""engram: its database, and the JSON of its export."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from handlers.importers import json_files
from handlers.importers.importing import Read
from handlers.importers.records import (
    Item,
    LeftOut,
    Values,
    clean_line,
    filled,
    mapping_in,
    tags_of,
    text_of,
    time_in,
)
from handlers.importers.sqlite_files import has_tables, open_tables
from kernel.engines.foreign_file import ExternalDatabase
from kernel.memories.import_records import Record, Source

SYSTEM = "engram"
_NEEDED: Mapping[str, tuple[str, ...]] = {"observations": ("id", "content"), "user_prompts": (), "prompts": ()}
_KEPT = ("tool_name", "scope", "topic_key", "normalized_hash", "revision_count", "duplicate_count", "last_seen_at")
_PROMPTS = ("user_prompts", "prompts")


def is_database(path: Path) -> bool:
    """Return whether a file is a database of engram."""
    return path.is_file() and has_tables(path, "observations", "sessions") and not has_tables(path, "sdk_sessions")


def open_database(given: Source, stack: ExitStack) -> Read:
    """Return the observations of the database."""
    return partial(_from_database, open_tables(given, stack, _NEEDED, "observations"), given.path.name)


def _from_database(source: ExternalDatabase, name: str) -> Iterator[Item]:
    for row in source.rows("observations", "id"):
        yield _observation(row, name)
    for table in _PROMPTS:
        for _ in source.rows(table):
            yield LeftOut("a prompt, not a memory")


def read_json(path: Path) -> Iterator[Item]:
    """Yield the observations of an export."""
    for element in json_files.elements_of(path):
        if element.member == "observations":
            yield _observation(mapping_in(element.value), path.name)
        elif element.member in _PROMPTS:
            yield LeftOut("a prompt, not a memory")


def _observation(row: Values, name: str) -> Item:
    if row.get("deleted_at"):
        return LeftOut("deleted there")
    title, session = clean_line(text_of(row, "title"), 200), text_of(row, "session_id")
    content = text_of(row, "content")
    return Record(
        "sessions",
        "memory",
        f"{SYSTEM}:{row.get('id')}:{session}",
        f"{title}\n\n{content}" if title and not content.startswith(title) else content,
        place=f"{SYSTEM}:{session or 'unknown'}",
        title=title,
        category=clean_line(text_of(row, "type"), 40),
        tags=tags_of([text_of(row, "topic_key"), text_of(row, "project")]),
        created_at=time_in(row, "created_at"),
        updated_at=time_in(row, "updated_at"),
        origin=filled({"system": SYSTEM, "id": row.get("id"), "file": name}),
        details={"metadata": filled({key: row.get(key) for key in _KEPT})},
    )
