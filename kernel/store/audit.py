"""The audit: a row for every call that changed something, chained by hashes, and the changes kept for undo."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import msgspec

from kernel.core.ids import new_id
from kernel.store.transaction import TARGETS_SHOWN, Target, Tx

_PAGE_ROWS = 1000
_AMONG = 20_000  # later calls among which those that touched a memory are looked for: a tenth of a second
REVERTED = b"\0"  # in place of the changes of a part that are reverted, while what it touched is indexed
_EXPIRED_PARTS = 8  # deleted in one transaction: a large import has thousands


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
    touched: int
    first: str
    call: str


class _Head(NamedTuple):
    id: int = 0
    hash: str = ""


class UndoPart(NamedTuple):
    """The memories that a part of one call touched, the changeset of its rows, and its number."""

    targets: list[Target]
    changes: bytes
    number: int = 0


class TouchedMemories(NamedTuple):
    """How many memories a call touched, and how many of them are indexed."""

    all: int
    indexed: int


class ChangeRecorder(Protocol):
    """Records changes through a connection."""

    def take(self) -> bytes | None:
        """Return the changeset of all changes since the last call; None if it is too large to be kept."""
        ...

    def close(self) -> None: ...


class EarlierSlices:
    """The audit's state of a call that commits in several transactions.

    The first of them that changes what an undo would take back records the call as begun, and the last one as done: a
    call that was cut off between has its row, and can be undone as far as it came.
    """

    def __init__(self) -> None:
        self.call = ""
        self.parts = 0
        self.touched = 0
        self.first: list[Target] = []
        self._begun = False
        self._changed = False
        self._more = False
        self.is_lost = False  # changes that were too large to be kept: the call cannot be undone
        self.is_partial = False  # slices are on disk, and the last is not among them

    def commit(self) -> None:
        """Note that the slices recorded so far are on disk."""
        self.is_partial = self._begun and self._more

    def record(self, tx: Tx, undo: "UndoRecorder | None", *, changed: bool, more: bool) -> None:
        count, first = tx.touched
        self._more = more
        self._changed = self._changed or changed
        self.touched += count
        self.first = self.first or first[:TARGETS_SHOWN]
        if undo is not None:
            self.call, self.parts, self.is_lost = undo.call, undo.parts, undo.is_lost
        is_news = not self._begun and changed and (undo is None or undo.is_needed) if more else self._changed
        if is_news:
            self._begun = True
            _defer_row(tx, "begun" if more else "done", self.touched, self.first, self.call)


class UndoRecorder:
    """Keeps the changes of a call, for undo: in parts, so that its size is not bounded by one value or by memory."""

    def __init__(self, tx: Tx, changes: ChangeRecorder, earlier: EarlierSlices | None = None) -> None:
        self.is_lost = earlier.is_lost if earlier else False
        self.call = "" if self.is_lost else (earlier and earlier.call) or new_id("call")
        self._tx = tx
        self._changes = changes
        self.parts = earlier.parts if earlier else 0
        self.is_needed = False  # something changed, kept or not
        tx.after_slice = self._keep

    def finish(self, *, keep: bool) -> None:
        """Keeps the last part; if not everything could be kept, or nothing changed, `call` is empty."""
        self._tx.after_slice = None
        if keep:
            self._keep()
        if not self.parts:
            self.call = ""

    def _keep(self) -> None:
        tx, changes = self._tx, self._changes.take()
        targets = tx.take_targets()
        self.is_needed = self.is_needed or changes is None or bool(changes or targets)
        if changes is None:
            tx.run("kernel.audit.delete_parts", call=self.call)
            tx.run("kernel.audit.forget_call", call=self.call)
            self.call, self.is_lost = "", True
        if self.call and (changes or targets):
            tx.run("kernel.audit.add_part", call=self.call, part=self.parts, targets=targets, changes=changes)
            self.parts += 1


def record(tx: Tx, outcome: str = "done", *, call: str = "", touched: tuple[int, list[Target]] | None = None) -> None:
    """Adds a row for the call that just ran: the memories it touched and, if it can be undone, the `call` of
    its parts.
    """
    _defer_row(tx, outcome, *(touched or tx.touched), call)


def _defer_row(tx: Tx, outcome: str, touched: int, first: list[Target], call: str) -> None:
    first_json = msgspec.json.encode(first[:TARGETS_SHOWN]).decode()
    tx.defer(_flush, _Record(*tx.writer, outcome, touched, first_json, call))


def read(tx: Tx, limit: int, below: int = 2**62) -> list[Entry]:
    """Return the entries with an id less than `below`, newest first."""
    tx.flush_deferred()
    return tx.all("kernel.audit.read", _entry, below=below, limit=limit)


def first_with_outcome(tx: Tx, outcome: str, *, after: int) -> Entry | None:
    tx.flush_deferred()
    return tx.one("kernel.audit.first_with_outcome", _entry, id=after, outcome=outcome)


def touching(tx: Tx, ids: Sequence[str], *, after: int, limit: int) -> list[Entry]:
    """Return the first entries with a greater id that name any of these memories, each as space/key."""
    tx.flush_deferred()
    return tx.all("kernel.audit.touching", _entry, id=after, among=_AMONG, places=ids, limit=limit)


def targets(entry: Entry) -> list[Target]:
    return msgspec.json.decode(entry.targets, type=list[Target])


def undo_call(tx: Tx, id_: int) -> str | None:
    """Return the call whose parts undo a row of the audit; None if they were never kept, have expired, or were used."""
    tx.flush_deferred()
    return tx.one("kernel.audit.undo_call", str, audit=id_)


def undo_parts(tx: Tx, call: str) -> Iterator[UndoPart]:
    """Yield the parts that undo a call, the last change first."""
    for part in tx.all("kernel.audit.undo_parts", int, call=call):
        yield tx.one("kernel.audit.undo_part", _undo_part, call=call, part=part) or UndoPart([], b"")


def unfinished_imports(tx: Tx) -> list[Entry]:
    """Return the imports that were cut off, or are under way, oldest first."""
    tx.flush_deferred()
    return tx.all("kernel.audit.unfinished", _entry)


def memories(tx: Tx, id_: int) -> TouchedMemories:
    """Return how many memories a call that can be undone touched, each counted once; none of any other call."""
    return tx.one("kernel.audit.memories", TouchedMemories, call=undo_call(tx, id_)) or TouchedMemories(0, 0)


def last_part(tx: Tx, call: str) -> UndoPart | None:
    number = tx.one("kernel.audit.last_part", int, call=call)
    part = None if number is None else tx.one("kernel.audit.undo_part", _undo_part, call=call, part=number)
    return part and part._replace(number=number or 0)


def has_parts(tx: Tx, call: str) -> bool:
    """Return whether something is left to undo of a call."""
    return tx.one("kernel.audit.last_part", int, call=call) is not None


def delete_part(tx: Tx, call: str, part: UndoPart) -> None:
    tx.run("kernel.audit.delete_part", call=call, part=part.number)


def split_part(tx: Tx, call: str, part: UndoPart, size: int) -> None:
    """Leaves of a last part, of which the changes are reverted, the memories that it touched, in parts of some each."""
    delete_part(tx, call, part)
    for at, start in enumerate(range(0, len(part.targets), size)):
        several = part.targets[start : start + size]
        tx.run("kernel.audit.add_part", call=call, part=part.number + at, targets=several, changes=REVERTED)


def delete_undo(tx: Tx, id_: int) -> None:
    tx.flush_deferred()
    tx.run("kernel.audit.delete_parts", call=tx.one("kernel.audit.delete_undo", str, audit=id_))


def expire_undo(tx: Tx, before: str) -> bool:
    """Ends the undo of calls before a time (ISO 8601 UTC), and deletes some of its undo data, since other calls wait;
    returns whether some is left.
    """
    parts = _EXPIRED_PARTS
    while parts > 0 and (call := tx.one("kernel.audit.expired", str, before=before)) is not None:
        tx.run("kernel.audit.expire", before=before)
        count = tx.run("kernel.audit.delete_some_parts", call=call, limit=parts)
        if count < parts:
            tx.run("kernel.audit.forget_call", call=call)
        parts -= max(1, count)
    return parts <= 0


class KeptUndo(NamedTuple):
    """The undo data: the number of calls, the newest call and its tool, and the bytes of all."""

    calls: int
    newest: int
    tool: str
    bytes: int


def kept_undo(tx: Tx) -> KeptUndo:
    tx.flush_deferred()
    return tx.one("kernel.audit.kept_undo", KeptUndo) or KeptUndo(0, 0, "", 0)


def first_broken(tx: Tx, newest: int | None = None) -> int | None:
    """Return the id of the first row whose hash does not follow from the row before it; None if all do.

    With `newest` only that many rows are looked at, and the one before them is taken for right.
    """
    tx.flush_deferred()
    last = _Head()
    if newest is not None and (end := tx.one("kernel.audit.last_row", _Head)) is not None and end.id > newest:
        last = next((_Head(row.id, row.hash) for row in read(tx, 1, end.id - newest + 1)), last)
    while rows := tx.all("kernel.audit.after", _entry, id=last.id, limit=_PAGE_ROWS):
        for row in rows:
            if row.id != last.id + 1 or row.hash != _chained_hash(last.hash, row[:-2]):
                return row.id
            last = _Head(row.id, row.hash)
    return None


def _flush(tx: Tx, items: list[_Record]) -> Iterator[None]:
    newest = tx.ask("kernel.audit.last_row", _Head)
    yield
    last = (*newest(), _Head())[0]
    rows: list[tuple[object, ...]] = []
    for item in items:
        row = (last.id + 1, tx.now, *item[:-1])
        last = _Head(last.id + 1, _chained_hash(last.hash, row))
        rows.append((*row, last.hash))
        if item.call:
            tx.send("kernel.audit.forget_call", call=item.call)
            tx.send("kernel.audit.add_undo", audit=last.id, at=tx.now, call=item.call)
    tx.send("kernel.audit.append", rows=rows)


def _chained_hash(before: str, row: tuple[object, ...]) -> str:
    return hashlib.sha256(before.encode() + msgspec.json.encode(row)).hexdigest()


def _entry(*values: object) -> Entry:
    entry = Entry._make(values)
    return entry._replace(undoable=bool(entry.undoable))


def _undo_part(targets: str, changes: bytes) -> UndoPart:
    return UndoPart(msgspec.json.decode(targets, type=list[Target]), changes)
