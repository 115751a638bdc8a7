"""Vector search: the documents nearest by exact cosine, in memory, or in SQL if not all that counts is there."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from kernel.core.errors import Fault
from kernel.core.lazy_numpy import Ids, Matrix, np
from kernel.search import ann_storage
from kernel.search.ann import VectorFeed, VectorIndex
from kernel.search.cache import LastIds, Reached, SearchCache
from kernel.search.partitions import PartitionSet
from kernel.search.vectors import embed_query, model_id
from kernel.store.transaction import Tx

_MIN_SHORTLIST = 800  # vectors of a large store scored exactly; at 1M recall@10 is .99, with 1,280 .996 for 1.3 times
_SHORTLIST_PER_RESULT = 8  # if more than 160 results are wanted; not measured
_NO_ID = 2**63 - 1  # after all ids


def vector_search(
    tx: Tx,
    text: str,
    partitions: PartitionSet | None,
    limit: int,
    also: Sequence[int],
    docs: Sequence[int] | None = None,
    feed: VectorFeed | None = None,
    reached: Reached | None = None,
) -> dict[int, float]:
    """Return the cosine of the `limit` documents with the vectors nearest to that of `text`, and of the documents
    `also`.

    With `docs`, a search among these documents. While vectors are being loaded, only small partitions, `docs` and
    `also` are searched. `feed` is what `ask_vectors` returned in this transaction. With `reached`, vectors in memory
    are searched among its documents.
    """
    model = model_id(tx)
    query = embed_query(tx, text) if model else None
    if query is None:
        return {}
    vector, scale, _ = query
    cache: SearchCache = tx.context.search_cache
    index, last = cache.vectors, cache.last_ids(tx)
    places = None if partitions is None else partitions.ids
    in_memory = (
        index.nearest(vector, scale, limit, places, docs, also, last.vector, reached and reached.flags)
        if _is_loaded(tx, model, last, feed)
        else None
    )
    if in_memory is not None:
        return in_memory
    score = partial(_score, tx, model, vector)
    if docs is not None:
        near = score(limit, docs=docs)
    elif partitions is not None and not partitions.large:
        near = score(limit, partitions=partitions.ids)
    else:
        near = {} if _is_loading(tx, last) else score(limit, **_shortlist(index, vector, limit, places, last))
    missing = [doc for doc in also if doc not in near]
    return near | (score(len(missing), docs=missing) if missing else {})


def unit_vectors(tx: Tx, model: int, docs: Sequence[int]) -> tuple[Ids, Matrix]:
    """Return the documents of these that have a vector, each once, and a row for each: its vector scaled to unit
    length.
    """
    cache: SearchCache = tx.context.search_cache
    last = cache.last_ids(tx)
    in_memory = cache.vectors.unit_vectors(docs, last.vector) if _is_loaded(tx, model, last) else None
    if in_memory is not None:
        return in_memory
    rows = tx.rows("kernel.semantic.vectors", ids=docs, model=model) if docs else []
    row_docs, vectors, scales = zip(*rows, strict=True) if rows else ((), (), ())
    codes = np.frombuffer(b"".join(vectors), np.int8).reshape(-1, cache.vectors.sketcher.dimensions)
    return np.array(row_docs, np.int64), codes * np.array(scales, np.float32)[:, None]


def l2_distance(cosine: float) -> float:
    """Return the distance of two unit vectors."""
    return math.sqrt(max(0.0, 2.0 - 2.0 * cosine))


def load_vectors(tx: Tx) -> None:
    """Reads the vectors that are not in memory yet; `tx` must see committed rows only."""
    cache: SearchCache = tx.context.search_cache
    if model := model_id(tx):
        cache.vectors.extend(ann_storage.vector_feed(tx, model))


def load_all_vectors(tx: Tx) -> None:
    cache: SearchCache = tx.context.search_cache
    try:
        load_vectors(tx)
        cache.warming = False
    finally:
        cache.loading = False


def _is_loading(tx: Tx, last: LastIds) -> bool:
    """Return whether another thread loads the vectors, and more than a block is still missing."""
    cache: SearchCache = tx.context.search_cache
    is_loading = cache.warming and tx.readonly and last.vector - cache.vectors.last > ann_storage.BLOCK_ROWS
    if is_loading and not cache.loading:
        cache.loading = True  # each further job would keep a reader waiting for the same lock
        try:
            cache.load_later()
        except Fault:  # the next search tries again
            cache.loading = False
    return is_loading


def ask_vectors(tx: Tx) -> VectorFeed | None:
    """Ask for the vectors that a search of a few new documents will read; None if it reads none, or many."""
    cache: SearchCache = tx.context.search_cache
    index, model = cache.vectors, model_id(tx) if tx.readonly else 0
    if not model or not index.last:
        return None
    last = cache.last_ids(tx)
    if not 0 < last.vector - index.last <= ann_storage.BLOCK_ROWS:
        return None
    return ann_storage.asked_feed(tx, model, index.last, index.exact, last.deletion)


def _is_loaded(tx: Tx, model: int, last: LastIds, feed: VectorFeed | None = None) -> bool:
    """Return whether memory holds the rows that `tx` sees, from here on; never rows that a rollback would undo."""
    cache: SearchCache = tx.context.search_cache
    index = cache.vectors
    if not cache.can_cache(tx) or _is_loading(tx, last):
        return False
    if last.vector > index.last or last.deletion > index.last_deletion:
        index.extend(feed or ann_storage.vector_feed(tx, model, last.deletion))
    return True


def _shortlist(
    index: VectorIndex, vector: bytes, limit: int, places: Sequence[int] | None, last: LastIds
) -> dict[str, Any]:
    """Return the vectors for SQL to score: the nearest in memory, more by those deleted since, and all it lacks."""
    after, deletions = index.last, max(0, last.deletion - index.last_deletion)
    near = index.nearest(vector, 1.0, limit + deletions, places, upto=after)
    if near is not None:
        return {"docs": [*near], "after": after, "within": places}
    size = max(_MIN_SHORTLIST, _SHORTLIST_PER_RESULT * limit) + deletions
    return {"vectors": index.shortlist(vector, size, places, after), "after": after, "within": places}


def _score(
    tx: Tx,
    model: int,
    vector: bytes,
    limit: int,
    vectors: Sequence[int] = (),
    docs: Sequence[int] = (),
    partitions: Sequence[int] = (),
    after: int = _NO_ID,
    within: Sequence[int] | None = None,
) -> dict[int, float]:
    """Return the exact cosines of the `limit` nearest of these vectors, of those of documents and of partitions, and of
    those after an id within partitions.
    """
    cosines: dict[int, float] = {}
    sources = {"vectors": vectors, "docs": docs, "partitions": partitions, "after": after, "within": within}
    tx.all("kernel.semantic.score", cosines.__setitem__, model=model, vector=vector, limit=limit, **sources)
    return cosines
