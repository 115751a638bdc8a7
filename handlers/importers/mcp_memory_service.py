"""mcp-memory-service: its SQLite database, read without its model, and the JSON of its export."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from handlers.importers import json_files
from handlers.importers.archives import head_of
from handlers.importers.importing import Read
from handlers.importers.records import (
    Item,
    LeftOut,
    Values,
    clean_line,
    filled,
    mapping_in,
    share_in,
    tags_of,
    text_of,
    texts_in,
    time_in,
)
from handlers.importers.sqlite_files import has_tables, open_tables
from kernel.engines.foreign_file import ExternalDatabase
from kernel.memories.import_records import Record, Source

SYSTEM = "mcp-memory-service"
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "memories": ("content_hash", "content"),
    "memory_graph": ("source_hash", "target_hash"),
}
_BOTH_WAYS = {"related", "contradicts"}


def is_database(path: Path) -> bool:
    """Return whether a file is a database of mcp-memory-service."""
    return path.is_file() and has_tables(path, "memories") and b"content_hash" in head_of(path, 1 << 20)


def open_database(given: Source, stack: ExitStack) -> Read:
    """Return the memories and their relations."""
    source = open_tables(given, stack, _NEEDED, "memories")
    return partial(_from_database, source, given.path.name)


def _from_database(source: ExternalDatabase, name: str) -> Iterator[Item]:
    for row in source.rows("memories", "id"):
        yield from _memory(row, name)
    for row in source.rows("memory_graph"):
        yield _link(row, name)


def read_json(path: Path) -> Iterator[Item]:
    """Yield the memories of an export."""
    for element in json_files.elements_of(path):
        if element.member == "memories":
            yield from _memory(mapping_in(element.value), path.name)


def _memory(row: Values, name: str) -> Iterator[Item]:
    if row.get("deleted_at") is not None:
        yield LeftOut("deleted there")
        return
    metadata = mapping_in(row.get("metadata"))
    digest, newer = text_of(row, "content_hash") or text_of(row, "content"), text_of(row, "superseded_by")
    yield Record(
        "brain",
        "memory",
        _key(digest),
        text_of(row, "content"),
        category=clean_line(text_of(row, "memory_type"), 100),
        tags=tags_of(texts_in(row.get("tags"))),
        created_at=time_in(row, "created_at", "created_at_iso"),
        updated_at=time_in(row, "updated_at", "updated_at_iso"),
        origin=filled({"system": SYSTEM, "id": digest, "file": name, "store": text_of(row, "store")}),
        details={
            "metadata": {**metadata, **filled({"version": row.get("version"), "parent": row.get("parent_id")})},
            "confidence": share_in(row.get("confidence")),
            "status": "superseded" if newer else "active",
            "superseded_by": _key(newer) if newer else None,
        },
    )
    if newer:
        yield _linked(newer, digest, "supersedes", name, row)


def _link(row: Values, name: str) -> Item:
    relation = clean_line(text_of(row, "relationship_type") or "related", 100)
    return _linked(text_of(row, "source_hash"), text_of(row, "target_hash"), relation, name, row)


def _linked(source: str, target: str, relation: str, name: str, row: Values) -> Record:
    return Record(
        "brain",
        "link",
        f"{_key(source)}>{relation}>{target}",
        text_of(row, "connection_types"),
        title=relation,
        created_at=time_in(row, "created_at"),
        origin={"system": SYSTEM, "file": name},
        details={
            "ends": (("memory", _key(source)), ("memory", _key(target))),
            "strength": share_in(row.get("similarity")),
            "bidirectional": relation in _BOTH_WAYS,
        },
    )


def _key(digest: str) -> str:
    return f"{SYSTEM}:{digest}"
