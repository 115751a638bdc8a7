"""The second look at what a search found: late interaction, neighbours in time, and what says nearly the same."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kernel.search.evidence import Hit, as_json, embedded, model_id
from kernel.search.fusion import Scored, Weights, Window, foremost, fuse
from kernel.search.near_duplicates import LONG, Likeness
from kernel.store.sqlite.connection import Tx, world

POOL = 32
_REACH = 16
_TWINS = 2
_TIMES = 2
_STRANGERS, _KIN = 0.02, 0.05
_UNSEEN = 0.4
_BEGINNING = 0.5  # of what late interaction says, where nothing around a text tells what it is about


class Ranking(NamedTuple):
    """Hits with their scores, best first, and of each that was looked at the first that says nearly the same."""

    scored: list[Scored]
    leaders: Mapping[int, int]


class _Held(NamedTuple):
    doc: int
    space: str
    key: str
    vector: bytes
    tokens: bytes


class _Pool(NamedTuple):
    """The hits that are looked at again, what is held of them and of others, and how like each other they are."""

    hits: list[Hit]
    held: dict[int, _Held]
    likeness: Likeness


def rerank(
    tx: Tx, text: str, hits: Sequence[Hit], weights: Weights, most: int = POOL, *, wanted: int | None = None
) -> Ranking:
    """The hits of a search for `text` in their final order, with those that only their neighbours speak for.

    The foremost `most` hits are looked at again, but of those that say nearly the same only two. With `wanted` those
    far behind so many are left out.
    """
    first = foremost(hits, weights)
    number = model_id(tx)
    query = embedded(tx, [text]) if number else None
    if not query or not query[0].scale:
        windows = _windows(tx, first[:most], weights)
        return Ranking(fuse(hits, weights, windows, weights.neighbours * _UNSEEN), {})
    pool = _pool(tx, number, first, most)
    windows = _windows(tx, pool.hits, weights)
    found = _near(first, pool.hits, windows, None if wanted is None else max(most, _TIMES * wanted))
    held = _around(tx, number, windows[:_REACH], found)
    pool.likeness.join({doc: item.vector for doc, item in held.items()})
    kinship = pool.likeness.coherence([(window.doc, window.around) for window in windows[:_REACH]])
    trust = min(1.0, max(0.0, (kinship - _STRANGERS) / (_KIN - _STRANGERS)))
    beside = _beside(pool, held, query[0].vector if weights.meaning > 0 else None) if trust else []
    found |= {hit.doc: hit for hit in beside}
    if weights.late > 0:
        found |= _interacted(tx, query[0].tokens, pool, _BEGINNING * (1 - trust))
    return Ranking(fuse([*found.values()], weights, windows, weights.neighbours * trust), pool.likeness.leaders)


def _pool(tx: Tx, model: int, hits: Sequence[Hit], most: int) -> _Pool:
    pool, embedder = _Pool([], {}, Likeness()), _embedder(tx)
    rest, many = hits, most
    while rest and len(pool.hits) < most:
        some, rest, many = rest[:many], rest[many:], 2 * many
        held = _material(tx, model, [hit.doc for hit in some])
        pool.held.update(held)
        long = {doc for doc, item in held.items() if embedder.count(item.tokens) > LONG}
        pool.likeness.add({hit.doc: held[hit.doc].vector for hit in some if hit.doc in held}, long)
        pool.hits.extend(hit for hit in some if pool.likeness.rank(hit.doc) < _TWINS)
    return pool


def _near(hits: Sequence[Hit], pool: Sequence[Hit], windows: Sequence[Window], depth: int | None) -> dict[int, Hit]:
    """The first hits, those of the pool, and those that stand beside one of them."""
    if depth is None or depth >= len(hits):
        return {hit.doc: hit for hit in hits}
    beside = {doc for window in windows for doc in window}
    found = {hit.doc: hit for hit in itertools.chain(hits[:depth], pool)}
    found.update((hit.doc, hit) for hit in hits[depth:] if hit.doc in beside)
    return found


def _material(tx: Tx, model: int, docs: Iterable[int]) -> dict[int, _Held]:
    found = tx.all("kernel.rerank.vectors_and_tokens", _Held, ids=as_json([*docs]), model=model)
    return {item.doc: item for item in found}


def _windows(tx: Tx, hits: Sequence[Hit], weights: Weights) -> list[Window]:
    """The neighbours of the hits in the same order, where they count."""
    if not weights.neighbours:
        return []
    return tx.all("kernel.rerank.neighbours", Window, ids=as_json([hit.doc for hit in hits]))


def _around(tx: Tx, model: int, windows: Sequence[Window], known: Mapping[int, Hit]) -> dict[int, _Held]:
    """What is held of the neighbours that the search has not found by itself."""
    docs = {doc for window in windows for doc in window.around if doc is not None and doc not in known}
    return _material(tx, model, sorted(docs)) if docs else {}


def _beside(pool: _Pool, held: Mapping[int, _Held], query: bytes | None) -> list[Hit]:
    """Neighbours as hits, with how near they are to the query, if there is one."""
    near = pool.likeness.similarities(query, [*held]) if query else [None] * len(held)
    return [_hit(item, similarity) for item, similarity in zip(held.values(), near, strict=True)]


def _embedder(tx: Tx) -> Any:
    return world(tx).embedder


def _hit(item: _Held, similarity: float | None) -> Hit:
    distance = None if similarity is None else math.sqrt(max(0.0, 2.0 - 2.0 * similarity))
    return Hit(item.doc, item.space, item.key, None, distance, similarity)


def _interacted(tx: Tx, query: bytes, pool: _Pool, beginning: float) -> dict[int, Hit]:
    """The hits of the pool of which something is held with their late-interaction scores.

    `beginning` is the share of where a text begins: one that stands by itself says there what it is about.
    """
    known = [hit for hit in pool.hits if hit.doc in pool.held]
    scores = _embedder(tx).interaction(query, [pool.held[hit.doc].tokens for hit in known], beginning)
    return {
        hit.doc: Hit(hit.doc, hit.space, hit.id, hit.text_rank, hit.distance, hit.similarity, score)
        for hit, score in zip(known, scores, strict=True)
    }
