"""mem0: its JSON in any of the forms that it and others write, and its history database."""

from collections.abc import Iterator
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
    damaged,
    filled,
    mapping_in,
    tags_of,
    text_of,
    time_in,
    utc_of,
)
from handlers.importers.sqlite_files import has_tables, open_tables
from kernel.engines.foreign_file import ExternalDatabase
from kernel.memories.import_records import Record, Source

SYSTEM = "mem0"
MEMBERS = {"", "results", "memories", "items"}
_SCOPES = ("user_id", "agent_id", "run_id", "app_id", "actor_id", "role", "attributed_to")
_OPERATIONS = {"ADD": "created", "UPDATE": "updated", "DELETE": "deleted"}


def is_database(path: Path) -> bool:
    """Return whether a file is the history database of mem0."""
    return path.is_file() and has_tables(path, "history") and not has_tables(path, "doc")


def open_database(given: Source, stack: ExitStack) -> Read:
    """Return the memories as their history leaves them."""
    source = open_tables(given, stack, {"history": ("memory_id", "event")}, "history")
    source.index("history", "memory_id")
    return partial(_from_history, source, given.path.name)


def read_json(path: Path) -> Iterator[Item]:
    """Yield the memories of a JSON document."""
    for element in json_files.elements_of(path):
        if element.member in MEMBERS:
            row = mapping_in(element.value)
            if not row:
                raise damaged(element.place, "is no memory: an object is expected")
            yield _memory(row, path.name)


def _memory(row: Values, name: str) -> Record:
    text = text_of(row, "memory", "text", "data", "content")
    number = text_of(row, "id", "hash") or text
    metadata = {**mapping_in(row.get("metadata")), **filled({key: row.get(key) for key in _SCOPES})}
    return Record(
        "brain",
        "memory",
        f"{SYSTEM}:{number}",
        text,
        category=clean_line(str(metadata.get("category") or ""), 100),
        tags=tags_of(row.get("categories")),
        created_at=time_in(row, "created_at"),
        updated_at=time_in(row, "updated_at"),
        origin=filled({"system": SYSTEM, "id": text_of(row, "id"), "hash": text_of(row, "hash"), "file": name}),
        details={"metadata": metadata, "valid_until": utc_of(row.get("expiration_date"))},
    )


def _from_history(source: ExternalDatabase, name: str) -> Iterator[Item]:
    for number in source.values("history", "memory_id"):
        rows = sorted(source.rows_with("history", "memory_id", number), key=_when)
        events = [
            (
                _OPERATIONS.get(text_of(row, "event").upper(), "updated"),
                text_of(row, "old_memory") or None,
                text_of(row, "new_memory") or None,
                _when(row),
                text_of(row, "actor_id"),
            )
            for row in rows
        ]
        last = rows[-1]
        if events[-1][0] == "deleted" or last.get("is_deleted"):
            yield LeftOut("deleted there")
            continue
        yield Record(
            "brain",
            "memory",
            f"{SYSTEM}:{number}",
            text_of(last, "new_memory", "old_memory"),
            created_at=_when(rows[0]),
            updated_at=_when(last),
            origin={"system": SYSTEM, "id": number, "file": name},
            details={"events": events, "metadata": filled({key: last.get(key) for key in ("actor_id", "role")})},
        )


def _when(row: Values) -> str:
    return time_in(row, "updated_at", "created_at")
