"""The filters of a query: the entries among given ones that it shows, by scope, time, activity, shadowing and tags."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from kernel.store.transaction import Tx


class Candidate(NamedTuple):
    """An entry that may be in the result; `indexed` if the index holds the version to show."""

    seq: int
    id: str
    kind: str
    scope: str
    priority: int | None
    created_at: str
    expired: int
    indexed: int


class TagIds(NamedTuple):
    """A filter by tag ids: any of `include` unless it is None, one of each set of `require`, none of `exclude`."""

    include: frozenset[str] | None = None
    require: tuple[frozenset[str], ...] = ()
    exclude: frozenset[str] = frozenset()


class EntryQuery(NamedTuple):
    """A validated query: kinds, scopes nearest first, and filters.

    `as_of` is the time to read at, None for the present; `now` is that time or the present. `related_ids` are the
    entries that a relation leads to. `threshold` in [0, 1] is the least similarity, None for a search by words alone.
    """

    kinds: Sequence[str]
    scopes: Sequence[str]
    now: str
    limit: int
    as_of: str | None = None
    include_inactive: bool = False
    include_shadowed: bool = False
    tags: TagIds = TagIds()
    related_ids: frozenset[str] | None = None
    text: str = ""
    threshold: float | None = None


def visible(tx: Tx, query: EntryQuery, ids: Collection[str]) -> tuple[list[Candidate], dict[str, int]]:
    """Return the candidates that pass every filter but the text, and the number of tags of `include` that each has."""
    found = [item for item in _load(tx, query, ids) if item.kind in query.kinds and item.scope in query.scopes]
    tags = query.tags
    if tags == TagIds():
        return found, {}
    held = _tags_of_entries(tx, tags, [item.id for item in found])
    found = [item for item in found if _matches_tags(tags, held[item.id])]
    return found, {item.id: len(held[item.id].intersection(tags.include or ())) for item in found}


def _load(tx: Tx, query: EntryQuery, ids: Collection[str]) -> list[Candidate]:
    keys = [key for key in ids if query.related_ids is None or key in query.related_ids]
    params = {
        "ids": keys,
        "scopes": query.scopes,
        "inactive": query.include_inactive,
        "shadowed": query.include_shadowed,
    }
    if query.as_of is None:
        return tx.all("scopes.query.entries", Candidate, now=query.now, **params)
    return tx.all("scopes.query.entries_as_of", Candidate, at=query.as_of, **params)


def _tags_of_entries(tx: Tx, tags: TagIds, ids: Sequence[str]) -> dict[str, set[str]]:
    relevant = sorted((tags.include or frozenset()).union(tags.exclude, *tags.require))
    held: dict[str, set[str]] = {entry_id: set() for entry_id in ids}
    for entry_id, tag_id in tx.all("scopes.query.matching_tags", _pair, ids=ids, tags=relevant):
        held[entry_id].add(tag_id)
    return held


def _matches_tags(tags: TagIds, held: Collection[str]) -> bool:
    return (
        tags.exclude.isdisjoint(held)
        and all(not one.isdisjoint(held) for one in tags.require)
        and (tags.include is None or not tags.include.isdisjoint(held))
    )


def _pair(entry_id: str, tag_id: str) -> tuple[str, str]:
    return entry_id, tag_id
