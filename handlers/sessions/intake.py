"""Takes memories of other programs into `sessions`: known by session, content and time, or by an id of their own.

An exchange that may be copied, since a program copies those of a session into the next, is known by content and time.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from handlers.sessions import memories, removal, summary
from kernel.core.text import json_text, stored_object
from kernel.memories.import_records import (
    DELETED,
    GONE,
    KEPT,
    UPDATED,
    Absent,
    Record,
    Snapshot,
    absent_of,
    outcome_of_change,
    source_of,
)
from kernel.search import index
from kernel.store import history
from kernel.store.transaction import Tx

_NEVER = "~"  # sorts after every time, so that nothing is a duplicate: stored memories were left out before
_SESSION = "imported"
_INDEXED = 100  # characters of the id of an origin, in the index of origins
_END = "\n\n"  # of a question
_REPLACED, _NO_LONGER = "replaced by a later version", "no longer in its source"


class _Earlier(NamedTuple):
    """A memory that was imported from the same row as the record of this number."""

    number: int
    id: int
    metadata: str
    hash: str
    kind: str | None
    summary: str
    tags: str


class _Imported(NamedTuple):
    """A memory of a program: where it is, and the members of the metadata that name its origin, as JSON."""

    id: int
    session: str
    hash: str
    summary: str
    created_at: str
    origin: str


def take(tx: Tx, records: Sequence[Record]) -> list[int | str]:
    """Adds the records that are not there, in the place of earlier versions, and deletes those that are gone in their
    source; a read only says which these are.
    """
    new = iter(_take(tx, [record for record in records if record.kind != GONE]))
    return [_delete_gone(tx, record) if record.kind == GONE else next(new) for record in records]


def _take(tx: Tx, records: Sequence[Record]) -> list[bool | str]:
    places = [_places(tx, record) for record in records]
    hashes = [memories.content_hash(record.text) for record in records]
    for record, own, digest in zip(records, places, hashes, strict=True):
        if record.snapshot is not None:
            session, origin = own[0], _origin(record)
            is_anywhere = "has_no_session" in record.details  # its id is unique among all sessions
            marks = [hash((place, digest)) for place in own]
            marks += [hash((session, _time(record), origin))] * bool(origin)
            record.snapshot.seen.add(
                hash((session, str(record.origin.get("id")))), *marks, *[hash(origin)] * is_anywhere
            )
    sessions = [memories.of_program(own[0], "") if own[1:] else own[0] for own in places]
    times = [record.created_at for record in records]
    present = set(tx.all("sessions.intake.known", int, rows=[*zip(sessions, hashes, times, strict=True)]))
    keys = [{memories.deleted_key(place, digest) for place in own} for own, digest in zip(places, hashes, strict=True)]
    deleted_keys = history.known(tx, memories.DELETED_SPACE, [*set[str]().union(*keys)])
    new = [number not in present and deleted_keys.isdisjoint(own) for number, own in enumerate(keys)]
    earlier = _earlier(tx, records, new)
    outcomes = [
        _outcome(record, _row(tx, record), earlier[at]) if at in earlier else new[at] or (at not in present and DELETED)
        for at, record in enumerate(records)
    ]
    if not tx.readonly:
        writer = (memories.SPACE, *tx.writer[1:])
        for at, record in enumerate(records):
            if outcomes[at] == UPDATED:
                removal.delete(tx, earlier[at].id, _REPLACED, is_final=False)
            if outcomes[at] in {True, UPDATED}:
                row = _row(tx, record)
                origin = index.Origin(writer, row.created_at, record.updated_at or row.created_at)
                memories.add(tx, row, _NEVER, origin, source_of(record))
    return outcomes


def _places(tx: Tx, record: Record) -> list[str]:
    """Return the session of a record, and the program and time by which it is known, if it may be copied."""
    session, is_copy = _session(tx, record), bool(record.details.get("may_be_copied"))
    return [session, *[memories.of_program(session, record.created_at)] * is_copy]


def _earlier(tx: Tx, records: Sequence[Record], new: Sequence[bool]) -> dict[int, _Earlier]:
    """Return the memories that are an earlier or later version of a record, or have its text, by its number."""
    numbers = [at for at, record in enumerate(records) if record.details.get("has_own_id")]
    rows = [_origin_row(_session(tx, records[at]), _time(records[at]), records[at]) for at in numbers]
    earlier: dict[int, _Earlier] = {}
    for memory in tx.all("sessions.intake.same_origin", _Earlier, rows=rows) if rows else ():
        at = numbers[memory.number]
        record = records[at]
        # The position of a message is that of another one, if the source has lost earlier messages.
        mark = hash((_session(tx, record), memory.hash))
        is_free = new[at] and (record.snapshot is None or mark not in record.snapshot.seen)
        if memory.hash == memories.content_hash(record.text) or (is_free and at not in earlier):
            earlier[at] = memory
    return earlier


def _time(record: Record) -> str:
    """Return the time by which an earlier version is known; none if it is that of the last change."""
    return "" if record.details.get("has_no_time") else record.created_at


def _outcome(record: Record, row: memories.MemoryRow, earlier: _Earlier) -> bool | str:
    """Return UPDATED for a later version of a memory, False for an earlier version and for the same."""
    is_same_text = earlier.hash == memories.content_hash(record.text)
    if is_same_text and (row.kind, row.summary, row.tags) == (earlier.kind, earlier.summary, earlier.tags):
        return False
    known_update = stored_object(earlier.metadata).get("from", {}).get("updated", "")
    return UPDATED if not record.updated_at or record.updated_at >= known_update else False


def _origin_row(session: str, at: str, record: Record) -> tuple[str, ...]:
    number, exchange = (str(record.origin.get(name, "")) for name in ("id", "exchange"))
    return session, at, number[:_INDEXED], exchange, _origin_part(record)


def _origin_part(record: Record) -> str:
    return f"{json_text(_origin_fields(record.origin)).removesuffix('}')},"  # the name of a file follows


def _origin_fields(origin: Mapping[str, Any]) -> dict[str, Any]:
    return {name: origin[name] for name in ("system", "table", "id", "exchange") if name in origin}


def _origin(record: Record) -> str:
    """Return the members that name the origin of a record with an id of its own; empty for another."""
    return json_text(_origin_fields(record.origin)) if record.details.get("has_own_id") else ""


def find_absent(tx: Tx, snapshot: Snapshot, program: str) -> list[Absent]:
    """Return the memories of a program that an export does not hold."""
    certain: list[Absent] = []
    return [*absent_of(tx, memories.SPACE, snapshot, _imported(tx, snapshot, program, certain)), *certain]


def _imported(tx: Tx, snapshot: Snapshot, program: str, certain: list[Absent]) -> Iterator[tuple[str, str, bool]]:
    """Yield the number and summary of each memory of a program, and whether an export holds it.

    Those are `certain` that it holds in another session, and that it does not hold of a session that is apart.
    """
    part = f'"from":{json_text({"system": program}).removesuffix("}")}'
    for row in tx.each("sessions.intake.imported", _Imported, part=part):
        is_there = row.session == snapshot.into if snapshot.into else row.session.startswith(f"{program}:")
        if is_there:
            fields = _origin_fields(stored_object(row.origin))
            origin = json_text(fields)
            marks = (
                (row.session, row.hash),
                (memories.of_program(row.session, row.created_at), row.hash),
                *((row.session, at, origin) for at in (row.created_at, "")),
                row.id,
            )
            is_seen = any(hash(mark) in snapshot.seen for mark in marks)
            is_of_session = snapshot.is_apart and hash((row.session, str(fields.get("id")))) in snapshot.seen
            if not is_seen and (is_of_session or hash(origin) in snapshot.seen):
                certain.append(Absent(str(row.id), row.summary, True, is_certain=True))
            elif not snapshot.is_apart:
                yield str(row.id), row.summary, is_seen


def _of_origin(tx: Tx, record: Record) -> Iterator[int]:
    """Yield the memories of the origin of a record that were not changed after it, in any session if it names none; of
    a question, that of the same time.
    """
    session = "" if record.details.get("has_no_session") else _session(tx, record)
    if record.text:
        names = {"session": session, "at": record.created_at, "part": _origin_part(record)}
        rows = tx.all("sessions.intake.given_up", _Earlier, **names, end=_END, question=f"{record.text}{_END}")
    else:
        rows = tx.all("sessions.intake.same_origin", _Earlier, rows=[_origin_row(session, "", record)])
    for row in rows:
        if stored_object(row.metadata).get("from", {}).get("updated", "") <= record.updated_at:
            yield row.id


def _delete_gone(tx: Tx, record: Record) -> int | str:
    """Deletes a memory that its source has no more, unless somebody edited it; returns how many."""
    number = record.details.get("id")
    numbers = [int(number)] if number else [*_of_origin(tx, record)]
    if record.snapshot is not None:
        record.snapshot.seen.add(*map(hash, numbers))
    if any(outcome_of_change(tx, memories.SPACE, str(number), "") != UPDATED for number in numbers):
        return KEPT
    for number in [] if tx.readonly else numbers:
        removal.delete(tx, number, _NO_LONGER, is_final=False)
    return len(numbers)


def _row(tx: Tx, record: Record) -> memories.MemoryRow:
    update_note = {"updated": record.updated_at} if record.details.get("has_own_id") and record.updated_at else {}
    metadata = {**record.details.get("metadata", {}), "from": {**record.origin, **update_note}}
    return memories.MemoryRow(
        0,
        _session(tx, record),
        record.category or None,
        record.text,
        record.title or summary.first_line(record.text),
        ", ".join(record.tags) or summary.default_tags(record.text),
        memories.clamped_priority(record.details.get("priority")),
        json_text(metadata),
        record.created_at or tx.now,
    )


def _session(tx: Tx, record: Record) -> str:
    session = "".join(letter for letter in record.place if letter.isprintable()).strip()
    return memories.session_as_stored(tx, session or _SESSION)
