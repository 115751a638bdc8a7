"""One score out of several signals: each over its best, weighted, and some of what stands beside a document in time."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kernel.evidence import Hit

FADING = (1.0, 0.6)


class Weights(NamedTuple):
    """What each signal counts; the defaults are chosen on development data (`loadtests/quality/README.md`)."""

    words: float = 0.4
    meaning: float = 0.3
    late: float = 0.3
    neighbours: float = 0.3


class Parts(NamedTuple):
    """What each signal adds to a score."""

    words: float = 0.0
    meaning: float = 0.0
    late: float = 0.0
    neighbours: float = 0.0


class Scored(NamedTuple):
    """A hit with its score in [0, 1], which is the sum of its parts."""

    score: float
    hit: Hit
    parts: Parts


class Window(NamedTuple):
    """A document between the two before and the two after it in its place, None where there are none."""

    before: int | None
    previous: int | None
    doc: int
    next: int | None
    after: int | None

    @property
    def around(self) -> tuple[int | None, int | None, int | None, int | None]:
        """The neighbours, in the order of time."""
        return self.before, self.previous, self.next, self.after


def fuse(hits: Sequence[Hit], weights: Weights) -> list[Scored]:
    """Hits with their scores, best first: the weighted sum of each signal over its largest value, neighbours apart.

    A signal that found nothing takes no part; ties are broken by the older document. Late interaction is looked at for
    the foremost hits only: where it is unknown, the least that was found is assumed.
    """
    least = min((hit.late for hit in hits if hit.late is not None), default=0.0)
    words = _shares([hit.text_rank or 0.0 for hit in hits], weights.words)
    meaning = _shares([hit.similarity or 0.0 for hit in hits], weights.meaning)
    late = _shares([least if hit.late is None else hit.late for hit in hits], weights.late)
    total = sum(weight for weight, shares in zip(weights, (words, meaning, late), strict=False) if any(shares)) or 1.0
    found = [
        Scored((one + other + third) / total, hit, Parts(one / total, other / total, third / total))
        for hit, one, other, third in zip(hits, words, meaning, late, strict=True)
    ]
    found.sort(key=_order)
    return found


def spread(scored: Sequence[Scored], windows: Iterable[Window], weight: float) -> list[Scored]:
    """The same with what their neighbours score, times `weight`, and fading with the distance in time."""
    scores = {one.hit.doc: one.score for one in scored}
    extra = _beside(scores, windows) if weight > 0 else {}
    best = max((one.score + weight * extra.get(one.hit.doc, 0.0) for one in scored), default=0.0)
    if not extra or not best:
        return list(scored)
    scale = 1 / max(1.0, best)
    found: list[Scored] = []
    for score, hit, (words, meaning, late, _) in scored:
        beside = weight * extra.get(hit.doc, 0.0)
        parts = Parts(words * scale, meaning * scale, late * scale, beside * scale)
        found.append(Scored(min(1.0, (score + beside) * scale), hit, parts))
    found.sort(key=_order)
    return found


def _beside(scores: Mapping[int, float], windows: Iterable[Window]) -> dict[int, float]:
    """The fading sum of the neighbours' scores, as far as the windows tell who is a neighbour of whom."""
    extra = dict.fromkeys(scores, 0.0)
    seen: set[tuple[int, int]] = set()
    for window in windows:
        row = [doc for doc in window if doc is not None]
        for distance, fading in enumerate(FADING, start=1):
            for pair in zip(row, row[distance:], strict=False):
                if pair in seen or pair[0] not in scores or pair[1] not in scores:
                    continue
                seen.add(pair)
                extra[pair[0]] += fading * scores[pair[1]]
                extra[pair[1]] += fading * scores[pair[0]]
    return extra


def _shares(values: Sequence[float], weight: float) -> list[float]:
    """The weighted share of the largest value, nothing below 0."""
    best = max(values, default=0.0)
    return [weight * (value / best) if value > 0 else 0.0 for value in values] if best > 0 else [0.0] * len(values)


def _order(scored: Scored) -> tuple[float, int]:
    return -scored.score, scored.hit.doc
