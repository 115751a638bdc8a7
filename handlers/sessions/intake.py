"""Takes memories of other programs into `sessions`: known by session, content and time."""

from collections.abc import Sequence

import msgspec

from handlers.sessions import memories, summary
from kernel.memories.import_records import Record
from kernel.search import index
from kernel.store import history
from kernel.store.transaction import Tx

_DEFAULT_PRIORITY = 3
_NEVER = "~"  # sorts after every time, so that nothing is a duplicate: stored memories were left out before
_SESSION = "imported"


def take(tx: Tx, records: Sequence[Record]) -> list[bool]:
    """Adds the records that are not there; a read only says which these are."""
    rows = [(_session(record), memories.content_hash(record.text), record.created_at) for record in records]
    present = set(tx.all("sessions.intake.known", int, rows=rows))
    keys = [memories.deleted_key(session, digest) for session, digest, _ in rows]
    deleted_keys = history.known(tx, memories.DELETED_SPACE, keys)
    new = [number not in present and key not in deleted_keys for number, key in enumerate(keys)]
    if not tx.readonly:
        writer = (memories.SPACE, *tx.call_context.writer[1:])
        for record in (record for record, is_new in zip(records, new, strict=True) if is_new):
            row = _row(tx, record)
            memories.add(tx, row, _NEVER, index.Origin(writer, row.created_at, record.updated_at or row.created_at))
    return new


def _row(tx: Tx, record: Record) -> memories.MemoryRow:
    low, high = memories.PRIORITY_RANGE
    metadata = {**record.details.get("metadata", {}), "from": dict(record.origin)}
    return memories.MemoryRow(
        0,
        _session(record),
        record.category or None,
        record.text,
        record.title or summary.first_line(record.text),
        ", ".join(record.tags) or summary.default_tags(record.text),
        max(low, min(high, record.details.get("priority", _DEFAULT_PRIORITY))),
        msgspec.json.encode(metadata).decode(),
        record.created_at or tx.now,
    )


def _session(record: Record) -> str:
    return "".join(letter for letter in record.place if letter.isprintable()).strip() or _SESSION
