"""Takes memories of other programs into `brain`: memories, notes, entities and links, under ids of their origin."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from msgspec.structs import astuple

from handlers.brain.base import databases, decode_words, embedding, json_text, lock_of, new_row
from handlers.brain.index_text import ACTIVE, KIND_OF, entity_source, memory_source, note_source
from handlers.brain.repository import Successor, insert_new, new_memory, remove, retire
from handlers.brain.schemas import Entity, Link, Memory, Note
from kernel.calls.dialect import IndexSource
from kernel.core.errors import Fault
from kernel.core.text import stored_object
from kernel.memories.import_records import (
    DELETED,
    GONE,
    IMPORT,
    KEPT,
    PARTS,
    UPDATED,
    Absent,
    Record,
    Snapshot,
    absent_of,
    outcome_of_change,
    source_of,
    stable_id,
)
from kernel.search import index
from kernel.store import history
from kernel.store.transaction import Tx

_PREFIXES = {"memory": "mem", "entity": "ent", "note": "note", "link": "lnk"}
_KNOWN = {"memory": "brain.intake.memories", "entity": "brain.intake.entities", "note": "brain.intake.notes"}
_SET_ASIDE = "Set aside in its source"
_ARCHIVED = Successor("archived", "archived", None, "No longer in its source")


class _Row(NamedTuple):
    """A row that a record becomes, its id, its text in the history, and its document for the index."""

    row: Any
    id: str
    text: str
    source: IndexSource | None


class _Change(NamedTuple):
    """The way a row changes with its source: its type, the statement, the columns to compare, and further columns."""

    row: type[Any]
    replace: str
    columns: tuple[str, ...]
    others: tuple[str, ...] = ()


class _Known(NamedTuple):
    """A row that is here: its id, the root that it was imported from, its text and its time."""

    id: str
    root: str | None
    text: str
    created_at: str


class _Key(NamedTuple):
    """The key of a record, and the columns by which a row of that key is known to be of the same source."""

    key: str
    root: str
    text: str = ""
    created_at: str = ""


def take(tx: Tx, records: Sequence[Record]) -> list[int | str]:
    """Add the records whose id is neither there nor deleted, and update notes; a read changes nothing."""
    groups: dict[tuple[str, str], list[int]] = {}
    for number, record in enumerate(records):
        groups.setdefault((record.kind, _database(tx, record.place)), []).append(number)
    outcomes: list[int | str] = [False] * len(records)
    for (kind, db), numbers in sorted(
        groups.items(), key=lambda group: group[0][0] == "link"
    ):  # links after their ends
        own = [records[number] for number in numbers]
        if kind in {PARTS, GONE}:
            archive = _archive_others if kind == PARTS else _archive_gone
            outcomes = [
                archive(tx, db, item) if item in own else before for item, before in zip(records, outcomes, strict=True)
            ]
            continue
        rows = _rows(tx, kind, db, own)
        for record, row in zip(own, rows, strict=True):
            if record.snapshot is not None:
                record.snapshot.seen.add(hash(row.id))
        here = _known(tx, kind, db, rows)
        deleted = _deleted(tx, kind, f"brain:{db}", [row.id for row in rows if row.id not in here])
        for number, record, row in zip(numbers, own, rows, strict=True):
            absent = DELETED if row.id in deleted else True
            outcomes[number] = _changed(tx, kind, db, record, row) if row.id in here else absent
        if not tx.readonly:
            pairs = zip(numbers, rows, strict=True)
            _add(tx, db, [(records[number], row) for number, row in pairs if outcomes[number] is True])
    return outcomes


def _changed(tx: Tx, kind: str, db: str, record: Record, new: _Row) -> bool | str:
    """Update a row that has changed in its source, unless somebody has edited it here; set a memory aside as its source
    does.
    """
    change, space = _CHANGES.get(kind), f"brain:{db}"
    old = tx.one(KIND_OF[change.row].get, change.row, db=db, id=new.id) if change else None
    now = new.row
    if change is None or old is None or not _is_changed(record, change, old, now):
        return False
    is_locked = isinstance(old, Memory) and lock_of(old)
    is_other = any(_compared(name, old) != _compared(name, now) for name in change.columns if name != "content")
    outcome = KEPT if is_locked else outcome_of_change(tx, space, new.id, new.text, is_other=is_other)
    if outcome != UPDATED or tx.readonly:
        return outcome
    if isinstance(old, Memory) and now.status != ACTIVE:
        retire(tx, db, old, Successor(now.status, now.status, now.superseded_by, _SET_ASIDE))
        return outcome
    names = (*change.columns, *change.others, "has_embedding", "embedding_model", "updated_at")
    columns = {name: getattr(now, name) for name in names}
    row = tx.one(change.replace, change.row, db=db, id=new.id, **columns) or now
    writer, source = ("brain", *tx.writer[1:]), KIND_OF[change.row].source(space, row)
    before = KIND_OF[change.row].source(space, old).text if isinstance(old, Entity) else old.content
    after = source.text if isinstance(old, Entity) else row.content
    history.append(tx, space, row.id, "updated", before=before, after=after, reason=source_of(record), by=writer)
    index.put(tx, space, row.id, source.text, scope=source.scope, words=source.words)
    return outcome


def _is_changed(record: Record, change: _Change, old: Any, now: Any) -> bool:
    """Return whether a source has changed a row; a source that is older than the row has not, nor has one without a
    description of an entity.
    """
    if isinstance(old, Memory) and old.status != now.status:
        return ACTIVE in {old.status, now.status}
    if isinstance(old, Memory) and (old.status != ACTIVE or (record.updated_at and record.updated_at < old.updated_at)):
        return False
    if isinstance(old, Entity) and not now.description:
        return False
    if isinstance(old, Note) and (old.project_id is None) != (now.project_id is None):  # before rows had a root
        return bool(old.content != now.content)
    changed = [name for name in change.columns if _compared(name, old) != _compared(name, now)]
    # Some programs count in the metadata how often a memory was read, which is no change of it.
    return changed != ["metadata"] or record.updated_at != old.updated_at if changed else False


def _compared(name: str, row: Any) -> Any:
    """Return a value to compare, without the name of the file that it was imported from."""
    value = getattr(row, name)
    if name == "metadata":
        return {member: part for member, part in stored_object(value).items() if member != "from"}
    return decode_words(value)[1:] if name == "key_points" else value


def _deleted(tx: Tx, kind: str, space: str, ids: Sequence[str]) -> set[str]:
    """Return the ids of rows that were deleted, but for notes that an import deleted, since they may come back."""
    deleted = history.known(tx, space, ids)
    if kind != "note":
        return deleted
    return {key for key in deleted if not history.read(tx, space, key)[-1].tool.startswith(IMPORT)}


def find_absent(tx: Tx, snapshot: Snapshot, program: str) -> list[Absent]:
    """Return the active memories of a program that an export does not hold, and the notes that a folder does not."""
    db = _database(tx, snapshot.into)
    rows = chain(
        tx.each("brain.intake.imported", _Known, db=db, program=program),
        tx.each("brain.intake.imported_notes", _Known, db=db, part=f'["source: {program} ')
        if snapshot.is_apart
        else (),
    )
    seen = ((row.id, row.text, hash(row.id) in snapshot.seen) for row in rows)
    return absent_of(tx, f"brain:{db}", snapshot, seen)


def _archive_gone(tx: Tx, db: str, record: Record) -> int | str:
    """Archives a memory that its source has no more, or deletes a note, unless it was edited here; returns how many."""
    number = record.details.get("id") or id_of("memory", record.key)
    if record.snapshot is not None:
        record.snapshot.seen.add(hash(number))
    note = tx.one("brain.notes.get", Note, db=db, id=number)
    memory = tx.one("brain.repository.get", Memory, db=db, id=number)
    if note is None and (memory is None or memory.status != ACTIVE):
        return 0
    is_locked = memory is not None and lock_of(memory)
    if is_locked or outcome_of_change(tx, f"brain:{db}", number, "") != UPDATED:
        return KEPT
    if memory is not None and not tx.readonly:
        retire(tx, db, memory, _ARCHIVED)
    elif note is not None and not tx.readonly:
        remove(tx, db, note, _ARCHIVED.reason)
    return 1


def _archive_others(tx: Tx, db: str, record: Record) -> int:
    """Archives the memories of observations that a page no longer has, if unedited; returns how many."""
    root = record.details["root"]
    (entity,), ids = (
        _ids(tx, kind, db, [_Key(key, root) for key in keys])
        for kind, keys in (("entity", [record.details["entity"]]), ("memory", record.details["keys"]))
    )
    page = {name: record.origin.get(name) for name in ("system", "file")}
    other_rows = [
        row
        for row in tx.all("brain.intake.observations", Memory, db=db, entity=entity)
        if row.id not in ids
        and page.items() <= stored_object(row.metadata).get("from", {}).items()
        and outcome_of_change(tx, f"brain:{db}", row.id, row.content) == UPDATED
    ]
    if record.snapshot is not None:
        record.snapshot.seen.add(*(hash(row.id) for row in other_rows))
    for row in [] if tx.readonly else other_rows:
        retire(tx, db, row, _ARCHIVED)
    return len(other_rows)


def _rows(tx: Tx, kind: str, db: str, records: Sequence[Record]) -> list[_Row]:
    if kind == "link":
        return _link_rows(tx, db, records)
    keys = [_Key(record.key, record.details.get("root", ""), record.text, record.created_at) for record in records]
    return [_ROWS[kind](tx, db, *pair) for pair in zip(records, _ids(tx, kind, db, keys), strict=True)]


def _ids(tx: Tx, kind: str, db: str, keys: Sequence[_Key]) -> list[str]:
    """Return the id of each key: that with its root, if the other is of another root."""
    pairs = [(id_of(kind, key.key), id_of(kind, f"{key.root}\0{key.key}")) for key in keys]
    root_pairs = [pair for key, pair in zip(keys, pairs, strict=True) if key.root]
    rows = _here(tx, kind, db, [number for pair in root_pairs for number in pair]) if root_pairs else {}
    return [
        by_root if key.root and (by_root in rows or not _is_of(key, kind, rows.get(by_key))) else by_key
        for key, (by_key, by_root) in zip(keys, pairs, strict=True)
    ]


def _is_of(key: _Key, kind: str, row: _Known | None) -> bool:
    """Tell whether a row is of the same source; before rows had a root, a note with another text and time is not."""
    if row is None or row.root is not None:
        return row is None or row.root == key.root
    return kind != "note" or key.text == row.text or key.created_at == row.created_at


def _database(tx: Tx, name: str) -> str:
    names = databases(tx)
    if name and name not in names:
        raise Fault("invalid", f"brain has no database {name}: choose from {', '.join(names)}. Nothing was imported.")
    return name or names[0]


def id_of(kind: str, key: str) -> str:
    return stable_id(_PREFIXES[kind], kind, key)


def _known(tx: Tx, kind: str, db: str, rows: Sequence[_Row]) -> set[str]:
    if kind == "link":
        return set(tx.all("brain.intake.known_links", str, db=db, rows=[astuple(row.row)[:6] for row in rows]))
    return {*_here(tx, kind, db, [row.id for row in rows])}


def _here(tx: Tx, kind: str, db: str, ids: Sequence[str]) -> dict[str, _Known]:
    return {row.id: row for row in tx.all(_KNOWN[kind], _Known, db=db, ids=ids)}


def _add(tx: Tx, db: str, record_rows: Sequence[tuple[Record, _Row]]) -> None:
    insert_new(tx, db, [row.row for _, row in record_rows])
    writer = ("brain", *tx.writer[1:])
    for record, row in record_rows:
        created_at = record.created_at or tx.now
        _append_history(tx, f"brain:{db}", row, record, created_at, writer)
        if row.source is not None:
            origin = index.Origin(writer, created_at, record.updated_at or created_at)
            source = row.source
            index.put(tx, source.space, source.key, source.text, scope=source.scope, words=source.words, origin=origin)


def _append_history(
    tx: Tx, space: str, row: _Row, record: Record, created_at: str, writer: tuple[str, str, str]
) -> None:
    reason = source_of(record)
    events = record.details.get("events") or [("created", None, row.text, "", "")]
    for operation, before, after, at, actor in events:
        by, at = (*writer[:2], actor or writer[2]), at or created_at
        history.append(tx, space, row.id, operation, before=before, after=after, reason=reason, at=at, by=by)


def _memory_row(tx: Tx, db: str, record: Record, number: str) -> _Row:
    details = record.details
    status, successor = details.get("status", ACTIVE), details.get("superseded_by")
    row = new_memory(
        tx,
        **_columns(tx, record, number),
        content=record.text,
        category=record.category or "fact",
        source=record.origin.get("system", "import"),
        status=status,
        superseded_by=id_of("memory", successor) if successor else None,
        importance=details.get("importance", 3),
        valid_from=details.get("valid_from") or None,
        valid_until=details.get("valid_until") or None,
        confidence=details.get("confidence", 1.0),
        metadata=_metadata(record),
    )
    if status != ACTIVE:
        row.has_embedding, row.embedding_model = 0, None
    source = memory_source(f"brain:{db}", row) if status == ACTIVE else None
    return _Row(row, row.id, row.content, source)


def _columns(tx: Tx, record: Record, number: str) -> dict[str, Any]:
    """Return the columns of a record that have the same name in the rows of every kind."""
    created_at = record.created_at or tx.now
    times = {"created_at": created_at, "updated_at": record.updated_at or created_at}
    place = {"id": number, "project_id": record.details.get("root") or None}
    return {**place, "tags": list(record.tags) or None, **embedding(tx), **times}


def _note_row(tx: Tx, db: str, record: Record, number: str) -> _Row:
    names = (record.origin.get(name) for name in ("system", "file", "id"))
    source = f"source: {' '.join(str(name) for name in names if name)}"  # as a key point: a note has no metadata
    row = new_row(
        Note,
        **_columns(tx, record, number),
        db=db,
        title=record.title or "Untitled",
        content=record.text,
        note_type=record.details.get("note_type") or "note",
        summary=record.details.get("summary") or None,
        key_points=[source, *record.details.get("points", ())],
        category=record.category or None,
        version=1,
        word_count=len(record.text.split()),
    )
    return _Row(row, row.id, row.content, note_source(f"brain:{db}", row))


def _entity_row(tx: Tx, db: str, record: Record, number: str) -> _Row:
    row = new_row(
        Entity,
        **_columns(tx, record, number),
        name=record.title,
        type=record.category or "concept",
        description=record.text or None,
        aliases=record.details.get("aliases") or None,
        status=ACTIVE,
        mention_count=0,
        metadata=_metadata(record),
    )
    source = entity_source(f"brain:{db}", row)
    return _Row(row, row.id, source.text, source)


def _link_rows(tx: Tx, db: str, records: Sequence[Record]) -> list[_Row]:
    ends = [end for record in records for end in _ends(record)]
    numbers: dict[tuple[str, _Key], str] = {}
    for kind in {kind for kind, _ in ends}:
        keys = list(dict.fromkeys(key for end_kind, key in ends if end_kind == kind))
        numbers |= zip([(kind, key) for key in keys], _ids(tx, kind, db, keys), strict=True)
    return [_link_row(tx, record, [numbers[end] for end in _ends(record)]) for record in records]


def _ends(record: Record) -> list[tuple[str, _Key]]:
    return [(kind, _Key(key, record.details.get("root", ""))) for kind, key in record.details["ends"]]


def _link_row(tx: Tx, record: Record, numbers: Sequence[str]) -> _Row:
    (source_type, source), (target_type, target) = record.details["ends"]
    is_plain = [id_of(source_type, source), id_of(target_type, target)] == numbers
    row = Link(
        id_of("link", record.key if is_plain else f"{record.details['root']}\0{record.key}"),
        source_type,
        numbers[0],
        target_type,
        numbers[1],
        record.title,
        record.details.get("strength", 1.0),
        record.text or None,
        int(record.details.get("bidirectional", False)),
        _metadata(record),
        record.created_at or tx.now,
    )
    return _Row(row, row.id, f"{row.source_id} {row.relationship} {row.target_id}", None)


def _metadata(record: Record) -> str | None:
    root = {"root": record.details["root"]} if record.kind == "entity" and record.details.get("root") else {}
    return json_text({**record.details.get("metadata", {}), **root, "from": dict(record.origin)})


_CHANGES: Mapping[str, _Change] = {
    "memory": _Change(
        Memory, "brain.intake.replace_memory", ("content", "category", "tags", "valid_from", "valid_until", "metadata")
    ),
    "note": _Change(
        Note,
        "brain.intake.replace_note",
        ("content", "title", "note_type", "summary", "key_points", "tags", "category"),
        ("project_id", "word_count"),
    ),
    "entity": _Change(Entity, "brain.intake.replace_entity", ("description", "aliases"), ("type", "metadata")),
}
_ROWS: Mapping[str, Callable[[Tx, str, Record, str], _Row]] = {
    "memory": _memory_row,
    "note": _note_row,
    "entity": _entity_row,
}
