"""Who did what, and when: a row for every call that changed something, each sealed by the one before it."""

import hashlib
from typing import Any, NamedTuple

import msgspec

from kernel.store import history
from kernel.store.transaction import Tx

SHOWN = 50
_PAGE = 1000


class Entry(NamedTuple):
    """One call: what came of it, how many memories it touched, and the first of them as (space, key, operation).

    `hash` is the SHA-256 of the hash before and everything before it in the row, in hexadecimal digits.
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


class _Noted(NamedTuple):
    dialect: str
    tool: str
    actor: str
    outcome: str
    targets: list[tuple[str, str, str]]
    changes: bytes


class _Last(NamedTuple):
    id: int = 0
    hash: str = ""


class Kept(NamedTuple):
    """What one call touched, and its changes as the engine recorded them."""

    targets: list[tuple[str, str, str]]
    changes: bytes


def note(tx: Tx, outcome: str = "done", *, changes: bytes = b"") -> None:
    """Leaves a row for the call that was just run, with what it touched and, if it can be undone, its changes."""
    targets = [told for told in map(history.event_key, tx.deferred_of_call) if told is not None]
    tx.defer(_flush, _Noted(*tx.call_context, outcome, targets, changes))


def read(tx: Tx, limit: int, below: int = 2**62) -> list[Entry]:
    """The newest entries with a number below `below`, newest first."""
    tx.flush_deferred()
    return tx.all("kernel.audit.read", _entry, below=below, limit=limit)


def targets(entry: Entry) -> list[tuple[str, str, str]]:
    """The first memories a call touched, as (space, key, operation)."""
    return msgspec.json.decode(entry.targets, type=list[tuple[str, str, str]])


def kept(tx: Tx, number: int) -> Kept | None:
    """What is kept of a call for undoing it; None where it is not, or no more."""
    tx.flush_deferred()
    return tx.one("kernel.audit.get_undo", _kept, audit=number)


def forget(tx: Tx, number: int) -> None:
    """Keeps nothing more of a call."""
    tx.flush_deferred()
    tx.run("kernel.audit.delete_undo", audit=number)


def expire(tx: Tx, before: str) -> int:
    """Keeps nothing more of the calls before a time (ISO 8601 UTC); how many they were."""
    return tx.run("kernel.audit.expire_undo", before=before)


def broken(tx: Tx) -> int | None:
    """The number of the first row that does not follow from the one before it; None where all do."""
    tx.flush_deferred()
    last = _Last()
    while rows := tx.all("kernel.audit.after", _entry, id=last.id, limit=_PAGE):
        for row in rows:
            if row.id != last.id + 1 or row.hash != _sealed(last.hash, row[:-2]):
                return row.id
            last = _Last(row.id, row.hash)
    return None


def _flush(tx: Tx, items: list[_Noted]) -> None:
    last = tx.one("kernel.audit.last_row", _Last) or _Last()
    rows: list[tuple[Any, ...]] = []
    for item in items:
        shown = msgspec.json.encode(item.targets[:SHOWN]).decode()
        row = (last.id + 1, tx.now, *item[:4], len(item.targets), shown)
        last = _Last(last.id + 1, _sealed(last.hash, row))
        rows.append((*row, last.hash))
    tx.run("kernel.audit.append", rows=rows)
    for row, item in zip(rows, items, strict=True):
        if item.changes:
            tx.run("kernel.audit.add_undo", audit=row[0], at=tx.now, targets=item.targets, changes=item.changes)


def _sealed(before: str, row: tuple[Any, ...]) -> str:
    return hashlib.sha256(before.encode() + msgspec.json.encode(row)).hexdigest()


def _entry(*values: Any) -> Entry:
    found = Entry._make(values)
    return found._replace(undoable=bool(found.undoable))


def _kept(targets: str, changes: bytes) -> Kept:
    return Kept(msgspec.json.decode(targets, type=list[tuple[str, str, str]]), changes)
