"""Reranking of the best hits: late interaction, near-duplicates, and neighbours in time."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kernel.embed.model import Embedder
from kernel.search.fusion import Scored, Weights, Window, fuse, preliminary_order
from kernel.search.hits import Hit
from kernel.search.near_duplicates import LONG_TEXT_TOKENS, NearDuplicates
from kernel.search.semantic import l2_distance
from kernel.search.vectors import embed_texts, model_id
from kernel.store.transaction import Tx

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
    """Hits with their scores, best first, and for each of the pool the first of its near-duplicates."""

    scored: list[Scored]
    leaders: Mapping[int, int]


class _Vector(NamedTuple):
    doc: int
    space: str
    key: str
    vector: bytes
    tokens: bytes


class _Pool(NamedTuple):
    """The hits to rerank, their vectors and tokens, and their near-duplicates."""

    hits: list[Hit]
    vectors: dict[int, _Vector]
    duplicates: NearDuplicates


def rerank(
    tx: Tx, text: str, hits: Sequence[Hit], weights: Weights, most: int = POOL_SIZE, *, wanted: int | None = None
) -> Ranking:
    """The hits of a search for `text` in their final order, with neighbours that no signal found.

    The best `most` are reranked, at most two of each group of near-duplicates. With `wanted`, hits far behind that
    many are left out.
    """
    first = preliminary_order(hits, weights)
    model = model_id(tx)
    embedder = tx.context.embedder
    query = embed_texts(tx, [text]) if model else None
    if embedder is None or not query or not query[0].scale:
        windows = _windows(tx, first[:most], weights)
        return Ranking(fuse(hits, weights, windows, weights.neighbours * _NEIGHBOUR_SHARE_WITHOUT_VECTORS), {})
    pool = _pool(tx, embedder, model, first, most)
    windows = _windows(tx, pool.hits, weights)
    found = _to_fuse(first, pool.hits, windows, None if wanted is None else max(most, _FUSED_PER_RESULT * wanted))
    seeds = windows[:_NEIGHBOUR_SEEDS]
    added = _neighbour_vectors(tx, model, seeds, found)
    pool.duplicates.add_ungrouped({doc: row.vector for doc, row in added.items()})
    low, high = _COHERENCE_RANGE
    coherence = pool.duplicates.coherence([(window.doc, _around(window)) for window in seeds])
    share = min(1.0, max(0.0, (coherence - low) / (high - low)))
    if share:
        neighbours = _neighbour_hits(pool, added, query[0].vector if weights.meaning > 0 else None)
        found |= {hit.doc: hit for hit in neighbours}
    if weights.late > 0:
        found |= _with_late_scores(embedder, query[0].tokens, pool, _OPENING_SHARE * (1 - share))
    return Ranking(fuse([*found.values()], weights, windows, weights.neighbours * share), pool.duplicates.leaders)


def _pool(tx: Tx, embedder: Embedder, model: int, hits: Sequence[Hit], size: int) -> _Pool:
    pool = _Pool([], {}, NearDuplicates())
    rest, count = hits, size
    while rest and len(pool.hits) < size:
        some, rest, count = rest[:count], rest[count:], 2 * count
        vectors = _vectors(tx, model, [hit.doc for hit in some])
        pool.vectors.update(vectors)
        long = {doc for doc, row in vectors.items() if embedder.count(row.tokens) > LONG_TEXT_TOKENS}
        pool.duplicates.add({hit.doc: vectors[hit.doc].vector for hit in some if hit.doc in vectors}, long)
        ranks = pool.duplicates.ranks
        pool.hits.extend([hit for hit in some if ranks.get(hit.doc, 0) < _GROUP_SIZE_IN_POOL])
    return pool


def _to_fuse(hits: Sequence[Hit], pool: Sequence[Hit], windows: Sequence[Window], depth: int | None) -> dict[int, Hit]:
    """The first `depth` hits, those of the pool, and those in a window of the pool."""
    if depth is None or depth >= len(hits):
        return {hit.doc: hit for hit in hits}
    in_window = {doc for window in windows for doc in window}
    found = {hit.doc: hit for hit in itertools.chain(hits[:depth], pool)}
    found.update((hit.doc, hit) for hit in hits[depth:] if hit.doc in in_window)
    return found


def _vectors(tx: Tx, model: int, docs: Iterable[int]) -> dict[int, _Vector]:
    rows = tx.all("kernel.rerank.vectors_and_tokens", _Vector, ids=[*docs], model=model)
    return {row.doc: row for row in rows}


def _windows(tx: Tx, hits: Sequence[Hit], weights: Weights) -> list[Window]:
    """The neighbours of the hits, in the same order; none where neighbours have no weight."""
    if not weights.neighbours:
        return []
    return tx.all("kernel.rerank.neighbours", Window, ids=[hit.doc for hit in hits])


def _neighbour_vectors(tx: Tx, model: int, windows: Sequence[Window], known: Mapping[int, Hit]) -> dict[int, _Vector]:
    """The neighbours in the windows that are not hits themselves."""
    docs = {doc for window in windows for doc in _around(window) if doc is not None and doc not in known}
    return _vectors(tx, model, sorted(docs)) if docs else {}


def _around(window: Window) -> tuple[int | None, int | None, int | None, int | None]:
    """The neighbours of the document of a window, in the order of insertion."""
    return window.before, window.previous, window.next, window.after


def _neighbour_hits(pool: _Pool, rows: Mapping[int, _Vector], query: bytes | None) -> list[Hit]:
    """The neighbours as hits, with their similarity to the query's vector if it is given."""
    similarities = pool.duplicates.similarities(query, [*rows]) if query else [None] * len(rows)
    return [
        Hit(row.doc, row.space, row.key, None, None if cosine is None else l2_distance(cosine), cosine)
        for row, cosine in zip(rows.values(), similarities, strict=True)
    ]


def _with_late_scores(embedder: Embedder, query: bytes, pool: _Pool, opening_share: float) -> dict[int, Hit]:
    """The hits of the pool that have tokens, with their late-interaction scores."""
    known = [hit for hit in pool.hits if hit.doc in pool.vectors]
    scores = embedder.interaction(query, [pool.vectors[hit.doc].tokens for hit in known], opening_share)
    return {
        # Built directly: _replace on a named tuple takes several times as long.
        hit.doc: Hit(hit.doc, hit.space, hit.id, hit.text_rank, hit.distance, hit.similarity, score)
        for hit, score in zip(known, scores, strict=True)
    }
