"""What recall finds: candidates of the index that pass its filters, as many as a page and its variety need."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from handlers.common.schemas import Recall, Weights
from handlers.common.scoring import Item, Rules, leading, ordered
from kernel.errors import Fault
from kernel.search import index
from kernel.search.index import Document, Hit, Scored
from kernel.search.pagination import SeenPage
from kernel.store.transaction import Tx
from kernel.text import one_line, utc_time

_CANDIDATES = 101
_FILTERED_CANDIDATES = 400
_WIDER = 8
_WIDEST = 3200
_VARIETY = 10


class Times(NamedTuple):
    """The times of a request as the index has them, "" for none."""

    after: str
    before: str


class Asked(NamedTuple):
    """A request with what was made of it once."""

    request: Recall
    within: Sequence[tuple[str, str | None]] | None
    times: Times
    weights: index.Weights
    rules: Rules
    shown: SeenPage | None


def asked(tx: Tx, request: Recall, shown: SeenPage | None) -> Asked:
    """The request with its places, times and rules; raises Fault("invalid") naming what is no time."""
    within = None
    if request.spaces or request.dialects or request.scope is not None:
        within = index.partitions_of(tx, request.spaces or None, request.dialects or None, request.scope)
    times = Times(_time("after", request.after), _time("before", request.before))
    weights = _weights(request.weights)
    now = shown.since if shown else tx.now
    rules = Rules(request.weights.recency, request.half_life_days, now, request.alike, request.per_source)
    return Asked(request, within, times, weights, rules, shown)


def _weights(given: Weights) -> index.Weights:
    """Whoever asks for words alone, or for meaning alone, gets just that."""
    usual = index.Weights() if given.words > 0 and given.meaning > 0 else index.Weights(late=0, neighbours=0)
    late = usual.late if given.late is None else given.late
    neighbours = usual.neighbours if given.neighbours is None else given.neighbours
    return index.Weights(given.words, given.meaning, late, neighbours)


def question(request: Recall) -> str:
    """All that decides which memories are found and in what order."""
    asked = (request.query, request.dialects, request.spaces, request.scope, request.actor)
    order = (request.weights, request.half_life_days, request.alike, request.per_source)
    return msgspec.json.encode((*asked, request.after, request.before, request.quarantined, *order)).decode()


def found(tx: Tx, asked: Asked) -> tuple[list[Hit], list[Item]]:
    """What was found, and of it what the page may hold, best first: one more than its limit where there is more."""
    wanted = asked.request.limit + 1
    before = len(asked.shown.digests) if asked.shown else 0
    among = index.prefilter(tx, asked.request.actor, *asked.times, asked.within) if _narrow(asked) else None
    width = max(_FILTERED_CANDIDATES if _narrow(asked) and among is None else _CANDIDATES, before + wanted)
    while True:
        hits = index.search(
            tx,
            asked.request.query,
            within=asked.within,
            limit=width,
            docs=among,
            lexical=asked.weights.words > 0,
            semantic=asked.weights.meaning > 0,
        )
        items, varied = _ranked(tx, asked, hits, before + wanted)
        enough = len(items) >= wanted and varied >= min(wanted, _VARIETY)
        if enough or len(hits) < width or width >= _WIDEST:
            return hits, items
        width = min(width * _WIDER, _WIDEST)


def by_id(tx: Tx, request: Recall) -> list[Item]:
    """The memories of ids that a recall gave, in that order; raises Fault("invalid") for what is no id."""
    keys: list[tuple[str, str]] = []
    for given in request.ids:
        space, slash, key = given.partition("/")
        if not slash:
            raise Fault("invalid", f"ids: {one_line(given, 80)} is not an id of a recall")
        keys.append((space, key))
    docs = index.doc_ids(tx, keys)
    documents = index.documents(tx, docs)
    kept = (documents[doc] for doc in docs if doc in documents)
    return [Item(1.0, None, document) for document in kept if not _apart(tx, request, document)]


def _narrow(asked: Asked) -> bool:
    """Whether hits are dropped after the search, so that more of them are needed."""
    return asked.request.actor is not None or any(asked.times)


def _some(asked: Asked) -> bool:
    """Whether the documents themselves decide which hits come first, or at all."""
    return _narrow(asked) or asked.shown is not None or asked.rules.recency > 0 or asked.rules.per_source > 0


def _ranked(tx: Tx, asked: Asked, hits: list[Hit], wanted: int) -> tuple[list[Item], int]:
    """What passes, in order, and how many of the hits say something of their own."""
    if not _some(asked):
        ranking = index.rerank(tx, asked.request.query, hits, asked.weights, wanted=wanted)
        first = _foremost(tx, asked, ranking, wanted)
        if not any(_apart(tx, asked.request, item.document) for item in first):
            return first, _varied(ranking)
    documents = _passing(tx, asked, hits)
    ranking = index.rerank(tx, asked.request.query, [hit for hit in hits if hit.doc in documents], asked.weights)
    documents |= _passing(tx, asked, [one.hit for one in ranking.scored if one.hit.doc not in documents])
    items = ordered(ranking.scored, documents, ranking.leaders, asked.rules)
    shown = asked.shown
    return [item for item in items if shown is None or _follows(item.document, shown)], _varied(ranking)


def _varied(ranking: index.Ranking) -> int:
    return sum(ranking.leaders.get(one.hit.doc, one.hit.doc) == one.hit.doc for one in ranking.scored)


def _foremost(tx: Tx, asked: Asked, ranking: index.Ranking, wanted: int) -> list[Item]:
    """The best of the ranking, where nothing but their evidence decides: only their documents need to be read."""
    scored = leading(ranking.scored, ranking.leaders, asked.rules.alike, wanted)
    first = ordered(scored, {one.hit.doc: _unread(one) for one in scored}, ranking.leaders, asked.rules)[:wanted]
    documents = index.documents(tx, [item.document.doc for item in first])
    return [item._replace(document=documents[item.document.doc]) for item in first if item.document.doc in documents]


def _unread(scored: Scored) -> Document:
    return Document(scored.hit.doc, scored.hit.space, scored.hit.id, "", "", "", "", "", "", "")


def _passing(tx: Tx, asked: Asked, hits: Sequence[Hit]) -> dict[int, Document]:
    documents = index.documents(tx, [hit.doc for hit in hits])
    return {doc: document for doc, document in documents.items() if _passes(tx, document, asked)}


def _apart(tx: Tx, request: Recall, document: Document) -> bool:
    return document.flag is not None and not request.quarantined and index.is_quarantining(tx)


def _passes(tx: Tx, document: Document, asked: Asked) -> bool:
    times = asked.times
    return (
        not _apart(tx, asked.request, document)
        and asked.request.actor in (None, document.actor)
        and (not times.after or document.updated_at >= times.after)
        and (not times.before or document.updated_at < times.before)
    )


def _follows(document: Document, shown: SeenPage) -> bool:
    return shown.existed(document.doc, document.created_at) and not shown.contains(document.space, document.key)


def _time(name: str, given: str) -> str:
    moment = utc_time(given) if given else ""
    if moment is None:
        raise Fault("invalid", f"{name} is not an ISO 8601 time")
    return moment
