"""Fusion: one score from several signals, each scaled by its maximum, weighted, and a share of neighbours' scores."""

from collections.abc import Iterable, Mapping, Sequence
from operator import add
from typing import NamedTuple

from kernel.search.hits import Hit

_NEIGHBOUR_DECAY = (1.0, 0.6)  # share of a neighbour's score at a distance of one and of two; not measured singly


class Weights(NamedTuple):
    """The weight of each signal; the defaults are chosen on development data (see README.md)."""

    words: float = 0.4
    meaning: float = 0.3
    late: float = 0.4
    neighbours: float = 0.35


class Parts(NamedTuple):
    """What each signal contributes to a score."""

    words: float = 0.0
    meaning: float = 0.0
    late: float = 0.0
    neighbours: float = 0.0


class Scored(NamedTuple):
    """A hit with its score in [0, 1], the sum of its parts."""

    score: float
    hit: Hit
    parts: Parts


class Window(NamedTuple):
    """A document between the two before and the two after it in its partition, by insertion; None past the ends."""

    before: int | None
    previous: int | None
    doc: int
    next: int | None
    after: int | None


def preliminary_order(hits: Sequence[Hit], weights: Weights) -> list[Hit]:
    """The hits by BM25 and cosine only, best first; ties go to the older document."""
    words = _scaled([hit.text_rank or 0.0 for hit in hits], weights.words)
    meaning = _scaled([hit.similarity or 0.0 for hit in hits], weights.meaning)
    scores = zip(words, meaning, strict=True)
    order = sorted([(-one - other, hits[at].doc, at) for at, (one, other) in enumerate(scores)])
    return [hits[at] for _, _, at in order]


def fuse(
    hits: Sequence[Hit], weights: Weights, windows: Iterable[Window] = (), neighbours: float = 0.0
) -> list[Scored]:
    """Hits with their scores, best first; ties go to the older document.

    A score is the weighted mean of the signals, each over its largest value; a signal without any value is left out.
    A hit without a late-interaction score gets the median. Then the scores of the neighbours in `windows` are added,
    times `neighbours` and decaying with distance.
    """
    # The median for hits outside the reranked pool: LoCoMo R@10 .754; with the minimum .750.
    known = sorted([hit.late for hit in hits if hit.late is not None])
    median = known[len(known) // 2] if known else 0.0
    words = _scaled([hit.text_rank or 0.0 for hit in hits], weights.words)
    meaning = _scaled([hit.similarity or 0.0 for hit in hits], weights.meaning)
    late = _scaled([median if hit.late is None else hit.late for hit in hits], weights.late)
    total = sum(weight for weight, values in zip(weights, (words, meaning, late), strict=False) if any(values)) or 1.0
    own = [(one + other + third) / total for one, other, third in zip(words, meaning, late, strict=True)]
    extra = [0.0] * len(hits)
    if neighbours > 0:
        scores = dict(zip([hit.doc for hit in hits], own, strict=True))
        extra = [neighbours * score for score in _neighbour_scores(scores, windows).values()]
    largest = max(1.0, max(map(add, own, extra), default=0.0))
    scale = total * largest
    found = [
        Scored(min(1.0, (base + plus) / largest), hit, Parts(one / scale, other / scale, third / scale, plus / largest))
        for base, plus, hit, one, other, third in zip(own, extra, hits, words, meaning, late, strict=True)
    ]
    found.sort(key=_order)
    return found


def _neighbour_scores(scores: Mapping[int, float], windows: Iterable[Window]) -> dict[int, float]:
    """The decayed sum of neighbours' scores for each document, as far as the windows reach."""
    extra = dict.fromkeys(scores, 0.0)
    seen: set[tuple[int, int]] = set()  # overlapping windows contain the same pair
    for window in windows:
        row = [doc for doc in window if doc is not None and doc in scores]
        for distance, decay in enumerate(_NEIGHBOUR_DECAY, start=1):
            for pair in zip(row, row[distance:], strict=False):
                if pair not in seen:
                    seen.add(pair)
                    one, other = pair
                    extra[one] += decay * scores[other]
                    extra[other] += decay * scores[one]
    return extra


def _scaled(values: Sequence[float], weight: float) -> list[float]:
    """Each value over the largest, times `weight`; 0 for values below 0."""
    best = max(values, default=0.0)
    return [weight * (value / best) if value > 0 else 0.0 for value in values] if best > 0 else [0.0] * len(values)


def _order(scored: Scored) -> tuple[float, int]:
    return -scored.score, scored.hit.doc
