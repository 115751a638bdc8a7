"""The order of recall's results: recency on top of the evidence, near-duplicates damped, a cap per source."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from types import MappingProxyType
from typing import Any, NamedTuple

from msgspec.structs import astuple, replace

from kernel.core.times import stored_time
from kernel.memories.succession import RankedDocument
from kernel.search.index import Document, Parts, Scored

_SECONDS_PER_DAY = 86_400.0
_SCORE, _DOC = attrgetter("score"), attrgetter("document.doc")


class ScoredDocument(RankedDocument, frozen=True):
    """One memory and its score: the sum of `parts` and `recency`, times `factor`.

    `alike` counts the better-scored near-duplicates, `expired` says that its validity has ended, and `beside` are its
    parts that the text does not hold.
    """

    parts: Parts = Parts()
    recency: float = 0.0
    alike: int = 0
    factor: float = 1.0
    expired: bool = False
    beside: Mapping[str, Any] = MappingProxyType({})


class OrderRules(NamedTuple):
    """Parameters of the order: weight and half-life (days before `now`) of recency, the number of near-duplicates that
    count in full, and the maximum per source; 0 for no limit.
    """

    recency: float
    half_life: float
    now: str
    alike: int
    per_source: int


def order(
    hits: Sequence[Scored], documents: Mapping[int, Document], leaders: Mapping[int, int], rules: OrderRules
) -> list[ScoredDocument]:
    """Scores the hits whose documents are given, best first; `leaders` maps near-duplicates to the first of them."""
    scored = [item for item in hits if item.hit.doc in documents]
    if rules.recency:
        items = [_with_recency(item, documents[item.hit.doc], rules) for item in scored]
    else:
        items = [ScoredDocument(item.score, item, documents[item.hit.doc], parts=item.parts) for item in scored]
    items = _best_first(items)
    return _diversify(items, leaders, rules) if leaders or rules.per_source else items


def prefix_holding(docs: Sequence[int], leaders: Mapping[int, int], alike: int, count: int) -> int:
    """Return the length of the shortest prefix that contains the `count` best after near-duplicates are damped."""
    if not leaders:
        return min(count, len(docs))
    groups: dict[int, int] = {}
    full = 0
    for number, doc in enumerate(docs):
        if full == count:
            return number
        leader = leaders.get(doc, doc)
        groups[leader] = groups.get(leader, 0) + 1
        full += not alike or groups[leader] <= alike
    return len(docs)


def recency(updated_at: str, now: str, half_life: float) -> float:
    age = (datetime.fromisoformat(now) - stored_time(updated_at)).total_seconds() / _SECONDS_PER_DAY
    return 0.5 ** (max(0.0, age) / half_life)


def _with_recency(hit: Scored, document: Document, rules: OrderRules) -> ScoredDocument:
    whole = 1.0 + rules.recency
    fresh = rules.recency * recency(document.updated_at, rules.now, rules.half_life)
    parts = Parts(*[part / whole for part in astuple(hit.parts)])
    return ScoredDocument((hit.score + fresh) / whole, hit, document, parts=parts, recency=fresh / whole)


def _diversify(items: Sequence[ScoredDocument], leaders: Mapping[int, int], rules: OrderRules) -> list[ScoredDocument]:
    """Lower near-duplicates and drop documents over the maximum of their source."""
    groups: dict[int, int] = {}
    sources: dict[tuple[str, str, str], int] = {}
    diverse: list[ScoredDocument] = []
    for item in items:
        document = item.document
        if rules.per_source:
            source = (document.actor, document.space, document.scope)
            sources[source] = sources.get(source, 0) + 1
            if sources[source] > rules.per_source:
                continue
        leader = leaders.get(document.doc, document.doc)
        before = groups[leader] = groups.get(leader, -1) + 1
        # Squared, so that a flood of near-duplicates falls below other evidence soon after the first few.
        factor = min(1.0, rules.alike / (before + 1)) ** 2 if rules.alike else 1.0
        diverse.append(replace(item, score=item.score * factor, alike=before, factor=factor) if before else item)
    return _best_first(diverse)


def _best_first(items: list[ScoredDocument]) -> list[ScoredDocument]:
    """Return the items by falling score; ties go to the older document."""
    return sorted(sorted(items, key=_DOC), key=_SCORE, reverse=True)
