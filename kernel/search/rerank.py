"""Reranking of the pool: late interaction, near-duplicates, neighbours in time."""

import itertools
import math
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kernel.search.evidence import Hit, as_json, embedded, model_id
from kernel.search.fusion import Scored, Weights, Window, fuse, preliminary_order
from kernel.store.transaction import Tx

SAME, SAME_LONG = 0.85, 0.9
LONG = 48  # tokens: where many words meet, texts that say different things are more alike
_TINY = 1e-12


class Likeness:
    """Documents with the directions of their vectors, in groups.

    Whatever is nearly the same as any of a group is in it; the first of a group leads it.
    """

    def __init__(self) -> None:
        self._docs: list[int] = []
        self._first: Indices | None = None  # of each document the number of its leader
        self._matrix: Array | None = None
        self._limits: Array | None = None
        self._ranks: dict[int, int] = {}
        self._units: dict[int, Array] = {}

    @property
    def duplicate_of(self) -> dict[int, int]:
        """The leader of each document's group."""
        first: list[int] = [] if self._first is None else self._first.tolist()
        return {doc: self._docs[at] for doc, at in zip(self._docs, first, strict=True)}

    def rank(self, doc: int) -> int:
        """How many of its group came before a document; 0 for one that leads, or is unknown."""
        return self._ranks.get(doc, 0)

    def add(self, vectors: Mapping[int, bytes], long: Container[int] = ()) -> None:
        """Adds documents with their int8 vectors, in order; `long` are those of more than LONG tokens."""
        import numpy as np

        if not vectors:
            return
        units = units_of([*vectors.values()])
        matrix = units if self._matrix is None else np.concatenate([self._matrix, units])
        own_limits = np.array([SAME_LONG if doc in long else SAME for doc in vectors], np.float32)
        limits = own_limits if self._limits is None else np.concatenate([self._limits, own_limits])
        begin, self._matrix, self._limits = len(self._docs), matrix, limits
        self._docs += vectors
        self._units.update(zip(vectors, units, strict=True))
        own = np.arange(begin, len(matrix))
        first = own if self._first is None else np.concatenate([self._first, own])
        alike = units @ matrix.T >= np.maximum(own_limits[:, None], limits)
        for at in (begin + np.flatnonzero(alike.sum(axis=1) > 1)).tolist():
            groups = np.unique(first[:at][alike[at - begin, :at]])
            if len(groups):
                self._ranks[self._docs[at]] = int(np.isin(first[:at], groups).sum())
                first[at] = groups[0]
                for other in groups[1:].tolist():
                    first[first == other] = groups[0]
        self._first = first

    def join(self, vectors: Mapping[int, bytes]) -> None:
        """Adds documents that are to be in no group."""
        self._units.update(zip(vectors, units_of([*vectors.values()]), strict=True) if vectors else ())

    def similarities(self, query: bytes, docs: Sequence[int]) -> list[float]:
        """The cosine of documents that were added to a query's vector."""
        import numpy as np

        return (np.stack([self._units[doc] for doc in docs]) @ units_of([query])[0]).tolist() if docs else []

    def coherence(self, windows: Sequence[tuple[int, Sequence[int | None]]]) -> float:
        """How much more like each other neighbours in time are than strangers, from 0 to 1; 0 where nobody can say.

        A window is a document with those around it. Strangers are the neighbours of other documents of the same query,
        which are alike as far as the query goes.
        """
        import numpy as np

        near: list[float] = []
        far: list[float] = []
        sides = list(zip(*(around for _, around in windows), strict=True)) if windows else []
        for side in sides:
            pairs = [
                (doc, other)
                for (doc, _), other in zip(windows, side, strict=True)
                if doc in self._units and other in self._units
            ]
            if len(pairs) > 1:
                one, other = (np.stack([self._units[pair[at]] for pair in pairs]) for at in (0, 1))
                products = one @ other.T
                same, every = float(np.trace(products)), float(products.sum())
                near.append(same / len(pairs))
                far.append((every - same) / (len(pairs) ** 2 - len(pairs)))
        if not near:
            return 0.0
        kin, strangers = sum(near) / len(near), sum(far) / len(far)
        return max(0.0, (kin - strangers) / max(1 - strangers, _TINY))


def units_of(vectors: Sequence[bytes]) -> "Array":
    """The directions of int8 vectors, a row for each."""
    import numpy as np

    matrix = np.frombuffer(b"".join(vectors), np.int8).reshape(len(vectors), -1).astype(np.float32)
    return matrix / np.maximum(np.sqrt(np.einsum("ij,ij->i", matrix, matrix)), _TINY)[:, None]


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
    first = preliminary_order(hits, weights)
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
    return Ranking(fuse([*found.values()], weights, windows, weights.neighbours * trust), pool.likeness.duplicate_of)


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
    return tx.context.embedder


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


if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]
    Indices = NDArray[np.intp]
