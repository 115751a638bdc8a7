"""Converts rows of project-brain's tables to rows of `brain`.

Older files lack columns that were added later (notes on seed 003, section 6); every default is that of the original's
schema.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from handlers.brain.base import json_text
from handlers.brain.querylog import redact
from handlers.brain.schemas import Entity, Link, Memory, Note, Resource
from kernel.core.times import utc_time

Row = Mapping[str, Any]
MAX_QUERY_CHARACTERS = 10_000  # as for a new query; bounds the time of the redaction
IMPORTED = "Imported"
_SOURCES = {"hybrid_search": "hybrid", "semantic_search": "semantic", "search": "fts", "search_all": "fts"}


class Event(NamedTuple):
    """One history event of a memory; `before` and `after` are its content."""

    key: str
    operation: str
    before: str | None
    after: str | None
    reason: str | None
    at: str


def memory(row: Row, now: str, embedding: tuple[int, str | None]) -> Memory:
    """Return a memory, embedded again if it is active."""
    created_at = time(row, "created_at") or now
    has, model = embedding if required_text(row, "status", "active") == "active" else (0, None)
    return Memory(
        required_text(row, "id"),
        required_text(row, "content"),
        required_text(row, "category", "fact"),
        text(row, "subcategory"),
        tags(row),
        required_text(row, "source", "claude_code"),
        required_text(row, "status", "active"),
        text(row, "superseded_by"),
        text(row, "project_id"),
        integer(row, "importance", 3, 1, 5),
        required_text(row, "memory_type", "permanent"),
        time(row, "last_accessed_at"),
        integer(row, "access_count", 0),
        time(row, "valid_from"),
        time(row, "valid_until"),
        fraction(row, "decay_score"),
        fraction(row, "confidence"),
        has,
        model,
        text(row, "metadata"),
        created_at,
        time(row, "updated_at") or created_at,
    )


def entity(row: Row, now: str, embedding: tuple[int, str | None]) -> Entity:
    """Return an entity, embedded again if it is active."""
    created_at = time(row, "created_at") or now
    has, model = embedding if required_text(row, "status", "active") == "active" else (0, None)
    return Entity(
        required_text(row, "id"),
        required_text(row, "name"),
        required_text(row, "type", "concept"),
        text(row, "subtype"),
        text(row, "description"),
        tags(row),
        text(row, "aliases"),
        required_text(row, "status", "active"),
        integer(row, "mention_count", 0),
        time(row, "first_mentioned"),
        time(row, "last_mentioned"),
        has,
        model,
        text(row, "metadata"),
        created_at,
        time(row, "updated_at") or created_at,
    )


def link(row: Row, now: str) -> Link:
    """Return a link; its ends are not checked here."""
    return Link(
        required_text(row, "id"),
        required_text(row, "source_type"),
        required_text(row, "source_id"),
        required_text(row, "target_type"),
        required_text(row, "target_id"),
        required_text(row, "relationship"),
        fraction(row, "strength"),
        text(row, "context"),
        integer(row, "bidirectional", 0, 0, 1),
        text(row, "metadata"),
        time(row, "created_at") or now,
    )


def note(row: Row, db: str, now: str, embedding: tuple[int, str | None]) -> Note:
    """Return a note, embedded again."""
    created_at, content = time(row, "created_at") or now, required_text(row, "content")
    return Note(
        required_text(row, "id"),
        db,
        required_text(row, "title"),
        content,
        required_text(row, "note_type", "note"),
        text(row, "summary"),
        text(row, "key_points"),
        tags(row),
        text(row, "category"),
        text(row, "parent_note_id"),
        integer(row, "version", 1, 1),
        text(row, "previous_version_id"),
        text(row, "project_id"),
        text(row, "entity_id"),
        integer(row, "word_count", len(content.split())),
        *embedding,
        created_at,
        time(row, "updated_at") or created_at,
    )


def resource(row: Row, db: str, now: str, embedding: tuple[int, str | None]) -> Resource:
    has, model = (0, None) if required_text(row, "status", "captured") == "archived" else embedding
    rating = row.get("quality_rating")
    return Resource(
        required_text(row, "id"),
        db,
        required_text(row, "title"),
        text(row, "url"),
        text(row, "resource_type"),
        text(row, "description"),
        text(row, "notes"),
        text(row, "key_takeaways"),
        tags(row),
        text(row, "category"),
        required_text(row, "status", "captured"),
        None if rating is None else integer(row, "quality_rating", 0),
        text(row, "project_id"),
        text(row, "source_memory_id"),
        text(row, "domain"),
        time(row, "created_at") or now,
        time(row, "accessed_at"),
        integer(row, "access_count", 0),
        has,
        model,
    )


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
        text(row, "result_ids"),
        float(took) if isinstance(took, int | float) else 0.0,
        text(row, "session_id"),
        time(row, "created_at") or now,
    )


def event(row: Row, now: str) -> Event:
    return Event(
        required_text(row, "memory_id"),
        required_text(row, "operation"),
        text(row, "content_before"),
        text(row, "content_after"),
        text(row, "reason"),
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
    value = text(row, "tags")
    if value is None or not odd_tags(row):
        return value
    words = [word.strip() for word in value.split(",")]
    return json_text([word for word in words if word]) if any(words) else None


def odd_tags(row: Row) -> bool:
    value = text(row, "tags")
    try:
        return value is not None and not isinstance(msgspec.json.decode(value), list)
    except (msgspec.DecodeError, RecursionError):
        return True


def text(row: Row, name: str) -> str | None:
    """Return a column as text, None if it is null or missing."""
    value = row.get(name)
    if value is None or isinstance(value, str):
        return value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def required_text(row: Row, name: str, default: str = "") -> str:
    """Return a text column, or its default if it is null or missing."""
    value = text(row, name)
    return default if value is None else value


def time(row: Row, name: str) -> str | None:
    """Return a time in the format of our rows; None if it is missing or invalid."""
    value = text(row, name)
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
