"""Partitions: a partition is a (space, scope) pair, the unit by which a search is limited."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from kernel.store.transaction import Tx

Within = Sequence[tuple[str, str | None]]
"""(space, scope) pairs; None as scope stands for every scope of the space."""

SMALL_PARTITION_DOCS = 2000  # up to here every document with a query term is ranked, not only those with a rare term
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
    return tx.all("kernel.partitions.matching", int, pairs=[*within])


def has_at_least(tx: Tx, partitions: Sequence[int], docs: int) -> bool:
    """Return whether these partitions hold so many documents."""
    return (
        sum(size.docs for size in tx.all("kernel.partitions.sizes", _Size, partitions=partitions, limit=docs)) >= docs
    )


def partitions_of(
    tx: Tx, spaces: Sequence[str] | None, dialects: Sequence[str] | None, scopes: Sequence[str] | None
) -> list[tuple[str, str | None]]:
    """Return the (space, scope) pairs of these spaces, dialects and these scopes; None means any.

    A space belongs to the dialect named by the part before its first colon.
    """

    def pair(space: str, scope: str) -> tuple[str, str | None]:
        return (space, scope)

    return tx.all("kernel.partitions.of_dialects", pair, spaces=spaces, dialects=dialects, scopes=scopes)


def ask_partitions(tx: Tx, pairs: Iterable[tuple[str, str]]) -> Callable[[], dict[tuple[str, str], int]]:
    """Return a function that returns the partition id of each (space, scope) pair, and adds missing partitions."""
    keys = sorted(pairs)
    stored_rows = tx.ask("kernel.partitions.by_pairs", _Partition, pairs=keys)

    def partitions() -> dict[tuple[str, str], int]:
        rows = stored_rows()
        if len(rows) < len(keys):
            tx.run("kernel.partitions.add", pairs=keys)
            rows = tx.all("kernel.partitions.by_pairs", _Partition, pairs=keys)
        return {(row.space, row.scope): row.id for row in rows}

    return partitions


def partition_set(tx: Tx, ids: Sequence[int]) -> PartitionSet:
    """Return the partitions of these ids, split by the number of documents they hold."""
    if len(ids) > _MAX_COUNTED:
        return PartitionSet(ids, (), ids, 0)
    return _split_by_size(ids, _sizes(tx, ids))


def _sizes(tx: Tx, ids: Sequence[int]) -> list[_Size]:
    limit = SMALL_PARTITION_DOCS + 1
    return tx.all("kernel.partitions.sizes", _Size, partitions=ids, limit=limit) if ids else []


def _split_by_size(ids: Sequence[int], sizes: Sequence[_Size]) -> PartitionSet:
    docs = sum(size.docs for size in sizes)
    small: list[int] = []
    room = SMALL_PARTITION_DOCS
    for size in sorted(sizes, key=lambda size: size.docs):
        room -= size.docs
        if room >= 0:
            small.append(size.partition)
    return PartitionSet(ids, small, sorted(set(ids) - set(small)), docs)
