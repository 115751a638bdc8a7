"""Takes memories of other programs into `sessions`: known by session, content and time, or by an id of their own."""

from collections.abc import Sequence
from typing import NamedTuple

from handlers.sessions import memories, removal, summary
from kernel.core.text import json_text, stored_object
from kernel.memories.import_records import UPDATED, Record
from kernel.search import index
from kernel.store import history
from kernel.store.transaction import Tx

_NEVER = "~"  # sorts after every time, so that nothing is a duplicate: stored memories were left out before
_SESSION = "imported"
_REPLACED = "replaced by a later version"


class _Earlier(NamedTuple):
    """A memory that was imported from the same row as the record of this number."""

    number: int
    id: int
    metadata: str


def take(tx: Tx, records: Sequence[Record]) -> list[bool | str]:
    """Adds the records that are not there, in the place of earlier versions; a read only says which these are."""
    rows = [(_session(tx, record), memories.content_hash(record.text), record.created_at) for record in records]
    present = set(tx.all("sessions.intake.known", int, rows=rows))
    keys = [memories.deleted_key(session, digest) for session, digest, _ in rows]
    deleted_keys = history.known(tx, memories.DELETED_SPACE, keys)
    new = [number not in present and key not in deleted_keys for number, key in enumerate(keys)]
    earlier = _earlier(tx, records, new)
    outcomes = [new[at] and _outcome(record, earlier.get(at)) for at, record in enumerate(records)]
    if not tx.readonly:
        writer = (memories.SPACE, *tx.call_context.writer[1:])
        for at, record in enumerate(records):
            if outcomes[at] == UPDATED:
                removal.delete(tx, earlier[at].id, _REPLACED)
            if outcomes[at]:
                row = _row(tx, record)
                memories.add(tx, row, _NEVER, index.Origin(writer, row.created_at, record.updated_at or row.created_at))
    return outcomes


def _earlier(tx: Tx, records: Sequence[Record], new: Sequence[bool]) -> dict[int, _Earlier]:
    """Return the memories that are an earlier or later version of a record, by its number."""
    numbers = [at for at, record in enumerate(records) if new[at] and record.details.get("has_own_id")]
    rows = [(_session(tx, records[at]), records[at].created_at, _origin_part(records[at])) for at in numbers]
    rows_of_origin = tx.all("sessions.intake.same_origin", _Earlier, rows=rows) if rows else []
    return {numbers[memory.number]: memory for memory in rows_of_origin}


def _outcome(record: Record, earlier: _Earlier | None) -> bool | str:
    """Return whether a record is new: UPDATED for a later version of a memory, False for an earlier version."""
    if earlier is None:
        return True
    known_update = stored_object(earlier.metadata).get("from", {}).get("updated", "")
    return UPDATED if not record.updated_at or record.updated_at >= known_update else False


def _origin_part(record: Record) -> str:
    origin_fields = {name: record.origin[name] for name in ("system", "id", "exchange") if name in record.origin}
    return f"{json_text(origin_fields).removesuffix('}')},"  # the name of a file follows


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
