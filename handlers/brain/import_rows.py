"""Converts rows of project-brain's tables to rows of `brain`.

Older files lack columns that were added later (notes on seed 003, section 6); every default is that of the original's
schema.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from handlers.brain.base import json_text
from handlers.brain.index_text import is_indexed
from handlers.brain.querylog import redact
from handlers.brain.schemas import Entity, Link, Memory, Note, Resource
from kernel.core.times import end_of_day, utc_time
from kernel.engines.foreign_file import text_of

Row = Mapping[str, Any]
Item = TypeVar("Item", Memory, Entity, Link, Note, Resource)
MAX_QUERY_CHARACTERS = 10_000  # as for a new query; bounds the time of the redaction
IMPORTED = "Imported"
_TIMES = {"last_accessed_at", "valid_from", "valid_until", "first_mentioned", "last_mentioned", "accessed_at"}
_BOUNDS = {"importance": (3, 1, 5), "bidirectional": (0, 0, 1), "version": (1, 1)}
_DEFAULTS: Mapping[tuple[type, str], str] = {
    (Memory, "category"): "fact",
    (Memory, "source"): "claude_code",
    (Memory, "status"): "active",
    (Memory, "memory_type"): "permanent",
    (Entity, "type"): "concept",
    (Entity, "status"): "active",
    (Note, "note_type"): "note",
    (Resource, "status"): "captured",
}
_SOURCES = {"hybrid_search": "hybrid", "semantic_search": "semantic", "search": "fts", "search_all": "fts"}


class Event(NamedTuple):
    """One history event of a memory; `before` and `after` are its content."""

    key: str
    operation: str
    before: str | None
    after: str | None
    reason: str | None
    at: str


def converted(kind: type[Item], row: Row, db: str, now: str, embedding: tuple[int, str | None]) -> Item:
    """Return a row of one of our tables, embedded again if the index holds it; the ends of a link are not checked."""
    created_at = time(row, "created_at") or now
    columns: dict[str, Any] = {
        "db": db,
        "tags": tags(row),
        "word_count": integer(row, "word_count", len(required_text(row, "content").split())),
        "has_embedding": 0,
        "embedding_model": None,
        "created_at": created_at,
        "updated_at": time(row, "updated_at") or created_at,
    }
    names = kind.__struct_fields__
    item = kind(**{name: columns[name] if name in columns else _column(kind, row, name) for name in names})
    if not isinstance(item, Link) and is_indexed(item):
        item.has_embedding, item.embedding_model = embedding
    return item


def _column(kind: type, row: Row, name: str) -> Any:
    shape = kind.__annotations__[name]
    if shape is int or shape == int | None:
        return None if shape is not int and row.get(name) is None else integer(row, name, *_BOUNDS.get(name, (0,)))
    if shape is float:
        return fraction(row, name)
    if name in _TIMES:
        moment, text = time(row, name), text_of(row, name) or ""
        return end_of_day(text, moment) if moment and name == "valid_until" else moment
    return required_text(row, name, _DEFAULTS.get((kind, name), "")) if shape is str else text_of(row, name)


def query(row: Row, db: str, now: str) -> tuple[Any, ...]:
    """Return a logged search without its secrets, in the column order of `brain_query`."""
    source = required_text(row, "query_source", "fts")
    took = row.get("execution_time_ms")
    return (
        required_text(row, "id"),
        db,
        redact(required_text(row, "query_text")[:MAX_QUERY_CHARACTERS]),
        _SOURCES.get(source, source),
        integer(row, "result_count", 0),
        text_of(row, "result_ids"),
        float(took) if isinstance(took, int | float) else 0.0,
        text_of(row, "session_id"),
        time(row, "created_at") or now,
    )


def event(row: Row, now: str) -> Event:
    return Event(
        required_text(row, "memory_id"),
        required_text(row, "operation"),
        text_of(row, "content_before"),
        text_of(row, "content_after"),
        text_of(row, "reason"),
        time(row, "changed_at") or now,
    )


def complete_history(row: Memory, events: Sequence[Event]) -> list[Event]:
    """Return the events of a memory, completed to run from its creation to its current content.

    Only three tools of the original write to its history.
    """
    events = list(events)
    if not events or events[0].operation != "created":
        first = events[0].before if events else None
        at = min([row.created_at, *(event.at for event in events)])
        events.insert(0, Event(row.id, "created", None, row.content if first is None else first, IMPORTED, at))
    last = events[-1]
    if row.status == "active" and last.after != row.content:
        at = max(row.updated_at, last.at)
        events.append(Event(row.id, "updated", last.after, row.content, IMPORTED, at))
    return events


def tags(row: Row) -> str | None:
    """Return the tags as a JSON list; a text that is not JSON is split at commas, None if nothing is left."""
    value = text_of(row, "tags")
    if value is None or not odd_tags(row):
        return value
    words = [word.strip() for word in value.split(",")]
    return json_text([word for word in words if word]) if any(words) else None


def odd_tags(row: Row) -> bool:
    value = text_of(row, "tags")
    try:
        return value is not None and not isinstance(msgspec.json.decode(value), list)
    except (msgspec.DecodeError, RecursionError):
        return True


def required_text(row: Row, name: str, default: str = "") -> str:
    value = text_of(row, name)
    return default if value is None else value


def time(row: Row, name: str) -> str | None:
    """Return a time in the format of our rows; None if it is missing or invalid."""
    value = text_of(row, name)
    return utc_time(value) if value else None


def integer(row: Row, name: str, default: int, low: int = 0, high: int = 2**53) -> int:
    """Return a column as an integer clamped to the bounds, rounded half up."""
    value = row.get(name)
    if not isinstance(value, int | float):
        return default
    return math.floor(max(low, min(high, value)) + 0.5)


def fraction(row: Row, name: str) -> float:
    """Return a column clamped to [0, 1]; 1 if it is missing."""
    value = row.get(name)
    return max(0.0, min(1.0, float(value))) if isinstance(value, int | float) else 1.0
