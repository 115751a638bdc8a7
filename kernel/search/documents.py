"""Indexed documents with their provenance, and partitions, (space, scope) pairs by which a search is limited.

The documents in reach of a key that is held to places filter the candidates of the signals. The store says which
documents a key sees; each search asks it again for documents put since the last. Flags only choose candidates: the
store still filters the rows of an answer.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct

from kernel.search.cache import Reached, SearchCache
from kernel.search.query import SMALL_PARTITION_DOCS
from kernel.search.vectors import model_id
from kernel.store.transaction import Tx

Within = Sequence[tuple[str, str | None]]
"""(space, scope) pairs; None as scope stands for every scope of the space."""

_MAX_COUNTED = 64  # partitions; counting the documents of more would cost more than it saves; not measured


class PartitionSet(NamedTuple):
    """The partitions a search is limited to, by size.

    The `small` partitions together hold at most SMALL_PARTITION_DOCS documents; `large` are the others, and all if
    nothing was counted. `docs` is the number of documents counted.
    """

    ids: Sequence[int]
    small: Sequence[int]
    large: Sequence[int]
    docs: int


class _Size(NamedTuple):
    partition: int
    docs: int


class _Partition(NamedTuple):
    id: int
    space: str
    scope: str


def matching_partitions(tx: Tx, within: Within) -> list[int]:
    return tx.all("kernel.documents.matching_partitions", int, pairs=[*within])


def has_at_least(tx: Tx, partitions: Sequence[int], docs: int) -> bool:
    """Return whether these partitions hold so many documents."""
    return (
        sum(size.docs for size in tx.all("kernel.documents.partition_sizes", _Size, partitions=partitions, limit=docs))
        >= docs
    )


def partitions_of(
    tx: Tx, spaces: Sequence[str] | None, dialects: Sequence[str] | None, scopes: Sequence[str] | None
) -> list[tuple[str, str | None]]:
    """Return the (space, scope) pairs of these spaces, dialects and these scopes; None means any.

    A space belongs to the dialect named by the part before its first colon.
    """

    def pair(space: str, scope: str) -> tuple[str, str | None]:
        return (space, scope)

    return tx.all("kernel.documents.partitions_of_dialects", pair, spaces=spaces, dialects=dialects, scopes=scopes)


def ask_partitions(tx: Tx, pairs: Iterable[tuple[str, str]]) -> Callable[[], dict[tuple[str, str], int]]:
    """Return a function that returns the partition id of each (space, scope) pair, and adds missing partitions."""
    keys = sorted(pairs)
    stored_rows = tx.ask("kernel.documents.partitions_by_pairs", _Partition, pairs=keys)

    def partitions() -> dict[tuple[str, str], int]:
        rows = stored_rows()
        if len(rows) < len(keys):
            tx.run("kernel.documents.add_partitions", pairs=keys)
            rows = tx.all("kernel.documents.partitions_by_pairs", _Partition, pairs=keys)
        return {(row.space, row.scope): row.id for row in rows}

    return partitions


def partition_set(tx: Tx, ids: Sequence[int]) -> PartitionSet:
    """Return the partitions of these ids, split by the number of documents they hold."""
    if len(ids) > _MAX_COUNTED:
        return PartitionSet(ids, (), ids, 0)
    return _split_by_size(ids, _sizes(tx, ids))


def _sizes(tx: Tx, ids: Sequence[int]) -> list[_Size]:
    limit = SMALL_PARTITION_DOCS + 1
    return tx.all("kernel.documents.partition_sizes", _Size, partitions=ids, limit=limit) if ids else []


def _split_by_size(ids: Sequence[int], sizes: Sequence[_Size]) -> PartitionSet:
    docs = sum(size.docs for size in sizes)
    small: list[int] = []
    room = SMALL_PARTITION_DOCS
    for size in sorted(sizes, key=lambda size: size.docs):
        room -= size.docs
        if room >= 0:
            small.append(size.partition)
    return PartitionSet(ids, small, sorted(set(ids) - set(small)), docs)


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


def with_id(tx: Tx, id_: str, dialects: Sequence[str]) -> list[Document]:
    """Return the documents of an id, that of a recall or of a tool, in the spaces of these dialects."""
    spaces = {space for space, _ in partitions_of(tx, None, dialects, None)}
    space, _, key = id_.partition("/")
    keys = [(name, id_) for name in sorted(spaces)] + ([(space, key)] if space in spaces else [])
    return [*documents(tx, doc_ids(tx, keys)).values()]


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


# A byte for each document and key. With 32 keys as the only bound, 40 keys in turn took 58 ms for a search of 10,000
# documents; with bytes as a second, 10 ms.
_LEAST_KEPT, _MOST_BYTES = 32, 16 << 20
_NONE = Reached(b"\0", 0, 0, 0)


def reached(tx: Tx) -> Reached | None:
    """Return the documents in reach of a call, None if all are or no vectors say which were put again."""
    cache: SearchCache = tx.context.search_cache
    reach = tx.reach
    if reach is None or not cache.can_cache(tx) or not model_id(tx):
        return None
    last, before = cache.last_ids(tx), cache.reached.get(reach, _NONE)
    if last.doc <= before.doc and last.vector <= before.vector:
        return before
    with tx.held_to(None):
        put = tx.all("kernel.documents.put_since", int, doc=before.doc, vector=before.vector)
    flags = bytearray(before.flags.ljust(last.doc + 2, b"\0"))
    shown = seen(tx, put)
    for doc in put:
        flags[doc] = doc in shown
    if len(cache.reached) >= _LEAST_KEPT and len(flags) * len(cache.reached) > _MOST_BYTES:
        cache.reached.clear()
    after = Reached(bytes(flags), flags.count(1), last.doc, last.vector)
    cache.reached[reach] = after
    return after


def seen_among(tx: Tx, docs: Collection[int]) -> set[int]:
    """Return those of some documents that the call sees."""
    if not docs or not (of_key := reached(tx)):
        return seen(tx, docs)
    return {doc for doc in docs if doc < len(of_key.flags) and of_key.flags[doc]}
