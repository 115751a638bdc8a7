"""Reranking of the best hits: late interaction, near-duplicates, and neighbours in time."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kernel.embed.model import Embedder, Embedding
from kernel.search.fusion import Fused, Weights, Window, fuse_candidates, preliminary_order
from kernel.search.hits import Candidates
from kernel.search.near_duplicates import LONG_TEXT_TOKENS, NearDuplicates
from kernel.search.vectors import embed_texts, model_id
from kernel.store.transaction import Tx

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

POOL_SIZE = 32  # hits reranked: LoCoMo R@10 .763, as with 40; 64, with 24 seeds, .770
_NEIGHBOUR_SEEDS = 16  # hits that add their neighbours as candidates; LoCoMo R@10 .763, with 8 seeds .742
_GROUP_SIZE_IN_POOL = 2  # near-duplicates in the pool, so that one text repeated leaves room for others; not measured
_FUSED_PER_RESULT = 2  # hits scored for each one wanted: those further behind hardly ever come up; not measured
_COHERENCE_RANGE = (0.02, 0.05)  # from which neighbours begin to count, and from which they count fully; not measured
_NEIGHBOUR_SHARE_WITHOUT_VECTORS = 0.4  # of their weight, where coherence is unknown; not measured
# Share of the first tokens in late interaction, where neighbours do not count: nDCG@10 +.012 on passages, +.016 on
# Cranfield, with a weight of .4 for late interaction.
_OPENING_SHARE = 0.5


class Ranking(NamedTuple):
    """Candidates with their scores, best first, and for each of the pool the first of its near-duplicates."""

    fused: Fused
    leaders: Mapping[int, int]


class _Vector(NamedTuple):
    doc: int
    vector: bytes
    scale: float
    tokens: bytes


class _Pool(NamedTuple):
    """The documents to rerank, the tokens of those that have a vector, and their near-duplicates."""

    docs: list[int]
    tokens: dict[int, bytes]
    duplicates: NearDuplicates


def rerank(
    tx: Tx, text: str, found: Candidates, weights: Weights, most: int = POOL_SIZE, *, wanted: int | None = None
) -> Ranking:
    """The candidates of a search for `text` in their final order, with neighbours that no signal found.

    The best `most` are reranked, at most two of each group of near-duplicates. With `wanted`, hits far behind that
    many are left out.
    """
    order = preliminary_order(found, weights)
    model = model_id(tx)
    embedder = tx.context.embedder
    query = embed_texts(tx, [text]) if model else None
    if embedder is None or not query or not query[0].scale:
        windows = _windows(tx, found.docs[order[:most]].tolist(), weights)
        neighbours = weights.neighbours * _NEIGHBOUR_SHARE_WITHOUT_VECTORS
        return Ranking(fuse_candidates(found, weights, windows, neighbours), {})
    pool = _pool(tx, embedder, model, found.docs[order].tolist(), most)
    windows = _windows(tx, pool.docs, weights)
    if wanted is not None:
        found = _nearby(found, order[: max(most, _FUSED_PER_RESULT * wanted)], pool.docs, windows)
    seeds = windows[:_NEIGHBOUR_SEEDS]
    added = _vectors(tx, model, sorted({doc for one in seeds for doc in one if doc} - {*found.docs.tolist()}))
    share = _neighbour_share(pool, added, seeds)
    if share:
        found = _with_neighbours(found, added, query[0] if weights.meaning > 0 else None)
    if weights.late > 0:
        opening = _OPENING_SHARE * (1 - share)
        late = found.late.copy()
        late[found.docs.searchsorted([*pool.tokens])] = embedder.interaction(
            query[0].tokens, [*pool.tokens.values()], opening
        )
        found = found._replace(late=late)
    fused = fuse_candidates(found, weights, windows, weights.neighbours * share)
    return Ranking(fused, pool.duplicates.leaders)


def _pool(tx: Tx, embedder: Embedder, model: int, docs: Sequence[int], size: int) -> _Pool:
    pool = _Pool([], {}, NearDuplicates(embedder.dimensions))
    count = size
    while docs and len(pool.docs) < size:
        some, docs, count = docs[:count], docs[count:], 2 * count
        known = {row.doc: row for row in _vectors(tx, model, some)}
        rows = [known[doc] for doc in some if doc in known]
        long = embedder.counts([row.tokens for row in rows]) > LONG_TEXT_TOKENS
        pool.duplicates.add([row.doc for row in rows], _units(rows, embedder.dimensions), long)
        kept = [doc for doc in some if pool.duplicates.ranks.get(doc, 0) < _GROUP_SIZE_IN_POOL]
        pool.docs.extend(kept)
        pool.tokens.update((doc, known[doc].tokens) for doc in kept if doc in known)
    return pool


def _nearby(
    found: Candidates, first: "NDArray[np.int64]", pool: Sequence[int], windows: Sequence[Window]
) -> Candidates:
    """The candidates at the `first` positions, those of the pool, and those in a window of the pool."""
    import numpy as np

    around = {*pool, *(doc for window in windows for doc in window)}
    kept = np.array([doc in around for doc in found.docs.tolist()], np.bool_)
    kept[first] = True
    return found.take(kept)


def _vectors(tx: Tx, model: int, docs: Sequence[int]) -> list[_Vector]:
    return tx.all("kernel.rerank.vectors_and_tokens", _Vector, ids=docs, model=model) if docs else []


def _windows(tx: Tx, docs: Sequence[int], weights: Weights) -> list[Window]:
    """The neighbours of the documents, in the same order; none where neighbours have no weight."""
    return tx.all("kernel.rerank.neighbours", Window, ids=docs) if weights.neighbours else []


def _neighbour_share(pool: _Pool, added: Sequence[_Vector], windows: Sequence[Window]) -> float:
    """The share of their weight that neighbours have: all of it where documents are like their own neighbours."""
    import numpy as np

    if not windows:
        return 0.0
    units = np.concatenate([pool.duplicates.units, _units(added, pool.duplicates.units.shape[1])])
    rows = {doc: at for at, doc in enumerate([*pool.duplicates.docs, *(row.doc for row in added)])}
    table = np.array([[rows.get(doc or 0, -1) for doc in window] for window in windows])
    low, high = _COHERENCE_RANGE
    return min(1.0, max(0.0, (_coherence(units, table) - low) / (high - low)))


def _coherence(units: "Matrix", windows: "NDArray[np.int64]") -> float:
    """How much more similar documents are to their own neighbours than to those of others, up to 1.

    `windows` holds the rows of `units` for each document between its neighbours, -1 for none. The neighbours of other
    candidates are the baseline: they are alike as far as the query goes. 0 where there are too few neighbours.
    """
    import numpy as np

    own: list[float] = []
    other: list[float] = []
    for side in (0, 1, 3, 4):
        docs, neighbours = windows[(windows[:, 2] >= 0) & (windows[:, side] >= 0)][:, [2, side]].T
        if (count := len(docs)) > 1:
            products = units[docs] @ units[neighbours].T
            trace, total = float(np.trace(products)), float(products.sum())
            own.append(trace / count)
            other.append((total - trace) / (count**2 - count))
    if not own:
        return 0.0
    within, between = sum(own) / len(own), sum(other) / len(other)
    return (within - between) / (1 - between) if between < 1 else 0.0


def _with_neighbours(found: Candidates, rows: Sequence[_Vector], query: Embedding | None) -> Candidates:
    """The candidates and further documents, with the cosine of these and the query's vector if it is given."""
    import numpy as np

    docs = np.concatenate([found.docs, np.array([row.doc for row in rows], np.int64)])
    none = np.full(len(rows), np.nan)
    cosines = none
    if query is not None and rows:
        unit = np.frombuffer(query.vector, np.int8) * np.float32(query.scale)
        cosines = _units(rows, len(unit)) @ unit
    columns = (np.concatenate(pair) for pair in zip(found[1:], (none, cosines, none), strict=True))
    return Candidates(docs, *columns).take(np.argsort(docs))


def _units(rows: Sequence[_Vector], dimensions: int) -> "Matrix":
    """The vectors scaled to unit length, one per row."""
    import numpy as np

    whole = np.frombuffer(b"".join([row.vector for row in rows]), np.int8).reshape(-1, dimensions)
    return whole * np.array([row.scale for row in rows], np.float32)[:, None]
