"""The order of what recall has found: recency on top of the evidence, the same said again less, no source too often."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from kernel.search.index import Document, Parts, Scored

_DAY = 86_400.0


class Item(NamedTuple):
    """One memory with its score, which is the sum of `parts` and `recency` times `factor`.

    `alike` counts the better memories that say nearly the same.
    """

    score: float
    scored: Scored | None
    document: Document
    parts: Parts = Parts()
    recency: float = 0.0
    alike: int = 0
    factor: float = 1.0


class Rules(NamedTuple):
    """How to order: the weight of recency and its half-life in days seen from `now`, how many memories that are alike
    count in full, and how many there may be of one source; 0 for any number.
    """

    recency: float
    half_life: float
    now: str
    alike: int
    per_source: int


def ordered(
    scored: Sequence[Scored], documents: Mapping[int, Document], leaders: Mapping[int, int], rules: Rules
) -> list[Item]:
    """The memories among the documents, best first; `leaders` gives the first of those that say nearly the same."""
    items = [_item(one, documents[one.hit.doc], rules) for one in scored if one.hit.doc in documents]
    items.sort(key=_order)
    return _varied(items, leaders, rules)


def leading(scored: Sequence[Scored], leaders: Mapping[int, int], alike: int, wanted: int) -> Sequence[Scored]:
    """As many of the scored, best first, as hold the `wanted` best once what says nearly the same counts less."""
    groups: dict[int, int] = {}
    full = 0
    for number, one in enumerate(scored):
        if full == wanted:
            return scored[:number]
        leader = leaders.get(one.hit.doc, one.hit.doc)
        groups[leader] = groups.get(leader, 0) + 1
        full += not alike or groups[leader] <= alike
    return scored


def recency(updated_at: str, now: str, half_life: float) -> float:
    """1 for what was written just now, half of it after each half-life in days; times are ISO 8601."""
    age = (datetime.fromisoformat(now) - datetime.fromisoformat(updated_at)).total_seconds() / _DAY
    return 0.5 ** (max(0.0, age) / half_life)


def _item(scored: Scored, document: Document, rules: Rules) -> Item:
    if not rules.recency:
        return Item(scored.score, scored, document, scored.parts)
    whole = 1.0 + rules.recency
    fresh = rules.recency * recency(document.updated_at, rules.now, rules.half_life)
    parts = Parts(*(part / whole for part in scored.parts))
    return Item((scored.score + fresh) / whole, scored, document, parts, fresh / whole)


def _varied(items: Sequence[Item], leaders: Mapping[int, int], rules: Rules) -> list[Item]:
    """The same, with what says nearly the same as others counted less and without what a source has too much of."""
    groups: dict[int, int] = {}
    sources: dict[tuple[str, str, str], int] = {}
    kept: list[Item] = []
    for item in items:
        document = item.document
        if rules.per_source:
            source = (document.actor, document.space, document.scope)
            sources[source] = sources.get(source, 0) + 1
            if sources[source] > rules.per_source:
                continue
        leader = leaders.get(document.doc, document.doc)
        before = groups[leader] = groups.get(leader, -1) + 1
        factor = min(1.0, rules.alike / (before + 1)) ** 2 if rules.alike else 1.0
        kept.append(item._replace(score=item.score * factor, alike=before, factor=factor) if before else item)
    kept.sort(key=_order)
    return kept


def _order(item: Item) -> tuple[float, int]:
    return -item.score, item.document.doc
