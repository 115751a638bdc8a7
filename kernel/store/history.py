"""What happened to an id: append, read, and the text as it stood at a moment."""

from typing import Any, NamedTuple

from kernel.store.transaction import Tx


class Event(NamedTuple):
    """One thing that happened: `before` and `after` are the text around it, None where there was none."""

    id: int
    operation: str
    before: str | None
    after: str | None
    reason: str | None
    dialect: str
    tool: str
    actor: str
    at: str


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
) -> None:
    """Records one event of `(space, key)` in the order of the calls.

    `at` is when it happened, if not now: for what another program recorded.
    """
    tx.defer(_flush, (space, key, operation, before, after, reason, *tx.call_context, at or tx.now))


def read(tx: Tx, space: str, key: str) -> list[Event]:
    """Every event of `(space, key)`, oldest first."""
    tx.flush_deferred()
    return tx.all("kernel.history.read", Event, space=space, key=key)


def as_of(tx: Tx, space: str, key: str, at: str) -> str | None:
    """The text of `(space, key)` as it stood at `at` (ISO 8601 UTC with milliseconds), or None if it was not there."""
    tx.flush_deferred()
    return tx.one("kernel.history.as_of", _text, space=space, key=key, at=at)


def clear(tx: Tx, dialect: str) -> None:
    """Forgets every event of a dialect: of the spaces that are its name, or begin with it before a colon."""
    tx.flush_deferred()
    tx.run("kernel.history.clear", dialect=dialect)


def event_key(left: tuple[Any, Any]) -> tuple[str, str, str] | None:
    """The (space, key, operation) of something left for the end of a group, if it is an event; else None."""
    flush, item = left
    return (item[0], item[1], item[2]) if flush is _flush else None


def _text(value: str | None) -> str | None:
    return value


def _flush(tx: Tx, rows: list[tuple[str | None, ...]]) -> None:
    tx.run("kernel.history.append", rows=rows)
