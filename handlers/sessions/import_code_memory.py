"""`quipu import code-memory`: imports the database of mcp-code-vector-memory-sql (`code_memory.db`, seed 002)."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import msgspec

from handlers.sessions import graph, memories, summary
from kernel.errors import Fault
from kernel.security.secrets import find_secret
from kernel.store.external import ExternalDatabase, open_external
from kernel.store.progress import steps
from kernel.store.transaction import Tx
from kernel.tools import Imported

_DEFAULT_SESSION = "imported"
_ANY_TIME = ""  # sorts before every time
_ONE_MILLISECOND = 0.001  # seconds
_GENERIC_TYPE = "entity"
Columns = Mapping[str, Any]


def code_memory(tx: Tx, path: Path, password: str | None) -> Imported:
    """Imports the memories under new ids, then the graph; skips what an earlier import added."""
    with open_external(path) as source:
        if "memories" not in source.tables():
            raise Fault("invalid", f"{path.name} has no table of memories: it is not a code_memory.db.")
        counts = {"memories": 0, "already there": 0, "sensitive, left out": 0, "unreadable, left out": 0}
        numbers = _import_memories(tx, steps(tx, source.rows("memories")), counts)
        counts |= _import_graph(tx, source, numbers)
    remarks = [f"{counts[name]} memories: {name}" for name in list(counts)[1:4] if counts[name]]
    return Imported(counts, remarks)


def _import_memories(tx: Tx, rows: Iterable[Columns], counts: dict[str, int]) -> dict[int, int]:
    """Adds the memories. Their new ids by their old ids."""
    numbers: dict[int, int] = {}
    for columns in rows:
        row = _memory_row(tx, columns)
        if row is None:
            counts["unreadable, left out"] += 1
        elif find_secret([row.content, row.kind or "", row.summary, row.tags, row.metadata]):
            counts["sensitive, left out"] += 1
        else:
            dated = _utc_time(columns.get("created_at")) is not None
            # Duplicates count after `since`, and the rows of an earlier import have the very time of this one.
            since = memories.time_before(row.created_at, _ONE_MILLISECOND) if dated else _ANY_TIME
            number = memories.add(tx, row, since)
            counts["already there" if number is None else "memories"] += 1
            if number is not None:
                numbers[columns["id"]] = number
    return numbers


def _memory_row(tx: Tx, columns: Columns) -> memories.MemoryRow | None:
    content = columns.get("content")
    if not isinstance(content, str) or not content.strip():
        return None
    priority = columns.get("priority")
    low, high = memories.PRIORITY_RANGE
    return memories.MemoryRow(
        0,
        _text(columns.get("session_id")).strip() or _DEFAULT_SESSION,
        _text(columns.get("kind")) or None,
        content,
        _text(columns.get("summary")) or summary.first_line(content),
        _text(columns.get("tags")) or summary.default_tags(content),
        max(low, min(high, priority)) if isinstance(priority, int) and priority else 3,
        _metadata(columns.get("metadata")),
        _utc_time(columns.get("created_at")) or tx.now,
    )


def _import_graph(tx: Tx, source: ExternalDatabase, numbers: Mapping[int, int]) -> dict[str, int]:
    """Adds entities, observations and relations, except those of memories that were left out."""
    names: dict[int, int] = {}
    observations_of: dict[int, list[Columns]] = {}
    for columns in source.rows("graph_observations"):
        observations_of.setdefault(columns["entity_id"], []).append(columns)
    observations = 0
    for columns in source.rows("graph_entities"):
        name = _text(columns.get("name")).strip()
        if name.isprintable() and name and not find_secret([name]):
            kept = [one for one in observations_of.get(columns["id"], []) if _is_importable(one, numbers)]
            names[columns["id"]] = _import_entity(tx, name, columns, kept, numbers)
            observations += len(kept)
    relations: set[int] = set()
    for columns in source.rows("graph_relations"):
        ends = names.get(columns["source_id"]), names.get(columns["target_id"])
        kind = _text(columns.get("relation_type")).strip()
        if ends[0] and ends[1] and kind and _is_importable(columns, numbers):
            memory = numbers.get(cast("int", columns.get("memory_id")))
            at = _utc_time(columns.get("created_at")) or tx.now
            relations.add(graph.add_relation_row(tx, ends[0], ends[1], kind, memory, at))
    graph.index_entities(tx, list(names.values()))
    return {"entities": len(names), "observations": observations, "relations": len(relations)}


def _import_entity(
    tx: Tx, name: str, columns: Columns, observations: Iterable[Columns], numbers: Mapping[int, int]
) -> int:
    """Adds one entity with its observations, each with its time and memory. Its id."""
    kind, at = (
        _text(columns.get("entity_type")).strip() or _GENERIC_TYPE,
        _utc_time(columns.get("created_at")) or tx.now,
    )
    observed = list(observations)
    stated = not any(one.get("memory_id") is not None for one in observed)
    number = graph.add_entity_row(tx, name, kind, [], None, at, stated=stated)
    for one in observed:
        memory = numbers.get(cast("int", one.get("memory_id")))
        graph.add_entity_row(
            tx,
            name,
            _GENERIC_TYPE,
            [_text(one["content"])],
            memory,
            _utc_time(one.get("created_at")) or at,
            stated=False,
        )
    return number


def _is_importable(columns: Columns, numbers: Mapping[int, int]) -> bool:
    """Whether the memory of a row was imported, if it has one, and its text holds no secret."""
    memory = columns.get("memory_id")
    return (memory is None or memory in numbers) and not find_secret([_text(columns.get("content"))])


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _metadata(value: Any) -> str:
    """The metadata as a JSON object; any other value becomes its field `metadata`."""
    if not isinstance(value, str) or not value.strip():
        return "{}"
    try:
        return memories.normalized_metadata(value)
    except Fault:
        return msgspec.json.encode({"metadata": value}).decode()


def _utc_time(value: Any) -> str | None:
    """A time as SQLite writes it, taken as UTC, as stored here."""
    try:
        moment = datetime.fromisoformat(_text(value))
    except ValueError:
        return None
    moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
