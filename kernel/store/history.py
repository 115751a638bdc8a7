"""The history of memories: events by (space, key), and the text as it stood at a moment."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from kernel.store.transaction import Tx


class Event(NamedTuple):
    id: int
    operation: str
    before: str | None
    after: str | None
    reason: str | None
    dialect: str
    tool: str
    actor: str
    at: str


class _Deleted(NamedTuple):
    """Deletions that differ in key, text and reason alone."""

    rows: Sequence[tuple[str, str, str | None]]
    event: dict[str, str]


class PastText(NamedTuple):
    """The state of a memory at a time in the history, and the reason of the change after it.

    `scope` is that of today in the index, None for a memory that is gone. `event` is the last of that time.
    """

    event: int
    space: str
    key: str
    text: str
    scope: str | None
    reason: str | None
    dialect: str
    tool: str
    actor: str
    created_at: str
    updated_at: str


class PastSource(NamedTuple):
    """The index entry for a text of the history."""

    scope: str
    text: str


class Past(NamedTuple):
    """How to read the history of a dialect: `sources(tx, texts)` has None for a text that is not that of a
    memory.

    Of changes in the spaces `unrecorded` the history does not hold the text. With `keeps_scope` a `PastSource` has the
    scope of the `PastText`, if that is not None.
    """

    sources: Callable[[Tx, Sequence[PastText]], Sequence[PastSource | None]]
    unrecorded: tuple[str, ...] = ()
    keeps_scope: bool = False


def append(
    tx: Tx,
    space: str,
    key: str,
    operation: str,
    *,
    before: str | None = None,
    after: str | None = None,
    reason: str | None = None,
    at: str | None = None,
    by: tuple[str, str, str] | None = None,
) -> None:
    """Records one event of `(space, key)`, in the order of the calls.

    `at` is when it happened, if not now, and `by` its (dialect, tool, actor), if not those of the call: for events that
    an import brings along, and for changes of files by people.
    """
    size = len(before or "") + len(after or "")
    tx.defer(flush, (space, key, operation, before, after, reason, *(by or tx.writer), at or tx.now), size)
    tx.add_target((space, key, operation))


def append_deleted(tx: Tx, space: str, operation: str, rows: Sequence[tuple[str, str, str | None]]) -> None:
    """Records the deletion of many memories, of each its key, its text and a reason, at half the cost of `append`."""
    event = {"space": space, "operation": operation, "at": tx.now}
    writer = dict(zip(("dialect", "tool", "actor"), tx.writer, strict=True))
    tx.defer(flush, _Deleted(rows, event | writer), sum(len(text) for _, text, _ in rows))
    for key, *_ in rows:
        tx.add_target((space, key, operation))


def read(tx: Tx, space: str, key: str) -> list[Event]:
    tx.flush_deferred()
    return tx.all("kernel.history.read", Event, space=space, key=key)


def latest(tx: Tx, space: str, key: str) -> str | None:
    """Return the text of `(space, key)` after its last event; None if it was deleted, or never there."""
    tx.flush_deferred()
    return tx.one("kernel.history.latest", _text, space=space, key=key)


def as_of(tx: Tx, space: str, key: str, at: str) -> str | None:
    """Return the text of `(space, key)` as it stood at `at` (ISO 8601 UTC with milliseconds), or None if it was not
    there.
    """
    tx.flush_deferred()
    return tx.one("kernel.history.as_of", _text, space=space, key=key, at=at)


def clear(tx: Tx, dialect: str) -> None:
    """Deletes every event of a dialect: of the space with its name, and of those named `dialect:...`."""
    tx.flush_deferred()
    tx.run("kernel.history.clear", dialect=dialect)


def known(tx: Tx, space: str, keys: Sequence[str]) -> set[str]:
    """Return those of the keys that have or, before the current transaction, had a memory."""
    return set(tx.all("kernel.history.known", str, space=space, keys=keys))


def of_reason(tx: Tx, space: str, keys: Sequence[str], reason: str) -> set[str]:
    return set(tx.all("kernel.history.of_reason", str, space=space, keys=keys, reason=reason))


def keys_of_reason(tx: Tx, space: str, reason: str) -> list[str]:
    return tx.all("kernel.history.keys_of_reason", str, space=space, reason=reason)


def deleted_with(tx: Tx, space: str, key: str, other: str) -> list[str]:
    """Return the keys of another space that were deleted when `(space, key)` was."""
    return tx.all("kernel.history.deleted_with", str, space=space, key=key, other=other)


def forget(tx: Tx, space: str, key: str) -> None:
    tx.flush_deferred()
    tx.run("kernel.history.forget", space=space, key=key)


def redact(tx: Tx, space: str, key: str, text: str) -> None:
    """Empties this text in every event of `(space, key)`, and deletes the undo data of all calls that touched it."""
    tx.flush_deferred()
    tx.run("kernel.history.redact", space=space, key=key, text=text)
    drop_undo(tx, space, key)


def drop_undo(tx: Tx, space: str, key: str) -> None:
    """Deletes the undo data of all calls that touched `(space, key)`."""
    for call in tx.all("kernel.history.undo_calls", str, space=space, key=key):
        tx.run("kernel.audit.forget_call", call=call)
        tx.run("kernel.audit.delete_parts", call=call)


def _text(value: str | None) -> str | None:
    return value


def flush(tx: Tx, items: list[Any]) -> None:
    """Writes deferred events in their order, each of which begins with space, key and operation."""
    for many, events in groupby(items, lambda item: isinstance(item, _Deleted)):
        if many:
            for event in events:
                tx.send("kernel.history.append_deleted", rows=event.rows, **event.event)
        else:
            tx.send("kernel.history.append", rows=[*events])
