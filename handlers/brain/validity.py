"""Memories whose validity has ended: searches leave them out, so they ask the index for as many more."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from kernel.store.transaction import Tx

_Hit = TypeVar("_Hit")


class Place(NamedTuple):
    db: str
    id: str


def expired(tx: Tx, db: str, ids: Sequence[str]) -> set[str]:
    """Return those of the ids that are memories whose validity has ended."""
    return {key for _, key in tx.all("brain.expired", Place, keys=[(db, key) for key in ids], at=tx.now)}


def valid(
    tx: Tx, db: str, limit: int, search: Callable[[int], Sequence[_Hit]], id_of: Callable[[_Hit], str]
) -> list[_Hit]:
    """Return the hits of `search(width)` that are valid, for a width of which at least `limit` are, if there are."""
    width = limit
    while True:
        hits = search(width)
        ended = expired(tx, db, [id_of(hit) for hit in hits])
        if width - len(ended) >= limit:
            return [hit for hit in hits if id_of(hit) not in ended]
        width = limit + 2 * len(ended)
