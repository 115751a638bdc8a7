"""Vector search: the documents nearest by exact cosine, in memory or by a shortlist that SQL scores."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from kernel.search import ann_storage
from kernel.search.ann import VectorIndex
from kernel.search.cache import LastIds, SearchCache
from kernel.search.partitions import PartitionSet
from kernel.search.vectors import embed_texts, model_id
from kernel.store.transaction import Tx

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MIN_SHORTLIST = 1280  # vectors of a large store scored exactly, by SQL; recall@10 1.00 at 1M memories
_SHORTLIST_PER_RESULT = 8  # where more than 160 results are wanted; not measured


def vector_search(
    tx: Tx,
    text: str,
    partitions: PartitionSet | None,
    limit: int,
    also: Sequence[int],
    docs: Sequence[int] | None = None,
) -> dict[int, float]:
    """The cosine of the `limit` documents with the vectors nearest to that of `text`, and of the documents `also`.

    With `docs`, a search among these documents. While vectors are being loaded, only small partitions, `docs` and
    `also` are searched.
    """
    model = model_id(tx)
    query = embed_texts(tx, [text]) if model else None
    if not query or not query[0].scale:
        return {}
    cache: SearchCache = tx.context.search_cache
    vector, last = query[0].vector, cache.last_ids(tx)
    places = None if partitions is None else partitions.ids
    loading = _is_loading(tx, last)
    if not loading and (index := _index(tx, model, last)).exact:
        return index.nearest(vector, query[0].scale, limit, places, docs, also, last.vector)
    if docs is not None:
        near = _score(tx, "kernel.semantic.score_docs", vector, model, docs, limit)
    elif partitions is not None and partitions.scan:
        near = _score(tx, "kernel.semantic.score_partitions", vector, model, partitions.ids, limit)
    else:
        size = max(_MIN_SHORTLIST, _SHORTLIST_PER_RESULT * limit)
        shortlist = [] if loading else _index(tx, model, last).shortlist(vector, size, places, last.vector)
        near = _score(tx, "kernel.semantic.score_vectors", vector, model, shortlist, limit)
    missing = [doc for doc in also if doc not in near]
    return near | _score(tx, "kernel.semantic.score_docs", vector, model, missing, len(missing))


class _Vector(NamedTuple):
    doc: int
    vector: bytes
    scale: float


def unit_vectors(tx: Tx, model: int, docs: Sequence[int]) -> "tuple[NDArray[np.int64], NDArray[np.float32]]":
    """The documents of these that have a vector, each once, and their vectors scaled to unit length, one per row.

    From memory where that holds what `tx` sees: a copy with uncommitted rows would cost more than reading a few.
    """
    import numpy as np

    cache: SearchCache = tx.context.search_cache
    last = cache.last_ids(tx)
    in_memory = cache.can_cache(tx) and not _is_loading(tx, last)
    if in_memory and (index := _index(tx, model, last)).exact:
        found, whole, scales = index.vectors(docs, last.vector)
    else:
        rows = tx.all("kernel.semantic.vectors", _Vector, ids=docs, model=model)
        found = np.array([row.doc for row in rows], np.int64)
        whole = np.frombuffer(b"".join([row.vector for row in rows]), np.int8)
        whole = whole.reshape(-1, cache.vectors.sketcher.dimensions)
        scales = np.array([row.scale for row in rows], np.float64)
    return found, whole * scales.astype(np.float32)[:, None]


def l2_distance(cosine: float) -> float:
    """The distance of two unit vectors."""
    return math.sqrt(max(0.0, 2.0 - 2.0 * cosine))


def load_vectors(tx: Tx) -> None:
    """Reads the vectors that are not in memory yet; `tx` must see committed rows only."""
    cache: SearchCache = tx.context.search_cache
    if model := model_id(tx):
        _index(tx, model, cache.last_ids(tx))


def _is_loading(tx: Tx, last: LastIds) -> bool:
    """Whether a background thread loads the vectors, and more than a block is still missing."""
    cache: SearchCache = tx.context.search_cache
    return cache.warming and tx.readonly and last.vector - cache.vectors.last > ann_storage.BLOCK_ROWS


def _index(tx: Tx, model: int, last: LastIds) -> VectorIndex:
    """The vectors that `tx` sees. Rows that a rollback would undo go to a copy, never to the shared index."""
    cache: SearchCache = tx.context.search_cache
    index = cache.vectors if cache.can_cache(tx) else cache.vectors.fork()
    if last.vector > index.last or last.deletion > index.last_deletion:
        index.extend(ann_storage.vector_feed(tx, model))
    return index


def _score(tx: Tx, query: str, vector: bytes, model: int, ids: Sequence[int], limit: int) -> dict[int, float]:
    near: dict[int, float] = {}
    if not ids:
        return near
    tx.all(query, near.__setitem__, ids=ids, vector=vector, model=model, limit=limit)
    return near
