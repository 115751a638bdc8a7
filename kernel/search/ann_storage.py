"""Stored blocks of thousands of vectors and sketches, so that a start reads few rows, and the log of deletions."""

from collections.abc import Sequence

from kernel.core.lazy_numpy import np
from kernel.search.ann import COLUMNS, EXACT_ROWS, Block, Deletion, Row, VectorFeed
from kernel.store.transaction import Tx

# Vectors in a block: a start reads 977 rows instead of a million. Others wait while a block is written: some
# milliseconds, 60 with 8,192.
BLOCK_ROWS = 1024
_BLOCKS_PER_READ = 8  # bounds memory: 3 MB with vectors of 256 dimensions; not measured
_NO_LIMIT = 2**63 - 1


def vector_feed(tx: Tx, model: int, deletion: int = _NO_LIMIT) -> VectorFeed:
    """Return readers over the vectors of a model that `tx` sees, of which `deletion` is the last deletion."""

    def blocks(last: int, exact: bool) -> Sequence[Block]:
        return _blocks(tx, model, last, exact, _BLOCKS_PER_READ)

    def rows(last: int, exact: bool) -> Sequence[Row]:
        return _rows(tx, model, last, exact)

    def deletions(last: int) -> Sequence[Deletion]:
        return tx.all("kernel.ann_storage.deletions_after", Deletion, after=last) if last < deletion else []

    return VectorFeed(lambda: _count(tx), blocks, rows, deletions, BLOCK_ROWS)


def asked_feed(tx: Tx, model: int, after: int, exact: bool, deletion: int) -> VectorFeed:
    """Return `vector_feed`, of which the rows after a vector are asked for already."""
    feed = vector_feed(tx, model, deletion)
    first = tx.ask("kernel.ann_storage.vectors_after", Row, after=after, model=model, exact=exact, limit=BLOCK_ROWS)

    def rows(last: int, as_vectors: bool) -> Sequence[Row]:
        return first() if (last, as_vectors) == (after, exact) else feed.rows(last, as_vectors)

    return feed._replace(rows=rows)


def seal_blocks(tx: Tx, model: int, limit: int = 1) -> int:
    """Writes up to `limit` blocks of vectors that are in none, if a block is full; returns how many were written."""
    for count in range(limit):
        after = tx.one("kernel.ann_storage.last_sealed_id", int, size=BLOCK_ROWS)
        if after is None or not _write_block(tx, model, after):
            return count
    return limit


def rewrite_block(tx: Tx, model: int, after: int) -> int:
    """Writes the block after a vector id again without deleted rows; returns its last id, 0 if no row is left."""
    last = _write_block(tx, model, after)
    tx.run("kernel.ann_storage.delete_blocks_between", after=after, before=last or _NO_LIMIT)
    return last


def forget_vectors(tx: Tx, upto: int, limit: int) -> int:
    """Deletes up to `limit` vectors, and then blocks, of ids up to `upto` that are of no document; returns how many."""
    vectors = tx.all("kernel.ann_storage.vectors_upto", int, upto=upto, limit=limit)
    if vectors:
        tx.context.search_cache.uncommitted = tx
        tx.run("kernel.ann_storage.log_vectors_deleted", ids=vectors)
        return tx.run("kernel.ann_storage.delete_vectors", ids=vectors)
    return delete_block(tx, upto)


def delete_block(tx: Tx, upto: int = _NO_LIMIT) -> int:
    """Deletes the first block, if it ends before a vector; the number of blocks deleted."""
    return tx.run("kernel.ann_storage.delete_block_upto", upto=upto)


def deletions_upto(tx: Tx, vector: int) -> int:
    first = tx.one("kernel.ann_storage.first_deletion_after", int, vector=vector)
    return first - 1 if first else last_deletion_id(tx)


def last_deletion_id(tx: Tx) -> int:
    """Return the number of the last deletion; 0 before the first."""
    return tx.one("kernel.ann_storage.last_deletion_id", int) or 0


