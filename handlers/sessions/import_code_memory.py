"""`quipu import code-memory`: imports the database of mcp-code-vector-memory-sql (`code_memory.db`, seed 002)."""

from array import array
from bisect import bisect_left
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from handlers.sessions import graph, memories, summary
from handlers.sessions.settings import MAX_ID
from kernel.core.errors import Fault
from kernel.core.times import utc_time
from kernel.engines.foreign_file import ExternalDatabase, open_external
from kernel.memories.import_records import Imported, Source
from kernel.security.rules.secrets import find_secret
from kernel.store.long_work import Steps, begin_steps, count_step
from kernel.store.transaction import Tx

_DEFAULT_SESSION = "imported"
_ANY_TIME = ""  # sorts before every time
_ONE_MILLISECOND = 0.001  # seconds
_GENERIC_TYPE = "entity"
# The columns without which the rows of a table cannot be placed.
_NEEDED = {
    "memories": ("id",),
    "graph_entities": ("id",),
    "graph_observations": ("entity_id", "content"),
    "graph_relations": ("source_id", "target_id"),
}
Columns = Mapping[str, Any]


class _NewIds(NamedTuple):
    """New ids by old ids, which come in ascending order: 16 bytes for each of millions."""

    old: "array[int]"
    new: "array[int]"


def _note_id(ids: _NewIds, old: object, new: int) -> None:
    """Adds an id; unless it is a number, no other row refers to its row."""
    if isinstance(old, int) and -MAX_ID <= old <= MAX_ID and (not ids.old or old > ids.old[-1]):
        ids.old.append(old)
        ids.new.append(new)


def _new_id(ids: _NewIds, old: object) -> int | None:
    at = bisect_left(ids.old, old) if isinstance(old, int) else len(ids.old)
    return ids.new[at] if at < len(ids.old) and ids.old[at] == old else None


def code_memory(file: Source) -> Steps[Imported]:
    """Imports the memories under new ids, then the graph; skips memories of an earlier import."""
    with open_external(file.path, file.copies) as source:
        if "memories" not in source.tables():
            raise Fault("invalid", f"{file.path.name} has no table of memories: it is not a code_memory.db.")
        source.check(_NEEDED)
        source.index("graph_observations", "entity_id")
        tx = yield
        begin_steps(tx, sum(source.count(table) for table in ("memories", "graph_entities", "graph_relations")))
        counts = {"memories": 0, "already there": 0, "sensitive, left out": 0, "unreadable, left out": 0}
        numbers = _NewIds(array("q"), array("q"))
        for columns in source.rows("memories", "id"):
            tx = yield
            counts[_import_memory(tx, columns, numbers)] += 1
            count_step(tx)
        counts |= yield from _import_graph(source, numbers)
    remarks = [f"{counts[name]} memories: {name}" for name in list(counts)[1:4] if counts[name]]
    return Imported(counts, remarks)


def _import_memory(tx: Tx, columns: Columns, numbers: _NewIds) -> str:
    """Add a memory; return the name under which it counts."""
    row = _memory_row(tx, columns)
    if row is None:
        return "unreadable, left out"
    if find_secret([row.content, row.kind or "", row.summary, row.tags, row.metadata]):
        return "sensitive, left out"
    has_date = _utc_time(columns.get("created_at")) is not None
    # Duplicates count after `since`, and the rows of an earlier import have the very time of this import.
    since = memories.time_before(row.created_at, _ONE_MILLISECOND) if has_date else _ANY_TIME
    number = memories.add(tx, row, since)
    same = {"session_id": row.session_id, "hash": memories.content_hash(row.content), "since": since}
    copy_id = number or tx.one("sessions.import_code_memory.earliest_copy", int, **same) or 0
    _note_id(numbers, columns["id"], copy_id)
    return "already there" if number is None else "memories"


def _memory_row(tx: Tx, columns: Columns) -> memories.MemoryRow | None:
    content = columns.get("content")
    if not isinstance(content, str) or not content.strip():
        return None
    priority = columns.get("priority")
    return memories.MemoryRow(
        0,
        memories.session_as_stored(tx, _text(columns.get("session_id")).strip() or _DEFAULT_SESSION),
        _text(columns.get("kind")) or None,
        content,
        _text(columns.get("summary")) or summary.first_line(content),
        _text(columns.get("tags")) or summary.default_tags(content),
        memories.clamped_priority(priority if isinstance(priority, int) and priority else None),
        _metadata(columns.get("metadata")),
        _utc_time(columns.get("created_at")) or tx.now,
    )


def _import_graph(source: ExternalDatabase, numbers: _NewIds) -> Steps[dict[str, int]]:
    """Adds entities, observations and relations, except those of memories that were left out."""
    names = _NewIds(array("q"), array("q"))
    relations: set[int] = set()
    entities = observations = 0
    for columns in source.rows("graph_entities", "id"):
        tx = yield
        count_step(tx)
        name = _text(columns.get("name")).strip()
        if name.isprintable() and name and not find_secret([name]):
            number, added_count = _import_entity(tx, name, columns, source, numbers)
            _note_id(names, columns["id"], number)
            entities += 1
            observations += added_count
    for columns in source.rows("graph_relations"):
        tx = yield
        count_step(tx)
        ends = _new_id(names, columns["source_id"]), _new_id(names, columns["target_id"])
        kind = _text(columns.get("relation_type")).strip()
        if ends[0] and ends[1] and kind and _is_importable(columns, numbers):
            memory = _new_id(numbers, columns.get("memory_id"))
            at = _utc_time(columns.get("created_at")) or tx.now
            relations.add(graph.add_relation_row(tx, ends[0], ends[1], kind, memory, at))
    return {"entities": entities, "observations": observations, "relations": len(relations)}


def _import_entity(tx: Tx, name: str, columns: Columns, source: ExternalDatabase, numbers: _NewIds) -> tuple[int, int]:
    """Adds one entity with its observations, each with its time and memory. Its id, and how many observations."""
    kind = _text(columns.get("entity_type")).strip() or _GENERIC_TYPE
    at = _utc_time(columns.get("created_at")) or tx.now
    number = graph.add_entity_row(tx, name, kind, [], None, at, stated=False)
    is_stated, count = True, 0
    for observation in source.rows_with("graph_observations", "entity_id", columns["id"]):
        if _is_importable(observation, numbers):
            memory = _new_id(numbers, observation.get("memory_id"))
            seen_at = _utc_time(observation.get("created_at")) or at
            graph.add_entity_row(
                tx, name, _GENERIC_TYPE, [_text(observation["content"])], memory, seen_at, stated=False
            )
            is_stated, count = is_stated and memory is None, count + 1
    if is_stated:
        graph.add_entity_row(tx, name, kind, [], None, at, stated=True)
    graph.index_entities(tx, [number])
    return number, count


def _is_importable(columns: Columns, numbers: _NewIds) -> bool:
    memory = columns.get("memory_id")
    return (memory is None or _new_id(numbers, memory) is not None) and not find_secret([_text(columns.get("content"))])


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _metadata(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        return "{}"
    try:
        return memories.normalized_metadata(value)
    except Fault:
        return msgspec.json.encode({"metadata": value}).decode()


def _utc_time(value: Any) -> str | None:
    return utc_time(_text(value))
