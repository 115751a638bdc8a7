"""Vector search: a shortlist by sketch, re-scored by exact cosine."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from kernel.search import ann_storage
from kernel.search.ann import Sketches
from kernel.search.cache import SearchCache
from kernel.search.hits import Hit
from kernel.search.partitions import PartitionSet
from kernel.search.vectors import embed_texts, model_id
from kernel.store.transaction import Tx

_MIN_SHORTLIST = 1280  # vectors re-scored exactly; recall@10 1.00 at 1k to 1M memories, .96 ms of a recall of 1,000
_SHORTLIST_PER_RESULT = 8  # where more than 160 results are wanted; not measured
_MAX_TRIES = 4  # searches with a wider shortlist while deleted vectors crowd out results
_WIDENING = 4  # shortlists of 1,280 to 81,920; a burst of 5,000 deletions is covered by a test


class Near(NamedTuple):
    """A document with the cosine of its vector and the query's."""

    doc: int
    space: str
    key: str
    similarity: float


def vector_search(
    tx: Tx,
    text: str,
    partitions: PartitionSet | None,
    limit: int,
    also: Sequence[int],
    docs: Sequence[int] | None = None,
) -> dict[int, Near]:
    """The `limit` documents with the vectors nearest to that of `text`, and the documents `also`.

    With `docs`, an exact search among these documents. While sketches are being loaded, only small partitions, `docs`
    and `also` are searched.
    """
    model = model_id(tx)
    query = embed_texts(tx, [text]) if model else None
    if not query or not query[0].scale:
        return {}
    vector = query[0].vector
    if docs is not None:
        near = _score(tx, "kernel.semantic.score_docs", vector, model, docs, limit)
    elif partitions is not None and partitions.scan:
        near = _score(tx, "kernel.semantic.score_partitions", vector, model, partitions.ids, limit)
    elif _is_loading(tx):
        near = {}
    else:
        near = _nearest(tx, vector, model, None if partitions is None else partitions.ids, limit)
    if missing := [doc for doc in also if doc not in near]:
        near |= _score(tx, "kernel.semantic.score_docs", vector, model, missing, len(missing))
    return near


def hit_of(row: Near, rank: float | None) -> Hit:
    """The evidence of a document that has a vector; `rank` is its BM25, None where no term matched."""
    return Hit(row.doc, row.space, row.key, rank, l2_distance(row.similarity), row.similarity)


def l2_distance(cosine: float) -> float:
    """The distance of two unit vectors."""
    return math.sqrt(max(0.0, 2.0 - 2.0 * cosine))


def load_sketches(tx: Tx) -> None:
    """Reads the sketches that are not in memory yet; `tx` must see committed rows only."""
    cache: SearchCache = tx.context.search_cache
    if model := model_id(tx):
        cache.sketches.extend(ann_storage.vector_feed(tx, model))


def _is_loading(tx: Tx) -> bool:
    """Whether a background thread loads the sketches, and more than a block is still missing."""
    cache: SearchCache = tx.context.search_cache
    return (
        cache.warming
        and tx.readonly
        and (tx.one("kernel.semantic.last_vector_id", int) or 0) - cache.sketches.last > ann_storage.BLOCK_ROWS
    )


def _nearest(tx: Tx, vector: bytes, model: int, partitions: Sequence[int] | None, limit: int) -> dict[int, Near]:
    size = max(_MIN_SHORTLIST, _SHORTLIST_PER_RESULT * limit)
    near: dict[int, Near] = {}
    for _ in range(_MAX_TRIES):  # the shortlist may hold vectors deleted in this transaction or since its snapshot
        shortlist = _shortlist(tx, vector, model, partitions, size)
        near = _score(tx, "kernel.semantic.score_vectors", vector, model, shortlist, limit)
        if len(near) >= min(len(shortlist), limit):
            break
        size *= _WIDENING
    return near


def _shortlist(tx: Tx, vector: bytes, model: int, partitions: Sequence[int] | None, size: int) -> list[int]:
    """Vector ids by sketch. Rows that a rollback would undo go to an index of this call, never to the shared one."""
    cache: SearchCache = tx.context.search_cache
    shared = cache.sketches
    if cache.can_cache(tx):
        shared.extend(ann_storage.vector_feed(tx, model))
        return shared.nearest(vector, size, partitions)
    last = shared.last
    own = Sketches(lambda: shared.sketcher)
    own.extend(ann_storage.vector_feed(tx, model, last))
    return own.nearest(vector, size, partitions) + (shared.nearest(vector, size, partitions) if last else [])


def _score(tx: Tx, query: str, vector: bytes, model: int, ids: Sequence[int], limit: int) -> dict[int, Near]:
    rows = tx.all(query, Near, ids=ids, vector=vector, model=model, limit=limit)
    return {row.doc: row for row in rows}