def count_deletions(tx: Tx) -> int:
    return tx.one("kernel.ann_storage.count_deletions", int) or 0


def trim_deletions(tx: Tx, upto: int, limit: int = _NO_LIMIT) -> int:
    """Deletes up to `limit` log entries numbered `upto` or less, once no block holds their vectors; returns how many.

    A process that has not read them loads all vectors again.
    """
    tx.run("kernel.ann_storage.set_deletion_floor", upto=upto)
    return tx.run("kernel.ann_storage.trim_deletions", upto=upto, limit=limit)


def count_mismatches(tx: Tx, model: int) -> int:
    """Return how many rows of blocks differ from the vectors, are missing there, or are of no vector."""
    deletions = {row.vector for row in tx.all("kernel.ann_storage.deletions_after", Deletion, after=0)}
    wrong: set[int] = set()
    for exact in (False, True):
        after = 0
        while blocks := _blocks(tx, model, after, exact, 1):
            if blocks[0].codes or not exact:  # of a large store there are sketches only
                block_rows = {row.id: row for row in _sealed_rows(blocks[0]) if row.id > after}
                vector_rows = {row.id: row for row in _rows_upto(tx, model, after, blocks[0].last, exact)}
                wrong.update(vector for vector, row in vector_rows.items() if block_rows.get(vector) != row)
                wrong.update(vector for vector in block_rows if vector not in vector_rows and vector not in deletions)
            after = blocks[0].last
    return len(wrong)


def clear(tx: Tx) -> None:
    tx.run("kernel.ann_storage.delete_blocks")
    trim_deletions(tx, last_deletion_id(tx))


def _sealed_rows(block: Block) -> list[Row]:
    arrays = (block.ids, block.docs, block.partitions, block.scales)
    try:
        columns = [np.frombuffer(array, kind).tolist() for array, kind in zip(arrays, COLUMNS.values(), strict=True)]
        size = len(block.codes) // max(1, len(columns[0]))
        codes = [block.codes[at : at + size] for at in range(0, len(block.codes), size or 1)]
        return [Row(*row) for row in zip(*columns, codes, strict=True)]
    except ValueError:
        return []


def _rows_upto(tx: Tx, model: int, after: int, last: int, exact: bool) -> list[Row]:
    matches: list[Row] = []
    while after < last and (rows := _rows(tx, model, after, exact)):
        matches += [row for row in rows if row.partition is not None and row.id <= last]
        after = rows[-1].id
    return matches


def _write_block(tx: Tx, model: int, after: int) -> int:
    rows = _rows(tx, model, after, exact=False)
    if not rows:
        return 0
    vectors = _rows(tx, model, after, exact=True) if _count(tx) <= EXACT_ROWS else []
    live_rows = [row for row in rows if row.partition is not None]
    columns = [
        np.array(column, kind) for column, kind in zip(zip(*live_rows, strict=True), COLUMNS.values(), strict=False)
    ]
    ids, docs, partitions, scales = (column.tobytes() for column in columns) if live_rows else [b""] * 4
    tx.run(
        "kernel.ann_storage.add_block",
        last=rows[-1].id,
        model=model,
        ids=ids,
        docs=docs,
        places=partitions,
        scales=scales,
        sketches=b"".join([row.code for row in live_rows]),
        vectors=b"".join([row.code for row in vectors if row.partition is not None]),
    )
    return rows[-1].id


def _blocks(tx: Tx, model: int, after: int, exact: bool, limit: int) -> list[Block]:
    return tx.all("kernel.ann_storage.sealed_blocks", Block, after=after, model=model, exact=exact, limit=limit)


def _rows(tx: Tx, model: int, after: int, exact: bool) -> list[Row]:
    return tx.all("kernel.ann_storage.vectors_after", Row, after=after, model=model, exact=exact, limit=BLOCK_ROWS)


def _count(tx: Tx) -> int:
    return tx.one("kernel.ann_storage.count_vectors", int) or 0
