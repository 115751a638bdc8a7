"""Takes memories of other programs into `brain`: memories, notes, entities and links, under ids of their origin."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from msgspec.structs import astuple

from handlers.brain.base import databases, embedding_columns, json_text
from handlers.brain.index_text import ACTIVE, entity_source, memory_source, note_source
from handlers.brain.schemas import Entity, Link, Memory, Note
from kernel.calls.dialect import IndexSource
from kernel.core.errors import Fault
from kernel.memories.import_records import Record, stable_id
from kernel.search import index
from kernel.store import history
from kernel.store.transaction import Tx

_PREFIXES = {"memory": "mem", "entity": "ent", "note": "note", "link": "lnk"}
_KNOWN = {
    "memory": "brain.intake.known_memories",
    "entity": "brain.intake.known_entities",
    "note": "brain.intake.known_notes",
}
_INSERTS = {
    "memory": "brain.import_project_brain.memories",
    "entity": "brain.import_project_brain.entities",
    "link": "brain.import_project_brain.links",
}
_DEFAULT_IMPORTANCE = 3
_CREATED = "created"


class _Row(NamedTuple):
    """A row that a record becomes: its columns, its id, its text in the history, and its document for the index."""

    values: tuple[Any, ...]
    id: str
    text: str
    source: IndexSource | None


def take(tx: Tx, records: Sequence[Record]) -> list[bool]:
    """Add the records whose id is neither there nor deleted; a read adds none. Return of each whether it is new."""
    groups: dict[tuple[str, str], list[int]] = {}
    for number, record in enumerate(records):
        groups.setdefault((record.kind, _database(tx, record.place)), []).append(number)
    new = [False] * len(records)
    for (kind, db), numbers in groups.items():
        rows = [_ROWS[kind](tx, db, records[number]) for number in numbers]
        present = _known(tx, kind, db, rows) | history.known(tx, f"brain:{db}", [row.id for row in rows])
        for number, row in zip(numbers, rows, strict=True):
            new[number] = row.id not in present
        if not tx.readonly:
            chosen = [(records[number], row) for number, row in zip(numbers, rows, strict=True) if new[number]]
            _add(tx, kind, db, chosen)
    return new


def _database(tx: Tx, name: str) -> str:
    names = databases(tx)
    if name and name not in names:
        raise Fault("invalid", f"brain has no database {name}: choose from {', '.join(names)}. Nothing was imported.")
    return name or names[0]


def id_of(kind: str, key: str) -> str:
    """Return the id of the row that a record of this kind and key becomes."""
    return stable_id(_PREFIXES[kind], kind, key)


def _known(tx: Tx, kind: str, db: str, rows: Sequence[_Row]) -> set[str]:
    if kind == "link":
        return set(tx.all("brain.intake.known_links", str, db=db, rows=[row.values[:6] for row in rows]))
    return set(tx.all(_KNOWN[kind], str, db=db, ids=[row.id for row in rows]))


def _add(tx: Tx, kind: str, db: str, chosen: Sequence[tuple[Record, _Row]]) -> None:
    if not chosen:
        return
    values = [row.values for _, row in chosen]
    if kind == "note":
        tx.all("brain.import_project_brain.notes", str, rows=values)
    else:
        tx.all(_INSERTS[kind], str, db=db, rows=values)
    writer = ("brain", *tx.call_context.writer[1:])
    for record, row in chosen:
        created = record.created_at or tx.now
        _append_history(tx, f"brain:{db}", row, record, created, writer)
        if row.source is not None:
            origin = index.Origin(writer, created, record.updated_at or created)
            source = row.source
            index.put(tx, source.space, source.key, source.text, scope=source.scope, words=source.words, origin=origin)


def _append_history(tx: Tx, space: str, row: _Row, record: Record, created: str, writer: tuple[str, str, str]) -> None:
    for operation, before, after, at, actor in record.details.get("events", ()):
        by = (*writer[:2], actor or writer[2])
        history.append(tx, space, row.id, operation, before=before, after=after, at=at or created, by=by)
    if not record.details.get("events"):
        history.append(tx, space, row.id, _CREATED, after=row.text, at=created, by=writer)


def _memory_row(tx: Tx, db: str, record: Record) -> _Row:
    details, created = record.details, record.created_at or tx.now
    status = details.get("status", ACTIVE)
    has, model = embedding_columns(tx) if status == ACTIVE else (0, None)
    superseded = details.get("superseded_by")
    row = Memory(
        id_of("memory", record.key),
        record.text,
        record.category or "fact",
        None,
        json_text(list(record.tags)) if record.tags else None,
        record.origin.get("system", "import"),
        status,
        id_of("memory", superseded) if superseded else None,
        None,
        details.get("importance", _DEFAULT_IMPORTANCE),
        "permanent",
        None,
        0,
        details.get("valid_from") or None,
        details.get("valid_until") or None,
        1.0,
        details.get("confidence", 1.0),
        has,
        model,
        _metadata(record),
        created,
        record.updated_at or created,
    )
    source = memory_source(f"brain:{db}", row) if status == ACTIVE else None
    return _Row(astuple(row), row.id, row.content, source)


def _note_row(tx: Tx, db: str, record: Record) -> _Row:
    created = record.created_at or tx.now
    row = Note(
        id_of("note", record.key),
        db,
        record.title or "Untitled",
        record.text,
        record.details.get("note_type") or "note",
        record.details.get("summary") or None,
        json_text([_source_of(record), *record.details.get("points", ())]),
        json_text(list(record.tags)) if record.tags else None,
        record.category or None,
        None,
        1,
        None,
        None,
        None,
        len(record.text.split()),
        *embedding_columns(tx),
        created,
        record.updated_at or created,
    )
    return _Row(astuple(row), row.id, row.content, note_source(f"brain:{db}", row))


def _entity_row(tx: Tx, db: str, record: Record) -> _Row:
    created = record.created_at or tx.now
    row = Entity(
        id_of("entity", record.key),
        record.title,
        record.category or "concept",
        None,
        record.text or None,
        json_text(list(record.tags)) if record.tags else None,
        json_text(record.details.get("aliases") or None),
        ACTIVE,
        0,
        None,
        None,
        *embedding_columns(tx),
        _metadata(record),
        created,
        record.updated_at or created,
    )
    return _Row(astuple(row), row.id, row.name, entity_source(f"brain:{db}", row))


def _link_row(tx: Tx, _db: str, record: Record) -> _Row:
    (source_type, source), (target_type, target) = record.details["ends"]
    row = Link(
        id_of("link", record.key),
        source_type,
        id_of(source_type, source),
        target_type,
        id_of(target_type, target),
        record.title,
        record.details.get("strength", 1.0),
        record.text or None,
        int(record.details.get("bidirectional", False)),
        _metadata(record),
        record.created_at or tx.now,
    )
    return _Row(astuple(row), row.id, f"{row.source_id} {row.relationship} {row.target_id}", None)


def _source_of(record: Record) -> str:
    """Return the source of a note as a key point: it has no metadata."""
    names = (record.origin.get(name) for name in ("system", "file", "id"))
    return f"source: {' '.join(str(name) for name in names if name)}"


def _metadata(record: Record) -> str | None:
    return json_text({**record.details.get("metadata", {}), "from": dict(record.origin)})


_ROWS: Mapping[str, Callable[[Tx, str, Record], _Row]] = MappingProxyType(
    {"memory": _memory_row, "note": _note_row, "entity": _entity_row, "link": _link_row}
)
