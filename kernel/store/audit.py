"""The audit: a row for every call that changed something, chained by hashes, and the changes kept for undo."""

import hashlib
from typing import NamedTuple

import msgspec

from kernel.store import history
from kernel.store.transaction import Tx

SHOWN = 50  # targets of a call that its row lists
_PAGE_ROWS = 1000

Target = tuple[str, str, str]  # space, key, operation


class Entry(NamedTuple):
    """The row of one call: its outcome, how many memories it touched, and the first of them as JSON.

    `hash` is the SHA-256 of the hash before it and of the columns before it in the row, in hexadecimal digits.
    """

    id: int
    at: str
    dialect: str
    tool: str
    actor: str
    outcome: str
    touched: int
    targets: str
    hash: str
    undoable: bool


class _Record(NamedTuple):
    dialect: str
    tool: str
    actor: str
    outcome: str
    targets: list[Target]
    changes: bytes | None


class _Head(NamedTuple):
    id: int = 0
    hash: str = ""


class UndoData(NamedTuple):
    """What one call touched, and the changeset of what it changed."""

    targets: list[Target]
    changes: bytes


def record(tx: Tx, outcome: str = "done", *, changes: bytes | None = None) -> None:
    """Adds a row for the call that just ran: what it touched and, if it can be undone, its changes."""
    targets = [event[:3] for flush, event in tx.deferred_of_call if flush is history.flush]
    tx.defer(_flush, _Record(*tx.call_context, outcome, targets, changes))


def read(tx: Tx, limit: int, below: int = 2**62) -> list[Entry]:
    """The entries with an id less than `below`, newest first."""
    tx.flush_deferred()
    return tx.all("kernel.audit.read", _entry, below=below, limit=limit)


def targets(entry: Entry) -> list[Target]:
    """The first memories a call touched."""
    return msgspec.json.decode(entry.targets, type=list[Target])


def undo_data(tx: Tx, id_: int) -> UndoData | None:
    """What is needed to undo a call; None where it was never kept, has expired, or the call was undone."""
    tx.flush_deferred()
    return tx.one("kernel.audit.get_undo", _undo_data, audit=id_)


def delete_undo(tx: Tx, id_: int) -> None:
    """Deletes the undo data of a call."""
    tx.flush_deferred()
    tx.run("kernel.audit.delete_undo", audit=id_)


def expire_undo(tx: Tx, before: str) -> int:
    """Deletes the undo data of calls before a time (ISO 8601 UTC); the number of those calls."""
    return tx.run("kernel.audit.expire_undo", before=before)


def first_broken(tx: Tx) -> int | None:
    """The id of the first row whose hash does not follow from the row before it; None where all do."""
    tx.flush_deferred()
    last = _Head()
    while rows := tx.all("kernel.audit.after", _entry, id=last.id, limit=_PAGE_ROWS):
        for row in rows:
            if row.id != last.id + 1 or row.hash != _chained_hash(last.hash, row[:-2]):
                return row.id
            last = _Head(row.id, row.hash)
    return None


def _flush(tx: Tx, items: list[_Record]) -> None:
    last = tx.one("kernel.audit.last_row", _Head) or _Head()
    rows: list[tuple[object, ...]] = []
    for item in items:
        shown = msgspec.json.encode(item.targets[:SHOWN]).decode()
        row = (last.id + 1, tx.now, *item[:4], len(item.targets), shown)
        last = _Head(last.id + 1, _chained_hash(last.hash, row))
        rows.append((*row, last.hash))
    tx.run("kernel.audit.append", rows=rows)
    for row, item in zip(rows, items, strict=True):
        if item.changes or (item.changes is not None and item.targets):
            tx.run("kernel.audit.add_undo", audit=row[0], at=tx.now, targets=item.targets, changes=item.changes)


def _chained_hash(before: str, row: tuple[object, ...]) -> str:
    return hashlib.sha256(before.encode() + msgspec.json.encode(row)).hexdigest()


def _entry(*values: object) -> Entry:
    entry = Entry._make(values)  # pyright: ignore[reportArgumentType]
    return entry._replace(undoable=bool(entry.undoable))


def _undo_data(targets: str, changes: bytes) -> UndoData:
    return UndoData(msgspec.json.decode(targets, type=list[Target]), changes)
