"""Documents that are deleted in numbers: nothing finds them from then on, and their words leave full text in slices.

To take the words of a document out of full text costs several times all else of its deletion, and others wait for the
lock meanwhile. Until the words are gone, searches look only at words of documents that are there.
"""

from collections.abc import Sequence
from typing import NamedTuple

from kernel.store.long_work import STEP_ROWS, Slices, Steps
from kernel.store.transaction import SLICE_BYTES, Tx

LEAST = 64  # documents; the words of fewer leave at once
_SLICE_SECONDS = 0.003  # nobody waits for the end, so that slices may be short


class _Dropped(NamedTuple):
    id: int
    has_parts: int


def can_drop(tx: Tx) -> bool:
    """Return whether the engine keeps words in a way that costs."""
    return bool(tx.one("kernel.dropped.can_drop", int))


def drop(tx: Tx, ids: Sequence[int]) -> None:
    tx.run("kernel.dropped.drop_ids", ids=ids)
    _delete(tx)


def drop_partitions(tx: Tx, partitions: Sequence[int]) -> None:
    """Delete the documents of partitions."""
    tx.run("kernel.dropped.drop_partitions", partitions=partitions)
    _delete(tx)


def removal_steps() -> Steps[None]:
    """Take the words of deleted documents out of full text; a later call goes on after an interruption."""
    tx = yield
    while rows := _next(tx, STEP_ROWS):
        tx.context.search_cache.uncommitted = tx
        ids = [row.id for row in rows]
        tx.run("kernel.dropped.fts_delete", ids=ids)
        if parts := [row.id for row in rows if row.has_parts]:
            tx.run("kernel.dropped.parts_delete", ids=parts)
        tx.run("kernel.dropped.forget", ids=ids)
        tx = yield


def removal(tx: Tx) -> Slices[None] | None:
    """Return the steps as work for the writer, None if there is nothing to do."""
    if not _next(tx, 1):
        return None
    return Slices(removal_steps(), seconds=_SLICE_SECONDS)


def _next(tx: Tx, limit: int) -> list[_Dropped]:
    return tx.all("kernel.dropped.next", _Dropped, limit=limit, bytes=SLICE_BYTES)


def _delete(tx: Tx) -> None:
    tx.context.search_cache.uncommitted = tx
    tx.run("kernel.dropped.log_vectors")
    tx.run("kernel.dropped.delete_vectors")
    tx.run("kernel.dropped.unflag")
    tx.run("kernel.dropped.count_out")
    tx.run("kernel.dropped.delete_docs")
    tx.after_commit(removal)
