"""Stored sketches: sealed blocks of thousands, so that a start reads few rows, and the log of deletions."""

from collections.abc import Sequence

from kernel.search.ann import Block, Deletion, Row, VectorFeed
from kernel.store.transaction import Tx

BLOCK_ROWS = 8192  # vectors in a block: a start reads 122 rows instead of a million; not compared with other sizes
_BLOCKS_PER_READ = 4  # bounds memory: 2.5 MB at 512 bits; not measured
_NO_LIMIT = 2**63 - 1


def vector_feed(tx: Tx, model: int, after: int = 0) -> VectorFeed:
    """What `tx` sees of a model's vectors. With `after`, only those after this id, which no block or log covers."""

    def blocks(last: int) -> Sequence[Block]:
        if after:
            return []
        return tx.all("kernel.ann_storage.sealed_blocks", Block, after=last, model=model, limit=_BLOCKS_PER_READ)

    def rows(last: int) -> Sequence[Row]:
        return _rows(tx, model, max(last, after))

    def deletions(last: int) -> Sequence[Deletion]:
        return [] if after else tx.all("kernel.ann_storage.deletions_after", Deletion, after=last)

    return VectorFeed(blocks, rows, deletions, BLOCK_ROWS)


def seal_blocks(tx: Tx, model: int, limit: int = 1) -> int:
    """Writes up to `limit` blocks of vectors that are in none, if a block is full; returns how many were written."""
    for sealed in range(limit):
        after = tx.one("kernel.ann_storage.last_sealed_id", int, size=BLOCK_ROWS)
        if after is None or not _write_block(tx, model, after):
            return sealed
    return limit


def rewrite_block(tx: Tx, model: int, after: int) -> int:
    """Writes the block after a vector id again without deleted rows; returns its last id, 0 where no row is left."""
    last = _write_block(tx, model, after)
    tx.run("kernel.ann_storage.delete_blocks_between", after=after, before=last or _NO_LIMIT)
    return last


def last_deletion_id(tx: Tx) -> int:
    """The number of the last deletion; 0 before the first."""
    return tx.one("kernel.ann_storage.last_deletion_id", int) or 0


def count_deletions(tx: Tx) -> int:
    """The number of deletions in the log."""
    return tx.one("kernel.ann_storage.count_deletions", int) or 0


def trim_deletions(tx: Tx, upto: int, limit: int = _NO_LIMIT) -> int:
    """Deletes up to `limit` log entries numbered `upto` or less, once no block holds their vectors; returns how many.

    A process that has not read them loads all sketches again.
    """
    tx.run("kernel.ann_storage.set_deletion_floor", upto=upto)
    return tx.run("kernel.ann_storage.trim_deletions", upto=upto, limit=limit)


def count_mismatches(tx: Tx, model: int) -> int:
    """How many sketches in blocks differ from those of the vectors, are missing there, or are of no vector."""
    deleted = {row.vector for row in tx.all("kernel.ann_storage.deletions_after", Deletion, after=0)}
    found = after = 0
    while blocks := tx.all("kernel.ann_storage.sealed_blocks", Block, after=after, model=model, limit=1):
        sealed = _sealed_rows(blocks[0], after)
        stored = _stored_rows(tx, model, after, blocks[0].last)
        found += sum(sealed.get(vector) != row for vector, row in stored.items())
        found += sum(vector not in stored and vector not in deleted for vector in sealed)
        after = blocks[0].last
    return found


def clear(tx: Tx) -> None:
    """Deletes every block and the whole deletion log."""
    tx.run("kernel.ann_storage.delete_blocks")
    trim_deletions(tx, last_deletion_id(tx))


def _sealed_rows(block: Block, after: int) -> dict[int, tuple[int, bytes]]:
    """Partition and sketch of every vector of a block with a larger id; empty for a malformed block."""
    import numpy as np

    try:
        ids = np.frombuffer(block.ids, np.int64).tolist()
        partitions = np.frombuffer(block.partitions, np.uint32).tolist()
        words = np.frombuffer(block.words, np.uint64).reshape(-1, len(ids) or 1)
    except ValueError:
        return {}
    rows = zip(ids, partitions, (row.tobytes() for row in np.ascontiguousarray(words.T)), strict=False)
    return {vector: (partition, sketch) for vector, partition, sketch in rows if vector > after}


def _stored_rows(tx: Tx, model: int, after: int, last: int) -> dict[int, tuple[int, bytes]]:
    stored: dict[int, tuple[int, bytes]] = {}
    while after < last and (rows := _rows(tx, model, after)):
        stored.update(
            (row.id, (row.partition, row.sketch)) for row in rows if row.partition is not None and row.id <= last
        )
        after = rows[-1].id
    return stored


def _write_block(tx: Tx, model: int, after: int) -> int:
    import numpy as np

    rows = _rows(tx, model, after)
    if not rows:
        return 0
    kept = [row for row in rows if row.partition is not None]
    words = np.frombuffer(b"".join(row.sketch for row in kept), np.uint64).reshape(len(kept), -1 if kept else 0)
    tx.run(
        "kernel.ann_storage.add_block",
        last=rows[-1].id,
        model=model,
        ids=np.array([row.id for row in kept], np.int64).tobytes(),
        places=np.array([row.partition for row in kept], np.uint32).tobytes(),
        words=np.ascontiguousarray(words.T).tobytes(),
    )
    return rows[-1].id


def _rows(tx: Tx, model: int, after: int) -> list[Row]:
    return tx.all("kernel.ann_storage.vectors_after", Row, after=after, model=model, limit=BLOCK_ROWS)
