"""Which vectors are near to that of a text: a coarse look at all of them, an exact one at the nearest."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from kernel.search import ann_storage
from kernel.search.ann import Sketches
from kernel.search.evidence import Hit, PartitionSet, SearchCache, as_json, embedded, model_id
from kernel.store.transaction import Tx

_CANDIDATES = 1280
_TIMES = 8  # candidates for every result, where results are many
_TRIES = 4


class Near(NamedTuple):
    """One document near the query: `similarity` is the cosine of the two vectors."""

    doc: int
    space: str
    key: str
    similarity: float


def by_meaning(
    tx: Tx, text: str, places: PartitionSet | None, limit: int, also: Sequence[int], among: Sequence[int] | None = None
) -> dict[int, Near]:
    """The documents whose vectors are nearest to that of `text`, and the similarity of those in `also`.

    While the sketches are being read, the latter alone. What is `among` these documents is sought there, each of them
    being looked at.
    """
    number = model_id(tx)
    query = embedded(tx, [text]) if number else None
    if not query or not query[0].scale:
        return {}
    vector = query[0].vector
    if among is not None:
        near = _scored(tx, "kernel.semantic.score_docs", vector, number, among, limit)
    elif places is not None and places.few:
        near = _scored(tx, "kernel.semantic.score_partitions", vector, number, places.ids, limit)
    else:
        near = {} if _waits(tx) else _nearest(tx, vector, number, None if places is None else places.ids, limit)
    if missing := [doc for doc in also if doc not in near]:
        near |= _scored(tx, "kernel.semantic.score_docs", vector, number, missing, len(missing))
    return near


def hit_of(row: Near, rank: float | None) -> Hit:
    """The evidence of one document that has a vector; `rank` is its BM25 where words matched."""
    distance = math.sqrt(max(0.0, 2.0 - 2.0 * row.similarity))
    return Hit(row.doc, row.space, row.key, rank, distance, row.similarity)


def load_sketches(tx: Tx) -> None:
    """Reads the sketches that are not in memory yet; `tx` must see nothing that may be rolled back."""
    memory: SearchCache = tx.context.search_cache
    if number := model_id(tx):
        memory.sketches.extend(ann_storage.source(tx, number))


def _waits(tx: Tx) -> bool:
    """Whether the sketches are being read beside the calls, and so many are missing that a read must not wait."""
    memory: SearchCache = tx.context.search_cache
    return (
        memory.warming
        and tx.readonly
        and (tx.one("kernel.semantic.last_vector_id", int) or 0) - memory.sketches.last > ann_storage.SIZE
    )


def _nearest(tx: Tx, vector: bytes, model: int, places: Sequence[int] | None, limit: int) -> dict[int, Near]:
    wanted = max(_CANDIDATES, _TIMES * limit)
    near: dict[int, Near] = {}
    for _ in range(_TRIES):  # what this transaction has deleted, or others have since, is among the candidates
        coarse = _coarse(tx, vector, model, places, wanted)
        near = _scored(tx, "kernel.semantic.score_vectors", vector, model, coarse, limit)
        if len(near) >= min(len(coarse), limit):
            break
        wanted *= 4
    return near


def _coarse(tx: Tx, vector: bytes, model: int, places: Sequence[int] | None, wanted: int) -> list[int]:
    """Candidates by sketch; what may be rolled back is looked at through sketches of its own, never kept."""
    memory: SearchCache = tx.context.search_cache
    shared = memory.sketches
    if memory.can_cache(tx):
        shared.extend(ann_storage.source(tx, model))
        return shared.nearest(vector, wanted, places)
    last = shared.last
    own = Sketches(lambda: shared.sketcher)
    own.extend(ann_storage.source(tx, model, last))
    return own.nearest(vector, wanted, places) + (shared.nearest(vector, wanted, places) if last else [])


def _scored(tx: Tx, query: str, vector: bytes, model: int, ids: Sequence[int], limit: int) -> dict[int, Near]:
    rows = tx.all(query, Near, ids=as_json(ids), vector=vector, model=model, limit=limit)
    return {row.doc: row for row in rows}
