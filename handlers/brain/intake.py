"""Takes memories of other programs into `brain`: memories, notes, entities and links, under ids of their origin."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import astuple

from handlers.brain.base import databases, embedding, json_text, lock_of, new_row
from handlers.brain.index_text import ACTIVE, entity_source, memory_source, note_source
from handlers.brain.repository import Successor, insert_new, new_memory, retire
from handlers.brain.schemas import Entity, Link, Memory, Note
from kernel.calls.dialect import IndexSource
from kernel.core.errors import Fault
from kernel.core.text import stored_object
from kernel.memories.import_records import (
    GONE,
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
        present = here | history.known(tx, f"brain:{db}", [row.id for row in rows])
        for number, record, row in zip(numbers, own, rows, strict=True):
            outcomes[number] = _changed(tx, kind, db, record, row) if row.id in here else row.id not in present
        if not tx.readonly:
            pairs = zip(numbers, rows, strict=True)
            _add(tx, db, [(records[number], row) for number, row in pairs if outcomes[number] is True])
    return outcomes


def _changed(tx: Tx, kind: str, db: str, record: Record, new: _Row) -> bool | str:
    """Update a row that has changed in its source, unless somebody has edited it here."""
    if kind == "note":
        return _changed_note(tx, db, new)
    return _changed_memory(tx, db, record, new) if kind == "memory" else False


def _changed_note(tx: Tx, db: str, new: _Row) -> bool | str:
    old = tx.one("brain.notes.get", Note, db=db, id=new.id)
    now: Note = new.row
    if old is None or _told(old, now.project_id) == _told(now, old.project_id):
        return False
    space = f"brain:{db}"
    outcome = outcome_of_change(tx, space, new.id, new.text)
    if outcome == UPDATED and not tx.readonly:
        names = "title content note_type summary key_points tags category project_id word_count".split()
        changes = {name: getattr(now, name) for name in names}
        more = {"has_embedding": now.has_embedding, "embedding_model": now.embedding_model, "now": now.updated_at}
        row = tx.one("brain.notes.update", Note, db=db, id=new.id, entity_id=None, **changes, **more) or now
        _keep_update(tx, space, old.content, _Row(row, row.id, row.content, note_source(space, row)))
    return outcome


def _changed_memory(tx: Tx, db: str, record: Record, new: _Row) -> bool | str:
    """Update the text, category and tags of an active memory, or set it aside as its source does; a source that is
    older than the row changes nothing.
    """
    old = tx.one("brain.repository.get", Memory, db=db, id=new.id)
    now: Memory = new.row
    if old is None or ACTIVE not in {old.status, now.status}:
        return False
    space = f"brain:{db}"
    if old.status == now.status:
        is_same = (old.content, old.category, old.tags) == (now.content, now.category, now.tags)
        if is_same or (record.updated_at and record.updated_at < old.updated_at):
            return False
    outcome = KEPT if lock_of(old) else outcome_of_change(tx, space, new.id, new.text)
    if outcome == UPDATED and not tx.readonly and now.status != ACTIVE:
        retire(tx, db, old, Successor(now.status, now.status, now.superseded_by, _SET_ASIDE))
    elif outcome == UPDATED and not tx.readonly:
        unset = {"subcategory": None, "status": ACTIVE, "importance": None, "valid_until": None}
        changes = {name: getattr(now, name) for name in ("content", "category", "tags", "metadata")} | unset
        more = {"has_embedding": now.has_embedding, "embedding_model": now.embedding_model, "now": now.updated_at}
        row = tx.one("brain.memories.update", Memory, db=db, id=new.id, **changes, **more) or now
        kept = _Row(row, row.id, row.content, memory_source(space, row))
        _keep_update(tx, space, old.content, kept, source_of(record))
    return outcome


def find_absent(tx: Tx, snapshot: Snapshot, program: str) -> list[Absent]:
    """Return the active memories of a program that an export does not hold."""
    db = _database(tx, snapshot.into)
    rows = tx.each("brain.intake.imported", _Known, db=db, program=program)
    seen = ((row.id, row.text, hash(row.id) in snapshot.seen) for row in rows)
    return absent_of(tx, f"brain:{db}", snapshot, seen)


def _archive_gone(tx: Tx, db: str, record: Record) -> int | str:
    """Archives a memory that its source has no more, unless somebody edited it; returns how many."""
    number = record.details.get("id") or id_of("memory", record.key)
    if record.snapshot is not None:
        record.snapshot.seen.add(hash(number))
    row = tx.one("brain.repository.get", Memory, db=db, id=number)
    if row is None or row.status != ACTIVE:
        return 0
    if lock_of(row) or outcome_of_change(tx, f"brain:{db}", row.id, "") != UPDATED:
        return KEPT
    if not tx.readonly:
        retire(tx, db, row, _ARCHIVED)
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
    for row in [] if tx.readonly else other_rows:
        retire(tx, db, row, _ARCHIVED)
    return len(other_rows)


def _keep_update(tx: Tx, space: str, before: str, row: _Row, reason: str | None = None) -> None:
    writer = ("brain", *tx.writer[1:])
    history.append(tx, space, row.id, "updated", before=before, after=row.text, reason=reason, by=writer)
    if row.source is not None:
        index.put(tx, space, row.id, row.source.text, scope=row.source.scope, words=row.source.words)


def _told(note: Note, other_root: str | None) -> tuple[str | None, ...]:
    """Return the content of a note to compare; the text alone if either of two was imported before rows had a root."""
    is_whole = (note.project_id is None) == (other_root is None)
    return (note.content, *((note.title, note.summary, note.tags) if is_whole else ()))


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
    return _Row(row, row.id, row.name, entity_source(f"brain:{db}", row))


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


_ROWS: Mapping[str, Callable[[Tx, str, Record, str], _Row]] = {
    "memory": _memory_row,
    "note": _note_row,
    "entity": _entity_row,
}
