"""Retrieval for recall: candidates of the index that match the filters, as many as a diverse page needs."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from handlers.common import as_of
from handlers.common.filters import MAX_DOCS, Filters, filter_after_search, filters_of, folder_documents, matches
from handlers.common.schemas import Recall, SignalWeights
from handlers.common.scoring import OrderRules, ScoredDocument, order, prefix_holding
from kernel.calls.dialect import beside_of
from kernel.core.errors import Fault
from kernel.core.text import json_text, one_line, words_of_json
from kernel.memories.as_of import expired_of
from kernel.memories.succession import newer_first
from kernel.search import index
from kernel.search.index import Candidates, Document
from kernel.search.pagination import SeenPage
from kernel.store.transaction import Tx

_SHOWN_ID = 80  # characters
_MIN_CANDIDATES = 101  # the largest page, and one more that shows whether another page follows
_FILTERED_CANDIDATES = 400  # filters that the index cannot apply drop most hits
_MAX_TAGGED = 400  # searched singly, 2,450 of 5,000 took nine times a search, and filtering its hits 1.3 times
_WIDENING_FACTOR = 8  # at most two rounds
_MAX_CANDIDATES = 3200  # bounds the cost of one recall
_MIN_DISTINCT = 10  # a flood of near-duplicates must not fill all candidates


class RecallQuery(NamedTuple):
    request: Recall
    filters: Filters
    weights: index.Weights
    rules: OrderRules
    shown: SeenPage | None
    changed: as_of.Changed | None = None
    valid_only: bool = False


def prepare(tx: Tx, request: Recall, page: SeenPage | None) -> RecallQuery:
    """Return the request with its filters and rules; raises Fault("invalid") naming a filter that is none."""
    weights = _weights(request.weights)
    filters = filters_of(tx, request)
    now = filters.at or (page.since if page else tx.now)
    rules = OrderRules(request.weights.recency, request.half_life_days, now, request.alike, request.per_source)
    return RecallQuery(request, filters, weights, rules, page)


def _weights(request_weights: SignalWeights) -> index.Weights:
    """Return the weights for the index; with words or meaning alone, the rerank signals default to 0."""
    if not request_weights.words and not request_weights.meaning:
        raise Fault("invalid", "weights: words or meaning must be more than 0")
    are_both = request_weights.words > 0 and request_weights.meaning > 0
    usual = index.Weights() if are_both else index.Weights(late=0, neighbours=0)
    late = usual.late if request_weights.late is None else request_weights.late
    neighbours = usual.neighbours if request_weights.neighbours is None else request_weights.neighbours
    return index.Weights(request_weights.words, request_weights.meaning, late, neighbours)


def query_fingerprint(request: Recall) -> str:
    """Return the parameters that determine results and order: a cursor is valid only for the same."""
    fields = (request.query, request.dialects, request.spaces, request.scope, request.actor)
    hidden_kinds = (request.quarantined, request.expired)
    order = (request.floor, request.weights, request.half_life_days, request.alike, request.per_source)
    return msgspec.json.encode(
        (*fields, request.tags, request.after, request.before, request.as_of, *hidden_kinds, *order)
    ).decode()


class Ranked(NamedTuple):
    """Documents that reach the floor, best first, the number of candidates that are not near-duplicates of others, of
    those below the floor, and of expired memories that would have been on the page.
    """

    items: list[ScoredDocument]
    distinct: int = 0
    below: int = 0
    expired: int = 0


def find(tx: Tx, query: RecallQuery) -> tuple[Candidates, Ranked]:
    """Return the candidates, and the documents for the page: one more than its limit if more follow."""
    count = query.request.limit + 1
    before = len(query.shown.digests) if query.shown else 0
    if query.filters.at:
        changes = as_of.search_changed(tx, query.request.query, query.filters, query.weights)
        query = query._replace(changed=changes)
    among = _prefiltered(tx, query.filters)
    is_filtered = filter_after_search(query.filters) and among is None
    width = max(_FILTERED_CANDIDATES if is_filtered else _MIN_CANDIDATES, before + count)
    while True:
        candidates = index.find(
            tx,
            query.request.query,
            within=query.filters.within,
            limit=width,
            docs=among,
            lexical=query.weights.words > 0,
            semantic=query.weights.meaning > 0,
        )
        is_exhausted = len(candidates.docs) < width
        candidates = candidates.joined(query.changed.found) if query.changed else candidates
        ranking = _rank_valid(tx, query, candidates, before + count)
        enough = len(ranking.items) >= count and ranking.distinct >= min(count, _MIN_DISTINCT)
        # Hits after one below the floor are hardly better.
        if enough or is_exhausted or ranking.below or width >= _MAX_CANDIDATES:
            return candidates, ranking
        width = min(width * _WIDENING_FACTOR, _MAX_CANDIDATES)


def _prefiltered(tx: Tx, filters: Filters) -> list[int] | None:
    """Return the documents to search if filters leave few; None to filter the hits of a search."""
    if filters.tagged is not None and len(filters.tagged) <= _MAX_TAGGED:
        return index.doc_ids(tx, list(filters.tagged))
    if filters.at:
        return as_of.prefilter(tx, filters)
    if filters.actor is not None or filters.after or filters.before:
        return index.prefilter(tx, filters.actor, filters.after, filters.before, filters.within)
    return folder_documents(tx, filters)


def find_newest(tx: Tx, query: RecallQuery) -> Ranked:
    """Return the documents that pass the filters, last changed first: one more than the limit if more follow."""
    count = width = query.request.limit + 1
    while True:
        passing = _newest_passing(tx, query, width)
        valid = _valid(tx, query, passing)
        if len(valid) >= count or len(passing) < width:
            items = [ScoredDocument(1.0, None, document) for document in valid[:count]]
            return Ranked(items, expired=_count_before(passing, valid, count))
        width *= _WIDENING_FACTOR


def _count_before(passing: Sequence[Document], valid: Sequence[Document], count: int) -> int:
    """Return the number of documents left out before the last that is wanted."""
    end = passing.index(valid[count - 1]) if len(valid) >= count else len(passing)
    return end - min(len(valid), count - 1)


def _newest_passing(tx: Tx, query: RecallQuery, count: int) -> list[Document]:
    filters = query.filters
    if filters.at:
        return as_of.newest(tx, filters, partial(_passes, tx, query), count)
    if filters.tagged is not None and len(filters.tagged) <= MAX_DOCS:
        documents = index.documents(tx, index.doc_ids(tx, list(filters.tagged)))
        passing = [document for document in documents.values() if _passes(tx, query, document)]
        passing.sort(key=lambda document: (document.updated_at, document.doc), reverse=True)
        return passing[:count]
    width = count + (len(query.shown.digests) if query.shown else 0)
    while True:
        newest = _newest(tx, filters, width)
        passing = [document for document in newest if _passes(tx, query, document)]
        if len(passing) >= count or len(newest) < width:
            return passing[:count]
        width *= _WIDENING_FACTOR


def _newest(tx: Tx, filters: Filters, limit: int) -> list[Document]:
    docs = index.newest(tx, filters.actor, filters.after, filters.before, filters.within, limit)
    documents = index.documents(tx, docs)
    return [documents[doc] for doc in docs if doc in documents]


def _passes(tx: Tx, query: RecallQuery, document: Document) -> bool:
    return _matches(tx, document, query) and (query.shown is None or _is_new_on_page(document, query.shown))


def find_by_ids(tx: Tx, request: Recall) -> tuple[list[ScoredDocument], int | UnsetType]:
    """Return the memories of ids from an earlier recall that pass the filters, in that order, and as of a time the
    number of those without a text of then; raises Fault("invalid") for an invalid id.
    """
    query = prepare(tx, request, None)
    keys = [_key(tx, id_) for id_ in request.ids]
    at = query.filters.at
    documents, absent = as_of.by_keys(tx, at, keys) if at else (_by_keys(tx, keys), UNSET)
    items = [ScoredDocument(1.0, None, document) for document in documents if _matches(tx, document, query)]
    return marked_expired(tx, items if at else _with_parts(tx, items, request), query.rules.now), absent


def _with_parts(tx: Tx, items: Sequence[ScoredDocument], request: Recall) -> list[ScoredDocument]:
    """Return the memories with the parts that their texts do not hold, but for parts written to steer agents."""
    texts = {(item.document.space, item.document.key): item.document.text for item in items}
    parts = beside_of(tx, texts)
    if index.is_quarantining(tx) and not request.quarantined:
        parts = {place: beside for place, beside in parts.items() if not _steers(beside)}
    return [replace(item, beside=parts.get((item.document.space, item.document.key), {})) for item in items]


def _steers(beside: Mapping[str, object]) -> bool:
    return bool(index.matched_rule(words_of_json(json_text(beside))))


def missing_ids(tx: Tx, ids: Sequence[str]) -> list[str]:
    stored = {(document.space, document.key) for document in _by_keys(tx, [_key(tx, id_) for id_ in ids])}
    return [one_line(id_, _SHOWN_ID) for id_ in ids if _key(tx, id_) not in stored]


def _key(tx: Tx, id_: str) -> tuple[str, str]:
    space, slash, key = id_.partition("/")
    if slash:
        return space, key
    named = [f"{document.space}/{document.key}" for document in index.with_id(tx, id_, sorted(tx.context.dialects))]
    right = f"; that is {' or '.join(named)}" if named else ", such as brain:core/mem_1"
    raise Fault("invalid", f"ids: {one_line(id_, _SHOWN_ID)} is not an id of a recall{right}")


def _by_keys(tx: Tx, keys: Sequence[tuple[str, str]]) -> list[Document]:
    docs = index.doc_ids(tx, keys)
    documents = index.documents(tx, docs)
    return [documents[doc] for doc in docs if doc in documents]


def _needs_documents(query: RecallQuery) -> bool:
    return (
        filter_after_search(query.filters)
        or query.valid_only
        or query.shown is not None
        or query.rules.recency > 0
        or query.rules.per_source > 0
    )


def _rank_valid(tx: Tx, query: RecallQuery, candidates: Candidates, count: int) -> Ranked:
    """Return the matching documents in order, without expired documents unless the request asks for them."""
    ranking = _rank(tx, query, candidates, count)
    first = [item.document for item in ranking.items[: query.request.limit + 1]]
    expired_count = len(first) - len(_valid(tx, query, first))
    if not expired_count:
        return ranking
    return _rank(tx, query._replace(valid_only=True), candidates, count)._replace(expired=expired_count)


def _valid(tx: Tx, query: RecallQuery, documents: Sequence[Document]) -> list[Document]:
    """Return the documents that hold at the time of the question, or all if the request asks for expired memories."""
    if query.request.expired:
        return [*documents]
    expired_keys = _expired_of(tx, documents, query.rules.now)
    return [document for document in documents if (document.space, document.key) not in expired_keys]


def marked_expired(tx: Tx, items: Sequence[ScoredDocument], at: str) -> list[ScoredDocument]:
    """Return the hits, with a mark on those that have expired at a time."""
    ended = _expired_of(tx, [item.document for item in items], at)
    if not ended:
        return [*items]
    return [replace(item, expired=(item.document.space, item.document.key) in ended) for item in items]


def _expired_of(tx: Tx, documents: Iterable[Document], at: str) -> set[tuple[str, str]]:
    return expired_of(tx, [(document.space, document.key) for document in documents], at)


def _rank(tx: Tx, query: RecallQuery, candidates: Candidates, count: int) -> Ranked:
    if not _needs_documents(query):
        ranking, distinct, below = _reranked(tx, query, candidates)
        first = _best_by_evidence(tx, query, ranking, count)
        flagged = [item.document for item in first if item.document.flag]
        if not any(_is_quarantined(tx, query.request, document) for document in flagged):
            return Ranked(first, distinct, below)
    documents = _matching_documents(tx, query, candidates.docs.tolist())
    matching = [at for at, doc in enumerate(candidates.docs.tolist()) if doc in documents]

    def passing(docs: Sequence[int]) -> Collection[int]:
        more = _matching_documents(tx, query, docs)
        documents.update(more)
        return more

    ranking, distinct, below = _reranked(tx, query, candidates.take(matching), passing)
    scores = ranking.fused.scored(len(ranking.fused.scores))
    items = order(scores, documents, ranking.leaders, query.rules)
    page = query.shown
    items = [item for item in items if page is None or _is_new_on_page(item.document, page)]
    return Ranked(newer_first(tx, _as_read(query, ranking), items), distinct, below)


def _reranked(
    tx: Tx, query: RecallQuery, candidates: Candidates, passing: index.Passing | None = None
) -> tuple[index.Ranking, int, int]:
    """Return the ranking down to the floor, and the numbers of distinct candidates and of those below it."""
    fusion, leaders = index.rerank(tx, query.request.query, candidates, query.weights, passing)
    distinct = len(fusion.scores) - len(leaders) + len({*leaders.values()})
    ranking = fusion.at_least(index.least(query.request.floor))
    return index.Ranking(ranking, leaders), distinct, len(fusion.scores) - len(ranking.scores)


def _best_by_evidence(tx: Tx, query: RecallQuery, ranking: index.Ranking, count: int) -> list[ScoredDocument]:
    """Return the best of the ranking if evidence alone decides: only their documents are read."""
    docs = ranking.fused.found.docs.tolist()
    scores = ranking.fused.scored(prefix_holding(docs, ranking.leaders, query.rules.alike, count))
    documents = index.documents(tx, [item.hit.doc for item in scores])
    first = order(scores, documents, ranking.leaders, query.rules)[:count]
    return newer_first(tx, _as_read(query, ranking), first)


def _as_read(query: RecallQuery, ranking: index.Ranking) -> str:
    """Return the question with words of the index for those that are misspelt or abbreviated."""
    return ranking.fused.found.query.text or query.request.query


def _matching_documents(tx: Tx, query: RecallQuery, docs: Sequence[int]) -> dict[int, Document]:
    changes = query.changed
    documents = as_of.documents_of(tx, query.filters.at, docs, changes) if changes else index.documents(tx, docs)
    matching = {doc: document for doc, document in documents.items() if _matches(tx, document, query)}
    if not query.valid_only:
        return matching
    expired_keys = _expired_of(tx, matching.values(), query.rules.now)
    return {doc: item for doc, item in matching.items() if (item.space, item.key) not in expired_keys}


def _is_quarantined(tx: Tx, request: Recall, document: Document) -> bool:
    return document.flag is not None and not request.quarantined and index.is_quarantining(tx)


def _matches(tx: Tx, document: Document, query: RecallQuery) -> bool:
    return not _is_quarantined(tx, query.request, document) and matches(query.filters, document)


def _is_new_on_page(document: Document, page: SeenPage) -> bool:
    return page.existed(document.doc, document.created_at) and not page.contains(document.space, document.key)
