"""Takes memories of other programs into `paths`; a memory that was written at a path stays."""

import unicodedata
from collections.abc import Sequence

from handlers.paths.memories import INVISIBLE, SPACE, checked_size, index_text
from kernel.core.text import composed
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

_MAX_SEGMENT, _MAX_SEGMENTS = 60, 4
_NO_LONGER = "no longer in its source"  # an operation of the history


def take(tx: Tx, records: Sequence[Record]) -> list[int | str]:
    """Adds the records whose path is free, and was always, updates those that have changed in their source, and drops
    those that are gone there.
    """
    return [_drop_gone(tx, record) if record.kind == GONE else _take(tx, record) for record in records]


def find_absent(tx: Tx, snapshot: Snapshot, _program: str) -> list[Absent]:
    """Return the memories of earlier exports at the path of an export that it does not hold."""
    rows = tx.each("paths.intake.all", str)
    return absent_of(tx, SPACE, snapshot, ((path, path, hash(path) in snapshot.seen) for path in rows), is_other=False)


def _drop_gone(tx: Tx, record: Record) -> int | str:
    """Drops a memory that its source has no more, unless somebody edited it; returns how many."""
    path = record.details.get("id") or path_of(record.place, record.key)
    if record.snapshot is not None:
        record.snapshot.seen.add(hash(path))
    if tx.one("paths.memories.content", str, path=path) is None:
        return 0
    if outcome_of_change(tx, SPACE, path, "") != UPDATED:
        return KEPT
    if not tx.readonly:
        before = tx.one("paths.memories.drop", str, path=path)
        history.append(tx, SPACE, path, _NO_LONGER, before=before)
        index.drop(tx, SPACE, path)
    return 1


def _was_dropped(tx: Tx, path: str) -> bool:
    """Return whether somebody has deleted the memory at a path; an import may bring back what an import dropped."""
    events = history.read(tx, SPACE, path)
    return bool(events) and events[-1].operation != _NO_LONGER


def _take(tx: Tx, record: Record) -> bool | str:
    path, size = path_of(record.place, record.key), checked_size(record.text)
    if record.snapshot is not None:
        record.snapshot.seen.add(hash(path))
    before = tx.one("paths.memories.content", str, path=path)
    if before is None:
        outcome = DELETED if _was_dropped(tx, path) else True
    else:
        outcome = before != record.text and outcome_of_change(tx, SPACE, path, record.text)
    if tx.readonly or outcome not in {True, UPDATED}:
        return outcome
    at, writer, origin = tx.now, (SPACE, *tx.writer[1:]), None
    if before is None:
        at, operation = record.created_at or tx.now, "created"
        origin = index.Origin(writer, at, record.updated_at or at)
        tx.one("paths.memories.add", str, path=path, content=record.text, content_size=size, now=at)
    else:
        operation = "replaced"
        tx.run("paths.memories.replace", path=path, content=record.text, content_size=size, now=at)
    history.append(
        tx, SPACE, path, operation, before=before, after=record.text, reason=source_of(record), at=at, by=writer
    )
    index.put(tx, SPACE, path, index_text(path, record.text), origin=origin)
    return outcome


def path_of(place: str, key: str) -> str:
    """Return a path that `paths` allows, from names that may hold anything."""
    segments = [_segment(part) for part in f"{place}/{key}".split("/")]
    return "/".join([part for part in segments if part][:_MAX_SEGMENTS]) or "imported"


def _segment(name: str) -> str:
    plain = composed(name)
    letters = "".join(letter if unicodedata.category(letter)[0] in "LN" or letter in "_-" else "-" for letter in plain)
    return "-".join(part for part in INVISIBLE.sub("-", letters).split("-") if part)[:_MAX_SEGMENT]
