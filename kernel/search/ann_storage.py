"""Sketches in blocks: thousands of them in one row of the store, so that a start need not read every vector."""

from collections.abc import Sequence

from kernel.search.ann import Block, Deletion, Row, VectorFeed
from kernel.store.transaction import Tx

SIZE = 8192
_AT_ONCE = 4
_NEVER = 2**63 - 1


def source(tx: Tx, model: int, after: int = 0) -> VectorFeed:
    """What `tx` sees of the vectors of a model: of all, or of those after one, of which nobody has read."""

    def blocks(last: int) -> Sequence[Block]:
        return (
            [] if after else tx.all("kernel.ann_storage.sealed_blocks", Block, after=last, model=model, limit=_AT_ONCE)
        )

    def rows(last: int) -> Sequence[Row]:
        return _rows(tx, model, max(last, after))

    def gone(seen: int) -> Sequence[Deletion]:
        return [] if after else tx.all("kernel.ann_storage.deletions_after", Deletion, after=seen)

    return VectorFeed(blocks, rows, gone, SIZE)


def keep(tx: Tx, model: int, most: int = 1) -> int:
    """Makes up to `most` blocks of the vectors that are in none, where they are many; how many were made."""
    for made in range(most):
        after = tx.one("kernel.ann_storage.last_sealed_id", int, size=SIZE)
        if after is None or not _make(tx, model, after):
            return made
    return most


def renew(tx: Tx, model: int, after: int) -> int:
    """Makes the block after a vector anew, of what is left; its last vector, or 0 where none is left."""
    made = _make(tx, model, after)
    tx.run("kernel.ann_storage.replace", after=after, last=made or _NEVER)
    return made


def log(tx: Tx) -> int:
    """The number of the last deletion."""
    return tx.one("kernel.ann_storage.last_deletion_id", int) or 0


def logged(tx: Tx) -> int:
    """How many deletions are kept."""
    return tx.one("kernel.ann_storage.count_deletions", int) or 0


def forget(tx: Tx, upto: int, most: int = _NEVER) -> int:
    """Forgets up to `most` deletions, up to one of which no block knows better; how many were forgotten."""
    tx.run("kernel.ann_storage.set_deletion_floor", upto=upto)
    return tx.run("kernel.ann_storage.trim_deletions", upto=upto, limit=most)


def wrong(tx: Tx, model: int) -> int:
    """How many sketches are in a block but not with their vector, or the other way round."""
    gone = {row.vector for row in tx.all("kernel.ann_storage.deletions_after", Deletion, after=0)}
    found = after = 0
    while blocks := tx.all("kernel.ann_storage.sealed_blocks", Block, after=after, model=model, limit=1):
        held = _held(blocks[0], after)
        live = _live(tx, model, after, blocks[0].last)
        found += sum(held.get(number) != row for number, row in live.items())
        found += sum(number not in live and number not in gone for number in held)
        after = blocks[0].last
    return found


def clear(tx: Tx) -> None:
    """Forgets every block and every deletion."""
    tx.run("kernel.ann_storage.clear")
    forget(tx, log(tx))


def _held(block: Block, after: int) -> dict[int, tuple[int, bytes]]:
    """The place and the sketch of every vector of a block, but for those in one before; none if it is broken."""
    import numpy as np

    try:
        ids = np.frombuffer(block.ids, np.int64).tolist()
        places = np.frombuffer(block.places, np.uint32).tolist()
        words = np.frombuffer(block.words, np.uint64).reshape(-1, len(ids) or 1)
    except ValueError:
        return {}
    rows = zip(ids, places, (row.tobytes() for row in np.ascontiguousarray(words.T)), strict=False)
    return {number: (place, sketch) for number, place, sketch in rows if number > after}


def _live(tx: Tx, model: int, after: int, last: int) -> dict[int, tuple[int, bytes]]:
    live: dict[int, tuple[int, bytes]] = {}
    while after < last and (rows := _rows(tx, model, after)):
        live.update((row.id, (row.place, row.sketch)) for row in rows if row.place is not None and row.id <= last)
        after = rows[-1].id
    return live


def _make(tx: Tx, model: int, after: int) -> int:
    import numpy as np

    rows = _rows(tx, model, after)
    if not rows:
        return 0
    kept = [row for row in rows if row.place is not None]
    words = np.frombuffer(b"".join(row.sketch for row in kept), np.uint64).reshape(len(kept), -1 if kept else 0)
    tx.run(
        "kernel.ann_storage.add",
        last=rows[-1].id,
        model=model,
        ids=np.array([row.id for row in kept], np.int64).tobytes(),
        places=np.array([row.place for row in kept], np.uint32).tobytes(),
        words=np.ascontiguousarray(words.T).tobytes(),
    )
    return rows[-1].id


def _rows(tx: Tx, model: int, after: int) -> list[Row]:
    return tx.all("kernel.ann_storage.vectors_after", Row, after=after, model=model, limit=SIZE)
