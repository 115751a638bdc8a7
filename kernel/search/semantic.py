"""Vector search: the documents nearest by exact cosine, among all in memory or a shortlist read from the store."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kernel.embed.model import Embedding
from kernel.search import ann_storage
from kernel.search.ann import VectorIndex, compare
from kernel.search.cache import LastIds, SearchCache
from kernel.search.partitions import PartitionSet
from kernel.search.vectors import embed_texts, model_id
from kernel.store.transaction import Tx

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = tuple[NDArray[np.int64], NDArray[np.int8], NDArray[np.float64]]
    """Documents, their vectors, one per row, and the scales that make these a unit long."""

_MIN_SHORTLIST = 1280  # vectors of a large store scored exactly; recall@10 1.00 at 1M memories
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
    last = cache.last_ids(tx)
    places = None if partitions is None else partitions.ids
    index = None if _is_loading(tx, last) else _index(tx, model, last)
    if index and index.exact:
        return index.nearest(*query[0][:2], limit, places, docs, also, last.vector)
    if docs is not None:
        read = _read(tx, "kernel.semantic.vectors", model, docs)
    elif partitions is not None and not partitions.large:
        read = _read(tx, "kernel.semantic.vectors_in", model, partitions.ids)
    else:
        size = max(_MIN_SHORTLIST, _SHORTLIST_PER_RESULT * limit)
        shortlist = index.shortlist(query[0].vector, size, places, last.vector) if index else ()
        read = _read(tx, "kernel.semantic.vectors_by_id", model, shortlist)
    near = _nearest(read, query[0], limit)
    missing = [doc for doc in also if doc not in near]
    return near | _nearest(_read(tx, "kernel.semantic.vectors", model, missing), query[0], len(missing))


def unit_vectors(tx: Tx, model: int, docs: Sequence[int]) -> "tuple[NDArray[np.int64], NDArray[np.float32]]":
    """The documents of these that have a vector, each once, and their vectors scaled to unit length, one per row."""
    import numpy as np

    found, codes, scales = _read(tx, "kernel.semantic.vectors", model, docs)
    return found, codes * scales.astype(np.float32)[:, None]


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


def _read(tx: Tx, statement: str, model: int, ids: Sequence[int]) -> "Vectors":
    import numpy as np

    def row(*values: Any) -> Any:
        return values

    cache: SearchCache = tx.context.search_cache
    rows = tx.all(statement, row, ids=ids, model=model) if ids else []
    docs, vectors, scales = zip(*rows, strict=True) if rows else ((), (), ())
    codes = np.frombuffer(b"".join(vectors), np.int8).reshape(-1, cache.vectors.sketcher.dimensions)
    return np.array(docs, np.int64), codes, np.array(scales, np.float64)


def _nearest(vectors: "Vectors", query: Embedding, limit: int) -> dict[int, float]:
    import numpy as np

    docs, codes, scales = vectors
    if not len(docs):
        return {}
    cosines = compare(np.frombuffer(query.vector, np.int8), codes) * scales * query.scale
    best = np.argsort(-cosines, kind="stable")[:limit]
    return dict(zip(docs[best].tolist(), np.clip(cosines[best], -1.0, 1.0).tolist(), strict=True))
