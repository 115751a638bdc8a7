"""Fusion: one score from several signals, each scaled by its maximum, weighted, and a share of neighbours' scores."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from kernel.core.lazy_numpy import Floats, Ids, np
from kernel.search.confidence import strengths
from kernel.search.hits import Candidates, Hit, candidates, positions
from kernel.search.replies import Turns, reply_scores, turn_factors

_CLEAR_SHARE = 0.85  # of the best own score: only if others reach it may neighbours change who is first
_OTHER_LANGUAGE = 0.9  # of the score of a text that is in English if the query is not, or the other way round
_DATED = 2.0  # times the score of a text of a day that the question names
_INSTRUCTION = 1.5  # times that of a standing instruction, if the question is a request
_NEIGHBOUR_DECAY = (1.0, 0.6)  # share of a neighbour's score at distances 1 and 2; not measured singly


class Weights(NamedTuple):
    """The weight of each signal; the defaults are chosen on development data (see README.md)."""

    words: float = 0.4
    meaning: float = 0.3
    late: float = 0.4
    neighbours: float = 0.35


class Parts(Struct, frozen=True, gc=False):
    """The contribution of each signal to a score."""

    words: float = 0.0
    meaning: float = 0.0
    late: float = 0.0
    neighbours: float = 0.0


class Scored(Struct, frozen=True):
    """A hit with its score in [0, 1], the sum of its parts, and its strength (see `strength`)."""

    score: float
    hit: Hit
    parts: Parts
    strength: float = 1.0


class Fused(NamedTuple):
    """Documents best first, with evidence, scores, the parts of these (a column for each signal) and strengths."""

    found: Candidates
    scores: Floats
    parts: Floats
    strengths: Floats

    def at_least(self, strength: float) -> "Fused":
        mask = self.strengths >= strength
        if mask.all():
            return self
        return Fused(self.found.take(mask), self.scores[mask], self.parts[mask], self.strengths[mask])

    def scored(self, count: int) -> list[Scored]:
        """Return the first `count` as records; `space`, `id` and `distance` of their hits are not set."""
        columns = (*self.found.columns[:4], self.scores, self.parts, self.strengths)
        return [
            Scored(
                score,
                # NaN is not equal to itself.
                Hit(
                    doc,
                    text_rank=words if words == words else None,
                    similarity=meaning if meaning == meaning else None,
                    late=late if late == late else None,
                ),
                Parts(*parts),
                strength,
            )
            for doc, words, meaning, late, score, parts, strength in zip(
                *[column[:count].tolist() for column in columns], strict=True
            )
        ]


def preliminary_order(matches: Candidates, weights: Weights) -> Ids:
    """Return the positions of the candidates by BM25 and cosine only, best first; ties go to the older document."""
    scores = _scaled(matches.words, weights.words) + _scaled(matches.meaning, weights.meaning)
    return (-scores * _factors(matches)).argsort(kind="stable")


def _factors(matches: Candidates) -> Floats | float:
    """Return the factor of each score: of texts of days that the question names, and of instructions for a request."""
    factors: Floats | float = 1.0
    for docs, factor in ((matches.query.dated, _DATED), (matches.query.instructions, _INSTRUCTION)):
        if len(docs):
            factors = factors * np.where(np.isin(matches.docs, docs), factor, 1.0)
    return factors


def fuse(hits: Sequence[Hit], weights: Weights) -> list[Scored]:
    """Return `fuse_candidates` of hits, without neighbours."""
    by_doc = {hit.doc: hit for hit in sorted(hits)}
    evidence = [(hit.text_rank, hit.similarity, hit.late) for hit in by_doc.values()]
    words, meaning, late = np.array(evidence, np.float64).reshape(-1, 3).T
    matches = candidates(dict.fromkeys(by_doc, 0.0), {})._replace(words=words, meaning=meaning, late=late)
    ranking = fuse_candidates(matches, weights)
    return [replace(scored, hit=by_doc[scored.hit.doc]) for scored in ranking.scored(len(hits))]


def fuse_candidates(
    matches: Candidates,
    weights: Weights,
    windows: Ids | None = None,
    neighbours: float = 0.0,
    languages: Ids | None = None,
    turns: Turns | None = None,
) -> Fused:
    """Return candidates with their scores, best first; ties go to the older document.

    A score is the weighted mean of the signals, each over its largest value; a signal without any value is left out.
    A candidate without a late-interaction score gets the median. Then the scores of the neighbours in `windows` are
    added, times `neighbours` and decaying with distance. A window is a document between the two before and the two
    after it in its partition, by insertion; 0 for none. `languages` are those of `strengths`; the documents of
    windows are `turns` in a conversation.
    """
    # The median for hits outside the reranked pool: LoCoMo R@10 .754; with the minimum .750.
    unknown = np.isnan(matches.late)
    known_late = matches.late[~unknown]
    known_late.sort()
    late = np.where(unknown, known_late[len(known_late) // 2] if len(known_late) else 0.0, matches.late)
    parts = np.zeros((4, len(late)))
    for part, values, weight in zip(parts, (matches.words, matches.meaning, late), weights, strict=False):
        part[:] = _scaled(values, weight)
    if languages is not None:
        parts[:, languages % 2 == 1] *= _OTHER_LANGUAGE
    if turns and windows is not None:
        parts[:, matches.docs.searchsorted(windows[:, 2])] *= turn_factors(turns.sizes)
    total = float(np.dot(parts[:3].any(axis=1), weights[:3])) or 1.0
    own = np.add.reduce(parts[:3]) / total
    if neighbours > 0 and windows is not None and len(windows):
        extra = neighbours * _neighbour_scores(matches.docs, own, windows)
        extra = _with_a_clear_first(own, extra)
        if turns:
            extra += neighbours * reply_scores(matches.docs, own, windows, turns.replies)
        parts[3] = total * extra
    factors = _factors(matches)
    scores = (own + parts[3] / total) * factors
    parts *= factors
    largest = max(1.0, float(np.maximum.reduce(scores, initial=0.0)))
    scores = np.minimum(1.0, scores / largest)
    order = (-scores).argsort(kind="stable")
    parts /= total * largest
    return Fused(matches.take(order), scores[order], parts.T[order], strengths(matches, languages)[order])


def _with_a_clear_first(own: Floats, extra: Floats) -> Floats:
    """Return the scores that neighbours add; a document clearly first by its own evidence stays as clearly first."""
    first = int(own.argmax())
    before = own[first]
    own[first] = -1.0
    if np.maximum.reduce(own) < _CLEAR_SHARE * before:
        extra[first] = max(extra[first], (own + extra).max() / _CLEAR_SHARE - before)
    own[first] = before
    return extra


def _neighbour_scores(docs: Ids, scores: Floats, windows: Ids) -> Floats:
    """Return the decayed sum of neighbours' scores for each document, as far as the windows reach."""
    at = positions(docs, windows)
    at = np.take_along_axis(
        at, np.argsort(at < 0, axis=1, kind="stable"), 1
    )  # documents that are no candidates go to the end
    pairs: list[Any] = []
    for distance in range(1, len(_NEIGHBOUR_DECAY) + 1):
        first, second = at[:, :-distance].ravel(), at[:, distance:].ravel()
        pairs.append((((distance - 1) * len(docs) + first) * len(docs) + second)[second >= 0])
    pair, second = np.divmod(np.unique(np.concatenate(pairs)), len(docs))  # overlapping windows contain the same pair
    distance, first = np.divmod(pair, len(docs))
    decay = np.array(_NEIGHBOUR_DECAY)[distance]
    extra = np.zeros(len(docs))
    for receiver, giver in ((first, second), (second, first)):
        extra += np.bincount(receiver, decay * scores[giver], len(docs))
    return extra


def _scaled(values: Floats, weight: float) -> Floats:
    """Return each value over the largest, times `weight`; 0 for values below 0 and none."""
    positive = np.fmax(values, 0.0)
    best = float(np.maximum.reduce(positive, initial=0.0))  # as `max`, without Python around it
    return positive * (weight / best) if best > 0 else positive
