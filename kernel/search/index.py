"""The search index over every dialect: put, drop, and search that returns evidence, not verdicts."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kernel.search import ann_storage, quarantine
from kernel.search.documents import Document, count, documents, find, last, places_of, prefilter
from kernel.search.evidence import (
    COMMON,
    Hit,
    SearchCache,
    as_json,
    embedded,
    has_model,
    kind,
    model_id,
    partitions_within,
)
from kernel.search.fusion import Parts, Scored, Weights, fuse
from kernel.search.lexical import by_words, by_words_among, by_words_each, coverage, every_by_words
from kernel.search.quarantine import is_quarantining
from kernel.search.query import grams
from kernel.search.rerank import POOL, Ranking, rerank
from kernel.search.semantic import Near, by_meaning, hit_of
from kernel.store.transaction import Tx

__all__ = [
    "CANDIDATES",
    "COMMON",
    "POOL",
    "Document",
    "Hit",
    "Parts",
    "Ranking",
    "Scored",
    "SearchCache",
    "Weights",
    "clear",
    "count",
    "coverage",
    "delete_vectors",
    "documents",
    "drop",
    "drop_scope",
    "extra_fts_text",
    "find",
    "fuse",
    "has_model",
    "insert_vectors",
    "is_quarantining",
    "last",
    "model_id",
    "places_of",
    "prefilter",
    "put",
    "rerank",
    "search",
    "search_filtered",
    "set_provenance",
]

CANDIDATES = 100
_WIDER = 8


class _Put(NamedTuple):
    space: str
    key: str
    scope: str
    text: str
    grams: str
    dialect: str
    tool: str
    actor: str
    at: str


def put(tx: Tx, space: str, key: str, text: str, *, scope: str = "", words: str = "") -> None:
    """Makes `(space, key)` findable by `text`, instead of what it was findable by before.

    `words` are further words to find it by, such as its tags, which say nothing of what the text means.
    """
    tx.defer(_flush, _Put(space, key, scope, text, extra_fts_text(text, words), *tx.call_context, tx.now))


def set_provenance(tx: Tx, space: str, key: str, whose: tuple[str, str, str], created_at: str, updated_at: str) -> None:
    """Says of whom (dialect, tool, actor) a document is, and of when: for what is put again as it once was."""
    tx.flush_deferred()
    dialect, tool, actor = whose
    tx.run(
        "kernel.index.set_provenance",
        space=space,
        key=key,
        dialect=dialect,
        tool=tool,
        actor=actor,
        created_at=created_at,
        updated_at=updated_at,
    )


def extra_fts_text(text: str, words: str = "") -> str:
    """What the full-text index holds of a document beside its text: pairs of characters, and further words."""
    return " ".join(part for part in (grams(text), words, grams(words)) if part) if words else grams(text)


def drop(tx: Tx, space: str, key: str) -> None:
    """Makes `(space, key)` unfindable; nothing happens if it is not in the index."""
    tx.defer(_flush, (space, key))


def drop_scope(tx: Tx, space: str, scope: str) -> None:
    """Makes everything of one scope of a space unfindable."""
    tx.flush_deferred()
    stale = tx.all("kernel.index.in_scope", _Stale, space=space, scope=scope)
    _delete(tx, stale)


def clear(tx: Tx, dialect: str) -> None:
    """Makes everything of a dialect unfindable: the spaces that are its name, or begin with it before a colon."""
    tx.flush_deferred()
    _delete(tx, tx.all("kernel.index.in_dialect", _Stale, dialect=dialect))


class _Stale(NamedTuple):
    id: int
    space: str
    key: str
    created_at: str


class _Place(NamedTuple):
    id: int
    space: str
    scope: str


class _Born(NamedTuple):
    """What a document keeps when it is put again: its number, and with it its neighbours, and its time."""

    id: int
    at: str


def _flush(tx: Tx, items: list[Any]) -> None:
    last: dict[tuple[str, str], _Put | None] = {}
    ended: set[tuple[str, str]] = set()
    for item in items:
        key = (item[0], item[1])
        last[key] = item if isinstance(item, _Put) else None
        if last[key] is None:
            ended.add(key)
    born = _delete(tx, tx.all("kernel.index.by_keys", _Stale, keys=as_json(list(last))))
    for key in ended:
        born.pop(key, None)  # what comes after a drop is another document
    if puts := [item for item in last.values() if item is not None]:
        _insert(tx, puts, born)


def _delete(tx: Tx, stale: Sequence[_Stale]) -> dict[tuple[str, str], _Born]:
    if stale:
        ids = [row.id for row in stale]
        tx.run("kernel.index.fts_delete", ids=as_json(ids))
        delete_vectors(tx, ids)
        quarantine.forget(tx, ids)
        tx.run("kernel.index.delete_docs", ids=as_json(ids))
    return {(row.space, row.key): _Born(row.id, row.created_at) for row in stale}


def _insert(tx: Tx, puts: Sequence[_Put], born: dict[tuple[str, str], _Born]) -> None:
    tx.context.search_cache.change(tx)
    places = _places(tx, {(put.space, put.scope) for put in puts})
    fresh = itertools.count((tx.one("kernel.index.last_doc_id", int) or 0) + 1)
    rows: list[tuple[int, str, str, int, str, str, str, str, str, str, str]] = []
    for put in puts:
        known = born.get((put.space, put.key)) or _Born(next(fresh), put.at)
        rows.append(
            (
                known.id,
                put.space,
                put.key,
                places[put.space, put.scope],
                put.text,
                put.grams,
                put.dialect,
                put.tool,
                put.actor,
                known.at,
                put.at,
            )
        )
    tx.run("kernel.index.insert_docs", rows=as_json(rows))
    tx.run("kernel.index.fts_insert", ids=as_json([row[0] for row in rows]))
    insert_vectors(tx, [(row[0], row[4]) for row in rows])
    quarantine.mark(tx, [(row[0], row[1], row[2], row[4]) for row in rows])


def insert_vectors(tx: Tx, docs: Sequence[tuple[int, str]]) -> int:
    """Embeds and stores the vectors of documents, given as (id, text); how many were stored."""
    vectors = embedded(tx, [text for _, text in docs]) if docs and has_model(tx) else None
    if not vectors:
        return 0
    memory: SearchCache = tx.context.search_cache
    memory.change(tx)
    sketches = memory.sketches.sketcher.sketch([item.vector for item in vectors])
    rows: list[tuple[int, float, int, int]] = []
    end = 0
    for (doc, _), item in zip(docs, vectors, strict=True):
        rows.append((doc, item.scale, end + 1, len(item.tokens)))
        end += len(item.tokens)
    number = model_id(tx) or _add_model(tx)
    stored = tx.run(
        "kernel.index.insert_vectors",
        rows=as_json(rows),
        model=number,
        vectors=b"".join([item.vector for item in vectors]),
        vector_size=len(vectors[0].vector),
        sketches=b"".join(sketches),
        sketch_size=len(sketches[0]),
        tokens=b"".join([item.tokens for item in vectors]),
    )
    ann_storage.keep(tx, number, 1 + stored // ann_storage.SIZE)
    return stored


def delete_vectors(tx: Tx, docs: Sequence[int]) -> None:
    """Deletes the vectors of documents, and notes it for those who have read them."""
    tx.context.search_cache.change(tx)
    tx.run("kernel.index.log_vector_deletion", ids=as_json(docs))
    tx.run("kernel.index.delete_vectors", ids=as_json(docs))


def _add_model(tx: Tx) -> int:
    known = kind(tx)
    return tx.one("kernel.index.add_model", int, identity=known[0], dimensions=known[1]) or 0 if known else 0


def _places(tx: Tx, wanted: set[tuple[str, str]]) -> dict[tuple[str, str], int]:
    pairs = as_json(sorted(wanted))
    found = tx.all("kernel.index.partitions", _Place, pairs=pairs)
    if len(found) < len(wanted):
        tx.run("kernel.index.add_partitions", pairs=pairs)
        found = tx.all("kernel.index.partitions", _Place, pairs=pairs)
    return {(place.space, place.scope): place.id for place in found}


def search(
    tx: Tx,
    text: str,
    *,
    within: Sequence[tuple[str, str | None]] | None = None,
    limit: int = CANDIDATES,
    lexical: bool = True,
    semantic: bool = True,
    every: bool = False,
    each: bool = False,
    comparable: bool = False,
    among: Sequence[int] | None = None,
) -> list[Hit]:
    """Evidence for the documents nearest to `text`: up to `limit` by words and up to `limit` by meaning, in one union.

    `within` names (space, scope) pairs, None as scope meaning every scope of the space; None searches everything. With
    `every`, all that words find is there, the similarity of those after the first `limit` left out; with `each`, the
    `limit` best by words of each pair are. Ranks are `comparable` between searches, or by what is rare in few places.
    What is `among` these documents is looked for there alone, each of them being looked at.
    """
    tx.flush_deferred()
    if among is not None:
        return _search_among(tx, text, among, limit, lexical=lexical, semantic=semantic) if text.strip() else []
    ids = None if within is None else tx.all("kernel.index.partitions_matching", int, pairs=as_json([*within]))
    if ids == [] or not text.strip():
        return []
    by_place = lexical and each and not every
    places = None if ids is None or (by_place and not semantic) else partitions_within(tx, ids)
    if not lexical:
        ranks = dict[int, float]()
    elif every:
        ranks = dict(every_by_words(tx, text, places))
    elif each and ids is not None:
        ranks = dict(by_words_each(tx, text, ids, limit))
    else:
        ranks = dict(by_words(tx, text, places, limit, comparable=comparable))
    return _united(tx, ranks, by_meaning(tx, text, places, limit, [*ranks][:limit]) if semantic else {})


def _search_among(tx: Tx, text: str, docs: Sequence[int], limit: int, *, lexical: bool, semantic: bool) -> list[Hit]:
    ranks = dict(by_words_among(tx, text, docs, limit)) if lexical else {}
    return _united(tx, ranks, by_meaning(tx, text, None, limit, [*ranks], docs) if semantic else {})


def _united(tx: Tx, ranks: dict[int, float], found: dict[int, Near]) -> list[Hit]:
    """What meaning has found, and what only words have."""
    missing = [doc for doc in ranks if doc not in found]
    names = {row.doc: row for row in tx.all("kernel.index.keys_of", _Name, ids=as_json(missing))} if missing else {}
    hits = [hit_of(row, ranks.get(row.doc)) for row in found.values()]
    return hits + [
        Hit(doc, names[doc].space, names[doc].key, ranks[doc], None, None) for doc in missing if doc in names
    ]


def search_filtered(
    tx: Tx,
    text: str,
    keep: Callable[[list[Hit]], list[Hit]],
    *,
    limit: int,
    within: Sequence[tuple[str, str | None]] | None = None,
    lexical: bool = True,
    semantic: bool = True,
) -> list[Hit]:
    """`search` with a filter: widens until at least `limit` hits are among those `keep` returns, or there are no more.

    `keep(hits)` gives the hits that pass, so that a filter never starves the result.
    """
    width = max(CANDIDATES, limit)
    while True:
        hits = search(tx, text, within=within, limit=width, lexical=lexical, semantic=semantic)
        kept = keep(hits)
        if len(kept) >= limit or len(hits) < width:
            return kept
        width *= _WIDER


class _Name(NamedTuple):
    doc: int
    space: str
    key: str
