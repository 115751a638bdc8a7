"""Indexed documents with their provenance, read by id, by key, or by actor and time."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from msgspec import Struct

from kernel.search.partitions import Within, matching_partitions
from kernel.store.transaction import Tx

_MAX_PREFILTERED = 2000  # documents; with more, searching first and filtering the hits finds enough; not measured
END_OF_TIME = "~"  # sorts after every ISO 8601 time


class Document(Struct, frozen=True, gc=False):
    """One indexed memory; times are ISO 8601 UTC. `flag` is the injection rule its text matches, if any,
    and `stale` is a place in a checkout that it names and that has changed since.
    """

    doc: int
    space: str
    key: str
    scope: str
    text: str
    dialect: str
    tool: str
    actor: str
    created_at: str
    updated_at: str
    flag: str | None = None
    stale: str | None = None


class _InPartition(NamedTuple):
    doc: int
    partition: int


def documents(tx: Tx, ids: Sequence[int]) -> dict[int, Document]:
    """Return the documents of `ids`; missing ids are left out."""
    tx.flush_deferred()
    return {row.doc: row for row in tx.all("kernel.documents.by_ids", Document, ids=ids)}


def seen(tx: Tx, ids: Collection[int]) -> set[int]:
    """Return those of some documents that the call sees."""
    return {*tx.all("kernel.documents.seen", int, ids=[*ids])}


def doc_ids(tx: Tx, keys: Sequence[tuple[str, str]]) -> list[int]:
    """Return the ids of the documents of (space, key) pairs, in that order; missing documents are left out."""
    tx.flush_deferred()
    return tx.all("kernel.documents.ids_of", int, keys=keys)


def last_doc_id(tx: Tx) -> int:
    """Return the largest document id ever assigned; 0 before the first."""
    tx.flush_deferred()
    return tx.context.search_cache.last_ids(tx).doc


def count(tx: Tx, within: Within) -> int:
    """Return the number of documents in these (space, scope) pairs."""
    tx.flush_deferred()
    return tx.one("kernel.documents.count", int, pairs=[*within]) or 0


def newest(tx: Tx, actor: str | None, after: str, before: str, within: Within | None, limit: int) -> list[int]:
    """Return the ids of the documents of an actor, a time span and these (space, scope) pairs, last changed first."""
    tx.flush_deferred()
    partitions = None if within is None else matching_partitions(tx, within)
    span = {"after": after, "before": before or END_OF_TIME, "limit": limit}
    return tx.all("kernel.documents.newest", int, actor=actor, partitions=partitions, **span)


def in_folder(tx: Tx, spaces: Sequence[str], folder: str, limit: int) -> list[int]:
    """Return the ids of documents without a scope whose keys lie in a folder: `a/b` and `a/b/c` for `a`."""
    tx.flush_deferred()
    bounds = {"folder": f"{folder}/", "end": f"{folder}0"}  # 0 is the character after the slash
    return tx.all("kernel.documents.in_folder", int, spaces=spaces, limit=limit, **bounds)


def prefilter(tx: Tx, actor: str | None, after: str, before: str, within: Within | None) -> list[int] | None:
    """Return the ids of the documents of an actor, a time span (ISO 8601, "" for open) and these (space, scope) pairs.

    None if actor and time leave more than _MAX_PREFILTERED: filter the hits of a search then.
    """
    tx.flush_deferred()
    span = {"after": after, "before": before or END_OF_TIME, "limit": _MAX_PREFILTERED + 1}
    if actor is None:
        rows = tx.all("kernel.documents.by_time", _InPartition, **span)
    else:
        rows = tx.all("kernel.documents.by_actor", _InPartition, actor=actor, **span)
    if len(rows) > _MAX_PREFILTERED:
        return None
    if within is None:
        return [row.doc for row in rows]
    partitions = set(matching_partitions(tx, within))
    return [row.doc for row in rows if row.partition in partitions]
