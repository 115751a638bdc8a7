"""One score out of several signals: each over its best, weighted, and some of what stands beside a document in time."""

from collections.abc import Iterable, Mapping, Sequence
from operator import add
from typing import NamedTuple

from kernel.search.evidence import Hit

_FADING = (1.0, 0.6)


class Weights(NamedTuple):
    """What each signal counts; the defaults are chosen on development data (`loadtests/quality/README.md`)."""

    words: float = 0.4
    meaning: float = 0.3
    late: float = 0.4
    neighbours: float = 0.35


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


def preliminary_order(hits: Sequence[Hit], weights: Weights) -> list[Hit]:
    """The hits in the order of what words and meaning say; ties are broken by the older document."""
    words = _shares([hit.text_rank or 0.0 for hit in hits], weights.words)
    meaning = _shares([hit.similarity or 0.0 for hit in hits], weights.meaning)
    shares = zip(words, meaning, strict=True)
    order = sorted([(-one - other, hits[at].doc, at) for at, (one, other) in enumerate(shares)])
    return [hits[at] for _, _, at in order]


def fuse(
    hits: Sequence[Hit], weights: Weights, windows: Iterable[Window] = (), neighbours: float = 0.0
) -> list[Scored]:
    """Hits with their scores, best first: the weighted sum of each signal over its largest value.

    A signal that found nothing takes no part; ties are broken by the older document. Late interaction is looked at for
    the foremost hits only: where it is unknown, the middle of what was found is assumed. On top of that come the scores
    of the neighbours that `windows` tell of, times `neighbours`, and fading with the distance in time.
    """
    known = sorted([hit.late for hit in hits if hit.late is not None])
    unknown = known[len(known) // 2] if known else 0.0
    words = _shares([hit.text_rank or 0.0 for hit in hits], weights.words)
    meaning = _shares([hit.similarity or 0.0 for hit in hits], weights.meaning)
    late = _shares([unknown if hit.late is None else hit.late for hit in hits], weights.late)
    total = sum(weight for weight, shares in zip(weights, (words, meaning, late), strict=False) if any(shares)) or 1.0
    alone = [(one + other + third) / total for one, other, third in zip(words, meaning, late, strict=True)]
    beside = [0.0] * len(hits)
    if neighbours > 0:
        scores = dict(zip([hit.doc for hit in hits], alone, strict=True))
        beside = [neighbours * extra for extra in _beside(scores, windows).values()]
    most = max(1.0, max(map(add, alone, beside), default=0.0))
    scale = total * most
    found = [
        Scored(min(1.0, (score + extra) / most), hit, Parts(one / scale, other / scale, third / scale, extra / most))
        for score, extra, hit, one, other, third in zip(alone, beside, hits, words, meaning, late, strict=True)
    ]
    found.sort(key=_order)
    return found


def _beside(scores: Mapping[int, float], windows: Iterable[Window]) -> dict[int, float]:
    """The fading sum of the neighbours' scores for each document, as far as the windows tell of whom they are."""
    extra = dict.fromkeys(scores, 0.0)
    seen: set[tuple[int, int]] = set()
    for window in windows:
        row = [doc for doc in window if doc is not None and doc in scores]
        for distance, fading in enumerate(_FADING, start=1):
            for pair in zip(row, row[distance:], strict=False):
                if pair not in seen:
                    seen.add(pair)
                    one, other = pair
                    extra[one] += fading * scores[other]
                    extra[other] += fading * scores[one]
    return extra


def _shares(values: Sequence[float], weight: float) -> list[float]:
    """The weighted share of the largest value, nothing below 0."""
    best = max(values, default=0.0)
    return [weight * (value / best) if value > 0 else 0.0 for value in values] if best > 0 else [0.0] * len(values)


def _order(scored: Scored) -> tuple[float, int]:
    return -scored.score, scored.hit.doc
